"""What the dock shows in a tab."""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable
from tkinter import ttk
from typing import Literal

from snapviewer.gui.state import State
from snapviewer.gui.tips import Tooltip


class DockView(ttk.Frame):
    """The contents of a tab, and in `head` its controls, beside the tabs.

    A view listens to the topics that it shows and to "panes", and should do nothing unless
    `state.is_docked(tab)`.
    """

    def __init__(self, parent: tk.Misc, head: tk.Misc, state: State) -> None:
        super().__init__(parent)
        self._state = state
        self.head = ttk.Frame(head)

    def add_button(
        self,
        text: str,
        tip: str,
        run: Callable[[], object],
        side: Literal["left", "right"] = "left",
    ) -> ttk.Button:
        """Add a small button to the controls."""
        style = "Tight.Flat.TButton"
        button = ttk.Button(self.head, text=text, style=style, takefocus=False, command=run)
        button.configure(width=max(len(text), 2))
        button.pack(side=side)
        Tooltip(button, tip)
        return button
