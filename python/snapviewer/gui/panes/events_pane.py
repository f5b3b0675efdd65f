"""The events of the trace, one per row; only those on the screen are read.

It follows the cursor, and a row that is selected moves the cursor.
"""

from __future__ import annotations

import tkinter as tk
from tkinter import ttk
from typing import Literal

import numpy as np
import numpy.typing as npt

from snapviewer import Event, SnapshotError
from snapviewer._core import ACTIONS
from snapviewer.gui.jobs import Job
from snapviewer.gui.state import State
from snapviewer.gui.theme import palette_of, px
from snapviewer.snapshot.alive import allocation_of_event
from snapviewer.text.sanitize import sanitize
from snapviewer.text.units import format_bytes

from .virtual_table import Column, RowHooks, Rows, VirtualTable

_ACTION = 2
_MAX_ACTION_CHARS = 40
_NO_FILE = "Open a file to list its events."
_NO_EVENTS = "This device has no events: the snapshot contains only its state."


class EventsPane(ttk.Frame):
    """The list of events, and controls to go to one."""

    def __init__(self, parent: tk.Misc, state: State) -> None:
        super().__init__(parent)
        self._state = state
        self._found: dict[str, npt.NDArray[np.int64]] = {}
        gap = px(self, 8)
        self._bar = ttk.Frame(self)
        ttk.Label(self._bar, text="Go to event", style="Secondary.TLabel").pack(side="left")
        self.entry = ttk.Entry(self._bar, width=10, justify="right")
        self.entry.bind("<Return>", self._go_to_typed)
        self.entry.pack(side="left", padx=(px(self, 6), px(self, 12)))
        self.action = ttk.Combobox(self._bar, width=13, state="readonly", values=ACTIONS)
        self.action.set("alloc")
        self.action.pack(side="left")
        self.previous = self._button("◂", -1)
        self.next = self._button("▸", 1)
        self.message = ttk.Label(self)
        hooks = RowHooks(on_select=self._choose, tag_of=lambda row: row[_ACTION])
        self.table = VirtualTable(self, _columns(0, 0), self._rows, hooks)
        self._bar.grid(row=0, sticky="ew", padx=gap, pady=gap)
        self.message.grid(row=1, sticky="ew", padx=gap, pady=gap)
        self.table.grid(row=2, sticky="nsew")
        self.columnconfigure(0, weight=1)
        self.rowconfigure(2, weight=1)
        self.bind("<Configure>", self._wrap)
        state.on(self._show, "document", "device")
        state.on(self._follow, "cursor")
        state.on(self._recolor, "look")
        self._recolor()
        self._show()

    def _button(self, text: str, step: Literal[-1, 1]) -> ttk.Button:
        button = ttk.Button(
            self._bar, text=text, width=2, style="Flat.TButton", command=lambda: self._step(step)
        )
        button.pack(side="left")
        return button

    def _wrap(self, event: tk.Event[tk.Misc]) -> None:
        self.message.configure(wraplength=max(event.width - px(self, 16), 1))

    # Contents

    def _show(self) -> None:
        self._found.clear()
        trace = self._state.trace
        count = 0 if trace is None else trace.events
        clock = None if trace is None else trace.clock
        self.table.set_columns(_columns(count, 0 if clock is None else clock.length_us))
        self.table.set_count(count)
        for widget in (self._bar, self.table):
            if count:
                widget.grid()
            else:
                widget.grid_remove()
        self._show_message("" if count else _NO_FILE if trace is None else _NO_EVENTS)
        self._follow()

    def _show_message(self, text: str, *, is_error: bool = False) -> None:
        style = "Error.TLabel" if is_error else "Secondary.TLabel"
        self.message.configure(text=text, style=style)
        if text:
            self.message.grid()
        else:
            self.message.grid_remove()

    def _recolor(self) -> None:
        colors = palette_of(self._state.look.theme)
        self.table.set_tag("oom", colors.oom)
        self.table.set_tag("snapshot", colors.accent)

    def _rows(self, first: int, last: int) -> Rows:
        device = self._state.device
        if device is None:
            return []
        try:
            events = device.event_rows(first, last)
            rows = [self._texts(event) for event in events]
        except (SnapshotError, OSError) as error:
            self._show_message(f"Could not read the events: {error}", is_error=True)
            return []
        self._show_message("")
        return rows

    def _texts(self, event: Event) -> tuple[str, ...]:
        trace, document = self._state.trace, self._state.document
        assert trace is not None
        assert document is not None
        time = address = ""
        if event.time_us is not None and trace.clock is not None:
            time = f"{(event.time_us - trace.clock.start_us) / 1e6:,.6f}"
        if event.action != "oom":
            address = f"0x{event.address:x}"
        return (
            f"{event.index:,}",
            time,
            sanitize(event.action, _MAX_ACTION_CHARS),
            format_bytes(event.size),
            document.line_of(event.stack),
            address,
            str(event.stream),
        )

    # Navigation

    def _follow(self) -> None:
        """Mark the cursor's event and bring it into view."""
        cursor = self._state.cursor
        if cursor != self.table.row:
            self.table.mark(cursor)

    def _choose(self, event: int) -> None:
        device = self._state.device
        if device is not None:
            self._state.set_cursor(event)
            self._state.show_event(event)
            self._state.select(allocation_of_event(device, event))

    def _go_to_typed(self, _: tk.Event[tk.Misc]) -> None:
        typed = "".join(letter for letter in self.entry.get() if letter not in " ,._")
        is_number = typed.isascii() and typed.isdigit()
        self.entry.configure(style="TEntry" if is_number else "Wrong.TEntry")
        if is_number and self.table.count:
            self._choose(min(int(typed), self.table.count - 1))

    def _step(self, step: Literal[-1, 1]) -> None:
        """Go to the next or the previous event of the chosen action."""
        device, action = self._state.device, self.action.get()
        if device is None:
            return
        if action in self._found:
            self._step_among(self._found[action], step)
            return

        def done(events: npt.NDArray[np.int64]) -> None:
            self._found[action] = events
            self._step_among(events, step)

        self._state.start(
            Job("find events"),
            lambda _: device.events_of(action),
            done,
            lambda error: self._show_message(f"Could not read the events: {error}", is_error=True),
        )

    def _step_among(self, events: npt.NDArray[np.int64], step: Literal[-1, 1]) -> None:
        cursor = self._state.cursor
        here = -1 if cursor is None else cursor
        if step > 0:
            place = int(np.searchsorted(events, here, side="right"))
        else:
            place = int(np.searchsorted(events, here, side="left")) - 1
        if 0 <= place < len(events):
            self._choose(int(events[place]))
        else:
            where = "after" if step > 0 else "before"
            self._state.notify(f"No {self.action.get()} {where} this event.")


def _columns(events: int, length_us: int) -> tuple[Column, ...]:
    """Return the columns, wide enough for this number of events and this duration."""
    return (
        Column("Event", f"{events:,}", is_number=True),
        Column("Seconds", f"{length_us / 1e6:,.6f}", is_number=True),
        Column("Action", "free_completed"),
        Column("Size", "1,023 MiB", is_number=True),
        Column("Line", "model.py:77 attention", grows=True),
        Column("Address", "0x7f0000000000", is_number=True),
        Column("Stream", "0", is_number=True),
    )
