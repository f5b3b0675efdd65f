"""A sentence that appears beside a widget, or a part of it, when the pointer rests there."""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable

from .theme import SMALL, px

_AFTER_MS = 500
_MOST_LINES = 24
_MOST_LETTERS = 4000


class Bubble:
    """A few words in a window of their own."""

    def __init__(self, widget: tk.Misc) -> None:
        self._widget = widget
        self._window: tk.Toplevel | None = None

    def show(self, text: str, left: int, top: int, *, above: int) -> None:
        """Say something at a place of the screen, or above another if there is no room below."""
        self.hide()
        widget = self._widget
        lines = text[:_MOST_LETTERS].splitlines()
        if len(lines) > _MOST_LINES:
            lines = [*lines[:_MOST_LINES], f"… {len(lines) - _MOST_LINES:,} more lines"]
        window = self._window = tk.Toplevel(widget)
        window.wm_overrideredirect(True)
        label = tk.Label(
            window,
            text="\n".join(lines),
            font=SMALL,
            justify="left",
            background="#24292f",
            foreground="#f6f8fa",
            padx=px(widget, 8),
            pady=px(widget, 4),
            wraplength=px(widget, 420),
        )
        label.pack()
        left = max(0, min(left, widget.winfo_screenwidth() - label.winfo_reqwidth()))
        if top + label.winfo_reqheight() > widget.winfo_screenheight():
            top = max(above - label.winfo_reqheight(), 0)
        window.wm_geometry(f"+{left}+{top}")

    def hide(self) -> None:
        if self._window is not None:
            self._window.destroy()
            self._window = None


class Tooltip:
    """Explains a widget. The text may be a function, for what changes."""

    def __init__(self, widget: tk.Misc, text: str | Callable[[], str]) -> None:
        self._widget, self._text = widget, text
        self._due: str | None = None
        self._bubble = Bubble(widget)
        widget.bind("<Enter>", self._enter, add=True)
        for event in ("<Leave>", "<ButtonPress>", "<Destroy>"):
            widget.bind(event, self._leave, add=True)

    def _enter(self, _: tk.Event[tk.Misc]) -> None:
        self._leave()
        self._due = self._widget.after(_AFTER_MS, self._show)

    def _leave(self, _: tk.Event[tk.Misc] | None = None) -> None:
        if self._due is not None:
            self._widget.after_cancel(self._due)
            self._due = None
        self._bubble.hide()

    def _show(self) -> None:
        self._due = None
        text = self._text if isinstance(self._text, str) else self._text()
        if text:
            widget, gap = self._widget, px(self._widget, 4)
            top = widget.winfo_rooty()
            bottom = top + widget.winfo_height()
            self._bubble.show(text, widget.winfo_rootx(), bottom + gap, above=top - gap)
