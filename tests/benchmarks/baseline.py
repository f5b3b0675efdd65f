"""What times are compared with: CPython's `pickle.load` of the same file, in the same run."""

from __future__ import annotations

import gc
import pickle
import time
from collections.abc import Callable
from pathlib import Path

REPEATS = 12


def best(work: Callable[[], object], *, repeats: int = REPEATS) -> float:
    """Return the seconds of the fastest of several runs, with the garbage collector off."""
    seconds = []
    for _ in range(repeats):
        gc.collect()
        gc.disable()
        start = time.perf_counter()
        kept = work()
        seconds.append(time.perf_counter() - start)
        del kept
        gc.enable()
    return min(seconds)


class _Inert(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> object:
        raise pickle.UnpicklingError(f"{module_name}.{global_name}")


def pickle_load(path: Path) -> object:
    """Load a snapshot as Python does, though without running anything."""
    with path.open("rb") as file:
        return _Inert(file).load()
