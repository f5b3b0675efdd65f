"""The side pane and its tabs."""

from __future__ import annotations

import tkinter as tk
from tkinter import ttk

from snapviewer.gui.state import State
from snapviewer.gui.values import TABS, Tab

from .at_cursor import AtCursor
from .details import Details
from .events_pane import EventsPane
from .sql_pane import SqlPane

_TITLES: dict[Tab, str] = {
    "details": "Details",
    "cursor": "At cursor",
    "sql": "SQL",
    "events": "Events",
}


class Side(ttk.Frame):
    """Details, live allocations at the cursor, SQL queries, events."""

    def __init__(self, parent: tk.Misc, state: State) -> None:
        super().__init__(parent)
        self._state = state
        self.pack_propagate(False)
        self._book = ttk.Notebook(self, takefocus=False)
        self.details = Details(self._book, state)
        self.at_cursor = AtCursor(self._book, state)
        self.sql = SqlPane(self._book, state)
        self.events = EventsPane(self._book, state)
        self._tabs: dict[Tab, ttk.Frame] = {
            "details": self.details,
            "cursor": self.at_cursor,
            "sql": self.sql,
            "events": self.events,
        }
        for tab in TABS:
            self._book.add(self._tabs[tab], text=_TITLES[tab])
        self._book.pack(fill="both", expand=True)
        self._book.bind("<<NotebookTabChanged>>", self._changed)
        state.on(self._show, "panes")
        self._show()

    def _show(self) -> None:
        self._book.select(self._tabs[self._state.tab])  # type: ignore[no-untyped-call]

    def _changed(self, _: tk.Event[tk.Misc]) -> None:
        self._state.tab = TABS[self._book.index("current")]  # type: ignore[no-untyped-call]
