"""How parameters are kept: sparse, without gaps, without numbers that are none."""

from __future__ import annotations

from collections.abc import Iterator

from snapviewer.model.parameters import Parameter
from snapviewer.model.placement import LINE_BYTES
from snapviewer.model.quantity import Quantity
from snapviewer.model.recommend.gains import named
from snapviewer.model.recommend.registry import (
    Advice,
    Known,
    Recommendation,
    parameter_recommender,
    recommender,
)
from snapviewer.text.units import count_of

_SPARSE = 0.7
# What a walk may touch beside what it uses, in tensors of more than a few lines.
_WASTEFUL = 1.5


@recommender
def store_sparse(known: Known) -> Iterator[Recommendation]:
    """All weights that are mostly zeros."""
    total = known.parameters.size_bytes
    fitting = [item for item in known.parameters.counted if _is_sparse(item)]
    saved = sum(round(item.size_bytes * (2 * (item.sparsity or 0.0) - 1)) for item in fitting)
    if saved > 0 and total:
        yield Recommendation(
            "storage",
            f"Store {count_of(len(fitting), 'tensor')} sparse",
            named(fitting),
            Quantity(saved, "bytes", "estimated", "an index costs about as much as a value"),
            saved / total,
            f"{_SPARSE:.0%} of their elements or more are zero",
        )


def _is_sparse(item: Parameter) -> bool:
    return (item.sparsity or 0.0) >= _SPARSE and len(item.shape) >= 2


@parameter_recommender
def store_parameter(item: Parameter) -> Iterator[Advice]:
    """What is odd about how one parameter is kept."""
    if _is_sparse(item):
        yield Advice("storage", "Store sparse", f"{item.sparsity or 0:.0%} of its elements are 0")
    if item.stats is not None and item.stats.nan + item.stats.inf:
        yield Advice(
            "storage",
            "Check its values before anything else",
            f"{item.stats.nan:,} are NaN and {item.stats.inf:,} infinite",
        )
    place = item.placement
    if place is None or item.size_bytes <= 8 * LINE_BYTES:
        return
    aligned = int(place.alignment.value or 0)
    if aligned < place.item_bytes:
        yield Advice(
            "layout",
            f"Align it to {LINE_BYTES} bytes when saving",
            f"it begins at a multiple of {aligned} bytes, and its elements have {place.item_bytes}",
        )
    touched = place.locality.value or 0.0
    if touched >= _WASTEFUL:
        yield Advice(
            "layout",
            "Save it contiguous",
            f"a row-major walk touches {touched:.1f} bytes of cache lines for each that it uses",
        )
