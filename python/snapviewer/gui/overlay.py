"""What is shown over the plot: the welcome page, the progress of opening a file, notices."""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable
from time import monotonic
from tkinter import ttk

from snapviewer.text.sanitize import replace_unprintable, sanitize, truncate_lines

from .jobs import Job
from .state import State
from .theme import px

_REFRESH_MS = 50
_CARD_DELAY_SECONDS = 0.15
_MAX_RECENT = 6
_MAX_NAME_CHARS, _MAX_NOTICE_CHARS = 60, 1200  # X cannot draw labels of any size


class Overlay:
    """The welcome page while no file is open, a card while one is being read, and a notice."""

    def __init__(self, area: tk.Misc, state: State, open_file: Callable[[], None]) -> None:
        self._state, self._area = state, area
        self._welcome = _Welcome(area, state, open_file)
        self._loading = _Loading(area, state)
        self._notice = _Notice(area, state)
        state.on(self._show, "picture", "document", "jobs", "recent")
        self._show()

    def _show(self) -> None:
        is_empty = self._state.trace is None
        if is_empty:
            self._welcome.show()
        else:
            self._welcome.place_forget()
        self._loading.show_or_hide()


class _Welcome(ttk.Frame):
    """The welcome page."""

    def __init__(self, area: tk.Misc, state: State, open_file: Callable[[], None]) -> None:
        super().__init__(area, style="Plot.TFrame")
        self._state = state
        self._middle = ttk.Frame(self, style="Plot.TFrame")
        self._middle.place(relx=0.5, rely=0.42, anchor="center")
        self._open_file = open_file
        self._shown: object = None

    def show(self) -> None:
        self.place(relx=0, rely=0, relwidth=1, relheight=1)
        self.lower()
        files = self._state.settings.recent_files()[:_MAX_RECENT]
        now = tuple(files)
        if now == self._shown:
            self.lift()
            return
        self._shown = now
        for child in self._middle.winfo_children():
            child.destroy()
        ttk.Label(self._middle, text="Open a memory snapshot", style="PlotTitle.TLabel").pack()
        ttk.Label(
            self._middle,
            text=".pickle, .pickle.gz, .json, memory_viz .html, or a converted .zip or directory",
            style="Plot.TLabel",
        ).pack(pady=(px(self, 4), px(self, 12)))
        ttk.Button(self._middle, text="Open…  Ctrl+O", command=self._open_file).pack()
        if files:
            heading = ttk.Label(self._middle, text="Recent files", style="PlotSmall.TLabel")
            heading.pack(pady=(px(self, 18), px(self, 2)))
        for path in files:
            link = ttk.Label(
                self._middle,
                text=sanitize(path.name, _MAX_NAME_CHARS),
                style="PlotLink.TLabel",
                cursor="hand2",
            )
            link.bind("<Button-1>", lambda _, path=path: self._state.open(path))  # type: ignore[misc]
            link.pack(pady=px(self, 1))
        self.lift()


class _Loading(ttk.Frame):
    """The progress of opening a file, with a button to cancel."""

    def __init__(self, area: tk.Misc, state: State) -> None:
        super().__init__(area, padding=px(area, 16), borderwidth=px(area, 1), relief="solid")
        self._state = state
        self._title = ttk.Label(self)
        self._bar = ttk.Progressbar(self, length=px(area, 320), maximum=1.0)
        self._stop = ttk.Button(self, text="Cancel", command=state.cancel_opening)
        self._title.pack(anchor="w")
        self._bar.pack(fill="x", pady=px(area, 10))
        self._stop.pack(anchor="e")
        self._refreshing: str | None = None
        self._job: Job | None = None
        self._since = 0.0

    def show_or_hide(self) -> None:
        job = next((job for job in self._state.jobs.running() if job.name == "open"), None)
        if job is not self._job:
            self._job, self._since = job, monotonic()
        if job is None:
            self.place_forget()
            return
        if self._refreshing is None:
            self._refreshing = self.after(_REFRESH_MS, self._refresh)
        # A card for a moment would only flicker.
        if monotonic() - self._since < _CARD_DELAY_SECONDS:
            return
        share = job.share
        percent = "" if share is None else f"{share:.0%}"
        self._title.configure(text=f"{sanitize(job.title, _MAX_NAME_CHARS)} … {percent}")
        self._bar.configure(value=share or 0.0)
        self.place(relx=0.5, rely=0.45, anchor="center")
        self.lift()

    def _refresh(self) -> None:
        self._refreshing = None
        self.show_or_hide()


class _Notice(ttk.Frame):
    """A message at the top of the plot, until it is closed or replaced."""

    def __init__(self, area: tk.Misc, state: State) -> None:
        super().__init__(area, padding=(px(area, 12), px(area, 8)), borderwidth=px(area, 1))
        self.configure(relief="solid")
        self._state = state
        self._text = ttk.Label(self, justify="left", wraplength=px(area, 640))
        self._close = ttk.Button(
            self, text="✕", width=2, style="Flat.TButton", command=state.close_notice
        )
        self._text.pack(side="left", fill="x", expand=True)
        self._close.pack(side="right", padx=(px(area, 10), 0))
        self._timer: str | None = None
        area.bind("<Configure>", self._fit, add=True)
        state.on(self._show, "notice")

    def _fit(self, event: tk.Event[tk.Misc]) -> None:
        self._text.configure(
            wraplength=max(px(self, 200), min(px(self, 720), event.width - px(self, 120)))
        )

    def _show(self) -> None:
        if self._timer is not None:
            self.after_cancel(self._timer)
            self._timer = None
        notice = self._state.notice
        if notice is None:
            self.place_forget()
            return
        style = "Error.TLabel" if notice.is_error else "TLabel"
        self._text.configure(text=_harmless(notice.text), style=style)
        self.place(relx=0.5, y=px(self, 56), anchor="n")
        self.lift()
        if not notice.is_error:
            # A message that is no error closes itself, the later the longer it is.
            self._timer = self.after(2500 + 40 * len(notice.text), self._state.close_notice)


def _harmless(text: str) -> str:
    """Return a message of several lines, which may quote a file."""
    lines = truncate_lines(text, _MAX_NOTICE_CHARS).split("\n")
    return "\n".join(replace_unprintable(line) for line in lines)
