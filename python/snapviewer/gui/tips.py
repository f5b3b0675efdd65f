"""Short texts beside the pointer.

A `Tip` is a label in the window that follows the pointer over the plot or a pane. A `Tooltip`
explains a widget when the pointer rests on it; it is a `Bubble`, a small window of its own that may
reach beyond the main one.
"""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable

from snapviewer.text.sanitize import truncate_lines

from .theme import SMALL, TEXT, Palette, px

_TOOLTIP_DELAY_MS = 500
# X cannot draw a label of more than 32,767 pixels, and nobody can read one.
_MAX_TIP_CHARS = 700
_MAX_BUBBLE_LINES = 24
_MAX_BUBBLE_CHARS = 4000
_TIP_WIDTH, _BUBBLE_WIDTH = 560, 420  # pixels of a 96 dpi screen


class Tip:
    """A label that stays inside of its parent and out of the pointer's way."""

    def __init__(self, parent: tk.Misc) -> None:
        self._parent = parent
        self.label = tk.Label(
            parent, font=TEXT, justify="left", padx=px(parent, 7), pady=px(parent, 4), borderwidth=0
        )
        self.label.configure(highlightthickness=px(parent, 1))
        self._shown: tuple[str, int, int] | None = None
        parent.bind("<Configure>", self._resized, add=True)

    def show(self, text: str, x: int, y: int, colors: Palette) -> None:
        """Show a text near a point of the parent."""
        text = truncate_lines(text, _MAX_TIP_CHARS)
        if (text, x, y) == self._shown:
            return
        self._shown = text, x, y
        self.label.configure(
            text=text,
            background=colors.raised,
            foreground=colors.text,
            highlightbackground=colors.border,
        )
        self._place(x, y)

    def _resized(self, event: tk.Event[tk.Misc]) -> None:
        # A window also gets the events of what is in it.
        if self._shown is not None and event.widget is self._parent:
            self._place(*self._shown[1:])

    def _place(self, x: int, y: int) -> None:
        gap = px(self._parent, 14)
        room_x, room_y = self._parent.winfo_width(), self._parent.winfo_height()
        wrap_px = max(min(px(self._parent, _TIP_WIDTH), room_x - 2 * gap), 1)
        self.label.configure(wraplength=wrap_px)
        width, height = self.label.winfo_reqwidth(), self.label.winfo_reqheight()
        left = x + gap if x + gap + width <= room_x else x - gap - width
        top = y + gap if y + gap + height <= room_y else y - gap - height
        # Where neither side has room, inside matters more than beside.
        left = min(max(left, 0), max(room_x - width, 0))
        top = min(max(top, 0), max(room_y - height, 0))
        self.label.place(x=left, y=top)
        self.label.lift()

    def hide(self) -> None:
        if self._shown is not None:
            self._shown = None
            self.label.place_forget()

    @property
    def text(self) -> str:
        """The text that is shown; empty if there is none."""
        return self._shown[0] if self._shown else ""


class Bubble:
    """A text in a small window of its own."""

    def __init__(self, widget: tk.Misc) -> None:
        self._widget = widget
        self._window: tk.Toplevel | None = None

    def show(self, text: str, left: int, top: int, *, above: int) -> None:
        """Show a text at a place of the screen, or above `above` where there is no room below."""
        self.hide()
        widget = self._widget
        lines = text[:_MAX_BUBBLE_CHARS].splitlines()
        if len(lines) > _MAX_BUBBLE_LINES:
            lines = [*lines[:_MAX_BUBBLE_LINES], f"… {len(lines) - _MAX_BUBBLE_LINES:,} more lines"]
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
            wraplength=px(widget, _BUBBLE_WIDTH),
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
    """Explains a widget, below it or at the pointer. The text may be a function."""

    def __init__(
        self, widget: tk.Misc, text: str | Callable[[], str], *, at_pointer: bool = False
    ) -> None:
        self._widget, self._text, self._at_pointer = widget, text, at_pointer
        self._due: str | None = None
        self._bubble = Bubble(widget)
        widget.bind("<Enter>", self.restart, add=True)
        for event in ("<Leave>", "<ButtonPress>", "<Destroy>"):
            widget.bind(event, self._leave, add=True)

    def restart(self, _: tk.Event[tk.Misc] | None = None) -> None:
        """Hide it, and show it again if the pointer rests."""
        self._leave()
        self._due = self._widget.after(_TOOLTIP_DELAY_MS, self._show)

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
            left, top = widget.winfo_rootx(), widget.winfo_rooty()
            bottom = top + widget.winfo_height()
            if self._at_pointer:
                left, top = widget.winfo_pointerxy()
                left, bottom = left + px(widget, 12), top + px(widget, 12)
            self._bubble.show(text, left, bottom + gap, above=top - gap)
