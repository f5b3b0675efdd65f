"""The dock below the timeline: its tabs, and beside or below them the controls of the one in front.

A new tab takes two lines: its title and key in `values.DOCK_TABS`, and its class in `_VIEWS`.
"""

from __future__ import annotations

import tkinter as tk
from functools import partial
from tkinter import ttk

from snapviewer.gui.state import State
from snapviewer.gui.theme import px
from snapviewer.gui.tips import Tooltip
from snapviewer.gui.values import DOCK_TABS, DockTab

from .dock_view import DockView
from .growth_tab import GrowthTab
from .leaks_tab import LeaksTab
from .map_tab import MapTab
from .steps_tab import StepsTab
from .tree_tab import TreeTab

_VIEWS: dict[DockTab, type[DockView]] = {
    "map": MapTab,
    "growth": GrowthTab,
    "tree": TreeTab,
    "steps": StepsTab,
    "leaks": LeaksTab,
}


class Dock(ttk.Frame):
    """The tabs. The view of a tab is made when it is first shown."""

    def __init__(self, parent: tk.Misc, state: State) -> None:
        super().__init__(parent)
        self._state = state
        self.views: dict[DockTab, DockView] = {}
        self.grid_propagate(False)
        line = ttk.Frame(self, style="Border.TFrame", height=px(self, 1))
        line.grid(row=0, column=0, sticky="ew")
        self._head = ttk.Frame(self, padding=(px(self, 8), px(self, 2)))
        self._head.grid(row=1, column=0, sticky="ew")
        self.columnconfigure(0, weight=1)
        self.rowconfigure(2, weight=1)
        self._line = ttk.Frame(self._head)
        self._line.grid(row=0, column=0, sticky="w")
        self._tabs = {tab: self._tab_button(tab) for tab in DOCK_TABS}
        self._head.columnconfigure(1, weight=1)
        self._close = ttk.Button(self._head, text="✕", style="Tight.Flat.TButton", width=2)
        self._close.configure(takefocus=False, command=self._hide)
        self._close.grid(row=0, column=2)
        Tooltip(self._close, "Hide (the key that shows the tab hides it too)")
        self._shown: DockView | None = None
        self.bind("<Configure>", lambda _: self._place_head())
        state.on(self._show, "panes")
        self._show()

    def _tab_button(self, tab: DockTab) -> ttk.Button:
        title, key = DOCK_TABS[tab]
        button = ttk.Button(self._line, text=title, takefocus=False, width=len(title) + 1)
        button.configure(command=partial(self._state.show_dock, tab))
        button.pack(side="left", padx=(0, px(self, 2)))
        Tooltip(button, f"{title} ({key})")
        return button

    def _hide(self) -> None:
        self._state.set_pane("dock", is_shown=False)

    def view(self, tab: DockTab) -> DockView:
        """Return the view of a tab; it is made at the first call."""
        if tab not in self.views:
            self.views[tab] = _VIEWS[tab](self, self._head, self._state)
        return self.views[tab]

    def _show(self) -> None:
        """Bring the chosen tab to the front."""
        state = self._state
        if not state.settings.show_dock:
            return
        chosen = state.dock_tab
        for tab, button in self._tabs.items():
            button.configure(style="On.Tab.TButton" if tab == chosen else "Tab.TButton")
        view = self.view(chosen)
        if view is not self._shown:
            if self._shown is not None:
                self._shown.grid_remove()
                self._shown.head.grid_remove()
            self._shown = view
            view.grid(row=2, column=0, sticky="nsew")
            self._place_head()

    def _place_head(self) -> None:
        """Put the controls beside the tabs if there is room, otherwise below them."""
        view = self._shown
        if view is None:
            return
        beside = self._line.winfo_reqwidth() + self._close.winfo_reqwidth() + px(self, 40)
        if beside + view.head_width() <= self.winfo_width():
            view.head.grid(row=0, column=1, columnspan=1, sticky="ew", padx=(px(self, 8), 0))
        else:
            view.head.grid(row=1, column=0, columnspan=3, sticky="ew", padx=0)
