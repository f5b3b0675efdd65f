"""The overview: the whole trace in a strip, with the part in view as a box to drag."""

from __future__ import annotations

import tkinter as tk

import numpy as np

from snapviewer.gui.state import State
from snapviewer.gui.theme import palette_of, px
from snapviewer.gui.viewport import Viewport

_HEIGHT = 44
_MIN_BOX = 6


class Minimap(tk.Canvas):
    """The overview of a device's memory."""

    def __init__(self, parent: tk.Misc, state: State) -> None:
        super().__init__(parent, borderwidth=0, highlightthickness=0, height=px(parent, _HEIGHT))
        self._state = state
        self._due: str | None = None
        self._outline_of: object = None
        self._grip: float | None = None
        self.bind("<Configure>", lambda _: self._redraw_soon())
        self.bind("<ButtonPress-1>", self._press)
        self.bind("<B1-Motion>", self._drag)
        self.bind("<ButtonRelease-1>", lambda _: self._release())
        state.on(self._redraw_soon, "view", "look", "timeline", "device", "document")

    def _redraw_soon(self) -> None:
        if self._due is None:
            self._due = self.after_idle(self._redraw)

    def _redraw(self) -> None:
        self._due = None
        state, width, height = self._state, self.winfo_width(), self.winfo_height()
        colors = palette_of(state.look.theme)
        outline_of = (state.timeline, state.look.axis, state.look.theme, width, height)
        if outline_of != self._outline_of:
            self._outline_of = outline_of
            self.configure(background=colors.background)
            self.delete("all")
            if state.timeline is None or width < 2:
                return
            self._draw_outline(width, height, colors.secondary, colors.peak)
            for tag in ("before", "after"):
                shade = self.create_rectangle(0, 0, 0, 0, tags=tag, outline="")
                self.itemconfigure(shade, fill=colors.background, stipple="gray50")
            self.create_rectangle(
                0, 0, 0, 0, tags="box", outline=colors.accent, width=px(self, 1.5)
            )
            line = height - px(self, 1)
            self.create_line(0, line, width, line, fill=colors.border, width=px(self, 1))
        if state.timeline is None:
            return
        left, right = self._box()
        self.coords("before", 0, 0, left, height)
        self.coords("after", right, 0, width, height)
        self.coords("box", left, 1, right, height - 2)

    def _draw_outline(self, width: int, height: int, color: str, peak_color: str) -> None:
        """Fill the area under the highest total of each column."""
        state = self._state
        assert state.timeline is not None
        span, clock = (0.0, state.world.right), state.clock
        if clock is None:
            _, highest = state.timeline.overview(events=span, size=width)
        else:
            _, highest = state.timeline.overview(time=span, clock=clock, size=width)
        peak = max(state.timeline.peak_bytes, 1)
        top = height - px(self, 1) - highest / peak * (height - px(self, 5))
        # Two points per column make steps.
        x = np.repeat(np.arange(width + 1), 2)[1:-1]
        points = np.column_stack((x, np.repeat(top, 2))).ravel().tolist()
        self.create_polygon(0, height, *points, width, height, fill=color, outline="")
        if state.timeline.peak_event >= 0 and state.trace is not None:
            at = state.trace.x_of(state.look.axis, state.timeline.peak_event) / state.world.right
            x_px, size = at * width, px(self, 4)
            self.create_polygon(x_px - size, 0, x_px + size, 0, x_px, size, fill=peak_color)

    def _box(self) -> tuple[float, float]:
        """Return the left and right of the part in view, wide enough to be seen."""
        width, view, world = self.winfo_width(), self._state.view, self._state.world
        left, right = view.left / world.right * width, view.right / world.right * width
        least = px(self, _MIN_BOX)
        if right - left < least:
            middle = min(max((left + right) / 2, least / 2), width - least / 2)
            left, right = middle - least / 2, middle + least / 2
        return left, right

    def _press(self, event: tk.Event[tk.Misc]) -> None:
        left, right = self._box()
        # Outside of the box, the box jumps to the pointer.
        self._grip = event.x - left if left <= event.x <= right else (right - left) / 2
        self._drag(event)

    def _drag(self, event: tk.Event[tk.Misc]) -> None:
        state, width = self._state, max(self.winfo_width(), 1)
        if self._grip is None or state.timeline is None:
            return
        left, right = self._box()
        middle = (event.x - self._grip + (right - left) / 2) / width * state.world.right
        view = state.view
        half = view.width / 2
        state.move_to(Viewport(middle - half, middle + half, view.low, view.high))

    def _release(self) -> None:
        self._grip = None
