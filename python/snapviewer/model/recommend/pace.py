"""What sets the pace: memory or arithmetic, threads, and what lies between the operations."""

from __future__ import annotations

from collections.abc import Iterator

from snapviewer.model.nodes import NodeFacts
from snapviewer.model.quantity import Quantity
from snapviewer.model.recommend.registry import (
    Advice,
    Known,
    Recommendation,
    node_recommender,
    recommender,
)

# A node that reaches less of its roof than this leaves something to a better kernel.
_FAR_FROM_ROOF = 30.0
# Nodes below this share of the time are not worth to be looked at.
_LEAST_TIME_SHARE = 1.0
_LEAST_OUTSIDE = 0.1


@node_recommender
def pace_of_node(node: NodeFacts) -> Iterator[Advice]:
    """What would make a node faster, by the side of the roof on which it lies."""
    intensity = node.intensity.value
    if node.bound == "memory-bound" and node.moved_bytes and intensity is not None:
        yield Advice(
            "layout",
            "Memory-bound operation - consider data layout optimization, fusion or fewer bits",
            f"{intensity:.3g} FLOPs for each byte are below the ridge ({node.bound_source})",
        )
    share, reached = node.time_share.value, node.of_roof.value
    if share is None or reached is None or share < _LEAST_TIME_SHARE or reached >= _FAR_FROM_ROOF:
        return
    if node.bound == "compute-bound":
        yield Advice(
            "kernel",
            "Far below what the machine can compute: try a larger batch or another kernel",
            f"it reaches {reached:.0f} % of its roof and takes {share:.1f} % of the time",
        )


@recommender
def between_operations(known: Known) -> Iterator[Recommendation]:
    """Time in which no operation ran."""
    profile = known.profile
    if profile is None or not profile.outside.median.value or not profile.profiled.median.value:
        return
    outside = profile.outside.median.value
    share = outside / profile.profiled.median.value
    if share >= _LEAST_OUTSIDE:
        yield Recommendation(
            "overhead",
            "Compile or script the model, or run larger batches",
            (),
            Quantity(outside, "s", "measured", "median of profiled runs, not in any operation"),
            share,
            f"{share:.0%} of a run lie between its operations: Python, dispatch, allocation",
            "the time of a run",
        )


@recommender
def threads(known: Known) -> Iterator[Recommendation]:
    """A number of threads that was faster than the one in use."""
    profile = known.profile
    runs = profile.thread_runs if profile else ()
    if profile is None or len(runs) < 2:
        return
    best = min(runs, key=lambda run: run.time.median.value or float("inf"))
    used = next((run for run in runs if run.threads == profile.threads), None)
    if used is None or best is used or not used.time.median.value or not best.time.median.value:
        return
    gain = used.time.median.value - best.time.median.value
    spread = (used.time.deviation.value or 0.0) + (best.time.deviation.value or 0.0)
    is_shared = profile.system is not None and profile.system.is_shared
    if gain > spread:
        yield Recommendation(
            "threads",
            f"Run with {best.threads} instead of {used.threads} threads (OMP_NUM_THREADS)",
            (),
            Quantity(gain, "s", "measured", "medians of runs with both"),
            gain / used.time.median.value,
            f"parallel efficiency with {used.threads} threads is "
            f"{used.efficiency.value or 0:.2g} %"
            + ("; other programs were running, measure again without them" if is_shared else ""),
            "the time of a run",
        )
