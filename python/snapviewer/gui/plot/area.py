"""The timeline with everything around it that shares its axes: minimap, axes, lanes."""

from __future__ import annotations

import tkinter as tk
from tkinter import ttk

from snapviewer.gui.state import State
from snapviewer.gui.theme import palette_of

from .axes import ByteAxis, LabelWidth, TimeAxis
from .lanes import Lanes
from .minimap import Minimap
from .plot import Plot
from .scale import Scales


class Area(ttk.Frame):
    """Stacks what shares the axis of events above each other, as wide as each other."""

    def __init__(self, parent: tk.Misc, state: State) -> None:
        super().__init__(parent, style="Plot.TFrame")
        self._state = state
        width_of = LabelWidth(self)
        self._minimap = Minimap(self, state)
        self._bytes = ByteAxis(self, state, width_of)
        self._time = TimeAxis(self, state, width_of)
        self.plot = Plot(self, state, width_of, self._show_axes)
        self._lanes = Lanes(self, state)
        self._bytes.grid(row=1, column=0, sticky="ns")
        self.plot.widget.grid(row=1, column=1, sticky="nsew")
        self._time.grid(row=2, column=1, sticky="ew")
        self._lanes.grid(row=3, column=1, sticky="ew")
        self.columnconfigure(1, weight=1)
        self.rowconfigure(1, weight=1)
        state.on("panes", self._show_panes)
        state.on("look", self._recolor)
        self._show_panes()
        self._recolor()

    def _show_axes(self, scales: Scales) -> None:
        self._bytes.show(scales)
        self._time.show(scales)

    def _show_panes(self) -> None:
        if self._state.settings.show_minimap:
            self._minimap.grid(row=0, column=1, sticky="ew")
        else:
            self._minimap.grid_forget()

    def _recolor(self) -> None:
        background = palette_of(self._state.look.theme).background
        for canvas in (self._bytes, self._time):
            canvas.configure(background=background)
