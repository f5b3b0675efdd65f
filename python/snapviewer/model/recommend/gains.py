"""What recommendations save: bytes of parameters, traffic of nodes, or time that was measured."""

from __future__ import annotations

from collections.abc import Sequence

from snapviewer.model.nodes import NodeFacts
from snapviewer.model.parameters import Parameter
from snapviewer.model.quantity import Quantity
from snapviewer.model.recommend.registry import Known

_MOST_NAMED = 20


def named(items: Sequence[Parameter]) -> tuple[str, ...]:
    """Return the names of the largest parameters."""
    ranked = sorted(items, key=lambda item: -item.size_bytes)
    return tuple(item.name for item in ranked[:_MOST_NAMED])


def places(nodes: Sequence[NodeFacts]) -> tuple[str, ...]:
    """Return where nodes are: their modules, or what they are called."""
    return tuple(node.node.module or node.name for node in nodes[:_MOST_NAMED])


def seconds_of(nodes: Sequence[NodeFacts]) -> float:
    """Return the measured time of nodes; those without one count as none."""
    return sum(node.time.value or 0.0 for node in nodes)


def time_gain(known: Known, nodes: Sequence[NodeFacts], what: str) -> tuple[Quantity, float] | None:
    """Return the time of nodes as a gain and as a share of a run; None if it was not measured."""
    run = known.profile.plain.median.value if known.profile else None
    seconds = seconds_of(nodes)
    if not run or not seconds:
        return None
    source = f"{what}; median times of {len(nodes):,} operations in the run"
    return Quantity(seconds, "s", "estimated", source), min(1.0, seconds / run)
