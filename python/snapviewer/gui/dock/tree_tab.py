"""The call tree with its controls: what is weighed, which frames are shown, search."""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable, Mapping
from tkinter import ttk
from typing import Any

from snapviewer.gui.call_tree import BYS, FRAMES, MEASURES
from snapviewer.gui.state import State
from snapviewer.gui.theme import px
from snapviewer.gui.tips import Tooltip

from .dock_view import DockView
from .tree_table import TreeTable
from .tree_view import TreeView


class TreeTab(DockView):
    """The icicle, and beside the tabs what it shows."""

    def __init__(self, parent: tk.Misc, head: tk.Misc, state: State) -> None:
        super().__init__(parent, head, state)
        self.view = TreeView(self, state)
        self.view.grid(row=0, column=0, sticky="nsew")
        self.table = TreeTable(self, state)
        self.columnconfigure(0, weight=1)
        self.rowconfigure(0, weight=1)
        shown = state.call_tree
        # What is on the right keeps its room in a narrow dock.
        self.search = ttk.Entry(self.head, width=14)
        self.search.pack(side="right")
        self.search.bind("<KeyRelease>", lambda _: shown.search(self.search.get()))
        Tooltip(self.search, "Search: a regular expression over function, file and line")
        ttk.Label(self.head, text="⌕", style="Secondary.TLabel").pack(
            side="right", padx=(px(self, 8), px(self, 4))
        )
        self._measure = self._choice(
            MEASURES, "What a box weighs", lambda key: shown.set_way(measure=key)
        )
        self._frames = self._choice(
            FRAMES, "Which frames are boxes (J)", lambda key: shown.set_way(frames=key)
        )
        self._by = self._choice(BYS, "What a box is", lambda key: shown.set_way(by=key))
        self._callers = ttk.Checkbutton(
            self.head, text="callers up", takefocus=False, command=shown.turn
        )
        self._callers.pack(side="left", padx=px(self, 6))
        Tooltip(self._callers, "Start with the lines that allocate, then their callers (Shift+J)")
        self._as_table = ttk.Checkbutton(
            self.head, text="table", takefocus=False, command=shown.toggle_table
        )
        self._as_table.pack(side="left", padx=px(self, 6))
        Tooltip(self._as_table, "List the heaviest nodes in a table (Q)")
        self.about = ttk.Label(self.head, style="Secondary.TLabel")
        self.about.pack(side="left", padx=px(self, 4))
        state.on(self._show, "tree", "cursor", "view", "device", "panes", "timeline", "filter")
        state.on(self._show, "selection")
        self._show()

    def _choice(
        self, choices: Mapping[Any, str], tip: str, choose: Callable[[Any], None]
    ) -> ttk.Combobox:
        width = max(map(len, choices.values()))
        box = ttk.Combobox(
            self.head, values=list(choices.values()), state="readonly", width=width, takefocus=False
        )
        box.pack(side="left", padx=(0, px(self, 4)))
        Tooltip(box, tip)

        def chosen(_: tk.Event[tk.Misc]) -> None:
            box.selection_clear()
            choose(next(key for key, text in choices.items() if text == box.get()))

        box.bind("<<ComboboxSelected>>", chosen)
        return box

    def _show(self) -> None:
        shown = self._state.call_tree
        if not shown.is_shown:
            return
        self._measure.set(MEASURES[shown.measure])
        self._frames.set(FRAMES[shown.frames])
        self._by.set(BYS[shown.by])
        for button, is_on in ((self._callers, shown.is_callers), (self._as_table, shown.is_table)):
            button.state(["!alternate", "selected" if is_on else "!selected"])
        if shown.is_table:
            self.view.grid_remove()
            self.table.grid(row=0, column=0, sticky="nsew")
            self.table.show(shown.tree())
        else:
            self.table.grid_remove()
            self.view.grid()
        self.about.configure(text=shown.about())
