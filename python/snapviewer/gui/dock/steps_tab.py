"""The steps of the trace: a row per step, with its peak, what it leaves behind, and what is new."""

from __future__ import annotations

import tkinter as tk
from functools import partial
from tkinter import ttk

from snapviewer._core import Step
from snapviewer.gui.panes.sorted_table import SortedTable
from snapviewer.gui.panes.virtual_table import Bar, Column, RowHooks
from snapviewer.gui.state import State
from snapviewer.gui.theme import TEXT, palette_of, px
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize
from snapviewer.text.units import count_of, format_bytes

from .dock_view import DockView

_COLUMNS = (
    Column("Step", "after the last step (in part)"),
    Column("Peak", "1,023 MiB", is_number=True),
    Column("Net change", "+1,023 MiB", is_number=True),
    Column("Allocated", "1,023 MiB", is_number=True),
    Column("Freed", "1,023 MiB", is_number=True),
    Column("Largest", "1,023 MiB", is_number=True),
    Column("Events", "1,000,000", is_number=True),
    Column("More than in the step before", "model.py:77 attention +1 GiB", grows=True),
)
_WAITING = "looking for steps …"
_NO_FILE = "Open a file to list its steps."


class StepsTab(DockView):
    """A table; a click zooms to the step and moves the cursor to its peak."""

    def __init__(self, parent: tk.Misc, head: tk.Misc, state: State) -> None:
        super().__init__(parent, head, state)
        self._steps: tuple[Step, ...] = ()
        self._largest: list[int | None] = []
        self.about = ttk.Label(self.head, style="Secondary.TLabel")
        self.about.pack(side="left", padx=px(self, 4))
        self.add_button("‹", "Previous step (Shift+E)", partial(state.answers.next_step, -1))
        self.add_button("›", "Next step (E)", partial(state.answers.next_step, 1))
        self.table = SortedTable(
            self,
            _COLUMNS,
            self._texts,
            RowHooks(
                on_select=lambda place: state.answers.show_step(self._steps[place]),
                bar_of=self._bar,
                tip_of=self._tip,
            ),
        )
        self.table.pack(fill="both", expand=True)
        self.empty = tk.Label(self, font=TEXT, borderwidth=0)
        state.on(self._show, "answers", "panes", "look")
        state.on(self._mark, "cursor")
        self._show()

    def _show(self) -> None:
        state, answers = self._state, self._state.answers
        if not state.is_docked("steps"):
            return
        found, device = answers.found, state.device
        steps = () if found is None else found.steps.steps
        if steps != self._steps:
            self._steps = steps
            sizes = None if device is None else device.allocations.size
            self._largest = [
                None if step.largest is None or sizes is None else int(sizes[step.largest])
                for step in steps
            ]
            self.table.set_rows([self._values(place) for place in range(len(steps))])
        text = ""
        if found is not None and steps:
            text = f"{count_of(len(steps), 'step')}, from {found.steps.source}"
        self.about.configure(text=sanitize(text, MAX_NAME_CHARS))
        self._explain()
        self._mark()

    def _explain(self) -> None:
        answers, colors = self._state.answers, palette_of(self._state.look.theme)
        text = ""
        if self._state.trace is None:
            text = _NO_FILE
        elif answers.found is None:
            text = answers.error or _WAITING
        elif not self._steps:
            text = f"No steps: {answers.found.steps.missing or 'none found'}."
        if not text:
            self.empty.place_forget()
            return
        self.empty.configure(text=text, background=colors.background, foreground=colors.secondary)
        self.empty.place(x=0, y=0, relwidth=1.0, relheight=1.0)

    def _values(self, place: int) -> tuple[object, ...]:
        step = self._steps[place]
        return (
            *(step.name, step.peak_bytes, step.net_bytes, step.allocated_bytes, step.freed_bytes),
            *(self._largest[place], step.end - step.start, step.new[0][1] if step.new else 0),
        )

    def _texts(self, place: int) -> tuple[str, ...]:
        step, largest = self._steps[place], self._largest[place]
        new = step.new[0] if step.new else None
        return (
            sanitize(step.name, MAX_NAME_CHARS) + ("" if step.is_whole else " (in part)"),
            format_bytes(step.peak_bytes),
            _signed(step.net_bytes),
            format_bytes(step.allocated_bytes),
            format_bytes(step.freed_bytes),
            "" if largest is None else format_bytes(largest),
            f"{step.end - step.start:,}",
            "" if new is None else f"{sanitize(new[0], MAX_NAME_CHARS)}  {_signed(new[1])}",
        )

    def _bar(self, place: int) -> Bar:
        highest = max((step.peak_bytes for step in self._steps), default=1)
        color = palette_of(self._state.look.theme).accent
        return Bar(self._steps[place].peak_bytes / max(highest, 1), color)

    def _tip(self, place: int, column: int) -> str:
        step = self._steps[place]
        if column == len(_COLUMNS) - 1:
            lines = (
                f"{sanitize(line, MAX_NAME_CHARS)}  {_signed(more)}" for line, more in step.new
            )
            return "\n".join(lines)
        counts = f"{step.allocated_count:,} allocations, {step.freed_count:,} frees"
        return f"Events {step.start:,} to {step.end - 1:,}: {counts}\nClick to zoom to the step."

    def _mark(self) -> None:
        if self._state.is_docked("steps"):
            self.table.mark_place(self._state.answers.step_at_cursor())


def _signed(size: int) -> str:
    """Format a change of bytes.

    >>> _signed(1536), _signed(-7), _signed(0)
    ('+1.50 KiB', '−7 B', '0 B')
    """
    sign = "+" if size > 0 else "−" if size < 0 else ""
    return f"{sign}{format_bytes(abs(size))}"
