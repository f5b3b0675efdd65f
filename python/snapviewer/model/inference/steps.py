"""How far a profile is, what went wrong on the way, and when to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from typing import TypeAlias, TypeVar

from snapviewer import CancelledError
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize

Progress: TypeAlias = Callable[[int, int], object]
_Found = TypeVar("_Found")


@dataclass(slots=True)
class Steps:
    """Tells how far the work is, keeps notes, and ends it when that is asked for."""

    total: int
    progress: Progress | None = None
    cancel: Event | None = None
    done: int = 0
    notes: list[str] = field(default_factory=list)

    def reach(self, step: int) -> None:
        """Say that a step is reached.

        Raises:
            CancelledError: The work is no longer wanted.
        """
        if self.cancel is not None and self.cancel.is_set():
            raise CancelledError("the profile was cancelled")
        self.done = max(self.done, min(step, self.total))
        if self.progress is not None:
            self.progress(self.done, self.total)

    def take(self) -> None:
        """Say that one more step is done."""
        self.reach(self.done + 1)

    def attempt(self, what: str, work: Callable[[], _Found]) -> _Found | None:
        """Do a part of the work; if it fails, note why, and go on without it."""
        try:
            return work()
        except CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 (a model may raise anything at all)
            self.notes.append(f"{what}: {said_by(error)}")
            return None


def said_by(error: Exception) -> str:
    r"""Return what an error says, on one line.

    TorchScript shows the way through its code first, and what was wrong at the end.

    >>> said_by(RuntimeError("... the TorchScript interpreter.\nTraceback ...\nE: no batch of 2"))
    'E: no batch of 2'
    """
    text = str(error).strip()
    if "TorchScript" in text:
        text = text.rpartition("\n")[2]
    return sanitize(text, MAX_NAME_CHARS) or type(error).__name__
