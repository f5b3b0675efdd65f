"""Jobs for tests without a window: work runs at once, in the same thread, or when a test says."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from snapviewer.gui.jobs import Done, Failed, Job, Work

T = TypeVar("T")


class InlineJobs:
    """Runs work as soon as it is started.

    Args:
        held: The names of jobs that wait until `release` is called.
    """

    def __init__(self, *, held: Collection[str] = ()) -> None:
        self.held = set(held)
        self._running: dict[str, Job] = {}
        self._waiting: dict[str, Callable[[], None]] = {}

    def start(self, job: Job, work: Work[T], done: Done[T], failed: Failed) -> None:
        self.stop(job.name)
        self._running[job.name] = job

        def run() -> None:
            try:
                result = work(job)
            except Exception as error:
                if self._forget(job):
                    failed(error)
            else:
                if self._forget(job):
                    done(result)

        if job.name in self.held:
            self._waiting[job.name] = run
        else:
            run()

    def release(self, name: str) -> None:
        """Run a job that was held."""
        self._waiting.pop(name)()

    def stop(self, name: str) -> None:
        self._waiting.pop(name, None)
        if job := self._running.pop(name, None):
            job.cancel.set()

    def running(self) -> list[Job]:
        return list(self._running.values())

    def _forget(self, job: Job) -> bool:
        """Return whether anybody still waits for this job."""
        if self._running.get(job.name) is not job:
            return False
        del self._running[job.name]
        return True
