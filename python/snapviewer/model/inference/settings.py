"""What the environment asks of a profile.

`PYTORCH_PROFILER_LEVEL` is 0 for totals only, 1 for each operation too, 2 (as without it) for
memory and the lines of the model's code as well. `OMP_NUM_THREADS` is the largest number of
threads. `PYTORCH_CUDA_MEMORY_FRACTION` is the share of a GPU's memory that this program may take.
`CUDA_VISIBLE_DEVICES=""` hides the GPUs, which torch itself sees to.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

from snapviewer.text.sanitize import sanitize

TOTALS, NODES, MEMORY = range(3)
_MOST_THREADS = 4096


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings; None is what the environment does not say."""

    level: int = MEMORY
    most_threads: int | None = None
    memory_fraction: float | None = None
    hides_gpus: bool = False
    notes: tuple[str, ...] = ()
    """What could not be understood."""


def read_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """Read the environment; what cannot be understood is left out and noted.

    >>> read_settings({"PYTORCH_PROFILER_LEVEL": "1", "OMP_NUM_THREADS": "4,2"}).most_threads
    4
    """
    environment = os.environ if environment is None else environment
    notes: list[str] = []

    def number(name: str, least: float, most: float, wanted: str) -> float | None:
        # Nested parallel regions have a number each; the first is the outer one.
        text = environment.get(name, "").split(",")[0].strip()
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if least <= value <= most and (value == int(value) or name in _SHARES):
            return value
        notes.append(f"{name} is {sanitize(text, 40)!r}, not {wanted}: it was left out")
        return None

    level = number("PYTORCH_PROFILER_LEVEL", TOTALS, MEMORY, "0, 1 or 2")
    threads = number("OMP_NUM_THREADS", 1, _MOST_THREADS, "a number of threads")
    fraction = number("PYTORCH_CUDA_MEMORY_FRACTION", 0.0, 1.0, "a share from 0 to 1")
    return Settings(
        level=MEMORY if level is None else int(level),
        most_threads=None if threads is None else int(threads),
        memory_fraction=fraction or None,
        hides_gpus=environment.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"),
        notes=tuple(notes),
    )


_SHARES = frozenset({"PYTORCH_CUDA_MEMORY_FRACTION"})
