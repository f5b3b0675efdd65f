"""The allocator's settings beside the memory map, each with its effect."""

from __future__ import annotations

import tkinter as tk
from tkinter import ttk

from snapviewer.gui.state import State
from snapviewer.gui.theme import BOLD, SMALL, palette_of, px
from snapviewer.report.snapshot.allocator_settings import settings_of, settings_source


class SettingsView(ttk.Frame):
    """A text that scrolls."""

    def __init__(self, parent: tk.Misc, state: State) -> None:
        super().__init__(parent)
        self._state = state
        self.pack_propagate(False)
        self.text = tk.Text(self, wrap="word", font=SMALL, cursor="", takefocus=False, width=1)
        self.text.configure(padx=px(self, 10), pady=px(self, 4), state="disabled")
        line = ttk.Frame(self, style="Border.TFrame", width=px(self, 1))
        line.pack(side="left", fill="y")
        self.text.pack(fill="both", expand=True)
        state.on(self._show, "replay", "look")
        self._show()

    def _show(self) -> None:
        text, colors = self.text, palette_of(self._state.look.theme)
        text.tag_configure("title", font=BOLD)
        text.tag_configure("effect", foreground=colors.secondary, spacing3=px(self, 5))
        text.tag_configure("value", foreground=colors.accent)
        text.configure(state="normal")
        text.delete("1.0", "end")
        replay = self._state.replayed.replay
        if replay is not None:
            text.insert("end", "Allocator settings\n", "title")
            text.insert("end", f"{settings_source(replay.allocator)}\n", "effect")
            for setting in settings_of(replay.allocator):
                text.insert("end", f"{setting.name}: ", "", setting.value, "value")
                text.insert("end", f"\n{setting.effect}\n", "effect")
        text.configure(state="disabled")
