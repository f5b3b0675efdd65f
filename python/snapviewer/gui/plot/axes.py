"""The axes beside and below the plot."""

from __future__ import annotations

import tkinter as tk
from tkinter import font as tkfont

from snapviewer.gui.state import State
from snapviewer.gui.theme import SMALL, palette_of, px

from .marks import Scales


class LabelWidth:
    """The width of text in the small font; asks Tk once per character."""

    def __init__(self, root: tk.Misc) -> None:
        self._font = tkfont.nametofont(SMALL, root)
        self._widths: dict[str, int] = {}

    def __call__(self, text: str) -> float:
        return sum(self._of(character) for character in text)

    def _of(self, character: str) -> int:
        if character not in self._widths:
            self._widths[character] = self._font.measure(character)
        return self._widths[character]


class Axis(tk.Canvas):
    """A strip of labels. Its canvas items are reused from frame to frame."""

    def __init__(self, parent: tk.Misc, state: State, width_of: LabelWidth) -> None:
        super().__init__(parent, borderwidth=0, highlightthickness=0)
        self._state, self._width_of = state, width_of
        self._labels: list[_Item] = []
        self._ticks: list[_Item] = []
        self._shown: object = None

    def _draw(
        self, key: object, items: list[tuple[str, int, int, str]], ticks: list[tuple[int, ...]]
    ) -> None:
        """Draw labels (text, x, y, anchor) and lines, if anything has changed."""
        colors = palette_of(self._state.look.theme)
        if (key, colors) == self._shown:
            return
        self._shown = key, colors
        self.configure(background=colors.background)
        for place, (text, x, y, anchor) in enumerate(items):
            if place == len(self._labels):
                self._labels.append(_Item(self, self.create_text(0, 0, font=SMALL)))
            look = {"text": text, "anchor": anchor, "fill": colors.secondary}
            self._labels[place].show((x, y), look)
        for place, line in enumerate(ticks):
            if place == len(self._ticks):
                made = self.create_line(0, 0, 0, 0, width=px(self, 1))
                self._ticks.append(_Item(self, made))
            self._ticks[place].show(line, {"fill": colors.border})
        for item in (*self._labels[len(items) :], *self._ticks[len(ticks) :]):
            item.hide()


class _Item:
    """A canvas item that passes only changes on to Tk."""

    def __init__(self, canvas: tk.Canvas, item: int) -> None:
        self._canvas, self._item = canvas, item
        self._place: tuple[int, ...] = ()
        self._look: dict[str, str] = {}

    def show(self, place: tuple[int, ...], look: dict[str, str]) -> None:
        if place != self._place:
            self._place = place
            self._canvas.coords(self._item, *place)
        look = {**look, "state": "normal"}
        if look != self._look:
            self._look = look
            self._canvas.itemconfigure(self._item, look)

    def hide(self) -> None:
        if self._look.get("state") == "normal":
            self._look = {}
            self._canvas.itemconfigure(self._item, state="hidden")


class ByteAxis(Axis):
    """Bytes, upwards, on the left."""

    def __init__(self, parent: tk.Misc, state: State, width_of: LabelWidth) -> None:
        super().__init__(parent, state, width_of)
        self.configure(width=round(width_of("0,000.00")) + px(self, 14))

    def show(self, scales: Scales) -> None:
        self._make_room(scales)
        width = self.winfo_width()
        half = round(self._width_of("0") * 0.9)
        right = width - px(self, 8)
        items = [
            (label, right, min(max(y, half), self.winfo_height() - half), "e")
            for y, label in scales.y
        ]
        if items:
            # The unit is on the topmost label only.
            text, x, y, _ = items[-1]
            items[-1] = (f"{text} {scales.y_unit}", x, y, "e")
        line = px(self, 1)
        edge = width - line
        ticks = [(edge - px(self, 4), y - line, edge, y - line) for y, _ in scales.y]
        self._draw(
            (scales.y, scales.y_unit, width, self.winfo_height()),
            items,
            [(edge, 0, edge, self.winfo_height()), *ticks],
        )

    def _make_room(self, scales: Scales) -> None:
        """Grow for long labels. It never shrinks: the plot would jump."""
        labels = [label for _, label in scales.y]
        labels[-1:] = [f"{label} {scales.y_unit}" for label in labels[-1:]]
        needed = round(max((self._width_of(label) for label in labels), default=0))
        needed += px(self, 12)
        if needed > int(self["width"]):
            self.configure(width=needed)


class TimeAxis(Axis):
    """Events or time, from left to right, below."""

    def __init__(self, parent: tk.Misc, state: State, width_of: LabelWidth) -> None:
        super().__init__(parent, state, width_of)
        height = tkfont.nametofont(SMALL, self).metrics("linespace")
        self.configure(height=height + px(self, 9))

    def show(self, scales: Scales) -> None:
        width, gap = self.winfo_width(), px(self, 6)
        # The labels themselves show "min:s" and the like.
        unit = scales.x_unit
        unit_width = round(self._width_of(unit)) + 2 * gap
        items = [(unit, width - px(self, 2), gap, "ne")] if unit else []
        for x, label in scales.x:
            half = round(self._width_of(label) / 2)
            place = max(x, half)
            if place + half < width - unit_width:
                items.append((label, place, gap, "n"))
        ticks = [(x, 0, x, px(self, 4)) for x, _ in scales.x]
        self._draw((scales.x, unit, width), items, [(0, 0, width, 0), *ticks])
