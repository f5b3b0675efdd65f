"""The first answer, above the plot: a line of words, each part a link."""

from __future__ import annotations

import tkinter as tk
from functools import partial
from tkinter import font as tkfont
from tkinter import ttk

from snapviewer.gui.state import State
from snapviewer.gui.theme import TEXT, palette_of, px
from snapviewer.gui.tips import Tooltip
from snapviewer.report.snapshot.first_answer import Link, Part

_TIPS: dict[Link, str] = {
    "oom": "Go to the request that failed (O)",
    "peak": "Go to the peak (P)",
    "category": "List what is alive at the peak by category",
    "reserved": "Show the allocator's memory at the peak (F5)",
    "growth": "Show what grows from step to step (F12)",
}
_SEPARATOR = "  ·  "


class FirstLine(ttk.Frame):
    """The parts beside each other, as many as have room; the last one is cut."""

    def __init__(self, parent: tk.Misc, state: State) -> None:
        super().__init__(parent, style="Plot.TFrame")
        self._state = state
        self.parts: tuple[Part, ...] = ()
        self.labels: list[tk.Label] = []
        self._font = tkfont.nametofont(TEXT, self)
        self.configure(height=self._font.metrics("linespace") + px(self, 8))
        self.pack_propagate(False)
        self.bind("<Configure>", lambda _: self._fit())
        state.on(self._show, "answers", "look")
        self._show()

    def _show(self) -> None:
        found = self._state.answers.found
        parts = () if found is None else found.parts
        colors = palette_of(self._state.look.theme)
        for label in self.labels:
            label.destroy()
        self.parts, self.labels = parts, []
        for place, part in enumerate(parts):
            if place:
                self._add(_SEPARATOR, colors.secondary, colors.background)
            color = colors.oom if part.is_warning else colors.text
            label = self._add(part.text, color, colors.background)
            label.configure(cursor="hand2")
            label.bind("<Button-1>", partial(self._follow, part.link))
            label.bind("<Enter>", partial(self._hover, label, colors.accent), add=True)
            label.bind("<Leave>", partial(self._hover, label, color), add=True)
            lines = (part.text, part.more, _TIPS[part.link])
            Tooltip(label, "\n".join(filter(None, lines)), at_pointer=True)
        self._fit()

    def _add(self, text: str, color: str, background: str) -> tk.Label:
        label = tk.Label(self, text=text, font=TEXT, foreground=color, background=background)
        label.configure(borderwidth=0, padx=0, pady=0, anchor="w")
        self.labels.append(label)
        return label

    def _follow(self, link: Link, _: tk.Event[tk.Misc]) -> None:
        self._state.answers.follow(link)

    def _hover(self, label: tk.Label, color: str, _: tk.Event[tk.Misc]) -> None:
        label.configure(foreground=color)

    def _fit(self) -> None:
        """Place the labels from the left; what has no room is left out."""
        x, width = px(self, 8), self.winfo_width()
        for label in self.labels:
            wide = label.winfo_reqwidth()
            if x >= width:
                label.place_forget()
                continue
            label.place(x=x, rely=0.5, anchor="w", width=min(wide, width - x))
            x += wide
