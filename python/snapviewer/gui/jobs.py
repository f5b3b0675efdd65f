"""What the state asks of whoever runs its long work aside. `background.py` does it for Tk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from typing import Protocol, TypeVar

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Job:
    """Work that goes on aside: how far it is, and whether it should stop.

    Args:
        name: A second job of the same name replaces the first.
        title: What to tell a person who waits for it; a quiet job has none.
        after_seconds: How long it lets others go first.
    """

    name: str
    title: str = ""
    after_seconds: float = 0.0
    cancel: Event = field(default_factory=Event)
    done: int = 0
    total: int = 0

    def progress(self, done: int, total: int) -> None:
        """Note how far it is; called from the job's own thread."""
        self.done, self.total = done, total

    @property
    def share(self) -> float | None:
        """How far it is, from 0 to 1; None if not known."""
        return min(self.done / self.total, 1.0) if self.total else None


class Jobs(Protocol):
    """Runs work aside and reports where the state lives."""

    def start(
        self,
        job: Job,
        work: Callable[[Job], T],
        done: Callable[[T], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Run `work` aside, then `done` or `failed` here.

        A running job of the same name is cancelled and never heard of again.
        """

    def stop(self, name: str) -> None:
        """Cancel a job; neither `done` nor `failed` will be called."""

    def running(self) -> list[Job]:
        """Return what is under way, oldest first."""
