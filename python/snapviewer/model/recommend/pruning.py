"""Fewer values: the smallest weights, and whole output channels."""

from __future__ import annotations

from collections.abc import Iterator

from snapviewer.model.measures import PRUNABLE_LOSS, pruning_potential
from snapviewer.model.nodes import NodeFacts
from snapviewer.model.parameters import Parameter
from snapviewer.model.quantity import Quantity
from snapviewer.model.recommend.gains import named
from snapviewer.model.recommend.registry import (
    Advice,
    Known,
    Recommendation,
    node_recommender,
    parameter_recommender,
    recommender,
)
from snapviewer.text.units import count_of

# Less than this share is not worth the trouble.
_LEAST_PRUNED = 0.1
_LOSS = f"at most {PRUNABLE_LOSS:.0%} of the squared norm"
_SPARSE = "saves bytes only if stored sparse, and time only with kernels for sparse weights"
_SMALL = "norms below 10 % of the median of the tensor"


@recommender
def smallest_weights(known: Known) -> Iterator[Recommendation]:
    """Unstructured pruning of all tensors that allow it."""
    total = known.parameters.size_bytes
    fitting = [
        (item, potential)
        for item in known.parameters.counted
        if (potential := _prunable(item)) is not None
    ]
    saved = sum(round(item.size_bytes * potential) for item, potential in fitting)
    if saved and total:
        yield Recommendation(
            "pruning",
            f"Prune the smallest weights of {count_of(len(fitting), 'tensor')} (unstructured)",
            named([item for item, _ in fitting]),
            Quantity(saved, "bytes", "computed", "values set to zero; stored sparse they go"),
            saved / total,
            f"{_LOSS} of each is lost; {_SPARSE}",
        )


def _prunable(item: Parameter) -> float | None:
    potential = pruning_potential(item) or 0.0
    return potential if potential >= _LEAST_PRUNED and len(item.shape) >= 2 else None


@recommender
def small_channels(known: Known) -> Iterator[Recommendation]:
    """Structured pruning: output channels that hardly say anything."""
    total = known.parameters.size_bytes
    fitting = [(item, *_small(item)) for item in known.parameters.counted if _small(item)[0]]
    channels = sum(small for _, small, _ in fitting)
    saved = sum(item.size_bytes * small // count for item, small, count in fitting)
    if saved and total:
        yield Recommendation(
            "pruning",
            f"Remove {count_of(channels, 'output channel')} of "
            f"{count_of(len(fitting), 'tensor')} (structured)",
            named([item for item, _, _ in fitting]),
            Quantity(saved, "bytes", "computed", "the rows of these channels"),
            saved / total,
            _SMALL,
        )


def _small(item: Parameter) -> tuple[int, int]:
    """Return how many channels are small, and how many there are."""
    rows = item.quality.channels if item.quality else None
    if rows is None or len(item.shape) < 2 or rows.median_norm == 0:
        return 0, 1
    return rows.small, rows.count


@parameter_recommender
def prune_parameter(item: Parameter) -> Iterator[Advice]:
    """Both kinds of pruning, of one parameter."""
    small, count = _small(item)
    if small:
        yield Advice(
            "pruning",
            f"Good candidate for structured pruning: {small:,} of {count:,} channels",
            _SMALL,
        )
    potential = _prunable(item)
    if potential is not None:
        yield Advice("pruning", f"Prune the smallest {potential:.0%} of the values", _LOSS)


@node_recommender
def prune_node(node: NodeFacts) -> Iterator[Advice]:
    """Both kinds of pruning, of the weights that a node uses."""
    small = sum(_small(item)[0] for item in node.parameters)
    if small:
        yield Advice("pruning", f"Remove {small:,} of its output channels (structured)", _SMALL)
    if any(_prunable(item) is not None for item in node.parameters) and node.pruning.value:
        yield Advice(
            "pruning",
            f"Prune {node.pruning.value:.0f} % of its weights (unstructured)",
            f"{_LOSS} is lost; {_SPARSE}",
        )
