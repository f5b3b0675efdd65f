"""The lines and boxes that are drawn on the timeline's pixels. Without Tk.

Grid, peak and the lines of out-of-memory and `snapshot` events are drawn on the background only, so
that every pixel of an allocation is the engine's. The cursor and the box of a zoom lie over all.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from snapviewer.gui.state import State
from snapviewer.gui.values import Pointer
from snapviewer.gui.words import when_text
from snapviewer.report.picture.marks import PixelMark, grid, peak_line
from snapviewer.report.theme import THEMES, Color

from .scale import Scales

Box = tuple[int, int, int, int]
"""x and y of one corner, x and y of the other."""

_MOST_LINES = 24  # of out-of-memory events: more would hide what they point to


def marks_of(state: State, scales: Scales, unit: int, zoom_box: Box | None) -> list[PixelMark]:
    """Make the marks of what is shown now.

    Args:
        state: What is shown.
        scales: Where the axes are marked.
        unit: How wide a thin line is.
        zoom_box: What is being framed with the mouse.
    """
    _, height = state.plot_px
    theme = THEMES[state.look.theme]
    rows, columns = [y - unit for y, _ in scales.y], [x for x, _ in scales.x]
    marks = grid(state.plot_px, rows, columns, unit, theme)
    if state.trace is not None:
        marks += _event_marks(state, state.trace.snapshot_events, theme.accent, unit)
        marks += _event_marks(state, state.trace.oom_events, theme.oom, unit)
    if (y := peak_row(state)) is not None:
        marks += peak_line(state.plot_px, y - unit, unit, theme)
    if (column := cursor_column(state)) is not None:
        marks.append(PixelMark(column, 0, unit, height, theme.text, alpha=190, over=True))
    if zoom_box is not None:
        marks += _box_marks(zoom_box, theme.accent, unit)
    return marks


def peak_row(state: State) -> int | None:
    """Return the row of the highest point of all that is shown; None if it is not in view."""
    if state.timeline is None or state.timeline.peak_bytes == 0:
        return None
    y = round(state.pixel_of(0, state.timeline.peak_bytes)[1])
    return y if 0 < y < state.plot_px[1] else None


def cursor_column(state: State) -> int | None:
    """Return the column of the event that the panes tell of; None if it is not in view."""
    if state.trace is None or state.cursor is None or state.cursor < 0:
        return None
    x = int(state.pixel_of(state.trace.x_of(state.look.axis, state.cursor), 0)[0])
    return x if 0 <= x < state.plot_px[0] else None


def columns_of(state: State, events: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the columns in view that hold some of these events, which are in order."""
    trace = state.trace
    if trace is None or len(events) == 0:
        return np.zeros(0, dtype=np.int64)
    return np.unique(_columns(state, _near(state, events)))


def _columns(state: State, events: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the column of each of some events in view."""
    clock = state.clock
    x = events.astype(np.float64) if clock is None else clock.times[events].astype(np.float64)
    columns = (x - state.view.left) * state.plot_px[0] / state.view.width
    return columns.astype(np.int64).clip(0, state.plot_px[0] - 1)


def flag_text(state: State, pointer: Pointer, reach_px: int) -> str:
    """Say what the flag on top is that a pointer is at; empty if it is at none."""
    trace = state.trace
    if trace is None or pointer.y_px > reach_px:
        return ""
    for events, what in (
        (trace.oom_events, "out of memory"),
        (trace.snapshot_events, "a snapshot was taken"),
    ):
        here = _near(state, events)
        away = np.abs(_columns(state, here) - pointer.x_px)
        if len(here) and away.min() <= reach_px:
            return f"{what} at {when_text(trace, int(here[away.argmin()]))}"
    return ""


def _near(state: State, events: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return those events that are in view."""
    first, last = state.visible_events()
    return events[np.searchsorted(events, first) : np.searchsorted(events, last)]


def _event_marks(
    state: State, events: npt.NDArray[np.int64], color: Color, unit: int
) -> Iterator[PixelMark]:
    """Mark events with a line down to the timeline, and a flag on top that nothing covers."""
    columns = columns_of(state, events).tolist()
    for x in columns:
        if len(columns) <= _MOST_LINES:
            yield PixelMark(x, 0, unit, state.plot_px[1], color)
        for row in range(4):
            half = (4 - row) * unit
            yield PixelMark(x - half + unit, row * unit, 2 * half - unit, unit, color, over=True)


def _box_marks(box: Box, color: Color, unit: int) -> Iterator[PixelMark]:
    left, right = sorted((box[0], box[2]))
    top, bottom = sorted((box[1], box[3]))
    width, height = right - left, bottom - top
    yield PixelMark(left, top, width, height, color, alpha=40, over=True)
    for y in (top, bottom - unit):
        yield PixelMark(left, y, width, unit, color, over=True)
    for x in (left, right - unit):
        yield PixelMark(x, top, unit, height, color, over=True)
