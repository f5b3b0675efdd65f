"""Recommendations from runs: what bounds a node, overhead, threads, layout and batch size."""

from __future__ import annotations

from collections.abc import Iterator

from snapviewer.model.nodes import NodeDetails
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.recommend.registry import (
    Advice,
    Known,
    Recommendation,
    node_recommender,
    recommender,
)
from snapviewer.model.work import MOSTLY_IMAGES, image_share

_RUN_TIME = "the time of a run"
# A node below this percentage of its bound leaves something to a better kernel.
_FAR_FROM_BOUND = 30.0
# Nodes below this percentage of the time are not worth advice.
_MIN_TIME_SHARE = 1.0
_MIN_OVERHEAD = 0.1
# With so few runs, smaller gains cannot be distinguished from chance.
_MIN_LAYOUT_GAIN = 0.03
_CHANNELS_LAST = "Use the channels_last memory format"


@node_recommender
def bound_of_node(node: NodeDetails) -> Iterator[Advice]:
    """Advise on a node that is memory-bound or far below its bound."""
    intensity = node.intensity.value
    if node.bound == "memory-bound" and node.moved_bytes and intensity is not None:
        yield Advice(
            "layout",
            "Memory-bound operation - consider data layout optimization, fusion or fewer bits",
            f"{intensity:.3g} FLOPs per byte are below the ridge ({node.bound_source})",
        )
    share, reached = node.time_share.value, node.of_roof.value
    if share is None or reached is None or share < _MIN_TIME_SHARE or reached >= _FAR_FROM_BOUND:
        return
    if node.bound == "compute-bound":
        yield Advice(
            "kernel",
            "Far below what the machine can compute: try a larger batch or another kernel",
            f"it reaches {reached:.0f} % of its bound and takes {share:.1f} % of the time",
        )


@recommender
def overhead(known: Known) -> Iterator[Recommendation]:
    """Recommend to reduce the time in which no operation runs."""
    profile = known.profile
    if profile is None or not profile.outside.median.value or not profile.profiled.median.value:
        return
    outside = profile.outside.median.value
    share = outside / profile.profiled.median.value
    if share >= _MIN_OVERHEAD:
        yield Recommendation(
            "overhead",
            "Compile or script the model, or run larger batches",
            (),
            Quantity(outside, "s", "measured", "median of profiled runs, not in any operation"),
            share,
            f"{100 * share:.0f} % of a run is between its operations: Python, dispatch, allocation",
            _RUN_TIME,
        )


@recommender
def threads(known: Known) -> Iterator[Recommendation]:
    """Recommend a number of threads that was faster than the one in use."""
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
            Quantity(gain, "s", "measured", "difference of the medians"),
            gain / used.time.median.value,
            f"parallel efficiency with {used.threads} threads is "
            f"{used.efficiency.value or 0:.2g} % (of the fastest runs)"
            + ("; other programs were running: measure again without them" if is_shared else ""),
            _RUN_TIME,
        )


@recommender
def channels_last(known: Known) -> Iterator[Recommendation]:
    """Recommend channels_last if it was faster, or to try it if the model was not run."""
    share = image_share([node.node for node in known.nodes])
    if share < MOSTLY_IMAGES:
        return
    part = f"{100 * share:.0f} % of the FLOPs are convolutions of images"
    layouts = known.profile.layouts if known.profile else None
    if layouts is None:
        why = "not measured: --inference times the model in both formats"
        yield Recommendation(
            "layout", _CHANNELS_LAST, (), unavailable("s", why), 0.0, part, _RUN_TIME
        )
        return
    usual, last = layouts.contiguous, layouts.channels_last
    if not usual.median.value or last.median.value is None:
        return
    gain = usual.median.value - last.median.value
    spread = (usual.deviation.value or 0.0) + (last.deviation.value or 0.0)
    # A gain within the spread of the runs may be chance.
    if gain > max(spread, _MIN_LAYOUT_GAIN * usual.median.value):
        yield Recommendation(
            "layout",
            _CHANNELS_LAST,
            (),
            Quantity(gain, "s", "measured", "median contiguous − median channels_last"),
            gain / usual.median.value,
            f"measured: {1e3 * last.median.value:.3g} ms instead of "
            f"{1e3 * usual.median.value:.3g} ms, medians of {usual.runs} alternating runs, "
            f"sum of deviations {1e3 * spread:.2g} ms; {part}",
            _RUN_TIME,
        )


@recommender
def batch_size(known: Known) -> Iterator[Recommendation]:
    """Recommend the smallest batch that is nearly as good as the best."""
    batches = known.profile.batches if known.profile else None
    if batches is None or batches.advised == 1:
        return
    one = batches.runs[0].per_example.value
    best = next(run for run in batches.runs if run.size == batches.advised)
    each = best.per_example.value
    if not one or not each or each >= one:
        return
    yield Recommendation(
        "batch",
        f"Run batches of {batches.advised} where latency allows it",
        (),
        Quantity(one - each, "s", "measured", "time per example alone − in the batch"),
        1 - each / one,
        f"measured: {_rate(one)} examples/s alone, {_rate(each)} in the batch; {batches.ended}",
        "the time of an example",
    )


def _rate(seconds: float) -> str:
    rate = 1 / seconds
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"
