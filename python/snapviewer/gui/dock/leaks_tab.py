"""What grows from step to step: a row per line of code, with its slope and how sure that is."""

from __future__ import annotations

import tkinter as tk
from tkinter import ttk

from snapviewer._core import Leak
from snapviewer.gui.panes.sorted_table import SortedTable, Sorting
from snapviewer.gui.panes.virtual_table import Bar, Column, RowHooks
from snapviewer.gui.state import State
from snapviewer.gui.theme import TEXT, palette_of, px
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize
from snapviewer.text.units import count_of, format_bytes

from .dock_view import DockView

_COLUMNS = (
    Column("Growth a step", "+1,023 MiB", is_number=True),
    Column("By the end", "1,023 MiB", is_number=True),
    Column("Allocations", "100,000", is_number=True),
    Column("Since step", "1,000", is_number=True),
    Column("Sure", "100 %", is_number=True),
    Column("Line", "model.py:77 attention", grows=True),
)
_WAITING = "looking for growth …"
_NO_FILE = "Open a file to see what grows."
_MAX_FRAMES = 12


class LeaksTab(DockView):
    """A table; a click highlights the allocations of a leak in the plot."""

    def __init__(self, parent: tk.Misc, head: tk.Misc, state: State) -> None:
        super().__init__(parent, head, state)
        self._leaks: tuple[Leak, ...] = ()
        self.about = ttk.Label(self.head, style="Secondary.TLabel")
        self.about.pack(side="left", padx=px(self, 4))
        self.table = SortedTable(
            self,
            _COLUMNS,
            self._texts,
            RowHooks(
                on_select=state.answers.show_leak,
                on_open=lambda _: state.show_tab("details"),
                bar_of=self._bar,
                tip_of=self._tip,
            ),
            sorting=Sorting(0, is_down=True),
        )
        self.table.pack(fill="both", expand=True)
        self.empty = tk.Label(self, font=TEXT, borderwidth=0)
        state.on(self._show, "answers", "panes", "look")
        self._show()

    def _show(self) -> None:
        state, answers = self._state, self._state.answers
        if not state.is_docked("leaks"):
            return
        found, colors = answers.found, palette_of(state.look.theme)
        leaks = () if found is None else found.leaks.leaks
        if leaks != self._leaks:
            self._leaks = leaks
            self.table.set_rows([self._values(leak) for leak in leaks])
        text = about = ""
        if state.trace is None:
            text = _NO_FILE
        elif found is None:
            text = answers.error or _WAITING
        elif not leaks:
            text = f"Growth is not known: {found.leaks.missing}."
            if not found.leaks.missing:
                text = f"Nothing grows over {count_of(found.leaks.steps, 'step')}."
        else:
            about = f"over {count_of(found.leaks.steps, 'step')}"
            if found.leaks.is_guess:
                about = "a guess: the file has no steps, parts of the trace stand for them"
        self.about.configure(text=about)
        if text:
            self.empty.configure(
                text=text, background=colors.background, foreground=colors.secondary
            )
            self.empty.place(x=0, y=0, relwidth=1.0, relheight=1.0)
        else:
            self.empty.place_forget()

    def _values(self, leak: Leak) -> tuple[object, ...]:
        return (
            *(leak.bytes_per_step, leak.grown_bytes, len(leak.allocations), leak.first_step),
            *(leak.confidence, leak.key),
        )

    def _texts(self, place: int) -> tuple[str, ...]:
        leak = self._leaks[place]
        return (
            f"+{format_bytes(round(leak.bytes_per_step))}",
            format_bytes(leak.grown_bytes),
            f"{len(leak.allocations):,}",
            f"{leak.first_step:,}",
            f"{leak.confidence:.0%}",
            sanitize(leak.key, MAX_NAME_CHARS),
        )

    def _bar(self, place: int) -> Bar:
        most = max((leak.bytes_per_step for leak in self._leaks), default=1.0)
        color = palette_of(self._state.look.theme).oom
        return Bar(self._leaks[place].bytes_per_step / max(most, 1.0), color)

    def _tip(self, place: int, column: int) -> str:
        frames = [sanitize(line, MAX_NAME_CHARS) for line in self._leaks[place].shared_frames]
        shared = "\n".join(frames[:_MAX_FRAMES])
        return f"Click: highlight its allocations.\nFrames that all of them share:\n{shared}"
