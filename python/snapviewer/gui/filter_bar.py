"""The filter: its text, its mode, the number of matches, and a switch for older allocations."""

from __future__ import annotations

import tkinter as tk
from tkinter import font as tkfont
from tkinter import ttk

from snapviewer.text.units import format_bytes

from .state import State
from .theme import palette_of, px
from .tips import Tooltip

# The longest that fits is shown.
_HINTS = (
    "Filter: function, file, size>=1MiB, lifetime<100 …",
    "Filter: function, file, size>=1MiB …",
    "Filter: function, file …",
    "Filter …",
)
_TYPING_MS = 60


class FilterBar(ttk.Frame):
    """An entry with a menu of terms, two switches and a count."""

    def __init__(self, parent: tk.Misc, state: State) -> None:
        super().__init__(parent)
        self._state = state
        self._text = tk.StringVar(self)
        self._typing: str | None = None
        self.entry = ttk.Entry(self, textvariable=self._text, width=24)
        self._hint = tk.Label(self.entry, borderwidth=0, padx=0, pady=0, cursor="xterm")
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
        self._hides_older = tk.BooleanVar(self)
        self.older = ttk.Checkbutton(
            self,
            text="hide older",
            variable=self._hides_older,
            takefocus=False,
            command=lambda: state.show_recorded_only(is_on=self._hides_older.get()),
        )
        self._count = ttk.Label(self, style="Secondary.TLabel")
        self._error = tk.Label(
            self.winfo_toplevel(), justify="left", padx=px(self, 7), pady=px(self, 4), borderwidth=0
        )
        self._error.configure(highlightthickness=px(self, 1))
        # Where there is little room, the entry gets what the other widgets leave.
        self.older.pack(side="right", padx=(px(self, 6), 0))
        self._count.pack(side="right", padx=(px(self, 4), 0))
        self._mode.pack(side="right")
        self._terms.pack(side="right")
        self._clear.pack(side="right")
        self.entry.pack(side="left", fill="x", expand=True)
        Tooltip(
            self.entry,
            "Regular expression for call stacks, size>=1MiB … (F2: filter syntax)",
        )
        Tooltip(self._terms, "Add a term")
        Tooltip(self._clear, "Clear filter (Ctrl+Backspace)")
        Tooltip(self._count, "Number and total size of the matches")
        Tooltip(self._mode, "Highlight matches or show only matches (M)")
        Tooltip(self.older, "Hide allocations older than the recording, such as weights (H)")
        self._text.trace_add("write", self._typed)
        self.entry.bind("<Return>", lambda _: self._finish())
        self.entry.bind("<FocusIn>", lambda _: self._show_hint(), add=True)
        self.entry.bind("<FocusOut>", lambda _: self._show_hint(), add=True)
        state.on(self._show, "filter")
        state.on(self._show_hint, "look")
        state.on(self._show_error, "look")
        self.bind("<Configure>", lambda _: self._show_error())
        self.entry.bind("<Configure>", lambda _: self._show_hint(), add=True)
        self._show()

    def _typed(self, *_: str) -> None:
        self._show_hint()
        if self._text.get() == self._state.filter.text:
            return
        # Wait for the next key.
        if self._typing is not None:
            self.after_cancel(self._typing)
        self._typing = self.after(_TYPING_MS, self._apply)

    def _apply(self) -> None:
        if self._typing is not None:
            self.after_cancel(self._typing)
            self._typing = None
        self._state.set_filter(self._text.get())

    def _finish(self) -> None:
        """Apply the filter now, and return the keyboard to the plot."""
        self._apply()
        self.winfo_toplevel().focus_set()

    def _show(self) -> None:
        now = self._state.filter
        if self._typing is None and self._text.get() != now.text:
            self._text.set(now.text)
        self._mode.configure(text="highlight" if now.mode == "highlight" else "show only")
        self._hides_older.set(now.recorded_only)
        self.entry.configure(style="Wrong.TEntry" if now.error else "TEntry")
        if now.error:
            self._count.configure(text="?", style="Error.TLabel")
        elif now.matches is not None:
            text = f"{now.matches.count:,}  ·  {format_bytes(now.matches.size_bytes)}"
            self._count.configure(text=text, style="Secondary.TLabel")
        elif not now.text.strip():
            self._count.configure(text="", style="Secondary.TLabel")
        self._show_hint()
        self._show_error()

    def _show_error(self) -> None:
        """Show the error below the entry, where there is room for a sentence."""
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
        font = tkfont.nametofont(str(self._hint["font"]), self)
        room = self.entry.winfo_width() - px(self, 16)
        hint = next((hint for hint in _HINTS if font.measure(hint) <= room), "")
        self._hint.configure(text=hint, background=colors.background, foreground=colors.secondary)
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
        """Return labels and terms that make sense for this device."""
        choices = [
            ("1 MiB or larger", "size>=1MiB"),
            ("1 to 64 MiB", "size=1MiB..64MiB"),
            ("Lifetime below 100 events", "lifetime<100"),
            ("Lifetime above 10 ms", "lifetime>10ms"),
        ]
        state, device = self._state, self._state.device
        if device is None:
            return choices
        if state.cursor is not None and state.cursor >= 0:
            choices.append(("Alive at the cursor", f"alive={state.cursor}"))
        if device.events:
            choices.append(("Never freed", f"alive={int(device.events) - 1}"))
        if state.selection is not None:
            stack = int(device.allocations.stack[state.selection])
            choices.append(("Same call stack as the selection", state.filter_of([stack]) or ""))
        streams = sorted(set(device.allocations.stream.tolist()))[:8]
        if len(streams) > 1:
            choices += [(f"Stream {stream}", f"stream={stream}") for stream in streams]
        if len(device.pools) > 1:
            names = enumerate(device.pools)
            choices += [(f"Pool {pool[0]}, {pool[1]}", f"pool={n}") for n, pool in names][:8]
        return choices

    def _add(self, term: str) -> None:
        self._text.set(f"{self._text.get().strip()} {term}".strip())
        self._apply()
        self.entry.focus_set()
        self.entry.icursor("end")
