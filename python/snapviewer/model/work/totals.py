"""The work of many nodes together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from snapviewer.model.graph import Node
from snapviewer.model.work.registry import NO_WORK, Uncounted, Work, kind_of, work_of


@dataclass(frozen=True, slots=True)
class Totals:
    """The work of some nodes: all together, by kind of layer, and what could not be counted."""

    work: Work
    by_kind: dict[str, Work]
    """The kinds with the most FLOPs first."""
    counts: dict[str, int]
    """How many nodes are of each kind, uncounted ones too."""
    uncounted: tuple[tuple[Node, str], ...]
    """Nodes with the reasons why."""


def totals_of(nodes: Iterable[Node]) -> Totals:
    """Add up the work of nodes.

    >>> totals_of([]).work.flops
    0
    """
    work = NO_WORK
    by_kind: dict[str, Work] = {}
    counts: dict[str, int] = {}
    uncounted: list[tuple[Node, str]] = []
    for node in nodes:
        kind = kind_of(node.op)
        counts[kind] = counts.get(kind, 0) + 1
        one = work_of(node)
        if isinstance(one, Uncounted):
            uncounted.append((node, one.why))
            continue
        work += one
        by_kind[kind] = by_kind.get(kind, NO_WORK) + one
    ranked = sorted(by_kind.items(), key=lambda item: (-item[1].flops, item[0]))
    return Totals(work, dict(ranked), counts, tuple(uncounted))
