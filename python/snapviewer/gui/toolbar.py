"""The toolbar: file, device, axis, colours, stacking order, filter."""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable, Sequence
from functools import partial
from tkinter import ttk

from .filter_bar import FilterBar
from .labels import device_label
from .state import State
from .theme import BOLD, px
from .tips import Tooltip
from .values import LookPart

_LOOKS: dict[LookPart, tuple[str, str]] = {
    "axis": ("x", "x axis: events, time, or time without idle periods (X)"),
    "color": (
        "colour by",
        "Colour allocations by call stack, size, stream, pool, lifetime or category (C)",
    ),
    "order": (
        "stacking order",
        "Stack allocations in order of allocation, by call stack, size, … (V)",
    ),
}
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
        self._device = Selector(self, "", "The device (G)", state.choose_device)
        self._looks: dict[LookPart, Selector] = {
            part: Selector(self, label, about, partial(self._choose, part))
            for part, (label, about) in _LOOKS.items()
        }
        self.filter = FilterBar(self, state)
        gap = px(self, 10)
        self._name.pack(side="left")
        self._fits: tuple[bool, bool] | None = None
        for selector in self._selectors():
            selector.pack(side="left", padx=(gap, 0))
        self.filter.pack(side="left", fill="x", expand=True, padx=(gap, 0))
        Tooltip(self._name, lambda: str(state.document.path) if state.document else "")
        state.on(self._show, "document", "device", "look")
        self.bind("<Configure>", self._fit)
        self._show()

    def _choose(self, part: LookPart, which: int) -> None:
        self._state.choose(part, self._state.choices(part)[which])

    def _selectors(self) -> tuple[Selector, ...]:
        return self._device, *self._looks.values()

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
            self._looks["order"].pack(
                side="left", padx=(px(self, 10), 0), after=self._looks["color"]
            )
        else:
            self._looks["order"].pack_forget()
        self._show()

    def _show(self) -> None:
        state = self._state
        document, look = state.document, state.look
        name = document.name if document else "no file"
        is_narrow = self._fits is not None and not self._fits[0]
        most = _MAX_NARROW_NAME_CHARS if is_narrow else _MAX_NAME_CHARS
        self._name.configure(text=name if len(name) <= most else f"{name[:most]}…")
        traces = document.traces if document else ()
        self._device.show([device_label(trace.device) for trace in traces], state.which)
        for part, selector in self._looks.items():
            choices = state.choices(part)
            names = ["events" if choice == "event" else choice for choice in choices]
            selector.show(names, choices.index(getattr(look, part)))
