"""A few words beside the mouse."""

from __future__ import annotations

import tkinter as tk
from tkinter import ttk

from .theme import SMALL, px

_MOST_LINES = 24
_MOST_LETTERS = 4000


class Tip:
    """A small window without a frame, made when it is first needed."""

    def __init__(self, owner: tk.Misc) -> None:
        self._owner = owner
        self._window: tk.Toplevel | None = None

    def show(self, text: str) -> None:
        """Say something below the mouse and to its right, but on the screen."""
        self.hide()
        owner = self._owner
        lines = text[:_MOST_LETTERS].splitlines()
        if len(lines) > _MOST_LINES:
            left = len(lines) - _MOST_LINES
            lines = [*lines[:_MOST_LINES], f"… {left:,} more lines"]
        style = ttk.Style(owner)
        border = style.lookup("TSeparator", "background")
        window = self._window = tk.Toplevel(owner, background=border)
        window.withdraw()
        window.overrideredirect(True)
        label = ttk.Label(
            window,
            text="\n".join(lines),
            font=SMALL,
            background=style.lookup("TButton", "background"),
            padding=(px(owner, 8), px(owner, 5)),
            wraplength=px(owner, 640),
        )
        label.pack(padx=1, pady=1)
        window.update_idletasks()
        x, y = owner.winfo_pointerx() + px(owner, 12), owner.winfo_pointery() + px(owner, 16)
        if x + window.winfo_reqwidth() > owner.winfo_screenwidth():
            x = max(owner.winfo_screenwidth() - window.winfo_reqwidth(), 0)
        if y + window.winfo_reqheight() > owner.winfo_screenheight():
            y = max(y - window.winfo_reqheight() - px(owner, 32), 0)
        window.geometry(f"+{x}+{y}")
        window.deiconify()

    def hide(self) -> None:
        if self._window is not None:
            self._window.destroy()
            self._window = None
