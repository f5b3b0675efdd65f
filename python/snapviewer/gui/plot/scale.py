"""Where the axes of the plot have their marks, and in which pixel anything is. Without Tk."""

from __future__ import annotations

from dataclasses import dataclass

from snapviewer.gui.state import State
from snapviewer.report.picture.view import pieces_of
from snapviewer.report.ticks import Ticks, WidthOf, byte_ticks, number_ticks, time_ticks

_BYTE_TICK_PX = 44


@dataclass(frozen=True, slots=True)
class Scales:
    """The marks of both axes, each with its pixel in the plot."""

    x: tuple[tuple[int, str], ...]
    y: tuple[tuple[int, str], ...]
    x_unit: str
    y_unit: str


def scales_of(state: State, width_of: WidthOf, factor: float) -> Scales:
    """Mark the axes for what is shown now.

    Args:
        state: What is shown.
        width_of: How wide a label is.
        factor: How many pixels one of a plain screen is.
    """
    width, height = state.plot_px
    if state.trace is None or width < 20 or height < 20:
        return Scales((), (), "", "")
    view = state.view
    low, high = view.byte_span
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
