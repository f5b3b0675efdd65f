"""Ends work that takes too long, even if it is a single call of Python's `re`.

That holds Python's lock, so no other thread could end it, but it looks for signals now and then.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class OutOfPatienceError(Exception):
    """It took too long."""


@contextmanager
def patient_for(seconds: float) -> Iterator[None]:
    """Let a block run for so long, by the clock.

    Only the main thread can be ended, which is where the explorer searches; elsewhere a block runs
    as long as it takes. Whoever else waits for an alarm gets it, if only a little later.

    Raises:
        OutOfPatienceError: It took longer.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGALRM) is None:  # None: not Python's, and in use
        yield
        return
    is_running = True

    def end(_signal: int, _frame: FrameType | None) -> None:
        if is_running:
            raise OutOfPatienceError

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
