"""The timeline itself: draws what the state shows, and turns the mouse into moves and selections.

A change only notes that a redraw is due. It happens when Tk has nothing else to do, so that of many
moves the newest is drawn and the others are dropped. Cost of a frame: its pixels; a pan draws only
the columns that are new.
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
from snapviewer.gui.state import State
from snapviewer.gui.theme import SMALL, TEXT, palette_of, px
from snapviewer.gui.values import Pointer
from snapviewer.gui.words import alive_text, moment_text, when_text
from snapviewer.report.picture.drawing import BACKGROUND
from snapviewer.report.picture.legend import color_text
from snapviewer.text.units import format_bytes

from .axes import LabelWidth
from .marks import Box, flag_text, marks_of, peak_row
from .scale import Scales, scales_of
from .surface import Surface, make_surface
from .tip import Tip

log = logging.getLogger(__name__)

_CLICK_PX = 4  # a press that moves less is a click
_ZOOM_STEP = 0.8
_SIDEWAYS_PX = 120


@dataclass(frozen=True, slots=True)
class Drawn:
    """How the newest frame came about.

    Its number, the seconds of the engine and of the screen, and when the screen had it.
    """

    number: int = 0
    engine_seconds: float = 0.0
    screen_seconds: float = 0.0
    at: float = 0.0


class Plot:
    """The timeline in the window.

    `after_drawing` is called with the axes' marks of each frame.
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
        self._image: Image | None = None
        self._what: object = None
        self._due: str | None = None
        self._mouse: tuple[int, int] | None = None
        self._press: tuple[int, int] | None = None
        self._is_dragging = False
        self._zoom_box: Box | None = None
        self._told: tuple[str, int, int] | None = None
        self._tip = Tip(self.widget)
        self._peak = tk.Label(self.widget, font=SMALL, borderwidth=0, padx=px(parent, 4), pady=0)
        self._empty = tk.Label(self.widget, font=TEXT, borderwidth=0)
        self._bind()
        state.ids_on_screen = self._ids_on_screen
        state.on("picture", self._redraw)
        state.on("view", self._forget_told)
        state.on("document", self._forget_told)
        for topic in ("view", "look", "timeline", "selection", "cursor", "filter", "document"):
            state.on(topic, self.redraw_soon)

    def _bind(self) -> None:
        self.widget.bind("<Configure>", self._resize, add=True)
        # What the mouse does on a tip or on the name of the peak, it does on the plot.
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
            if self._image is None:
                self.surface.prepare(*size)
            self.redraw_soon()

    def _redraw(self) -> None:
        state = self._state
        if state.timeline is None or min(state.plot_px) < 2:
            self._image = None
            return
        started = perf_counter()
        image = self._draw()
        drawn = perf_counter()
        scales = scales_of(state, self._width_of, px(self.widget, 100) / 100)
        unit = px(self.widget, 1)
        self.surface.show(image, marks_of(state, scales, unit, self._zoom_box))
        shown = perf_counter()
        self.drawn = Drawn(self.drawn.number + 1, drawn - started, shown - drawn, shown)
        log.debug(
            "frame %d: engine %.1f ms, screen %.1f ms",
            self.drawn.number,
            1e3 * self.drawn.engine_seconds,
            1e3 * self.drawn.screen_seconds,
        )
        self._place_peak()
        self._tell_if_empty()
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
            state.selection,
        )
        ahead = state.drawn_ahead if clock is None else None
        if ahead is not None and (ahead.view, ahead.size, ahead.color, ahead.theme) == (
            view,
            state.plot_px,
            state.look.color,
            state.look.theme,
        ):
            self._image, self._what = ahead.image, what
        elif self._image is None or what != self._what:
            self._image = state.timeline.image(
                **span,
                bytes=view.byte_span,
                size=state.plot_px,
                color=state.look.color,
                theme=state.look.theme,
                dim=state.dimmed(),
                selected=state.selection,
                previous=self._image,
            )
            self._what = what
        return self._image

    def _place_peak(self) -> None:
        """Name the line of the peak, above it at the right."""
        state, row = self._state, peak_row(self._state)
        if row is None or state.timeline is None or state.device is None:
            self._peak.place_forget()
            return
        colors = palette_of(state.look.theme)
        is_all = state.timeline.peak_bytes == state.device.peak_bytes
        what = "peak" if is_all else "peak of the matches"
        text = f"{what} {format_bytes(state.timeline.peak_bytes)}"
        self._peak.configure(text=text, background=colors.background, foreground=colors.peak)
        x, y = -px(self.widget, 12), row - px(self.widget, 3)
        self._peak.place(anchor="se", relx=1.0, x=x, y=y)

    def _tell_if_empty(self) -> None:
        """Say why there is nothing to see."""
        state = self._state
        if state.timeline is None or state.timeline.shown or state.device is None:
            self._empty.place_forget()
            return
        colors = palette_of(state.look.theme)
        is_filtered = len(state.device.allocations) > 0
        text = "No allocation matches the filter." if is_filtered else "This device has no memory."
        self._empty.configure(text=text, background=colors.background, foreground=colors.secondary)
        self._empty.place(relx=0.5, rely=0.45, anchor="center")

    def _ids_on_screen(self) -> npt.NDArray[np.int64]:
        if self._image is None:
            return np.zeros(0, dtype=np.int64)
        ids = np.unique(self._image.ids)
        return np.asarray(ids[ids != BACKGROUND], dtype=np.int64)

    # What is under the mouse

    def pointer_at(self, x: int, y: int) -> Pointer | None:
        """Tell what a pixel stands for; None outside of the plot."""
        state, image = self._state, self._image
        width, height = state.plot_px
        if image is None or not (0 <= x < width and 0 <= y < height):
            return None
        if image.ids.shape != (height, width):
            return None  # resized, and not drawn again yet
        found = int(image.ids[y, x])
        event = int(image.events[x])
        byte = max(int(state.point_of(x + 0.5, y + 0.5)[1]), 0)
        return Pointer(x, y, event, byte, None if found == BACKGROUND else found)

    def _at(self, event: tk.Event[tk.Misc]) -> tuple[int, int]:
        """Return where an event is in the plot; tips, which lie on it, pass theirs on."""
        return event.x_root - self.widget.winfo_rootx(), event.y_root - self.widget.winfo_rooty()

    def _hover(self, event: tk.Event[tk.Misc]) -> None:
        self._mouse = self._at(event)
        self._point()

    def _leave(self, event: tk.Event[tk.Misc]) -> None:
        (x, y), (width, height) = self._at(event), self._state.plot_px
        if not (0 <= x < width and 0 <= y < height):  # else it went to a tip
            self._mouse = None
            self._point()

    def _point(self) -> None:
        """Note what is under the mouse, which may be something else after a redraw."""
        state = self._state
        pointer = None if self._mouse is None else self.pointer_at(*self._mouse)
        state.point_at(pointer)
        colors = palette_of(state.look.theme)
        if self._told is not None:
            self._tip.show(*self._told, colors)
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
        if told := color_text(trace.device, self._state.look.color, allocation):
            line += f"\n{told}"
        return (
            f"{format_bytes(int(a.size[allocation]))}  ·  {alive_text(trace, allocation)}\n{line}"
        )

    # The left button: select and pan

    def _press_left(self, event: tk.Event[tk.Misc]) -> None:
        self.widget.focus_set()
        self._press, self._is_dragging = self._at(event), False
        self._forget_told()
        self._point()

    def _drag_left(self, event: tk.Event[tk.Misc]) -> None:
        if self._press is None:
            return
        at = self._at(event)
        x, y = at[0] - self._press[0], at[1] - self._press[1]
        if not self._is_dragging and max(abs(x), abs(y)) < px(self.widget, _CLICK_PX):
            return
        self._is_dragging = True
        self.widget.configure(cursor="fleur")
        self._press = self._mouse = at
        self._state.pan_px(-x, y)

    def _release_left(self, event: tk.Event[tk.Misc]) -> None:
        was_click = self._press is not None and not self._is_dragging
        self._press, self._is_dragging = None, False
        self.widget.configure(cursor="")
        if was_click and (pointer := self.pointer_at(*self._at(event))) is not None:
            self._state.select(pointer.allocation)
            if pointer.allocation is not None:
                self._state.show_tab("details")
        self._point()

    # The right button: tell, and frame what to zoom to

    def _press_right(self, event: tk.Event[tk.Misc]) -> None:
        self.widget.focus_set()
        self._press = self._at(event)
        self._forget_told()

    def _drag_right(self, event: tk.Event[tk.Misc]) -> None:
        if self._press is None:
            return
        at = self._at(event)
        x, y = at[0] - self._press[0], at[1] - self._press[1]
        if self._zoom_box is None and max(abs(x), abs(y)) < px(self.widget, _CLICK_PX):
            return
        width, height = self._state.plot_px
        corner = min(max(at[0], 0), width), min(max(at[1], 0), height)
        self._zoom_box = (*self._press, *corner)
        self._mouse = at
        self.redraw_soon()

    def _release_right(self, event: tk.Event[tk.Misc]) -> None:
        box, press = self._zoom_box, self._press
        self._zoom_box = self._press = None
        if box is not None:
            self.redraw_soon()
            self._state.zoom_to_box(box)
        elif press is not None:
            self._tell(*self._at(event))

    def _tell(self, x: int, y: int) -> None:
        """Say how much memory there is at a point, and when that is."""
        state, pointer = self._state, self.pointer_at(x, y)
        if pointer is None or state.trace is None or state.timeline is None:
            return
        moment = moment_text(state.trace, state.timeline, pointer)
        text = f"{when_text(state.trace, pointer.event)}\n{moment}"
        self._told = (text, x, y)
        state.set_cursor(pointer.event)
        self._point()

    def _forget_told(self) -> None:
        if self._told is not None:
            self._told = None
            self._point()

    def forget(self) -> None:
        """Take back what was told, and what is being framed."""
        self._zoom_box = self._press = None
        self._forget_told()
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
