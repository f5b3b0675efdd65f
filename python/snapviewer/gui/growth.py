"""The growths of the allocator in view: their columns and their texts. No Tk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from snapviewer import Growth
from snapviewer.gui.labels import event_label
from snapviewer.gui.plot.marks import event_columns
from snapviewer.gui.state import State
from snapviewer.report.snapshot.growth import growth_sentence
from snapviewer.report.theme import Color, color_of
from snapviewer.snapshot.growth import CAUSES
from snapviewer.text.units import count_of, format_bytes

# Blue for need, orange for pieces, violet for memory that is kept for others.
_COLORS: dict[str, dict[str, str]] = {
    "light": {"demand": "0969da", "fragments": "d1570b", "other domain": "8250df"},
    "dark": {"demand": "4493f8", "fragments": "f0883e", "other domain": "ab7df8"},
}


def color_of_cause(theme: str, cause: str) -> Color:
    """Return the colour of a cause."""
    return color_of(_COLORS[theme][cause])


@dataclass(frozen=True, slots=True)
class GrowthMark:
    """A column of the plot in which the allocator grew, and the growths, as places."""

    x: int
    cause: str
    growths: tuple[int, ...]


def growth_marks(state: State) -> list[GrowthMark]:
    """Return the columns in view with growths; the cause is the one of most bytes."""
    replay, trace = state.replayed.replay, state.trace
    if replay is None or trace is None or not len(replay.growth_events):
        return []
    first, last = state.visible_events()
    low, high = np.searchsorted(replay.growth_events, (first, last)).tolist()
    if low == high:
        return []
    columns = event_columns(state, replay.growth_events[low:high])
    starts = np.flatnonzero(np.diff(columns, prepend=columns[0] - 1))
    ends = [*starts[1:].tolist(), len(columns)]
    marks = []
    for start, end in zip(starts.tolist(), ends, strict=True):
        places = tuple(range(low + start, low + end))
        marks.append(GrowthMark(int(columns[start]), _main_cause(replay.growths, places), places))
    return marks


def _main_cause(growths: tuple[Growth, ...], places: tuple[int, ...]) -> str:
    by_cause = dict.fromkeys(CAUSES, 0)
    for place in places:
        by_cause[growths[place].cause] += growths[place].grown_bytes
    return max(CAUSES, key=lambda cause: by_cause[cause])


def mark_text(state: State, mark: GrowthMark) -> str:
    """Describe the growths of a column."""
    replay, trace, document = state.replayed.replay, state.trace, state.document
    if replay is None or trace is None or document is None:
        return ""
    largest = max(mark.growths, key=lambda place: replay.growths[place].grown_bytes)
    growth = replay.growths[largest]
    lines = []
    if len(mark.growths) > 1:
        total = sum(replay.growths[place].grown_bytes for place in mark.growths)
        lines.append(
            f"{count_of(len(mark.growths), 'growth')}, {format_bytes(total)}. The largest:"
        )
    lines.append(f"{growth.cause}: {growth_sentence(growth)}")
    lines.append(document.line_of(growth.stack))
    return "\n".join([*lines, event_label(trace, growth.event)])
