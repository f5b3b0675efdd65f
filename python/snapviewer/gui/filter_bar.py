"""Where a filter is typed: its text, what to do with matches, how many there are."""

from __future__ import annotations

import tkinter as tk
from tkinter import ttk

from snapviewer.text.units import format_bytes

from .state import State
from .theme import palette_of, px
from .tooltip import Tooltip

_HINT = "a word of the stack, size>=1MiB, lifetime<100 …"
_TYPING_MS = 60


class FilterBar(ttk.Frame):
    """An entry with a menu of terms, a switch and a count."""

    def __init__(self, parent: tk.Misc, state: State) -> None:
        super().__init__(parent)
        self._state = state
        self._text = tk.StringVar(self)
        self._typing: str | None = None
        self.entry = ttk.Entry(self, textvariable=self._text, width=24)
        self._hint = tk.Label(self.entry, text=_HINT, borderwidth=0, padx=0, pady=0, cursor="xterm")
        self._hint.bind("<Button-1>", lambda _: self.entry.focus_set())
        self._terms = ttk.Button(
            self, text="▾", width=2, style="Flat.TButton", command=self._show_terms
        )
        self._clear = ttk.Button(
            self, text="✕", width=2, style="Flat.TButton", command=state.clear_filter
        )
        self._mode = ttk.Button(
            self, width=8, style="Flat.TButton", command=state.switch_filter_mode
        )
        self._count = ttk.Label(self, style="Secondary.TLabel")
        self._error = tk.Label(
            self.winfo_toplevel(), justify="left", padx=px(self, 7), pady=px(self, 4), borderwidth=0
        )
        self._error.configure(highlightthickness=px(self, 1))
        # Where there is little room, the entry gets what the others leave.
        self._count.pack(side="right", padx=(px(self, 4), 0))
        self._mode.pack(side="right")
        self._terms.pack(side="right")
        self._clear.pack(side="right")
        self.entry.pack(side="left", fill="x", expand=True)
        Tooltip(self.entry, "Matches call stacks (a regular expression), sizes, lifetimes … (F2)")
        Tooltip(self._terms, "What a filter can say")
        Tooltip(self._clear, "Clear the filter (Ctrl+Backspace)")
        Tooltip(self._count, "How many allocations match, and their sizes added up")
        Tooltip(self._mode, "Highlight matches, or stack only them (M)")
        self._text.trace_add("write", self._typed)
        self.entry.bind("<Return>", lambda _: self._finish())
        self.entry.bind("<FocusIn>", lambda _: self._show_hint(), add=True)
        self.entry.bind("<FocusOut>", lambda _: self._show_hint(), add=True)
        state.on("filter", self._show)
        state.on("look", self._show_hint)
        state.on("look", self._show_error)
        self.bind("<Configure>", lambda _: self._show_error())
        self._show()

    def _typed(self, *_: str) -> None:
        self._show_hint()
        if self._text.get() == self._state.filter.text:
            return
        # What follows within a moment is typed still.
        if self._typing is not None:
            self.after_cancel(self._typing)
        self._typing = self.after(_TYPING_MS, self._apply)

    def _apply(self) -> None:
        if self._typing is not None:
            self.after_cancel(self._typing)
            self._typing = None
        self._state.set_filter(self._text.get())

    def _finish(self) -> None:
        """Look for it now, and give the keyboard back."""
        self._apply()
        self.winfo_toplevel().focus_set()

    def _show(self) -> None:
        now = self._state.filter
        if self._typing is None and self._text.get() != now.text:
            self._text.set(now.text)
        self._mode.configure(text="highlight" if now.mode == "highlight" else "only these")
        self.entry.configure(style="Wrong.TEntry" if now.error else "TEntry")
        if now.error:
            self._count.configure(text="?", style="Error.TLabel")
        elif now.matches is not None:
            text = f"{now.matches.count:,} match  ·  {format_bytes(now.matches.size_bytes)}"
            self._count.configure(text=text, style="Secondary.TLabel")
        elif not now.text.strip():
            self._count.configure(text="", style="Secondary.TLabel")
        self._show_hint()
        self._show_error()

    def _show_error(self) -> None:
        """Say below the entry what is not understood: there is room for a sentence."""
        error = self._state.filter.error.removeprefix("filter: ")
        if not error:
            self._error.place_forget()
            return
        colors = palette_of(self._state.look.theme)
        self._error.configure(
            text=error,
            background=colors.raised,
            foreground=colors.oom,
            highlightbackground=colors.border,
            wraplength=max(self.winfo_width() - px(self, 16), px(self, 200)),
        )
        self._error.place(in_=self.entry, x=0, rely=1.0, y=px(self, 2))
        self._error.lift()

    def _show_hint(self) -> None:
        colors = palette_of(self._state.look.theme)
        self._hint.configure(background=colors.background, foreground=colors.secondary)
        if self._text.get() or self.focus_get() is self.entry:
            self._hint.place_forget()
        else:
            self._hint.place(x=px(self, 8), rely=0.5, anchor="w")

    def _show_terms(self) -> None:
        menu = tk.Menu(self, tearoff=False)
        for label, term in self._choices():
            menu.add_command(label=label, command=lambda term=term: self._add(term))  # type: ignore[misc]
        x, y = self._terms.winfo_rootx(), self._terms.winfo_rooty() + self._terms.winfo_height()
        menu.tk_popup(x, y)

    def _choices(self) -> list[tuple[str, str]]:
        """List terms that make sense for this device, with what they mean."""
        choices = [
            ("1 MiB or larger", "size>=1MiB"),
            ("From 1 to 64 MiB", "size=1MiB..64MiB"),
            ("Lives for less than 100 events", "lifetime<100"),
            ("Lives for more than 10 ms", "lifetime>10ms"),
        ]
        state, device = self._state, self._state.device
        if device is None:
            return choices
        if state.cursor is not None and state.cursor >= 0:
            choices.append(("Alive at the cursor", f"alive={state.cursor}"))
        if device.events:
            choices.append(("Never freed", f"alive={int(device.events) - 1}"))
        if state.selection is not None:
            stack = device.allocations.stack[state.selection]
            choices.append(("Same stack as the selection", f"stack={stack}"))
        streams = sorted(set(device.allocations.stream.tolist()))[:8]
        if len(streams) > 1:
            choices += [(f"On stream {stream}", f"stream={stream}") for stream in streams]
        if len(device.pools) > 1:
            names = enumerate(device.pools)
            choices += [(f"In pool {pool[0]}, {pool[1]}", f"pool={n}") for n, pool in names][:8]
        return choices

    def _add(self, term: str) -> None:
        self._text.set(f"{self._text.get().strip()} {term}".strip())
        self._apply()
        self.entry.focus_set()
        self.entry.icursor("end")
