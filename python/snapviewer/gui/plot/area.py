"""The timeline with everything that shares its axes: overview, axes, annotations, legend."""

from __future__ import annotations

import tkinter as tk
from tkinter import ttk

from snapviewer.gui.state import State
from snapviewer.gui.theme import palette_of, px

from .amounts import AmountsBox
from .axes import ByteAxis, LabelWidth, TimeAxis
from .growth_strip import GrowthStrip
from .lanes import Lanes
from .legend import Legend
from .marks import Scales
from .minimap import Minimap
from .plot import Plot


class Area(ttk.Frame):
    """The widgets that share the x axis, above each other and equally wide."""

    def __init__(self, parent: tk.Misc, state: State) -> None:
        super().__init__(parent, style="Plot.TFrame")
        self._state = state
        width_of = LabelWidth(self)
        self._minimap = Minimap(self, state)
        self._bytes = ByteAxis(self, state, width_of)
        self._time = TimeAxis(self, state, width_of)
        self.plot = Plot(self, state, width_of, self._show_axes)
        self.legend = Legend(self.plot.widget, state, lambda: self.plot.image)
        self.amounts = AmountsBox(self.plot.widget, state, self.legend)
        self.growth = GrowthStrip(self, state)
        self.lanes = Lanes(self, state)
        self._lanes_label = ttk.Label(self, text="spans", style="PlotSmall.TLabel", anchor="e")
        self._bytes.grid(row=1, column=0, sticky="ns")
        self.plot.widget.grid(row=1, column=1, sticky="nsew")
        self._time.grid(row=3, column=1, sticky="ew")
        self.lanes.grid(row=4, column=1, sticky="ew")
        self._lanes_label.grid(row=4, column=0, sticky="ne", padx=(0, px(self, 8)))
        self.columnconfigure(1, weight=1)
        self.rowconfigure(1, weight=1)
        state.on(self._show_panes, "panes", "document", "device", "replay", "answers")
        state.on(self._recolor, "look")
        self._show_panes()
        self._recolor()

    def _show_axes(self, scales: Scales) -> None:
        self._bytes.show(scales)
        self._time.show(scales)
        self.legend.refresh_soon()

    def _show_panes(self) -> None:
        if self._state.settings.show_minimap:
            self._minimap.grid(row=0, column=1, sticky="ew")
        else:
            self._minimap.grid_forget()
        if self.growth.is_shown:
            self.growth.grid(row=2, column=1, sticky="ew")
        else:
            self.growth.grid_forget()
        if self.lanes.is_shown:
            self._lanes_label.grid()
        else:
            self._lanes_label.grid_remove()

    def _recolor(self) -> None:
        background = palette_of(self._state.look.theme).background
        for canvas in (self._bytes, self._time):
            canvas.configure(background=background)
