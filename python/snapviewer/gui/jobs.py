"""Work that runs on threads while the window stays usable.

`State` starts jobs and receives their results on its own thread. It knows only the protocol `Jobs`.
`ThreadJobs` implements it for Tk, which must not be called from other threads: finished jobs wait
in a queue that is polled every `_POLL_MS` while any job runs.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    import tkinter as tk

T = TypeVar("T")
_POLL_MS = 4


@dataclass(slots=True, eq=False)
class Job:
    """Work on another thread: its progress, and whether it should stop.

    Args:
        name: Starting a second job of the same name cancels the first.
        title: Shown while it runs; a job without a title is not shown.
        after_seconds: How long to wait before it starts.
    """

    name: str
    title: str = ""
    after_seconds: float = 0.0
    cancel: threading.Event = field(default_factory=threading.Event)
    done: int = 0
    total: int = 0

    def progress(self, done: int, total: int) -> None:
        """Set the progress; called from the job's own thread."""
        self.done, self.total = done, total

    @property
    def share(self) -> float | None:
        """The progress from 0 to 1; None if not known."""
        return min(self.done / self.total, 1.0) if self.total else None


Work: TypeAlias = Callable[[Job], T]
Done: TypeAlias = Callable[[T], None]
Failed: TypeAlias = Callable[[Exception], None]


class Jobs(Protocol):
    """Runs jobs and reports results on the thread of the state."""

    def start(self, job: Job, work: Work[T], done: Done[T], failed: Failed) -> None:
        """Run `work` on a thread, then `done` or `failed` on this one.

        A running job of the same name is cancelled; neither of its callbacks is called.
        """

    def stop(self, name: str) -> None:
        """Cancel a job; neither `done` nor `failed` will be called."""

    def running(self) -> list[Job]:
        """Return the running jobs, oldest first."""


class ThreadJobs:
    """The jobs of a window."""

    def __init__(self, root: tk.Misc) -> None:
        self._root = root
        self._running: dict[str, Job] = {}
        self._finished: queue.SimpleQueue[tuple[Job, Callable[[], None]]] = queue.SimpleQueue()
        self._is_polling = False

    def start(self, job: Job, work: Work[T], done: Done[T], failed: Failed) -> None:
        self.stop(job.name)
        self._running[job.name] = job

        def run() -> None:
            if job.cancel.wait(job.after_seconds):
                return
            try:
                result = work(job)
            except BaseException as error:  # noqa: BLE001 - whatever it is, the user sees it
                shown = error if isinstance(error, Exception) else RuntimeError(str(error))
                self._finished.put((job, _call(failed, shown)))
            else:
                self._finished.put((job, _call(done, result)))

        # A daemon: a window that closes does not wait for results that nobody will see.
        threading.Thread(target=run, name=job.name, daemon=True).start()
        self._poll_soon()

    def stop(self, name: str) -> None:
        if job := self._running.pop(name, None):
            job.cancel.set()

    def stop_all(self) -> None:
        for name in list(self._running):
            self.stop(name)

    def running(self) -> list[Job]:
        return list(self._running.values())

    def _poll_soon(self) -> None:
        if not self._is_polling:
            self._is_polling = True
            self._root.after(_POLL_MS, self._poll)

    def _poll(self) -> None:
        self._is_polling = False
        while True:
            try:
                job, report = self._finished.get_nowait()
            except queue.Empty:
                break
            if self._running.get(job.name) is job:
                del self._running[job.name]
                report()
        if self._running:
            self._poll_soon()


def _call(callback: Callable[[Any], None], value: object) -> Callable[[], None]:
    return lambda: callback(value)
