"""Matrices that two thinner ones could stand for."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from snapviewer.model.parameters import Parameter
from snapviewer.model.quantity import Quantity
from snapviewer.model.recommend.gains import named
from snapviewer.model.recommend.registry import (
    Advice,
    Known,
    Recommendation,
    parameter_recommender,
    recommender,
)

# Two factors of this rank or less take at most half of the matrix.
_WORTH = 0.5


def _factored(item: Parameter) -> tuple[int, float] | None:
    """Return the effective rank and what factors of it save, if that is worth it."""
    spectrum = item.quality.spectrum if item.quality else None
    if spectrum is None or spectrum.effective_rank is None or len(item.shape) < 2:
        return None
    rows, columns = spectrum.shape
    rank = ceil(spectrum.effective_rank)
    share = 1 - rank * (rows + columns) / max(1, rows * columns)
    return (rank, share) if share >= _WORTH else None


@recommender
def factorize(known: Known) -> Iterator[Recommendation]:
    """All matrices of a low effective rank."""
    total = known.parameters.size_bytes
    fitting = [(item, found[1]) for item in known.parameters.counted if (found := _factored(item))]
    saved = sum(round(item.size_bytes * share) for item, share in fitting)
    if saved and total:
        yield Recommendation(
            "factorization",
            f"Replace {len(fitting):,} matrices by two factors of their effective rank",
            named([item for item, _ in fitting]),
            Quantity(saved, "bytes", "estimated", "rank × (rows + columns) instead of both"),
            saved / total,
            "the entropy of their singular values is that of far fewer; measure the accuracy after",
        )


@parameter_recommender
def factorize_parameter(item: Parameter) -> Iterator[Advice]:
    """One matrix of a low effective rank."""
    found = _factored(item)
    if found is not None:
        rank, share = found
        yield Advice(
            "factorization",
            f"Replace by two factors of rank {rank:,}",
            f"its effective rank; they take {share:.0%} less",
        )
