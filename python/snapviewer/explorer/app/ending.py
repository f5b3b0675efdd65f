"""Leaves the terminal as it was when the program is told to end from outside."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ended_in_order(leave: Callable[[], object]) -> Iterator[None]:
    """Call `leave` when a signal would end the block; what it does is done after the block.

    Textual minds Ctrl+C only: any other signal would leave the terminal on its other screen, and
    telling of every move of the mouse.
    """
    told: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        told.append(number)
        leave()

    before = {}
    if threading.current_thread() is threading.main_thread():
        # What is ignored stays so; None is of a library.
        handlers = {number: signal.getsignal(number) for number in _ENDING}
        before = {n: one for n, one in handlers.items() if one not in (None, signal.SIG_IGN)}
    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if told:
            signal.raise_signal(told[0])
