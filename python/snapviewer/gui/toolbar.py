"""The toolbar: file, device, axis, colours, stacking order, filter."""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable, Sequence
from tkinter import ttk
from typing import get_args

from snapviewer.report.picture.options import Coloring, Order

from .document import Axis
from .filter_bar import FilterBar
from .labels import device_label
from .state import State
from .theme import BOLD, px
from .tips import Tooltip

_AXES = {"event": "events", "time": "time", "busy time": "busy time"}
_MAX_NAME_CHARS = 28
_MAX_NARROW_NAME_CHARS = 16
# A narrower window has no room for labels beside the lists, or for the stacking order.
_LABELS_NEED_PX, _ORDER_NEEDS_PX = 1380, 1100


class Selector(ttk.Frame):
    """A labelled list to choose from."""

    def __init__(
        self, parent: tk.Misc, label: str, about: str, choose: Callable[[int], None]
    ) -> None:
        super().__init__(parent)
        self._label = ttk.Label(self, text=label, style="Secondary.TLabel")
        self._box = ttk.Combobox(self, state="readonly", width=4)
        self._box.pack(side="left", padx=(px(self, 4), 0))
        self._box.bind("<<ComboboxSelected>>", lambda _: self._chosen(choose))
        Tooltip(self._box, about)

    def show(self, values: Sequence[str], which: int) -> None:
        self._box.configure(values=list(values), width=max((len(one) for one in values), default=4))
        if values:
            self._box.current(which)
        else:
            self._box.set("")

    def show_label(self, *, is_shown: bool) -> None:
        if is_shown and self._label.cget("text"):
            self._label.pack(side="left", before=self._box)
        else:
            self._label.pack_forget()

    def _chosen(self, choose: Callable[[int], None]) -> None:
        choose(self._box.current())
        self._box.selection_clear()
        # Return the keyboard to the plot.
        self.winfo_toplevel().focus_set()


class Toolbar(ttk.Frame):
    """The file that is shown, and how."""

    def __init__(self, parent: tk.Misc, state: State) -> None:
        super().__init__(parent, padding=(px(parent, 8), px(parent, 5)))
        self._state = state
        self._name = ttk.Label(self, font=BOLD)
        self._colors, self._orders = get_args(Coloring), get_args(Order)
        self._device = Selector(self, "", "The device (G)", state.choose_device)
        self._axis = Selector(
            self,
            "x",
            "x axis: events, time, or time without idle periods (X)",
            lambda which: state.set_look(axis=self._axes()[which]),
        )
        self._color = Selector(
            self,
            "colour by",
            "Colour allocations by call stack, size, stream, pool, age or category (C)",
            lambda which: state.set_look(color=self._colors[which]),
        )
        self._order = Selector(
            self,
            "stacking order",
            "Stack allocations in order of allocation, by call stack, size, … (V)",
            lambda which: state.set_look(order=self._orders[which]),
        )
        self.filter = FilterBar(self, state)
        gap = px(self, 10)
        self._name.pack(side="left")
        self._fits: tuple[bool, bool] | None = None
        for selector in self._selectors():
            selector.pack(side="left", padx=(gap, 0))
        self.filter.pack(side="left", fill="x", expand=True, padx=(gap, 0))
        Tooltip(self._name, lambda: str(state.document.path) if state.document else "")
        state.on("document", self._show)
        state.on("device", self._show)
        state.on("look", self._show)
        self.bind("<Configure>", self._fit)
        self._show()

    def _selectors(self) -> tuple[Selector, ...]:
        return self._device, self._axis, self._color, self._order

    def _fit(self, event: tk.Event[tk.Misc]) -> None:
        fits = (event.width >= px(self, _ORDER_NEEDS_PX), event.width >= px(self, _LABELS_NEED_PX))
        if fits == self._fits:
            return
        self._fits = fits
        has_order, has_labels = fits
        for selector in self._selectors():
            selector.show_label(is_shown=has_labels)
        # The stacking order is in the menus, too; a filter needs room to be typed.
        if has_order:
            self._order.pack(side="left", padx=(px(self, 10), 0), after=self._color)
        else:
            self._order.pack_forget()
        self._show()

    def _axes(self) -> Sequence[Axis]:
        return self._state.trace.axes() if self._state.trace else ("event",)

    def _show(self) -> None:
        state = self._state
        document, look = state.document, state.look
        name = document.name if document else "no file"
        is_narrow = self._fits is not None and not self._fits[0]
        most = _MAX_NARROW_NAME_CHARS if is_narrow else _MAX_NAME_CHARS
        self._name.configure(text=name if len(name) <= most else f"{name[:most]}…")
        traces = document.traces if document else ()
        self._device.show([device_label(trace.device) for trace in traces], state.which)
        axes = self._axes()
        self._axis.show([_AXES[axis] for axis in axes], axes.index(look.axis))
        self._color.show(self._colors, self._colors.index(look.color))
        self._order.show(self._orders, self._orders.index(look.order))
