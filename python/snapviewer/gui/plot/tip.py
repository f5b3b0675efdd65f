"""A few words beside the pointer, inside the plot."""

from __future__ import annotations

import tkinter as tk

from snapviewer.gui.theme import TEXT, Palette, px
from snapviewer.text.sanitize import truncate_lines

# X cannot draw a label of more than 32,767 pixels, and nobody can read one.
_MOST = 700


class Tip:
    """A small label that stays inside its parent and out of the pointer's way."""

    def __init__(self, parent: tk.Misc) -> None:
        self._parent = parent
        self.label = tk.Label(
            parent, font=TEXT, justify="left", padx=px(parent, 7), pady=px(parent, 4), borderwidth=0
        )
        self.label.configure(highlightthickness=px(parent, 1), wraplength=px(parent, 560))
        self._place: tuple[str, int, int] | None = None

    def show(self, text: str, x: int, y: int, colors: Palette) -> None:
        """Say something at a point of the parent."""
        text = truncate_lines(text, _MOST)
        if (text, x, y) == self._place:
            return
        self._place = text, x, y
        self.label.configure(
            text=text,
            background=colors.raised,
            foreground=colors.text,
            highlightbackground=colors.border,
        )
        gap = px(self._parent, 14)
        width, height = self.label.winfo_reqwidth(), self.label.winfo_reqheight()
        room_x, room_y = self._parent.winfo_width(), self._parent.winfo_height()
        left = x + gap if x + gap + width <= room_x else x - gap - width
        top = y + gap if y + gap + height <= room_y else y - gap - height
        self.label.place(x=max(left, 0), y=max(top, 0))
        self.label.lift()

    def hide(self) -> None:
        if self._place is not None:
            self._place = None
            self.label.place_forget()

    @property
    def text(self) -> str:
        """What is said now; empty if nothing is."""
        return self._place[0] if self._place else ""
