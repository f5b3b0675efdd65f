"""While the code of somebody's model runs: what it prints, and how it is stopped.

TorchScript prints through C++, past Python's streams, and a loop in it does not come back to Python
when Ctrl-C is pressed.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

_GRACE_S = 2.0  # how long Python has to end by itself
_INTERRUPTED = 130


@contextmanager
def prints_aside() -> Iterator[None]:
    """Send what is printed meanwhile to standard error: standard output is for the answer."""
    try:
        kept = os.dup(1)
    except OSError:  # there is no standard output
        yield
        return
    sys.stdout.flush()
    try:
        os.dup2(2, 1)
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


@contextmanager
def stoppable() -> Iterator[None]:
    """Let Ctrl-C end the program even if what runs never comes back to Python.

    Nothing is being written meanwhile, so nothing is left half-written.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    is_over = threading.Event()
    watch = threading.Thread(target=_watch, args=(reading, is_over), daemon=True)
    watch.start()
    try:
        yield
    finally:
        is_over.set()
        signal.set_wakeup_fd(before)
        os.write(writing, b"\0")
        watch.join()
        os.close(reading)
        os.close(writing)


def _watch(reading: int, is_over: threading.Event) -> None:
    while not is_over.is_set():
        if os.read(reading, 1) == bytes([signal.SIGINT]) and not is_over.wait(_GRACE_S):
            os.write(2, b"\ninterrupted\n")
            os._exit(_INTERRUPTED)
