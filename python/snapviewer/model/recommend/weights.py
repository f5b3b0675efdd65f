"""Fewer or better stored weights: pruning, low rank, sparse storage, alignment."""

from __future__ import annotations

from collections.abc import Iterator

from snapviewer.model.compression import PRUNABLE_LOSS, pruning_potential
from snapviewer.model.nodes import NodeDetails
from snapviewer.model.parameters import Parameter
from snapviewer.model.placement import LINE_BYTES
from snapviewer.model.recommend.registry import (
    Advice,
    Known,
    Recommendation,
    bytes_saved,
    node_recommender,
    parameter_recommender,
    recommender,
)
from snapviewer.text.units import count_of

# A smaller share is not worth pruning.
_MIN_PRUNED = 0.1
# The share of a matrix that two factors must save, and the share of its squared norm to keep.
_MIN_FACTORED = 0.5
_MIN_KEPT = 0.99
# The share of zeros from which sparse storage is smaller.
_MIN_ZEROS = 0.7
# Bytes of cache lines touched per byte used, in tensors of more than a few lines.
_WASTEFUL = 1.5
_LOSS = f"at most {100 * PRUNABLE_LOSS:.0f} % of the squared norm"
_SPARSE_KERNELS = "saves bytes only if stored sparse, and time only with kernels for sparse weights"
_SMALL_CHANNELS = "norms below 10 % of the median, or 1 % of the root mean square, of all channels"


@recommender
def smallest_weights(known: Known) -> Iterator[Recommendation]:
    """Unstructured pruning of all tensors that allow it."""
    saved = [
        (item, round(item.size_bytes * potential))
        for item in known.parameters.counted
        if (potential := _prunable(item)) is not None
    ]
    yield from bytes_saved(
        known,
        saved,
        "pruning",
        f"Prune the smallest weights of {count_of(len(saved), 'tensor')} (unstructured)",
        "computed",
        "values set to zero, if stored sparse",
        f"{_LOSS} of each is lost; {_SPARSE_KERNELS}",
    )


def _prunable(item: Parameter) -> float | None:
    potential = pruning_potential(item) or 0.0
    return potential if potential >= _MIN_PRUNED and len(item.shape) >= 2 else None


@recommender
def small_channels(known: Known) -> Iterator[Recommendation]:
    """Structured pruning of output channels with small norms."""
    small = [(item, *_small_channels(item)) for item in known.parameters.counted]
    saved = [(item, item.size_bytes * few // count) for item, few, count in small if few]
    channels = sum(few for _, few, _ in small)
    yield from bytes_saved(
        known,
        saved,
        "pruning",
        f"Remove {count_of(channels, 'output channel')} of "
        f"{count_of(len(saved), 'tensor')} (structured)",
        "computed",
        "the rows of these channels",
        _SMALL_CHANNELS,
    )


def _small_channels(item: Parameter) -> tuple[int, int]:
    """Return how many channels are small, and how many there are."""
    rows = item.quality.channels if item.quality else None
    if rows is None or len(item.shape) < 2:
        return 0, 1
    return rows.small, rows.count


@parameter_recommender
def prune_parameter(item: Parameter) -> Iterator[Advice]:
    """Both kinds of pruning, for one parameter."""
    small, count = _small_channels(item)
    if small:
        yield Advice(
            "pruning",
            f"Good candidate for structured pruning: {small:,} of {count:,} channels",
            _SMALL_CHANNELS,
        )
    potential = _prunable(item)
    if potential is not None:
        yield Advice("pruning", f"Prune the smallest {100 * potential:.0f} % of the values", _LOSS)


@node_recommender
def prune_node(node: NodeDetails) -> Iterator[Advice]:
    """Both kinds of pruning, for the weights of a node."""
    small = sum(_small_channels(item)[0] for item in node.parameters)
    if small:
        title = f"Remove {small:,} of its output channels (structured)"
        yield Advice("pruning", title, _SMALL_CHANNELS)
    if any(_prunable(item) is not None for item in node.parameters) and node.pruning.value:
        yield Advice(
            "pruning",
            f"Prune {node.pruning.value:.0f} % of its weights (unstructured)",
            f"{_LOSS} is lost; {_SPARSE_KERNELS}",
        )


@recommender
def factorize(known: Known) -> Iterator[Recommendation]:
    """All matrices of low rank."""
    saved = [
        (item, round(item.size_bytes * found[1]))
        for item in known.parameters.counted
        if (found := _factored(item))
    ]
    yield from bytes_saved(
        known,
        saved,
        "factorization",
        f"Replace {count_of(len(saved), 'tensor')} by two factors of low rank",
        "estimated",
        "rank × (rows + columns) instead of rows × columns",
        f"{100 * _MIN_KEPT:.0f} % of the squared norm of each is kept; "
        "measure the accuracy afterwards",
    )


@parameter_recommender
def factorize_parameter(item: Parameter) -> Iterator[Advice]:
    """One matrix of low rank."""
    found = _factored(item)
    if found is not None:
        rank, share = found
        yield Advice(
            "factorization",
            f"Replace by two factors of rank {rank:,}",
            f"they keep {100 * _MIN_KEPT:.0f} % of the squared norm "
            f"and take {100 * share:.0f} % less",
        )


def _factored(item: Parameter) -> tuple[int, float] | None:
    """Return a sufficient rank and the share that two factors save, if it is large enough."""
    spectrum = item.quality.spectrum if item.quality else None
    if spectrum is None or (spectrum.captured or 0.0) < _MIN_KEPT or len(item.shape) < 2:
        return None
    rows, columns = spectrum.shape
    share = 1 - spectrum.iterations * (rows + columns) / max(1, rows * columns)
    return (spectrum.iterations, share) if share >= _MIN_FACTORED else None


@recommender
def store_sparse(known: Known) -> Iterator[Recommendation]:
    """All weights that are mostly zeros."""
    saved = [
        (item, round(item.size_bytes * (2 * (item.sparsity or 0.0) - 1)))
        for item in known.parameters.counted
        if _is_sparse(item)
    ]
    yield from bytes_saved(
        known,
        saved,
        "storage",
        f"Store {count_of(len(saved), 'tensor')} sparse",
        "estimated",
        "an index takes about as much as a value",
        f"{100 * _MIN_ZEROS:.0f} % of their elements or more are zero",
    )


def _is_sparse(item: Parameter) -> bool:
    return (item.sparsity or 0.0) >= _MIN_ZEROS and len(item.shape) >= 2


@parameter_recommender
def store_parameter(item: Parameter) -> Iterator[Advice]:
    """What is unusual about how one parameter is stored."""
    if _is_sparse(item):
        yield Advice(
            "storage", "Store sparse", f"{100 * (item.sparsity or 0):.0f} % of its elements are 0"
        )
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
            f"a row-major walk touches {touched:.1f} bytes of cache lines per byte used",
        )
