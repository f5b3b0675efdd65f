"""Lines of requested, allocated, active and reserved memory over the image of a timeline.

A column of a line shows the event that its column of the timeline shows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from snapviewer import Curves
from snapviewer.report.theme import THEMES, Color, color_of

from .marks import PixelMark

# Later lines are drawn over earlier ones.
_COLORS: dict[str, dict[str, str]] = {
    "light": {"reserved": "8250df", "active": "bf3989", "allocated": "0969da", "requested": ""},
    "dark": {"reserved": "ab7df8", "active": "f778ba", "allocated": "4493f8", "requested": ""},
}

NAMES = tuple(_COLORS["light"])


def color_of_line(theme: str, name: str) -> Color:
    """Return the colour of a line."""
    code = _COLORS[theme][name]
    return color_of(code) if code else THEMES[theme].text


def amount_lines(
    curves: Curves,
    events: npt.NDArray[np.int64],
    byte_span: tuple[float, float],
    height: int,
    *,
    theme: str,
    unit: int,
) -> Iterator[PixelMark]:
    """Return the lines, over everything.

    Args:
        curves: The four amounts.
        events: The event of each column.
        byte_span: The bytes at the lower and the upper edge.
        height: The height of the image.
        theme: Light or dark.
        unit: The width of a thin line.
    """
    amounts = curves.sample(events)
    low, high = byte_span
    for name in NAMES:
        rows = (high - amounts[name].astype(np.float64)) * height / (high - low)
        y = np.round(rows).clip(-2 * unit, height + unit).astype(np.int64)
        yield from _steps(y, color_of_line(theme, name), unit)


def _steps(y: npt.NDArray[np.int64], color: Color, unit: int) -> Iterator[PixelMark]:
    """Draw a line of steps: one mark where it stays, one where it goes up or down."""
    starts = np.flatnonzero(np.diff(y, prepend=y[0] - 1))
    ends = np.append(starts[1:], len(y))
    before = y[np.maximum(starts - 1, 0)]
    for x, end, here, last in zip(
        starts.tolist(), ends.tolist(), y[starts].tolist(), before.tolist(), strict=True
    ):
        yield PixelMark(x, here - unit, end - x, unit, color, over=True)
        if here != last:
            top = min(here, last) - unit
            yield PixelMark(x, top, unit, abs(here - last) + unit, color, over=True)
