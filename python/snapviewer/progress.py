"""A progress bar on a terminal.

A few lines of our own rather than a dependency of every installation: one bar, one line, and silence
where nobody watches.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType

_WIDTH = 30
_SECONDS_BETWEEN = 0.05
_SECONDS_BEFORE = 0.2


class ProgressBar:
    """Draws a bar on stderr if that is a terminal, and removes it at the end.

    Calling it with (done, total) is cheap enough for every report of the core.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._is_shown = sys.stderr.isatty()
        self._next = time.monotonic() + _SECONDS_BEFORE
        self._has_drawn = False

    def __call__(self, done: int, total: int) -> None:
        """Show how far the work is."""
        if not self._is_shown or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _SECONDS_BETWEEN
        self._has_drawn = True
        share = done / total if total else 1.0
        filled = round(_WIDTH * share)
        bar = "█" * filled + "░" * (_WIDTH - filled)
        sys.stderr.write(f"\r{self._what} {bar} {share:4.0%} ")
        sys.stderr.flush()

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._has_drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
