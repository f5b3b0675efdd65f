"""The last line: how far the picture can be trusted, what is under the pointer, what goes on."""

from __future__ import annotations

import tkinter as tk
from tkinter import ttk

from snapviewer.text.units import count_of, format_bytes

from .state import State
from .theme import px
from .tooltip import Tooltip
from .trust import Trust, trust_of
from .words import total_at, when_text

_LOOK_MS = 100


class StatusBar(ttk.Frame):
    """A badge, two facts, and the progress of what goes on aside."""

    def __init__(self, parent: tk.Misc, state: State) -> None:
        super().__init__(parent, padding=(px(parent, 8), px(parent, 3)))
        self._state = state
        self._trust: Trust | None = None
        self._badge = ttk.Label(self, cursor="question_arrow")
        self._where = ttk.Label(self, style="Secondary.TLabel")
        self._alive = ttk.Label(self, style="Secondary.TLabel")
        self._under = ttk.Label(self, style="Secondary.TLabel")
        self._work = ttk.Frame(self)
        self._title = ttk.Label(self._work, style="Secondary.TLabel")
        self._bar = ttk.Progressbar(self._work, length=px(self, 110), maximum=1.0)
        self._stop = ttk.Button(self._work, text="✕", width=2, style="Tight.Flat.TButton")
        self._stop.configure(command=self._cancel)
        for part in (self._title, self._bar, self._stop):
            part.pack(side="left", padx=(px(self, 6), 0))
        # The plot does not change its size whenever work begins and ends.
        ttk.Frame(self, width=1, height=self._stop.winfo_reqheight()).pack(side="right")
        gap = px(self, 18)
        self._badge.pack(side="left")
        for label in (self._where, self._alive, self._under):
            label.pack(side="left", padx=(gap, 0))
        Tooltip(self._badge, "How far the picture can be trusted; click for the reason")
        Tooltip(self._stop, "Cancel")
        Tooltip(self._alive, "Live requested bytes after this event")
        Tooltip(self._under, "How high in the stack the pointer is")
        self._badge.bind("<Button-1>", lambda _: self._tell_trust())
        state.on("device", self._show_trust)
        state.on("document", self._show_trust)
        for topic in ("pointer", "cursor", "timeline", "device"):
            state.on(topic, self._show_place)
        state.on("jobs", self._show_jobs)
        self._looking: str | None = None
        self._show_trust()

    def _show_trust(self) -> None:
        document, device = self._state.document, self._state.device
        if document is None or device is None:
            self._trust = None
            self._badge.configure(text="")
            return
        self._trust = trust_of(document.snapshot, device)
        style = {"good": "Good.TLabel", "partly": "Warn.TLabel", "bad": "Error.TLabel"}
        self._badge.configure(text=self._trust.badge, style=style[self._trust.grade])

    def _tell_trust(self) -> None:
        if self._trust is not None:
            self._state.tell(self._trust.text)

    def _show_place(self) -> None:
        state, pointer = self._state, self._state.pointer
        trace, timeline = state.trace, state.timeline
        if trace is None or timeline is None:
            for label in (self._where, self._alive, self._under):
                label.configure(text="")
            return
        event = pointer.event if pointer is not None else state.cursor
        if event is None or event >= trace.events:
            self._where.configure(text=count_of(trace.events, "event"))
            self._alive.configure(text="")
        else:
            self._where.configure(text=when_text(trace, event))
            self._alive.configure(text=f"{format_bytes(total_at(trace, timeline, event))} live")
        under = f"pointer at {format_bytes(pointer.byte)}" if pointer is not None else ""
        self._under.configure(text=under)

    def _show_jobs(self) -> None:
        """Show the oldest work that has a title; look again while there is any."""
        jobs = [job for job in self._state.jobs.running() if job.title and job.name != "open"]
        if not jobs:
            self._work.pack_forget()
            return
        share = jobs[0].share
        self._title.configure(text=f"{jobs[0].title} …")
        self._bar.configure(value=0.0 if share is None else share)
        if not self._work.winfo_ismapped():
            self._work.pack(side="right")
        if self._looking is None:
            self._looking = self.after(_LOOK_MS, self._look)

    def _look(self) -> None:
        self._looking = None
        self._show_jobs()

    def _cancel(self) -> None:
        jobs = [job for job in self._state.jobs.running() if job.title and job.name != "open"]
        if jobs:
            self._state.cancel(jobs[0].name)
