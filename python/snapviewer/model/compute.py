"""What a model computes in all, as numbers that say how sure they are."""

from __future__ import annotations

from typing import NamedTuple

from snapviewer.model.graph import Graph
from snapviewer.model.quantity import Quantity, Status, unavailable
from snapviewer.model.work import Totals

NO_GRAPH = "the file has no graph"


class Compute(NamedTuple):
    """The multiply-adds and the operations of a run."""

    macs: Quantity
    flops: Quantity


def compute_of(graph: Graph | None, totals: Totals | None) -> Compute:
    """Return the totals: computed; estimated if the graph has doubts; unavailable, never a zero.

    >>> compute_of(None, None).macs.status
    'unavailable'
    """
    if graph is None or totals is None:
        return Compute(unavailable("MAC", NO_GRAPH), unavailable("FLOP", NO_GRAPH))
    if not totals.work.flops and (graph.doubts or totals.uncounted):
        why = graph.doubts[0] if graph.doubts else f"uncounted: {totals.uncounted[0][1]}"
        return Compute(unavailable("MAC", why), unavailable("FLOP", why))
    source = f"formulas on the shapes of the {graph.source} graph"
    status: Status = "computed"
    if graph.doubts:
        status, source = "estimated", f"{source}; {graph.doubts[0]}"
    return Compute(
        Quantity(totals.work.macs, "MAC", status, source),
        Quantity(totals.work.flops, "FLOP", status, source),
    )
