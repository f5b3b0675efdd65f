"""A progress bar on a terminal: one line on standard error, and nothing where that is a file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from snapviewer.text.streams import unfiltered

_WIDTH = 30
_SECONDS_BETWEEN = 0.05
_SECONDS_BEFORE = 0.2

is_silent = False
"""Whether bars are left out even on a terminal."""


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Draw a bar on stderr if that is a terminal, and remove it at the end.

    Yields:
        The function to call with (done, total); it is cheap.
    """
    terminal = unfiltered(sys.stderr)
    is_shown = terminal.isatty() and not is_silent
    due = time.monotonic() + _SECONDS_BEFORE

    def report(done: int, total: int) -> None:
        nonlocal due
        if is_shown and time.monotonic() >= due:
            due = time.monotonic() + _SECONDS_BETWEEN
            share = done / total if total else 1.0
            filled = round(_WIDTH * share)
            bar = "█" * filled + "░" * (_WIDTH - filled)
            terminal.write(f"\r{what} {bar} {share:4.0%} ")
            terminal.flush()

    try:
        yield report
    finally:
        if is_shown:
            terminal.write("\r\x1b[K")
            terminal.flush()


def part_of(
    progress: Callable[[int, int], object] | None, before: int, size: int, total: int
) -> Callable[[int, int], object] | None:
    """Return a progress function for one part of the work, which reports on the whole."""
    if progress is None:
        return None

    def report(done: int, whole: int) -> None:
        progress(before + (size * done // whole if whole else 0), total)

    return report
