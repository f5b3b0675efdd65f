"""The memory map with its controls: event, steps, order, scale, and the settings beside it."""

from __future__ import annotations

import tkinter as tk
from functools import partial
from tkinter import ttk
from typing import cast

from snapviewer.gui.labels import BEFORE_TRACE
from snapviewer.gui.replay import MAP_ORDERS, MapOrder
from snapviewer.gui.state import State
from snapviewer.gui.theme import px
from snapviewer.gui.tips import Tooltip
from snapviewer.text.units import format_bytes

from .dock_view import DockView
from .map_view import MapView
from .settings_view import SettingsView

_SETTINGS_WIDTH = 250
_SETTINGS_NEED = 640  # a narrower dock has no room for them


class MapTab(DockView):
    """A line of controls above the map; a note where the map is not exact or complete."""

    def __init__(self, parent: tk.Misc, head: tk.Misc, state: State) -> None:
        super().__init__(parent, head, state)
        self.note = ttk.Label(self, style="Warn.TLabel", padding=(px(self, 8), 0, 0, px(self, 3)))
        self.map = MapView(self, state, self._show_scale)
        self.map.grid(row=1, column=0, sticky="nsew")
        self.settings = SettingsView(self, state)
        self.settings.configure(width=px(self, _SETTINGS_WIDTH))
        self.columnconfigure(0, weight=1)
        self.rowconfigure(1, weight=1)
        self._fill_head()
        self.bind("<Configure>", self._resized)
        state.on(self._show, "cursor", "replay", "device", "map", "panes")
        self._show()

    def _fill_head(self) -> None:
        head, replayed = self.head, self._state.replayed
        self.event = ttk.Label(head, style="Secondary.TLabel")
        self.event.pack(side="left", padx=px(self, 4))
        add = self.add_button
        add("«", "Previous segment event (Shift+N)", partial(replayed.step_segment, -1))
        add("‹", "Previous event (,)", partial(replayed.step, -1))
        add("›", "Next event (.)", partial(replayed.step, 1))
        add("»", "Next segment event (N)", partial(replayed.step_segment, 1))
        self.amounts = ttk.Label(head, style="Secondary.TLabel")
        self.amounts.pack(side="left", padx=px(self, 12))
        add("fit", "Fit the map (Y)", replayed.fit, "right")
        add("+", "Zoom in (Z, Ctrl+wheel)", lambda: self.map.zoom(1), "right")
        self._scale = ttk.Label(head, style="Secondary.TLabel")
        self._scale.pack(side="right")
        Tooltip(self._scale, "Bytes in a row; longer segments continue in the next row")
        add("−", "Zoom out (Shift+Z)", lambda: self.map.zoom(-1), "right")
        self._order = ttk.Combobox(head, values=MAP_ORDERS, state="readonly", width=8)
        self._order.pack(side="right", padx=(px(self, 4), px(self, 10)))
        self._order.bind("<<ComboboxSelected>>", self._choose_order)
        Tooltip(self._order, "Order of the segments in each pool (U)")
        ttk.Label(head, text="by", style="Secondary.TLabel").pack(side="right")

    def _choose_order(self, _: tk.Event[tk.Misc]) -> None:
        self._order.selection_clear()
        self._state.replayed.set_order(cast("MapOrder", self._order.get()))

    def _resized(self, event: tk.Event[tk.Misc]) -> None:
        if event.widget is not self:
            return
        self.note.configure(wraplength=max(event.width - px(self, 16), 1))
        if event.width >= px(self, _SETTINGS_NEED):
            self.settings.grid(row=1, column=1, sticky="ns")
        else:
            self.settings.grid_remove()
        self._show()

    def _show_scale(self, row_bytes: int | None) -> None:
        self._scale.configure(text="" if row_bytes is None else f"{format_bytes(row_bytes)} a row")

    def _show(self) -> None:
        state, replayed = self._state, self._state.replayed
        if not state.is_docked("map"):
            return
        self._order.set(replayed.order)
        trace, event = state.trace, state.cursor
        text = ""
        if trace is not None and trace.events and event is not None:
            text = BEFORE_TRACE if event < 0 else f"after event {event:,}"
        self.event.configure(text=text)
        amounts = replayed.amounts(event)
        is_wide = self.winfo_width() >= px(self, _SETTINGS_NEED) * 1.2
        if amounts is None or not is_wide:
            self.amounts.configure(text="")
        else:
            active, reserved = (format_bytes(amounts[name]) for name in ("active", "reserved"))
            self.amounts.configure(text=f"{active} of {reserved} in use")
        note = replayed.note()
        self.note.configure(text=note)
        if note:
            self.note.grid(row=0, column=0, columnspan=2, sticky="ew")
        else:
            self.note.grid_remove()
