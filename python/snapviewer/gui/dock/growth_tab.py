"""Why the allocator grew, by line of code; beside it what pins free memory at the cursor."""

from __future__ import annotations

import tkinter as tk
from tkinter import ttk

from snapviewer.gui.growth import color_of_cause
from snapviewer.gui.panes.sorted_table import SortedTable, Sorting
from snapviewer.gui.panes.virtual_table import Bar, Column, RowHooks
from snapviewer.gui.state import State
from snapviewer.gui.theme import hex_of, px
from snapviewer.report.snapshot.growth import NO_GROWTH, apart_sentence, growth_sentence
from snapviewer.snapshot.growth import (
    CAUSES,
    EFFECTS,
    Caused,
    Pinning,
    growths_by_line,
    kept_apart,
    pins_by_line,
)
from snapviewer.text.units import count_of, format_bytes

from .dock_view import DockView

_CAUSED = (
    Column("Bytes", "1,023 MiB", is_number=True),
    Column("Growths", "10,000", is_number=True),
    Column("Main cause", "other domain"),
    Column("Line", "model.py:77 attention", grows=True),
)
_PINNED = (
    Column("Pinned", "1,023 MiB", is_number=True),
    Column("Blocks", "10,000", is_number=True),
    Column("Their size", "1,023 MiB", is_number=True),
    Column("Line", "model.py:77 attention", grows=True),
)

_CAUSE = 2  # the column


class GrowthTab(DockView):
    """Two tables, and a sentence about the growth that is selected."""

    def __init__(self, parent: tk.Misc, head: tk.Misc, state: State) -> None:
        super().__init__(parent, head, state)
        self._caused: tuple[Caused, ...] = ()
        self._pinned: tuple[Pinning, ...] = ()
        self._shown: tuple[object, object] = (None, None)
        self.about = ttk.Label(self.head, style="Secondary.TLabel")
        self.about.pack(side="left")
        self.sentence = ttk.Label(self, padding=(px(self, 8), 0, px(self, 8), px(self, 4)))
        panes = ttk.PanedWindow(self, orient="horizontal")
        panes.pack(fill="both", expand=True)
        most_first = Sorting(0, is_down=True)
        self.caused = SortedTable(
            self._part(panes, "Memory from the device, by line"),
            _CAUSED,
            self._caused_texts,
            RowHooks(
                on_select=self._select,
                on_open=self._filter_caused,
                bar_of=self._bar,
                tip_of=self._caused_tip,
            ),
            sorting=most_first,
        )
        self.pinned = SortedTable(
            self._part(panes, "Free memory that blocks pin at the cursor, by line"),
            _PINNED,
            self._pinned_texts,
            RowHooks(on_open=self._filter_pinned, tip_of=self._pinned_tip),
            sorting=most_first,
        )
        for table in (self.caused, self.pinned):
            table.pack(fill="both", expand=True)
        self.bind("<Configure>", self._wrap)
        state.on(self._show, "replay", "device", "panes", "cursor")
        state.on(self._show_growth, "growth", "device", "replay")
        state.on(self.caused.refresh, "look")
        self._show()

    def _part(self, panes: ttk.PanedWindow, title: str) -> ttk.Frame:
        part = ttk.Frame(panes)
        label = ttk.Label(part, text=title, style="Secondary.TLabel")
        label.pack(fill="x", padx=px(self, 8), pady=(px(self, 2), px(self, 2)))
        panes.add(part, weight=1)
        return part

    def _wrap(self, event: tk.Event[tk.Misc]) -> None:
        if event.widget is self:
            self.sentence.configure(wraplength=max(event.width - px(self, 16), 1))

    # Contents

    def _show(self) -> None:
        state = self._state
        replay, document = state.replayed.replay, state.document
        if not state.is_docked("growth"):
            return
        if replay is None or document is None or state.trace is None:
            self._caused, self._pinned, self._shown = (), (), (None, None)
            self.about.configure(text=state.replayed.error)
        else:
            memory = state.replayed.memory()
            event = None if memory is None else memory.event
            if self._shown[0] is not replay:
                self._caused = growths_by_line(replay.allocator, document.line_of)
                self.about.configure(text=self._summary(len(replay.growths)))
            if self._shown != (replay, event):
                self._pinned = ()
                if event is not None:
                    self._pinned = pins_by_line(replay.allocator, event, document.line_of)
                self._shown = (replay, event)
            else:
                return
        self.caused.set_rows(
            [
                (one.grown_bytes, len(one.growths), _main_cause(one), one.line)
                for one in self._caused
            ]
        )
        self.pinned.set_rows(
            [(one.pinned_bytes, one.blocks, one.block_bytes, one.line) for one in self._pinned]
        )

    def _summary(self, growths: int) -> str:
        if not growths:
            return NO_GROWTH
        total = sum(one.grown_bytes for one in self._caused)
        return f"{count_of(growths, 'growth')}, {format_bytes(total)} from the device"

    def _show_growth(self) -> None:
        """Describe the growth that was clicked, and what kept free memory in pieces then."""
        state = self._state
        replay, place, document = state.replayed.replay, state.replayed.growth, state.document
        if replay is None or place is None or document is None or state.device is None:
            self.sentence.pack_forget()
            return
        growth = replay.growths[place]
        text = f"Event {growth.event:,}, {growth.cause}: {growth_sentence(growth)}."
        if growth.cause == "fragments":
            between = kept_apart(state.device, replay.allocator, place, document.line_of)
            sentence = apart_sentence(growth, between)
            text += f" {sentence[0].upper()}{sentence[1:]}."
        self.sentence.configure(text=text)
        self.sentence.pack(side="bottom", fill="x", before=self.winfo_children()[1])

    # Rows

    def _caused_texts(self, place: int) -> tuple[str, ...]:
        one = self._caused[place]
        return format_bytes(one.grown_bytes), f"{len(one.growths):,}", _main_cause(one), one.line

    def _pinned_texts(self, place: int) -> tuple[str, ...]:
        one = self._pinned[place]
        sizes = format_bytes(one.pinned_bytes), f"{one.blocks:,}", format_bytes(one.block_bytes)
        return (*sizes, one.line)

    def _bar(self, place: int) -> Bar:
        """Return a bar relative to the longest, in the colour of the main cause."""
        one, most = self._caused[place], max(self._caused[0].grown_bytes, 1)
        color = hex_of(color_of_cause(self._state.look.theme, _main_cause(one)))
        return Bar(one.grown_bytes / most, color)

    def _caused_tip(self, place: int, column: int) -> str:
        if column == _CAUSE:
            sizes = zip(CAUSES, self._caused[place].cause_bytes, strict=True)
            return "\n".join(
                f"{cause}: {format_bytes(size)}, {EFFECTS[cause]}" for cause, size in sizes if size
            )
        return f"{self._caused[place].line}\nClick: the largest growth. Double-click: highlight."

    def _pinned_tip(self, place: int, column: int) -> str:
        if column == 0:
            return "Free memory in segments with its blocks, shared equally with other lines there"
        return f"{self._pinned[place].line}\nDouble-click: highlight its allocations."

    def _select(self, place: int) -> None:
        self._state.replayed.show_growth(self._caused[place].growths[0])

    def _filter_caused(self, place: int) -> None:
        replay = self._state.replayed.replay
        if replay is not None:
            growths = self._caused[place].growths
            self._filter(tuple(dict.fromkeys(replay.growths[one].stack for one in growths)))

    def _filter_pinned(self, place: int) -> None:
        self._filter(self._pinned[place].stacks)

    def _filter(self, stacks: tuple[int, ...]) -> None:
        text = self._state.filter_of(stacks, same_line=True)
        if text is None:
            self._state.notify("No filter can describe these allocations.")
        else:
            self._state.set_filter(text, "highlight")


def _main_cause(one: Caused) -> str:
    """Return the cause of most bytes."""
    return CAUSES[one.cause_bytes.index(max(one.cause_bytes))]
