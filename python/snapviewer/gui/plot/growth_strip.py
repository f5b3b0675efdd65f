"""A strip under the plot that marks where the allocator asked the device for memory, by cause."""

from __future__ import annotations

import tkinter as tk

from snapviewer.gui.growth import GrowthMark, color_of_cause, growth_marks, mark_text
from snapviewer.gui.state import State
from snapviewer.gui.theme import hex_of, palette_of, px
from snapviewer.gui.tips import Tooltip

_HEIGHT, _WIDTH, _REACH = 9, 3, 4


class GrowthStrip(tk.Canvas):
    """A mark for each column with growths; a click moves the cursor there."""

    def __init__(self, parent: tk.Misc, state: State) -> None:
        super().__init__(parent, borderwidth=0, highlightthickness=0, cursor="hand2")
        self._state = state
        self.marks: list[GrowthMark] = []
        self._due: str | None = None
        self._x = 0
        self.configure(height=px(self, _HEIGHT))
        self._tip = Tooltip(self, self._text, at_pointer=True)
        self.bind("<Motion>", self._moved)
        self.bind("<Button-1>", self._click)
        self.bind("<Configure>", lambda _: self._draw_soon())
        state.on(self._draw_soon, "view", "replay", "look", "device", "panes")

    @property
    def is_shown(self) -> bool:
        """Whether there is anything to show, and something that it belongs to is shown."""
        settings, replay = self._state.settings, self._state.replayed.replay
        is_wanted = settings.show_lines or settings.show_dock
        return is_wanted and replay is not None and bool(replay.growths)

    def _draw_soon(self) -> None:
        if self._due is None:
            self._due = self.after_idle(self._draw)

    def _draw(self) -> None:
        self._due = None
        self.delete("all")
        self.marks = growth_marks(self._state) if self.is_shown else []
        theme = self._state.look.theme
        self.configure(background=palette_of(theme).background)
        width, height = px(self, _WIDTH), px(self, _HEIGHT)
        for mark in self.marks:
            left = mark.x - width // 2
            fill = hex_of(color_of_cause(theme, mark.cause))
            self.create_rectangle(left, 1, left + width, height - 1, fill=fill, width=0)

    def mark_at(self, x: int) -> GrowthMark | None:
        """Return the mark near a column."""
        near = min(self.marks, key=lambda mark: abs(mark.x - x), default=None)
        return near if near is not None and abs(near.x - x) <= px(self, _REACH) else None

    def _moved(self, event: tk.Event[tk.Misc]) -> None:
        self._x = event.x
        self._tip.restart()

    def _text(self) -> str:
        mark = self.mark_at(self._x)
        return mark_text(self._state, mark) if mark is not None else ""

    def _click(self, event: tk.Event[tk.Misc]) -> None:
        mark, replay = self.mark_at(event.x), self._state.replayed.replay
        if mark is not None and replay is not None:
            largest = max(mark.growths, key=lambda place: replay.growths[place].grown_bytes)
            self._state.replayed.show_growth(largest)
