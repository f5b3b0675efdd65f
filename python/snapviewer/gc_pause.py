"""Pauses Python's garbage collector while many objects are made that stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_pause() -> Iterator[None]:
    """Pause the garbage collector.

    Millions of new objects make it run again and again, for nothing: a tree of 50,000 modules took
    twice as long. The new objects count as old afterwards, since the collector would otherwise look
    through all of them at once, which took a fifth of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if gc.get_freeze_count() == 0:  # otherwise the program's own frozen objects would thaw
                gc.freeze()
                gc.unfreeze()
            gc.enable()
