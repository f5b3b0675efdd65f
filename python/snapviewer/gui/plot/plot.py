"""The timeline: draws the part in view, and handles the mouse.

A change only schedules a redraw. It happens when Tk is idle, so of many moves the newest is drawn
and the others are dropped. Cost of a frame: its pixels; a pan draws only the new columns.
"""

from __future__ import annotations

import logging
import tkinter as tk
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import numpy.typing as npt

from snapviewer import Image
from snapviewer.gui.labels import BEFORE_TRACE, event_label, lifetime_label, point_label
from snapviewer.gui.state import State
from snapviewer.gui.theme import SMALL, TEXT, palette_of, px
from snapviewer.gui.tips import Tip
from snapviewer.gui.values import Pointer
from snapviewer.report.picture.legend import BACKGROUND, color_text
from snapviewer.report.picture.options import core_color
from snapviewer.text.units import format_bytes

from .amounts import amount_marks
from .axes import LabelWidth
from .marks import Box, Scales, cursor_column, flag_at, flag_text, marks_of, peak_row, scales_of
from .surface import Surface, make_surface

log = logging.getLogger(__name__)

_CLICK_PX = 4  # a press that moves less is a click
_ZOOM_STEP = 0.8
_SIDEWAYS_PX = 120
_CURSOR_REACH_PX = 3


@dataclass(frozen=True, slots=True)
class Drawn:
    """The newest frame: its number, the seconds of engine and screen, and when it was shown."""

    number: int = 0
    engine_seconds: float = 0.0
    screen_seconds: float = 0.0
    at: float = 0.0


class Plot:
    """The timeline in the window.

    `after_drawing` is called with the ticks of the axes after each frame.
    """

    def __init__(
        self,
        parent: tk.Misc,
        state: State,
        width_of: LabelWidth,
        after_drawing: Callable[[Scales], None],
    ) -> None:
        self._state, self._width_of, self._after_drawing = state, width_of, after_drawing
        self.surface: Surface = make_surface(parent)
        self.widget = self.surface.widget
        self.drawn = Drawn()
        self.image: Image | None = None
        self._what: object = None
        self._due: str | None = None
        self._mouse: tuple[int, int] | None = None
        self._press: tuple[int, int] | None = None
        self._is_dragging = self._is_moving_cursor = False
        self._zoom_box: Box | None = None
        self._pinned: tuple[str, int, int] | None = None
        self._tip = Tip(self.widget)
        self._peak = tk.Label(self.widget, font=SMALL, borderwidth=0, padx=px(parent, 4), pady=0)
        self._empty = tk.Label(self.widget, font=TEXT, borderwidth=0)
        self._bind()
        state.ids_on_screen = self._ids_on_screen
        state.on(self._redraw, "picture")
        state.on(self._unpin, "view", "document")
        state.on(
            self.redraw_soon,
            "view",
            "look",
            "timeline",
            "selection",
            "cursor",
            "filter",
            "marked",
            "document",
            "replay",
            "panes",
        )

    def _bind(self) -> None:
        self.widget.bind("<Configure>", self._resize, add=True)
        # The mouse on a tip or a label of the plot is the mouse on the plot.
        tag = f"mouse of {self.widget}"
        for part in (self.widget, *self.surface.parts):
            part.bindtags((tag, *part.bindtags()))
        for label in (self._tip.label, self._peak, self._empty):
            label.bindtags((tag,))

        def bind(sequence: str, handle: Callable[[tk.Event[tk.Misc]], None]) -> None:
            self.widget.bind_class(tag, sequence, handle)

        bind("<Motion>", self._hover)
        bind("<Leave>", self._leave)
        bind("<ButtonPress-1>", self._press_left)
        bind("<B1-Motion>", self._drag_left)
        bind("<ButtonRelease-1>", self._release_left)
        for button in (2, 3):  # on some systems, 2 is the right one
            bind(f"<ButtonPress-{button}>", self._press_right)
            bind(f"<B{button}-Motion>", self._drag_right)
            bind(f"<ButtonRelease-{button}>", self._release_right)
        bind("<Button-4>", lambda event: self._wheel(event, 1))
        bind("<Button-5>", lambda event: self._wheel(event, -1))
        bind("<MouseWheel>", lambda event: self._wheel(event, 1 if event.delta > 0 else -1))

    # Drawing

    def redraw_soon(self) -> None:
        if self._due is None:
            self._due = self.widget.after_idle(self._redraw_now)

    def _redraw_now(self) -> None:
        self._due = None
        self._redraw()

    def _resize(self, event: tk.Event[tk.Misc]) -> None:
        size = (max(event.width, 1), max(event.height, 1))
        if size != self._state.plot_px:
            self._state.plot_px = size
            if self.image is None:
                self.surface.prepare(*size)
            self.redraw_soon()

    def _redraw(self) -> None:
        state = self._state
        if state.timeline is None or min(state.plot_px) < 2:
            self.image = None
            return
        started = perf_counter()
        image = self._draw()
        drawn = perf_counter()
        scales = scales_of(state, self._width_of, px(self.widget, 100) / 100)
        unit = px(self.widget, 1)
        marks = marks_of(state, scales, unit, self._zoom_box)
        self.surface.show(image, [*marks, *amount_marks(state, image.events, unit)])
        shown = perf_counter()
        self.drawn = Drawn(self.drawn.number + 1, drawn - started, shown - drawn, shown)
        log.debug(
            "frame %d: engine %.1f ms, screen %.1f ms",
            self.drawn.number,
            1e3 * self.drawn.engine_seconds,
            1e3 * self.drawn.screen_seconds,
        )
        self._place_peak()
        self._explain_empty()
        self._after_drawing(scales)
        self._point()

    def _draw(self) -> Image:
        state, view, clock = self._state, self._state.view, self._state.clock
        assert state.timeline is not None
        span = {"events": view.x_span} if clock is None else {"time": view.x_span, "clock": clock}
        what = (
            state.timeline,
            view,
            state.plot_px,
            state.look,
            state.filter.mode,
            state.filter.matches,
            state.marked is not None and state.marks,
            state.selection,
        )
        ahead = state.drawn_ahead if clock is None else None
        if ahead is not None and (ahead.view, ahead.size, ahead.color, ahead.theme) == (
            view,
            state.plot_px,
            state.look.color,
            state.look.theme,
        ):
            self.image, self._what = ahead.image, what
        elif self.image is None or what != self._what:
            self.image = state.timeline.image(
                **span,
                bytes=view.byte_span,
                size=state.plot_px,
                color=core_color(state.look.color),
                theme=state.look.theme,
                dim=state.dimmed(),
                selected=state.selection,
                previous=self.image,
            )
            self._what = what
        return self.image

    def _place_peak(self) -> None:
        """Label the peak line, above it at the right."""
        state, row = self._state, peak_row(self._state)
        if row is None or state.timeline is None or state.device is None:
            self._peak.place_forget()
            return
        colors = palette_of(state.look.theme)
        is_all = state.timeline.shown == len(state.device.allocations)
        text = f"{'peak' if is_all else 'peak shown'} {format_bytes(state.timeline.peak_bytes)}"
        if state.timeline.peak_event < 0 and state.device.events:
            text += f" {BEFORE_TRACE}"
        self._peak.configure(text=text, background=colors.background, foreground=colors.peak)
        x, y = -px(self.widget, 12), row - px(self.widget, 3)
        self._peak.place(anchor="se", relx=1.0, x=x, y=y)

    def _explain_empty(self) -> None:
        """Explain an empty plot."""
        state = self._state
        if state.timeline is None or state.timeline.shown or state.device is None:
            self._empty.place_forget()
            return
        colors = palette_of(state.look.theme)
        if len(state.device.allocations) == 0:
            text = "This device has no allocations."
        elif state.filter.text:
            text = "No allocation matches the filter."
        else:
            text = "All allocations are older than the recording. H shows them."
        self._empty.configure(text=text, background=colors.background, foreground=colors.secondary)
        self._empty.place(relx=0.5, rely=0.45, anchor="center")

    def _ids_on_screen(self) -> npt.NDArray[np.int64]:
        if self.image is None:
            return np.zeros(0, dtype=np.int64)
        ids = np.unique(self.image.ids)
        return np.asarray(ids[ids != BACKGROUND], dtype=np.int64)

    # The pointer

    def pointer_at(self, x: int, y: int) -> Pointer | None:
        """Return what a pixel stands for; None outside of the plot."""
        state, image = self._state, self.image
        width, height = state.plot_px
        if image is None or not (0 <= x < width and 0 <= y < height):
            return None
        if image.ids.shape != (height, width):
            return None  # resized, and not yet redrawn
        found = int(image.ids[y, x])
        event = int(image.events[x])
        byte = max(int(state.point_of(x + 0.5, y + 0.5)[1]), 0)
        return Pointer(x, y, event, byte, None if found == BACKGROUND else found)

    def _at(self, event: tk.Event[tk.Misc]) -> tuple[int, int]:
        """Return the position of a mouse event in the plot, also if it was on a tip."""
        return event.x_root - self.widget.winfo_rootx(), event.y_root - self.widget.winfo_rooty()

    def _hover(self, event: tk.Event[tk.Misc]) -> None:
        self._mouse = self._at(event)
        is_on_cursor = self._is_on_cursor(self._mouse[0])
        self.widget.configure(cursor="sb_h_double_arrow" if is_on_cursor else "")
        self._point()

    def _is_on_cursor(self, x: int) -> bool:
        """Return whether a column is at the cursor, which can be dragged there."""
        column = cursor_column(self._state)
        return column is not None and abs(x - column) <= px(self.widget, _CURSOR_REACH_PX)

    def _leave(self, event: tk.Event[tk.Misc]) -> None:
        (x, y), (width, height) = self._at(event), self._state.plot_px
        if not (0 <= x < width and 0 <= y < height):  # otherwise it entered a tip
            self._mouse = None
            self._point()

    def _point(self) -> None:
        """Update what is under the mouse, after a move or a redraw."""
        state = self._state
        pointer = None if self._mouse is None else self.pointer_at(*self._mouse)
        state.point_at(pointer)
        colors = palette_of(state.look.theme)
        if self._pinned is not None:
            self._tip.show(*self._pinned, colors)
        elif pointer is not None and (text := flag_text(state, pointer, px(self.widget, 6))):
            self._tip.show(text, pointer.x_px, pointer.y_px, colors)
        elif pointer is None or pointer.allocation is None or self._press is not None:
            self._tip.hide()
        else:
            self._tip.show(self._tip_text(pointer.allocation), pointer.x_px, pointer.y_px, colors)

    def _tip_text(self, allocation: int) -> str:
        document, trace = self._state.document, self._state.trace
        assert document is not None
        assert trace is not None
        a = trace.device.allocations
        line = document.line_of(int(a.stack[allocation]))
        if color := color_text(trace.device, self._state.look.color, allocation):
            line += f"\n{color}"
        size = format_bytes(int(a.size[allocation]))
        return f"{size}  ·  {lifetime_label(trace, allocation)}\n{line}"

    # The left button: select and pan

    def _press_left(self, event: tk.Event[tk.Misc]) -> None:
        self.widget.focus_set()
        self._press, self._is_dragging = self._at(event), False
        self._is_moving_cursor = self._is_on_cursor(self._press[0])
        self._unpin()
        self._point()

    def _dragged(self, event: tk.Event[tk.Misc], *, has_begun: bool) -> tuple[int, int] | None:
        """Return how far the mouse is from where it was pressed, if that is a drag."""
        if self._press is None:
            return None
        at = self._at(event)
        x, y = at[0] - self._press[0], at[1] - self._press[1]
        is_click = not has_begun and max(abs(x), abs(y)) < px(self.widget, _CLICK_PX)
        return None if is_click else (x, y)

    def _drag_left(self, event: tk.Event[tk.Misc]) -> None:
        if (by := self._dragged(event, has_begun=self._is_dragging)) is not None:
            self._is_dragging = True
            if self._is_moving_cursor:
                self._mouse = self._at(event)
                self._drag_cursor(self._mouse[0])
                return
            self.widget.configure(cursor="fleur")
            self._press = self._mouse = self._at(event)
            self._state.pan_px(-by[0], by[1])

    def _drag_cursor(self, x: int) -> None:
        """Move the cursor to a column, or to the nearest one in view."""
        state, image = self._state, self.image
        if image is not None and state.trace is not None and state.trace.events:
            column = min(max(x, 0), state.plot_px[0] - 1)
            state.set_cursor(state.trace.event_at(state.look.axis, state.point_of(column, 0)[0]))

    def _release_left(self, event: tk.Event[tk.Misc]) -> None:
        was_click = self._press is not None and not self._is_dragging
        self._press, self._is_dragging = None, False
        self.widget.configure(cursor="")
        if was_click and (pointer := self.pointer_at(*self._at(event))) is not None:
            self._click(pointer)
        self._point()

    def _click(self, pointer: Pointer) -> None:
        """Select an allocation; on the background, move the cursor."""
        state = self._state
        oom = flag_at(state, pointer, px(self.widget, 6))
        if oom is not None:
            state.set_cursor(oom)
            state.show_tab("cursor")
            return
        state.select(pointer.allocation)
        if pointer.allocation is not None:
            state.show_tab("details")
            return
        state.set_cursor(pointer.event)
        if state.tab == "details":
            state.tab = "cursor"
            state.changed("panes")

    # The right button: move the cursor, or draw a box to zoom to

    def _press_right(self, event: tk.Event[tk.Misc]) -> None:
        self.widget.focus_set()
        self._press = self._at(event)
        self._unpin()

    def _drag_right(self, event: tk.Event[tk.Misc]) -> None:
        by = self._dragged(event, has_begun=self._zoom_box is not None)
        if by is None or self._press is None:
            return
        (x, y), (width, height) = self._at(event), self._state.plot_px
        self._zoom_box = (*self._press, min(max(x, 0), width), min(max(y, 0), height))
        self._mouse = (x, y)
        self.redraw_soon()

    def _release_right(self, event: tk.Event[tk.Misc]) -> None:
        box, press = self._zoom_box, self._press
        self._zoom_box = self._press = None
        if box is not None:
            self.redraw_soon()
            self._state.zoom_to_box(box)
        elif press is not None:
            self._pin(*self._at(event))

    def _pin(self, x: int, y: int) -> None:
        """Move the cursor, and show memory and time at a point until the next action."""
        state, pointer = self._state, self.pointer_at(x, y)
        if pointer is None or state.trace is None or state.timeline is None:
            return
        point = point_label(state.trace, state.timeline, pointer)
        text = f"{event_label(state.trace, pointer.event)}\n{point}"
        self._pinned = (text, x, y)
        state.set_cursor(pointer.event)
        self._point()

    def _unpin(self) -> None:
        if self._pinned is not None:
            self._pinned = None
            self._point()

    def forget(self) -> None:
        """Close the pinned tip, and drop the box that is being drawn."""
        self._zoom_box = self._press = None
        self._unpin()
        self.redraw_soon()

    # The wheel, and zooming by keys

    def _wheel(self, event: tk.Event[tk.Misc], step: int) -> None:
        flags = int(event.state)
        if flags & 0x1:  # Shift
            self._state.pan_px(-step * px(self.widget, _SIDEWAYS_PX), 0)
            return
        has_control, has_alt = bool(flags & 0x4), bool(flags & 0x8 or flags & 0x20000)
        self.zoom(step, x=not has_alt, y=not has_control, at=self._at(event))

    def zoom(
        self, step: int, *, x: bool = True, y: bool = True, at: tuple[int, int] | None = None
    ) -> None:
        """Zoom in or out on both axes or one: at a pixel, at the mouse, or in the middle."""
        width, height = self._state.plot_px
        x_px, y_px = at or self._mouse or (width // 2, height // 2)
        factor = _ZOOM_STEP**step
        self._state.zoom(factor if x else 1, factor if y else 1, x_px=x_px, y_px=y_px)
