"""Lines of requested, allocated, active and reserved memory, and a box that names their gaps."""

from __future__ import annotations

import tkinter as tk
from collections.abc import Iterator
from dataclasses import dataclass
from tkinter import font as tkfont

import numpy as np
import numpy.typing as npt

from snapviewer.gui.state import State
from snapviewer.gui.theme import SMALL, hex_of, palette_of, px
from snapviewer.gui.tips import Tooltip
from snapviewer.report.picture import amounts as picture
from snapviewer.report.picture.marks import PixelMark
from snapviewer.text.units import format_bytes

from .legend import Legend

ABOUT = (
    "Memory at the cursor\n"
    "requested: what the program asked for\n"
    "allocated: its blocks, with rounding\n"
    "active: also blocks that were freed, but wait for another stream\n"
    "reserved: all memory from the device\n"
    "releasable: cached memory that empty_cache() would give back\n"
    "in pieces: cached memory in segments with blocks in use\n"
    "Hide the lines with R."
)


def amount_marks(state: State, events: npt.NDArray[np.int64], unit: int) -> Iterator[PixelMark]:
    """Return the lines, over everything; none if they are not shown.

    Args:
        state: What is shown.
        events: The event of each column.
        unit: The width of a thin line.
    """
    replay = state.replayed.replay
    if replay is None or not state.settings.show_lines or not len(events):
        return
    theme, height = state.look.theme, state.plot_px[1]
    span = state.view.low, state.view.high
    yield from picture.amount_lines(replay.curves, events, span, height, theme=theme, unit=unit)


@dataclass(frozen=True, slots=True)
class AmountLine:
    """A line of the box: an amount with the name of its line, or a gap between two."""

    name: str
    text: str
    is_gap: bool = False


def amount_lines(state: State) -> list[AmountLine]:
    """List the four amounts at the cursor and the gaps between them, the largest first."""
    amounts, memory = state.replayed.amounts(state.cursor), state.replayed.memory()
    if amounts is None or memory is None:
        return []
    releasable = sum(domain.releasable_bytes for domain in memory.domains)
    cached = amounts["reserved"] - amounts["active"]
    gaps = {
        "active": (("releasable", releasable), ("in pieces", max(cached - releasable, 0))),
        "allocated": (("pending", amounts["active"] - amounts["allocated"]),),
        "requested": (("rounding", amounts["allocated"] - amounts["requested"]),),
    }
    lines = []
    for name in ("reserved", "active", "allocated", "requested"):
        for gap, size in gaps.get(name, ()):
            lines.append(AmountLine(gap, format_bytes(max(size, 0)), is_gap=True))
        lines.append(AmountLine(name, format_bytes(amounts[name])))
    return lines


class AmountsBox(tk.Canvas):
    """The amounts at the cursor, in an upper corner of the plot."""

    def __init__(self, plot: tk.Misc, state: State, legend: Legend) -> None:
        super().__init__(plot, borderwidth=0)
        self._state, self._legend = state, legend
        self._font = tkfont.nametofont(SMALL, self)
        self._due: str | None = None
        self.lines: list[AmountLine] = []
        self.configure(highlightthickness=px(self, 1))
        Tooltip(self, ABOUT, at_pointer=True)
        state.on(self._draw_soon, "cursor", "replay", "panes", "look", "device", "view")

    def _draw_soon(self) -> None:
        if self._due is None:
            self._due = self.after_idle(self._draw)

    def _draw(self) -> None:
        self._due = None
        state, colors = self._state, palette_of(self._state.look.theme)
        self.lines = self._lines()
        self.delete("all")
        if not self.lines:
            self.place_forget()
            return
        self.configure(background=colors.background, highlightbackground=colors.border)
        pad, line, swatch = px(self, 7), self._font.metrics("linespace") + px(self, 3), px(self, 14)
        names = max(self._font.measure(one.name) for one in self.lines) + px(self, 10)
        texts = max(self._font.measure(one.text) for one in self.lines)
        left = pad + swatch + px(self, 7)
        width = left + names + px(self, 10) + texts + pad
        for row, one in enumerate(self.lines):
            y = row * line + line // 2 + px(self, 2)
            shade = colors.secondary if one.is_gap else colors.text
            if not one.is_gap:
                fill = hex_of(picture.color_of_line(state.look.theme, one.name))
                self.create_line(pad, y, pad + swatch, y, fill=fill, width=px(self, 2))
            x = left + (px(self, 10) if one.is_gap else 0)
            self.create_text(x, y, text=one.name, fill=shade, font=SMALL, anchor="w")
            self.create_text(width - pad, y, text=one.text, fill=shade, font=SMALL, anchor="e")
        self.configure(width=width, height=len(self.lines) * line + px(self, 4))
        # Below the legend's button; where the legend is unfolded, in the other corner.
        is_right = self._legend.is_left == state.settings.show_legend
        edge, below = px(self, 10), px(self, 6)
        self.place(
            relx=1.0 if is_right else 0.0,
            x=-edge if is_right else edge,
            y=self._legend.top_px + self._legend.line_px + below,
            anchor="ne" if is_right else "nw",
        )

    def _lines(self) -> list[AmountLine]:
        state = self._state
        if not state.settings.show_lines or state.trace is None:
            return []
        if state.replayed.error:
            return [AmountLine(state.replayed.error, "", is_gap=True)]
        return amount_lines(state)
