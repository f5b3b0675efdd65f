"""Runs jobs on threads and reports on Tk's: a queue that is looked at while anything is under way.

Tk is not to be called from other threads. A job's result waits in a queue until the next look,
which is at most `_LOOK_MS` later.
"""

from __future__ import annotations

import queue
import threading
import tkinter as tk
from collections.abc import Callable
from typing import Any, TypeVar

from .jobs import Job

T = TypeVar("T")
_LOOK_MS = 4


class Background:
    """Jobs for a window; see `jobs.Jobs`."""

    def __init__(self, root: tk.Misc) -> None:
        self._root = root
        self._running: dict[str, Job] = {}
        self._finished: queue.SimpleQueue[tuple[Job, Callable[[], None]]] = queue.SimpleQueue()
        self._is_looking = False

    def start(
        self,
        job: Job,
        work: Callable[[Job], T],
        done: Callable[[T], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Run `work` on a thread, then `done` or `failed` on this one."""
        self.stop(job.name)
        self._running[job.name] = job

        def run() -> None:
            if job.cancel.wait(job.after_seconds):
                return
            try:
                result = work(job)
            except BaseException as error:  # noqa: BLE001 - whatever it is, a person is told
                told = error if isinstance(error, Exception) else RuntimeError(str(error))
                self._finished.put((job, _call(failed, told)))
            else:
                self._finished.put((job, _call(done, result)))

        # A window that closes does not wait for what nobody will see.
        threading.Thread(target=run, name=job.name, daemon=True).start()
        self._look_soon()

    def stop(self, name: str) -> None:
        """Cancel a job, and forget it."""
        if job := self._running.pop(name, None):
            job.cancel.set()

    def stop_all(self) -> None:
        for name in list(self._running):
            self.stop(name)

    def running(self) -> list[Job]:
        return list(self._running.values())

    def _look_soon(self) -> None:
        if not self._is_looking:
            self._is_looking = True
            self._root.after(_LOOK_MS, self._look)

    def _look(self) -> None:
        self._is_looking = False
        while True:
            try:
                job, report = self._finished.get_nowait()
            except queue.Empty:
                break
            if self._running.get(job.name) is job:
                del self._running[job.name]
                report()
        if self._running:
            self._look_soon()


def _call(tell: Callable[[Any], None], value: object) -> Callable[[], None]:
    return lambda: tell(value)
