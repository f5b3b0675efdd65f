"""The legend, in an upper corner of the plot: what the colours in view stand for.

It is computed once the view rests, since counting pixels takes several milliseconds. It is in the
corner where it covers less of a device's timeline, and stays there.
"""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable
from tkinter import font as tkfont

from snapviewer import Image
from snapviewer.gui.jobs import Job
from snapviewer.gui.state import State
from snapviewer.gui.theme import SMALL, hex_of, palette_of, px
from snapviewer.gui.tips import Tooltip
from snapviewer.report.picture.legend import BACKGROUND, Entry, legend_of, shown_in
from snapviewer.text.sanitize import shorten_middle

_REST_MS = 150
_MAX_ENTRIES = 16
_MAX_TEXT_PX = 260
_USUAL_SIZE = 270, 250  # pixels of a 96 dpi screen


class Legend(tk.Canvas):
    """A button that folds out into the lines of the legend.

    A click on a line highlights its allocations, and another one shows all again.
    """

    def __init__(self, plot: tk.Misc, state: State, image_of: Callable[[], Image | None]) -> None:
        super().__init__(plot, borderwidth=0, cursor="hand2")
        self._state, self._image_of = state, image_of
        self._due: str | None = None
        self._is_left: bool | None = None
        self._entries: tuple[Entry, ...] = ()
        self._font = tkfont.nametofont(SMALL, self)
        self.configure(highlightthickness=px(self, 1))
        self.bind("<Button-1>", self._click)
        self._tooltip = Tooltip(self, self._tip, at_pointer=True)
        self._hovered: Entry | None = None
        self.bind("<Motion>", self._move)
        state.on(self._changed, "panes", "device", "look")
        state.on(self._forget_corner, "picture")

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The lines that are shown; empty while it is folded."""
        return self._entries if self._state.settings.show_legend else ()

    @property
    def is_left(self) -> bool:
        """Whether it is in the left corner."""
        return bool(self._is_left)

    def refresh_soon(self) -> None:
        """Compute the lines again once nothing has been drawn for a moment."""
        if self._due is not None:
            self.after_cancel(self._due)
        self._due = self.after(_REST_MS, self._refresh)

    def _changed(self) -> None:
        self._entries = ()
        self._draw()
        self.refresh_soon()

    def _forget_corner(self) -> None:
        self._is_left = None

    def _choose_corner(self, image: Image) -> None:
        """Choose the corner that has fewer pixels of allocations."""
        width, height = (px(self, size) for size in _USUAL_SIZE)
        is_filled = image.ids[self.top_px :][:height] != BACKGROUND
        left, right = is_filled[:, :width], is_filled[:, -width:]
        self._is_left = int(left.sum()) <= int(right.sum())

    @property
    def top_px(self) -> int:
        """The upper edge: below the label of the peak, as it is when everything is in view."""
        whole = self._state.world
        return round(self._state.plot_px[1] * (1 - whole.peak_bytes / whole.high)) + px(self, 8)

    def _refresh(self) -> None:
        self._due = None
        state, image = self._state, self._image_of()
        if image is not None and self._is_left is None:
            self._choose_corner(image)
        device, timeline, document = state.device, state.timeline, state.document
        if not state.settings.show_legend or image is None or document is None:
            self._draw()
            return
        assert device is not None
        assert timeline is not None
        look = state.look
        totals, events = timeline.totals, image.events
        events = events[(events >= 0) & (events < len(totals))]
        peak = int(events[totals[events].argmax()]) if len(events) else -1
        shown = shown_in(device, timeline, image, peak, color=look.color, theme=look.theme)
        line_of = document.line_of

        def done(entries: tuple[Entry, ...]) -> None:
            self._entries = entries
            self._draw()

        state.start(
            Job("legend"),
            lambda _: legend_of(shown, line_of, max_entries=_MAX_ENTRIES),
            done,
            lambda error: state.notify(f"Could not compute the legend: {error}", is_error=True),
        )

    # Drawing

    def _draw(self) -> None:
        state = self._state
        self.delete("all")
        if state.trace is None or self._is_left is None:
            self.place_forget()
            return
        colors = palette_of(state.look.theme)
        self.configure(background=colors.background, highlightbackground=colors.border)
        pad, line = px(self, 7), self.line_px
        sign = "▾" if state.settings.show_legend else "▸"
        width = self._text(pad, line // 2, f"{sign} Legend", colors.secondary)
        for row, entry in enumerate(self.entries, 1):
            width = max(width, self._draw_entry(entry, row * line + line // 2))
        for item in self.find_withtag("amount"):
            self.move(item, width, 0)
        height = line * (1 + len(self.entries))
        self.configure(width=width + pad, height=height + (px(self, 3) if self.entries else 0))
        edge = px(self, 10)
        self.place(
            relx=0.0 if self._is_left else 1.0,
            x=edge if self._is_left else -edge,
            y=self.top_px,
            anchor="nw" if self._is_left else "ne",
        )

    def _draw_entry(self, entry: Entry, y: int) -> int:
        """Draw a line; return how far to the right it reaches."""
        colors, pad = palette_of(self._state.look.theme), px(self, 7)
        if entry.is_heading:
            return self._text(pad, y, entry.text, colors.secondary)
        size = px(self, 11)
        half = self.line_px // 2 if entry.is_step else size // 2
        count = max(len(entry.colors), 1)
        for number, color in enumerate(entry.colors):
            left, right = (pad + place * size // count for place in (number, number + 1))
            self.create_rectangle(left, y - half, right, y + half, width=0, fill=hex_of(color))
        right = self._text(pad + size + px(self, 7), y, self._fitting(entry.text), colors.text)
        if entry.amount:
            right += px(self, 14) + self._font.measure(entry.amount)
            # Moved to the right edge once the width is known.
            self.create_text(
                0,
                y,
                text=entry.amount,
                fill=colors.secondary,
                font=SMALL,
                anchor="e",
                tags="amount",
            )
        return right

    def _text(self, x: int, y: int, text: str, color: str) -> int:
        self.create_text(x, y, text=text, fill=color, font=SMALL, anchor="w")
        return x + self._font.measure(text)

    def _fitting(self, text: str) -> str:
        """Shorten a text in its middle so that it fits."""
        room, chars = px(self, _MAX_TEXT_PX), min(len(text), 100)
        while chars > 1 and self._font.measure(shorten_middle(text, chars)) > room:
            chars -= 1
        return shorten_middle(text, chars)

    @property
    def line_px(self) -> int:
        """The height of a line."""
        return self._font.metrics("linespace") + px(self, 4)

    # The mouse

    def _entry_at(self, y: int) -> Entry | None:
        """Return the line at a height; None on the title."""
        row = (y - px(self, 1)) // self.line_px - 1
        return self.entries[row] if 0 <= row < len(self.entries) else None

    def _move(self, event: tk.Event[tk.Misc]) -> None:
        entry = self._entry_at(event.y)
        if entry is not self._hovered:
            self._hovered = entry
            self._tooltip.restart()

    def _click(self, event: tk.Event[tk.Misc]) -> None:
        state, entry = self._state, self._entry_at(event.y)
        if entry is None:
            state.set_pane("legend", is_shown=not state.settings.show_legend)
        elif text := self._filter_of(entry):
            if text == state.filter.text:
                state.clear_filter()
            else:
                state.set_filter(text, "highlight")

    def _filter_of(self, entry: Entry) -> str:
        is_stacks = self._state.look.color == "stack" and not entry.is_step
        return (
            (self._state.filter_of(entry.keys, same_line=True) or "") if is_stacks else entry.filter
        )

    def _tip(self) -> str:
        entry = self._entry_at(self.winfo_pointery() - self.winfo_rooty())
        if entry is None:
            return "Show or hide the legend (F6)"
        if entry.is_heading or not entry.colors:
            return ""
        has_filter = bool(entry.keys or entry.filter)
        return f"{entry.text}\nClick to highlight." if has_filter else entry.text
