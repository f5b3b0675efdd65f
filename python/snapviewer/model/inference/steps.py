"""The steps of a profile: progress, notes, and parts that may fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from typing import TypeAlias, TypeVar

from snapviewer import CancelledError
from snapviewer.model.inference.running import error_text

Progress: TypeAlias = Callable[[int, int], object]
_Found = TypeVar("_Found")


@dataclass(slots=True)
class Steps:
    """Reports progress, collects notes, and stops when cancelled.

    `untried` are the ways to run a model that were not tried, and why.
    """

    total: int
    progress: Progress | None = None
    cancel: Event | None = None
    done: int = 0
    notes: list[str] = field(default_factory=list)
    untried: dict[str, str] = field(default_factory=dict)

    def reach(self, step: int) -> None:
        """Report that a step is reached.

        Raises:
            CancelledError: `cancel` was set.
        """
        if self.cancel is not None and self.cancel.is_set():
            raise CancelledError("the profile was cancelled")
        self.done = max(self.done, min(step, self.total))
        if self.progress is not None:
            self.progress(self.done, self.total)

    def take(self) -> None:
        """Report that one more step is done."""
        self.reach(self.done + 1)

    def attempt(
        self, what: str, work: Callable[[], _Found], *, way: str | None = None
    ) -> _Found | None:
        """Do a part of the work; if it fails, note why and continue without it.

        Args:
            what: What it means that it failed, for the note.
            work: The part.
            way: The way to run a model that it tries.
        """
        try:
            return work()
        except CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 (a model may raise anything at all)
            self.notes.append(f"{what}: {error_text(error)}")
            if way is not None:
                self.untried[way] = error_text(error)
            return None
