"""The program's own spans, in lanes under the timeline.

Cost of drawing: a few array operations, and at most one item of Tk's for every three pixels of a
lane, however many spans there are: neighbours that are narrower are drawn together. That still is
several milliseconds for hundreds of spans, so in a motion they are moved along, and drawn anew ten
times a second.
"""

from __future__ import annotations

import tkinter as tk
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from time import monotonic
from tkinter import font as tkfont
from tkinter import ttk

import numpy as np
import numpy.typing as npt

from snapviewer.gui.document import Axis, Trace
from snapviewer.gui.state import State
from snapviewer.gui.theme import SMALL, palette_of, px
from snapviewer.gui.views import View
from snapviewer.snapshot.annotations import Span
from snapviewer.snapshot.clock import shown_us
from snapviewer.text.sanitize import sanitize
from snapviewer.text.units import count_of, format_duration

from .axes import LabelWidth
from .tip import Tip

MOST_LANES = 6
_LEAST_PX = 3.0
_BETWEEN_MS = 100
_ROOM = 0.02  # beside a span that is zoomed to
_MOST_NAME = 200  # characters of a span's name

Places = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Lane:
    """The spans of one lane, which do not overlap, and where they are on an axis."""

    spans: tuple[Span, ...]
    start: Places
    end: Places

    def part(self, left: float, right: float) -> slice:
        """Return which of them are in a part of the axis."""
        first = int(np.searchsorted(self.end, left, side="left"))
        return slice(first, max(int(np.searchsorted(self.start, right, side="right")), first))


@dataclass(frozen=True, slots=True)
class Mark:
    """Something drawn: from and to in pixels, and the spans that it stands for."""

    lane: int
    left: float
    right: float
    first: int
    last: int


def lanes_of(trace: Trace, axis: Axis) -> tuple[Lane, ...]:
    """Lay the spans of a device out on an axis."""
    by_lane: list[list[Span]] = []
    for span in trace.spans:
        while len(by_lane) <= span.lane:
            by_lane.append([])
        by_lane[span.lane].append(span)
    return tuple(_lane(trace, axis, tuple(spans)) for spans in by_lane)


def _lane(trace: Trace, axis: Axis, spans: tuple[Span, ...]) -> Lane:
    if axis == "event":
        ends = [(span.start_event, span.end_event) for span in spans]
    else:
        ends = [(span.start_us, span.end_us) for span in spans]
    places = np.array(ends, dtype=np.float64).reshape(-1, 2)
    clock = trace.clock_of(axis)
    if clock is not None:
        places = shown_us(clock, places)
    return Lane(spans, places[:, 0].copy(), places[:, 1].copy())


def marks_of(lane: Lane, number: int, left: float, right: float, width_px: float) -> Iterator[Mark]:
    """Say what to draw of a lane: each span, or several neighbours where they are too narrow.

    Args:
        lane: The spans.
        number: Which lane it is.
        left: Where the view begins on the axis.
        right: Where it ends.
        width_px: How wide it is on the screen.
    """
    part = lane.part(left, right)
    scale = width_px / (right - left)
    starts = np.clip((lane.start[part] - left) * scale, -1.0, width_px + 1.0)
    ends = np.clip((lane.end[part] - left) * scale, -1.0, width_px + 1.0)
    is_narrow = ends - starts < _LEAST_PX
    # Two narrow ones with no room to see between them are drawn as one.
    is_joined = np.zeros(len(starts), dtype=np.bool_)
    is_joined[1:] = is_narrow[1:] & is_narrow[:-1] & (np.diff(starts) < 2 * _LEAST_PX)
    firsts = np.flatnonzero(~is_joined)
    for first, last in pairwise([*firsts.tolist(), len(starts)]):
        end = max(float(ends[last - 1]), float(starts[last - 1]) + _LEAST_PX)
        yield Mark(number, float(starts[first]), end, part.start + first, part.start + last)


class Lanes(ttk.Frame):
    """Draws the spans of the device that is shown; takes no room if there are none."""

    def __init__(self, parent: tk.Misc, state: State) -> None:
        super().__init__(parent)
        self._state = state
        self._lanes: tuple[Lane, ...] = ()
        self._laid_out: object = None
        self._marks: dict[int, Mark] = {}
        self._hovered: int | None = None
        self._due: str | None = None
        self._font = tkfont.Font(self, name=SMALL, exists=True)
        self._width_of = LabelWidth(self)
        self._canvas = tk.Canvas(self, height=1, width=1, highlightthickness=0, borderwidth=0)
        self._tip = Tip(self.winfo_toplevel())
        self._canvas.bind("<Configure>", lambda _: self._draw_soon())
        self._canvas.bind("<Motion>", self._moved)
        self._canvas.bind("<Leave>", lambda _: self._unhover())
        self._canvas.bind("<Button-1>", self._pressed)
        for topic in ("document", "device", "look", "panes"):
            state.on(topic, self._changed)
        state.on("view", self._follow)
        self._drawn_at, self._drawn, self._moved_px = 0.0, state.view, 0.0
        self._changed()

    @property
    def is_shown(self) -> bool:
        """Whether there is anything to show, and it is to be shown."""
        return bool(self._lanes) and self._state.settings.show_lanes

    def _changed(self) -> None:
        trace, axis = self._state.trace, self._state.look.axis
        of = (trace, trace and trace.times, axis)
        if self._laid_out != of:
            self._lanes = () if trace is None else lanes_of(trace, axis)
            self._laid_out = of
        self._canvas.configure(background=palette_of(self._state.look.theme).background)
        if self.is_shown:
            self._canvas.configure(height=self._lane_px * self._rows + px(self, 2))
            self._canvas.pack(fill="both", expand=True)
            self._draw_soon()
        else:
            self._canvas.pack_forget()
            self.configure(height=1)

    @property
    def _rows(self) -> int:
        return min(len(self._lanes), MOST_LANES)

    @property
    def _lane_px(self) -> int:
        return self._font.metrics("linespace") + px(self, 4)

    def _follow(self) -> None:
        """Go along with the view: move what is there, and draw it anew soon."""
        old, new = self._drawn, self._state.view
        if self.is_shown and abs(old.width - new.width) <= 1e-9 * old.width:
            by = (old.left - new.left) * self._canvas.winfo_width() / new.width
            self._canvas.move("all", by - self._moved_px, 0)
            self._moved_px = by
        self._draw_soon(round(self._drawn_at + _BETWEEN_MS - 1000 * monotonic()))

    def _draw_soon(self, wait_ms: int = 0) -> None:
        if wait_ms > 0 and self._due is None:
            self._due = self.after(wait_ms, self._draw)
        elif wait_ms <= 0:
            if self._due is not None:
                self.after_cancel(self._due)
            self._due = self.after_idle(self._draw)

    def _draw(self) -> None:
        self._due = None
        self._drawn, self._drawn_at = self._state.view, 1000 * monotonic()
        self._moved_px = 0.0
        self._unhover()
        canvas = self._canvas
        canvas.delete("all")
        self._marks.clear()
        width = canvas.winfo_width()
        if not self.is_shown or width <= 1:
            return
        view = self._state.view
        for number, lane in enumerate(self._lanes[: self._rows]):
            self._draw_marks([*marks_of(lane, number, view.left, view.right, width)])
        if more := len(self._lanes) - self._rows:
            self._tell_more(more, width)

    def _draw_marks(self, marks: Sequence[Mark]) -> None:
        canvas, height = self._canvas, self._lane_px
        colors = palette_of(self._state.look.theme)
        for item, mark in zip(self._boxes(marks, colors.border), marks, strict=True):
            self._marks[item] = mark
        pad = px(self, 4)
        least, width = self._width_of("…m") + 2 * pad, canvas.winfo_width()
        for mark in marks:
            left = max(mark.left, 0.0)
            room = min(mark.right - 1, width) - left
            if room >= least:
                canvas.create_text(
                    left + pad,
                    mark.lane * height + 1 + height // 2,
                    anchor="w",
                    text=self._fitting(self._label_of(mark), room - 2 * pad),
                    font=SMALL,
                    fill=colors.secondary,
                    state="disabled",
                    tags="words",
                )

    def _boxes(self, marks: Sequence[Mark], color: str) -> list[int]:
        """Draw a box for each mark: hundreds, at each step of a pan.

        One script for all takes 4 µs a box, a call for each 20. It has numbers only: names are
        somebody else's words, and never part of a script.
        """
        height = self._lane_px
        lines = []
        for mark in marks:
            top = mark.lane * height + 1
            # A pixel of background stays between neighbours.
            right = max(mark.right - 1, mark.left + 1)
            box = f"{mark.left:.1f} {top} {right:.1f} {top + height - 1}"
            lines.append(f"[{self._canvas} create rectangle {box} -width 0 -fill {color}]")
        made = self.tk.eval(f"list {' '.join(lines)}")
        return [int(item) for item in self.tk.splitlist(made)]

    def _fitting(self, text: str, room: float) -> str:
        """Cut a text with … so that it fits."""
        if self._width_of(text) <= room:
            return text
        room -= self._width_of("…")
        for place, character in enumerate(text):
            room -= self._width_of(character)
            if room < 0:
                return f"{text[:place]}…" if place else ""
        return text

    def _tell_more(self, more: int, width: int) -> None:
        colors = palette_of(self._state.look.theme)
        canvas, pad = self._canvas, px(self, 4)
        text = canvas.create_text(
            width - pad,
            self._rows * self._lane_px - self._lane_px // 2,
            anchor="e",
            text=f"+{count_of(more, 'lane')}",
            font=SMALL,
            fill=colors.secondary,
            state="disabled",
            tags="words",
        )
        box = canvas.bbox(text)
        back = canvas.create_rectangle(
            box[0] - pad, box[1], width, box[3], width=0, fill=colors.background, state="disabled"
        )
        canvas.tag_raise(text, back)

    # The mouse

    def _item_at(self, x: int, y: int) -> int | None:
        found = self._canvas.find_closest(x, y, halo=1)
        item = found[0] if found else None
        if item not in self._marks:
            return None
        left, top, right, bottom = self._canvas.coords(item)
        return item if left - 1 <= x <= right + 1 and top <= y <= bottom else None

    def _moved(self, event: tk.Event[tk.Canvas]) -> None:
        item = self._item_at(event.x, event.y)
        if item != self._hovered:
            self._unhover()
            self._hovered = item
            if item is not None:
                colors = palette_of(self._state.look.theme)
                self._canvas.itemconfigure(item, fill=colors.marked)
                self._canvas.configure(cursor="hand2")
        if item is not None:
            top = self.winfo_toplevel()
            x, y = event.x_root - top.winfo_rootx(), event.y_root - top.winfo_rooty()
            words = self.words_of(self._marks[item])
            self._tip.show(words, x, y, palette_of(self._state.look.theme))

    def _unhover(self) -> None:
        if self._hovered is not None:
            colors = palette_of(self._state.look.theme)
            self._canvas.itemconfigure(self._hovered, fill=colors.border)
            self._canvas.configure(cursor="")
            self._hovered = None
        self._tip.hide()

    def _label_of(self, mark: Mark) -> str:
        count = mark.last - mark.first
        return _name(self._span_of(mark)) if count == 1 else count_of(count, "span")

    def words_of(self, mark: Mark) -> str:
        """Say what a mark is."""
        if mark.last - mark.first > 1:
            return f"{self._label_of(mark)}: zoom in to tell them apart"
        span = self._span_of(mark)
        least = "at least " if span.is_open_start or span.is_open_end else ""
        return (
            f"{_name(span)}\n{least}{format_duration(span.end_us - span.start_us)}"
            f" · {count_of(span.end_event - span.start_event, 'event')}"
        )

    def _span_of(self, mark: Mark) -> Span:
        return self._lanes[mark.lane].spans[mark.first]

    def _pressed(self, event: tk.Event[tk.Canvas]) -> None:
        item = self._item_at(event.x, event.y)
        if item is None:
            return
        mark = self._marks[item]
        lane, view = self._lanes[mark.lane], self._state.view
        left = float(lane.start[mark.first])
        right = float(lane.end[mark.first : mark.last].max())
        room = (right - left) * _ROOM
        self._state.go(View(left - room, right + room, view.low, view.high))


def _name(span: Span) -> str:
    return sanitize(span.name, _MOST_NAME)
