"""Ticks of the axes, and the lines and boxes that are drawn onto the timeline. Without Tk.

Grid, peak line and the lines of out-of-memory and `snapshot` events are drawn on the background
only, so that every pixel of an allocation is the engine's. The cursor and the zoom box are drawn
over everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from snapviewer.gui.labels import event_label
from snapviewer.gui.state import State
from snapviewer.gui.values import Pointer
from snapviewer.report.picture.marks import PixelMark, grid, peak_line
from snapviewer.report.picture.view import pieces_of
from snapviewer.report.theme import THEMES, Color
from snapviewer.report.ticks import Ticks, WidthOf, byte_ticks, number_ticks, time_ticks

Box = tuple[int, int, int, int]
"""x and y of one corner, x and y of the other."""

_MAX_EVENT_LINES = 24  # more would hide what they point to
_BYTE_TICK_PX = 44


@dataclass(frozen=True, slots=True)
class Scales:
    """The ticks of both axes: pixels of the plot and their labels."""

    x: tuple[tuple[int, str], ...]
    y: tuple[tuple[int, str], ...]
    x_unit: str
    y_unit: str


def scales_of(state: State, width_of: WidthOf, factor: float) -> Scales:
    """Find the ticks of the axes for the part in view.

    Args:
        state: What is shown.
        width_of: Returns the width of a label.
        factor: The density of the screen; 1 is 96 dpi.
    """
    width, height = state.plot_px
    if state.trace is None or width < 20 or height < 20:
        return Scales((), (), "", "")
    low, high = state.view.byte_span
    y = byte_ticks(low, high, max_ticks=max(2, int(height / (_BYTE_TICK_PX * factor))))
    x = _x_ticks(state, width, width_of)
    return Scales(
        x=tuple((int(state.pixel_of(mark.value, 0)[0]), mark.label) for mark in x.marks),
        y=tuple((round(state.pixel_of(0, mark.value)[1]), mark.label) for mark in y.marks),
        x_unit=x.unit,
        y_unit=y.unit,
    )


def _x_ticks(state: State, width: int, width_of: WidthOf) -> Ticks:
    view, clock = state.view, state.clock
    if state.trace is None or state.trace.events == 0:
        return Ticks((), "")
    if clock is None:
        return number_ticks(view.left, view.right, width, width_of)._replace(unit="events")
    return time_ticks(view.left, view.right, width, width_of, pieces=pieces_of(clock))


def marks_of(state: State, scales: Scales, unit: int, zoom_box: Box | None) -> list[PixelMark]:
    """Return what to draw onto the part in view.

    Args:
        state: What is shown.
        scales: The ticks of the axes.
        unit: The width of a thin line.
        zoom_box: The box that is being drawn with the mouse.
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
    """Return the row of the peak; None if it is not in view."""
    if state.timeline is None or state.timeline.peak_bytes == 0:
        return None
    y = round(state.pixel_of(0, state.timeline.peak_bytes)[1])
    return y if 0 < y < state.plot_px[1] else None


def cursor_column(state: State) -> int | None:
    """Return the column of the cursor; None if it is not in view."""
    if state.trace is None or state.cursor is None or state.cursor < 0:
        return None
    x = int(state.pixel_of(state.trace.x_of(state.look.axis, state.cursor), 0)[0])
    return x if 0 <= x < state.plot_px[0] else None


def columns_of(state: State, events: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the columns in view that contain some of these events, which are sorted."""
    trace = state.trace
    if trace is None or len(events) == 0:
        return np.zeros(0, dtype=np.int64)
    return np.unique(event_columns(state, _near(state, events)))


def event_columns(state: State, events: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the column of each event; all are in view."""
    clock = state.clock
    x = events.astype(np.float64) if clock is None else clock.times[events].astype(np.float64)
    columns = (x - state.view.left) * state.plot_px[0] / state.view.width
    return columns.astype(np.int64).clip(0, state.plot_px[0] - 1)


def flag_text(state: State, pointer: Pointer, reach_px: int) -> str:
    """Describe the flag at the top edge under the pointer; empty if there is none."""
    trace = state.trace
    if trace is None or pointer.y_px > reach_px:
        return ""
    for events, what in (
        (trace.oom_events, "out of memory"),
        (trace.snapshot_events, "snapshot taken"),
    ):
        here = _near(state, events)
        away = np.abs(event_columns(state, here) - pointer.x_px)
        if len(here) and away.min() <= reach_px:
            more = "\nClick to see why." if what == "out of memory" else ""
            return f"{what} at {event_label(trace, int(here[away.argmin()]))}{more}"
    return ""


def flag_at(state: State, pointer: Pointer, reach_px: int) -> int | None:
    """Return the out-of-memory event of the flag under the pointer; None if there is none."""
    trace = state.trace
    if trace is None or pointer.y_px > reach_px:
        return None
    here = _near(state, trace.oom_events)
    away = np.abs(event_columns(state, here) - pointer.x_px)
    return int(here[away.argmin()]) if len(here) and away.min() <= reach_px else None


def _near(state: State, events: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the events in view."""
    first, last = state.visible_events()
    return events[np.searchsorted(events, first) : np.searchsorted(events, last)]


def _event_marks(
    state: State, events: npt.NDArray[np.int64], color: Color, unit: int
) -> Iterator[PixelMark]:
    """PixelMark events with a line down to the timeline, and a flag at the top over everything."""
    columns = columns_of(state, events).tolist()
    for x in columns:
        if len(columns) <= _MAX_EVENT_LINES:
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
