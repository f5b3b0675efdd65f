"""The order of an image's numbers in memory: measured where the model ran."""

from __future__ import annotations

from collections.abc import Iterator

from snapviewer.model.image_share import DOMINANT, image_share
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.recommend.registry import Known, Recommendation, recommender

_TITLE = "Use the channels_last memory format"
# Less is not told from chance by runs as few as these.
_LEAST_GAIN = 0.03


@recommender
def channels_last(known: Known) -> Iterator[Recommendation]:
    """Say what it brought; without a run, that it is worth to be tried."""
    share = image_share([node.node for node in known.nodes])
    if share < DOMINANT:
        return
    part = f"{share:.0%} of the FLOPs are convolutions of images"
    layouts = known.profile.layouts if known.profile else None
    if layouts is None:
        why = "not measured: --inference times the model in both formats"
        yield Recommendation(
            "layout", _TITLE, (), unavailable("s", why), 0.0, part, "the time of a run"
        )
        return
    usual, last = layouts.contiguous, layouts.channels_last
    if not usual.median.value or last.median.value is None:
        return
    gain = usual.median.value - last.median.value
    spread = (usual.deviation.value or 0.0) + (last.deviation.value or 0.0)
    # What lies within the spread of the runs may be chance.
    if gain > max(spread, _LEAST_GAIN * usual.median.value):
        yield Recommendation(
            "layout",
            _TITLE,
            (),
            Quantity(gain, "s", "measured", "median contiguous − median channels_last"),
            gain / usual.median.value,
            f"measured: {1e3 * last.median.value:.3g} ms instead of "
            f"{1e3 * usual.median.value:.3g} ms, medians of {usual.runs} runs in turn, "
            f"spreads {1e3 * spread:.2g} ms together; {part}",
            "the time of a run",
        )
