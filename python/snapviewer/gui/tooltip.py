"""A sentence that appears beside a widget when the pointer rests on it."""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable

from .theme import SMALL, px

_AFTER_MS = 500


class Tooltip:
    """Explains a widget. The text may be a function, for what changes."""

    def __init__(self, widget: tk.Misc, text: str | Callable[[], str]) -> None:
        self._widget, self._text = widget, text
        self._due: str | None = None
        self._window: tk.Toplevel | None = None
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
        if self._window is not None:
            self._window.destroy()
            self._window = None

    def _show(self) -> None:
        self._due = None
        text = self._text if isinstance(self._text, str) else self._text()
        if not text:
            return
        widget = self._widget
        window = self._window = tk.Toplevel(widget)
        window.wm_overrideredirect(True)
        label = tk.Label(
            window,
            text=text,
            font=SMALL,
            justify="left",
            background="#24292f",
            foreground="#f6f8fa",
            padx=px(widget, 8),
            pady=px(widget, 4),
            wraplength=px(widget, 420),
        )
        label.pack()
        left = widget.winfo_rootx()
        top = widget.winfo_rooty() + widget.winfo_height() + px(widget, 4)
        # Inside of the screen, and above the widget if there is no room below.
        left = max(0, min(left, widget.winfo_screenwidth() - label.winfo_reqwidth()))
        if top + label.winfo_reqheight() > widget.winfo_screenheight():
            top = widget.winfo_rooty() - label.winfo_reqheight() - px(widget, 4)
        window.wm_geometry(f"+{left}+{top}")
