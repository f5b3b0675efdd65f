"""The status bar: completeness badge, event and memory under the pointer, running jobs."""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable
from tkinter import ttk

from snapviewer.text.sanitize import sanitize
from snapviewer.text.units import count_of, format_bytes

from .jobs import Job
from .labels import SEPARATOR, Completeness, completeness_of, event_label, total_at
from .state import State
from .theme import px
from .tips import Tooltip

_REFRESH_MS = 100
_MARGIN = 8
_LINE_MARGIN = 10
_BADGE_STYLES = {"good": "Good.TLabel", "notes": "Warn.TLabel", "bad": "Error.TLabel"}


class _Part(ttk.Frame):
    """A label with a line before it, hidden while it has no text."""

    def __init__(self, parent: tk.Misc, about: str) -> None:
        super().__init__(parent)
        line = ttk.Frame(self, style="Border.TFrame", width=px(parent, 1))
        line.pack(side="left", fill="y", padx=px(parent, _LINE_MARGIN))
        self.label = ttk.Label(self, style="Secondary.TLabel")
        self.label.pack(side="left")
        Tooltip(self.label, about)

    def show(self, text: str) -> None:
        self.label.configure(text=text)
        if text:
            self.grid()
        else:
            self.grid_remove()


class StatusBar(ttk.Frame):
    """A badge, the event and its memory, and the progress of the oldest job."""

    def __init__(
        self, parent: tk.Misc, state: State, show_completeness: Callable[[], None]
    ) -> None:
        super().__init__(parent, padding=(px(parent, _MARGIN), px(parent, 3)))
        self._state = state
        self.completeness: Completeness | None = None
        self._badge = ttk.Label(self, cursor="hand2")
        self._badge.grid(row=0, column=0)
        self._event = _Part(self, "The event under the pointer, or at the cursor")
        self._live = _Part(
            self,
            "Live allocations after this event, in requested bytes, and memory from the device",
        )
        self._height = _Part(self, "Height of the pointer in the stack")
        self._parts = (self._event, self._live, self._height)
        for column, part in enumerate(self._parts, 1):
            part.grid(row=0, column=column, sticky="ns")
            part.show("")
        self.columnconfigure(4, weight=1)
        self._work = ttk.Frame(self)
        self._title = ttk.Label(self._work, style="Secondary.TLabel")
        self._bar = ttk.Progressbar(self._work, length=px(self, 110), maximum=1.0)
        self._stop = ttk.Button(self._work, text="✕", width=2, style="Tight.Flat.TButton")
        self._stop.configure(command=self._cancel)
        for widget in (self._title, self._bar, self._stop):
            widget.pack(side="left", padx=(px(self, 6), 0))
        # Reserves the height: the plot keeps its size when jobs start and end.
        self.rowconfigure(0, minsize=self._stop.winfo_reqheight())
        Tooltip(self._badge, "Is this picture complete? Click for details (I)")
        Tooltip(self._stop, "Cancel")
        self._badge.bind("<Button-1>", lambda _: show_completeness())
        state.on(self._show_badge, "device", "document")
        state.on(self._show_place, "pointer", "cursor", "timeline", "device", "replay")
        state.on(self._show_jobs, "jobs")
        self._refreshing: str | None = None
        self.bind("<Configure>", lambda _: self._show_place())
        self._show_badge()

    def _show_badge(self) -> None:
        document, device = self._state.document, self._state.device
        if document is None or device is None:
            self.completeness = None
            self._badge.configure(text="")
            return
        self.completeness = completeness_of(document.snapshot, device)
        style = _BADGE_STYLES[self.completeness.grade]
        self._badge.configure(text=self.completeness.badge, style=style)

    def _show_place(self) -> None:
        state, pointer = self._state, self._state.pointer
        trace, timeline = state.trace, state.timeline
        event_text = live_text = ""
        if trace is not None and timeline is not None:
            event = pointer.event if pointer is not None else state.cursor
            if event is None or event >= trace.events:
                event_text = count_of(trace.events, "event")
            else:
                event_text = event_label(trace, event)
                live_text = f"{format_bytes(total_at(trace, timeline, event))} live"
                if (amounts := state.replayed.amounts(event)) is not None:
                    live_text += f"  ·  {format_bytes(amounts['reserved'])} reserved"
        self._event.show(event_text)
        self._live.show(live_text)
        self._height.show("" if pointer is None else f"pointer at {format_bytes(pointer.byte)}")
        while self._missing_px() > 0 and SEPARATOR in event_text:
            event_text = event_text.rpartition(SEPARATOR)[0]  # the number without its times
            self._event.show(event_text)

    def _missing_px(self) -> int:
        """Return by how many pixels the window is too narrow for the texts."""
        texts = [part.label for part in self._parts if part.label.cget("text")]
        lines = len(texts) * (2 * px(self, _LINE_MARGIN) + px(self, 1))
        needed = sum(text.winfo_reqwidth() for text in (self._badge, *texts)) + lines
        if self._shown_job() is not None:
            needed += self._work.winfo_reqwidth()
        return needed + 2 * px(self, _MARGIN) - self.winfo_width()

    def _shown_job(self) -> Job | None:
        """Return the oldest job that has a title; opening a file has a card of its own."""
        jobs = self._state.jobs.running()
        return next((job for job in jobs if job.title and job.name != "open"), None)

    def _show_jobs(self) -> None:
        job = self._shown_job()
        if job is None:
            self._work.grid_remove()
            self._show_place()
            return
        self._title.configure(text=f"{sanitize(job.title)} …")
        self._bar.configure(value=job.share or 0.0)
        self._work.grid(row=0, column=5)
        self._show_place()
        if self._refreshing is None:
            self._refreshing = self.after(_REFRESH_MS, self._refresh)

    def _refresh(self) -> None:
        self._refreshing = None
        self._show_jobs()

    def _cancel(self) -> None:
        if job := self._shown_job():
            self._state.cancel(job.name)
