"""Annotations, as spans in lanes below the timeline.

Cost of drawing: a few array operations, and at most one canvas item for every three pixels of a
lane, however many spans there are: narrower neighbours are drawn as one. That still takes several
milliseconds for hundreds of spans, so during a motion they are moved, and redrawn ten times a
second.
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
from snapviewer.gui.tips import Tip
from snapviewer.gui.viewport import Viewport
from snapviewer.snapshot.annotations import Span
from snapviewer.snapshot.clock import shown_us
from snapviewer.text.sanitize import sanitize
from snapviewer.text.units import count_of, format_duration

from .axes import LabelWidth

MAX_LANES = 6
MAX_PROFILED = 12  # with those of a profiler
_MIN_PX = 3.0
_REDRAW_MS = 100
_ROOM = 0.02  # beside a span that is zoomed to
_MAX_NAME_CHARS = 200
_MIN_CUT_CHARS = 4  # of a name that does not fit: less is no name

Places = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Lane:
    """The spans of one lane, which do not overlap, and their positions on an axis."""

    spans: tuple[Span, ...]
    start: Places
    end: Places

    def part(self, left: float, right: float) -> slice:
        """Return the spans in a part of the axis."""
        first = int(np.searchsorted(self.end, left, side="left"))
        return slice(first, max(int(np.searchsorted(self.start, right, side="right")), first))


@dataclass(frozen=True, slots=True)
class SpanBox:
    """A box of a lane: its left and right in pixels, and the spans that it stands for."""

    lane: int
    left: float
    right: float
    first: int
    last: int


def lanes_of(
    trace: Trace, axis: Axis, *, steps: Sequence[Span] = (), profiled: Sequence[Span] = ()
) -> tuple[Lane, ...]:
    """Place the spans of a device on an axis: steps first, those of a profiler last."""
    lanes = [*([tuple(steps)] if steps else ()), *_by_lane(trace.spans), *_by_lane(profiled)]
    return tuple(_lane(trace, axis, spans) for spans in lanes)


def _by_lane(spans: Sequence[Span]) -> list[tuple[Span, ...]]:
    by_lane: list[list[Span]] = []
    for span in spans:
        while len(by_lane) <= span.lane:
            by_lane.append([])
        by_lane[span.lane].append(span)
    return [tuple(lane) for lane in by_lane if lane]


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


def boxes_of(
    lane: Lane, number: int, left: float, right: float, width_px: float
) -> Iterator[SpanBox]:
    """Return the boxes of a lane: one per span, or one for several narrow neighbours.

    Args:
        lane: The spans.
        number: The number of the lane.
        left: The left end of the view on the axis.
        right: Its right end.
        width_px: Its width on the screen.
    """
    part = lane.part(left, right)
    scale = width_px / (right - left)
    starts = np.clip((lane.start[part] - left) * scale, -1.0, width_px + 1.0)
    ends = np.clip((lane.end[part] - left) * scale, -1.0, width_px + 1.0)
    is_narrow = ends - starts < _MIN_PX
    # Narrow neighbours without a visible gap are drawn as one.
    is_joined = np.zeros(len(starts), dtype=np.bool_)
    is_joined[1:] = is_narrow[1:] & is_narrow[:-1] & (np.diff(starts) < 2 * _MIN_PX)
    firsts = np.flatnonzero(~is_joined)
    for first, last in pairwise([*firsts.tolist(), len(starts)]):
        end = max(float(ends[last - 1]), float(starts[last - 1]) + _MIN_PX)
        yield SpanBox(number, float(starts[first]), end, part.start + first, part.start + last)


class Lanes(ttk.Frame):
    """The lanes of a device; without annotations they take no room."""

    def __init__(self, parent: tk.Misc, state: State) -> None:
        super().__init__(parent)
        self._state = state
        self._lanes: tuple[Lane, ...] = ()
        self._laid_out: object = None
        self._boxes: dict[int, SpanBox] = {}
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
        state.on(self._changed, "document", "device", "look", "panes", "answers")
        state.on(self._follow, "view")
        self._drawn_at, self._drawn, self._moved_px = 0.0, state.view, 0.0
        self._changed()

    @property
    def is_shown(self) -> bool:
        """Whether there are annotations and they are not hidden."""
        return bool(self._lanes) and self._state.settings.show_lanes

    def _changed(self) -> None:
        trace, axis = self._state.trace, self._state.look.axis
        document = self._state.document
        of = (
            *(trace, trace and trace.times, axis, self._state.answers.found),
            *(document and document.profile, trace and len(trace.profiled)),
        )
        if self._laid_out != of:
            steps = () if trace is None else self._state.answers.step_spans(trace)
            self._lanes = ()
            if trace is not None:
                self._lanes = lanes_of(trace, axis, steps=steps, profiled=trace.profiled)
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
        trace = self._state.trace
        has_profile = trace is not None and bool(trace.profiled)
        return min(len(self._lanes), MAX_PROFILED if has_profile else MAX_LANES)

    @property
    def _lane_px(self) -> int:
        return self._font.metrics("linespace") + px(self, 4)

    def _follow(self) -> None:
        """Follow the view: move the boxes now, and redraw them soon."""
        old, new = self._drawn, self._state.view
        if self.is_shown and abs(old.width - new.width) <= 1e-9 * old.width:
            by = (old.left - new.left) * self._canvas.winfo_width() / new.width
            self._canvas.move("all", by - self._moved_px, 0)
            self._moved_px = by
        self._draw_soon(round(self._drawn_at + _REDRAW_MS - 1000 * monotonic()))

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
        self._boxes.clear()
        width = canvas.winfo_width()
        if not self.is_shown or width <= 1:
            return
        view = self._state.view
        for number, lane in enumerate(self._lanes[: self._rows]):
            self._draw_boxes([*boxes_of(lane, number, view.left, view.right, width)])
        if more := len(self._lanes) - self._rows:
            self._show_more(more, width)

    def _draw_boxes(self, boxes: Sequence[SpanBox]) -> None:
        if not boxes:
            return
        canvas, height = self._canvas, self._lane_px
        colors = palette_of(self._state.look.theme)
        for item, box in zip(self._create_boxes(boxes, colors.border), boxes, strict=True):
            self._boxes[item] = box
        pad, width = px(self, 4), canvas.winfo_width()
        # A name may continue into the empty space before the next box.
        ends = [*(box.left for box in boxes[1:]), float(width)]
        for box, end in zip(boxes, ends, strict=True):
            left = max(box.left, 0.0)
            text = self._fitting(
                self._label_of(box), min(max(box.right, end), width) - left - 2 * pad
            )
            if text:
                canvas.create_text(
                    left + pad,
                    box.lane * height + 1 + height // 2,
                    anchor="w",
                    text=text,
                    font=SMALL,
                    fill=colors.text,
                    state="disabled",
                    tags="names",
                )

    def _create_boxes(self, boxes: Sequence[SpanBox], color: str) -> list[int]:
        """Create the canvas items: hundreds at each step of a pan.

        One script for all takes 4 µs per box, single calls 20. It consists of numbers only: names
        are untrusted, and never part of a script.
        """
        height = self._lane_px
        lines = []
        for box in boxes:
            top = box.lane * height + 1
            # Leaves a pixel of background between neighbours.
            right = max(box.right - 1, box.left + 1)
            corners = f"{box.left:.1f} {top} {right:.1f} {top + height - 1}"
            lines.append(f"[{self._canvas} create rectangle {corners} -width 0 -fill {color}]")
        made = self.tk.eval(f"list {' '.join(lines)}")
        return [int(item) for item in self.tk.splitlist(made)]

    def _fitting(self, text: str, room: float) -> str:
        """Cut a text so that it fits; empty if too little would be left."""
        if self._width_of(text) <= room:
            return text
        room -= self._width_of("…")
        for place, character in enumerate(text):
            room -= self._width_of(character)
            if room < 0:
                return f"{text[:place]}…" if place >= _MIN_CUT_CHARS else ""
        return text

    def _show_more(self, more: int, width: int) -> None:
        colors = palette_of(self._state.look.theme)
        canvas, pad = self._canvas, px(self, 4)
        text = canvas.create_text(
            width - pad,
            self._rows * self._lane_px - self._lane_px // 2,
            anchor="e",
            text=f"{count_of(more, 'more lane')}",
            font=SMALL,
            fill=colors.secondary,
            state="disabled",
            tags="names",
        )
        box = canvas.bbox(text)
        back = canvas.create_rectangle(
            box[0] - pad, box[1], width, box[3], width=0, fill=colors.background, state="disabled"
        )
        canvas.tag_raise(text, back)

    # The mouse

    def _item_at(self, x: int, y: int) -> int | None:
        # A name on a box, which may be closer, is not a box.
        found = self._canvas.find_overlapping(x - 1, y, x + 1, y)
        return next((item for item in reversed(found) if item in self._boxes), None)

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
            text = self.tip_of(self._boxes[item])
            self._tip.show(text, x, y, palette_of(self._state.look.theme))

    def _unhover(self) -> None:
        if self._hovered is not None:
            colors = palette_of(self._state.look.theme)
            self._canvas.itemconfigure(self._hovered, fill=colors.border)
            self._canvas.configure(cursor="")
            self._hovered = None
        self._tip.hide()

    def _label_of(self, box: SpanBox) -> str:
        count = box.last - box.first
        return _name(self._span_of(box)) if count == 1 else count_of(count, "span")

    def tip_of(self, box: SpanBox) -> str:
        """Describe a box."""
        if box.last - box.first > 1:
            return f"{self._label_of(box)}\nClick to zoom in."
        span = self._span_of(box)
        least = "at least " if span.is_open_start or span.is_open_end else ""
        long = f"{least}{format_duration(span.end_us - span.start_us)}"
        facts = [long] if span.end_us > span.start_us else []
        facts.append(count_of(span.end_event - span.start_event, "event"))
        return f"{_name(span)}\n{' · '.join(facts)}\nClick to zoom in."

    def _span_of(self, box: SpanBox) -> Span:
        return self._lanes[box.lane].spans[box.first]

    def _pressed(self, event: tk.Event[tk.Canvas]) -> None:
        item = self._item_at(event.x, event.y)
        if item is None:
            return
        box = self._boxes[item]
        lane, view = self._lanes[box.lane], self._state.view
        left = float(lane.start[box.first])
        right = float(lane.end[box.first : box.last].max())
        room = (right - left) * _ROOM
        self._state.go(Viewport(left - room, right + room, view.low, view.high))


def _name(span: Span) -> str:
    return sanitize(span.name, _MAX_NAME_CHARS)
