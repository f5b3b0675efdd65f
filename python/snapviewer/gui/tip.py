"""A small text beside the pointer."""

from __future__ import annotations

import tkinter as tk

from .theme import SMALL, Palette, px


class Tip:
    """Shows a text over everything else, where it is told to."""

    def __init__(self, owner: tk.Misc) -> None:
        self._owner = owner
        self._top: tk.Toplevel | None = None
        self._label: tk.Label | None = None

    @property
    def text(self) -> str:
        """What it says; nothing if it is not shown."""
        return "" if self._label is None else str(self._label.cget("text"))

    def show(self, text: str, x_root: int, y_root: int, colors: Palette) -> None:
        """Say something near a place of the screen, without covering it."""
        if self._top is None or self._label is None:
            self._top = tk.Toplevel(self._owner)
            self._top.wm_overrideredirect(True)
            self._label = tk.Label(self._top, font=SMALL, justify="left", borderwidth=0)
            self._label.pack(padx=1, pady=1)
        self._top.configure(background=colors.border)
        self._label.configure(
            text=text,
            background=colors.raised,
            foreground=colors.text,
            wraplength=px(self._owner, 480),
            padx=px(self._owner, 6),
            pady=px(self._owner, 3),
        )
        width, height = self._label.winfo_reqwidth() + 2, self._label.winfo_reqheight() + 2
        away = px(self._owner, 14)
        x = min(x_root + away, self._owner.winfo_screenwidth() - width)
        y = y_root + away
        if y + height > self._owner.winfo_screenheight():
            y = y_root - away - height
        self._top.wm_geometry(f"+{max(x, 0)}+{max(y, 0)}")

    def hide(self) -> None:
        if self._top is not None:
            self._top.destroy()
            self._top = self._label = None
