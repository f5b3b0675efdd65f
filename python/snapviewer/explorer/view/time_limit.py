"""Stops work that takes too long, even a single call of Python's `re`.

`re` holds the GIL, so no other thread could stop it, but it checks for signals now and then.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TimeLimitError(Exception):
    """The time limit was exceeded."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Limit the wall time of a block.

    Works on the main thread only, which is where the explorer searches; elsewhere there is no
    limit. A pending alarm of the program still arrives, a little later.

    Raises:
        TimeLimitError: The block took longer.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGALRM) is None:  # None: not Python's, and in use
        yield
        return
    is_running = True

    def end(_signal: int, _frame: FrameType | None) -> None:
        if is_running:
            raise TimeLimitError

    began = time.monotonic()
    handler = signal.signal(signal.SIGALRM, end)
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        try:
            yield
        finally:
            is_running = False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if left:
            left = max(left - (time.monotonic() - began), 1e-6)
            signal.setitimer(signal.ITIMER_REAL, left, interval)
