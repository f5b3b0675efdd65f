"""The environment variables that a profile honours.

`PYTORCH_PROFILER_LEVEL` is 0 for totals only, 1 for each operation as well, 2 (the default) for
memory and source lines as well. `OMP_NUM_THREADS` is the largest number of threads.
`PYTORCH_CUDA_MEMORY_FRACTION` is the share of a GPU's memory that this program may use.
`CUDA_VISIBLE_DEVICES=""` hides the GPUs; torch itself honours it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

from snapviewer.text.sanitize import sanitize

TOTALS, NODES, MEMORY = range(3)
_MAX_THREADS = 4096


@dataclass(frozen=True, slots=True)
class ProfilerSettings:
    """The settings; None where the environment has none."""

    level: int = MEMORY
    max_threads: int | None = None
    memory_fraction: float | None = None
    hides_gpus: bool = False
    notes: tuple[str, ...] = ()
    """Variables that are not understood, in sentences."""


def read_environment(environment: Mapping[str, str] | None = None) -> ProfilerSettings:
    """Read the environment; a value that is not understood is ignored, with a note.

    >>> read_environment({"PYTORCH_PROFILER_LEVEL": "1", "OMP_NUM_THREADS": "4,2"}).max_threads
    4
    """
    environment = os.environ if environment is None else environment
    notes: list[str] = []

    def number(name: str, least: float, most: float, wanted: str) -> float | None:
        # Nested parallel regions have a number each; the first is that of the outer one.
        text = environment.get(name, "").split(",")[0].strip()
        if not text:
            return None
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if least <= value <= most and (value == int(value) or name in _SHARES):
            return value
        notes.append(f"{name} is {sanitize(text, 40)!r}, not {wanted}: ignored")
        return None

    level = number("PYTORCH_PROFILER_LEVEL", TOTALS, MEMORY, "0, 1 or 2")
    threads = number("OMP_NUM_THREADS", 1, _MAX_THREADS, "a number of threads")
    fraction = number("PYTORCH_CUDA_MEMORY_FRACTION", 0.0, 1.0, "a share from 0 to 1")
    return ProfilerSettings(
        level=MEMORY if level is None else int(level),
        max_threads=None if threads is None else int(threads),
        memory_fraction=fraction or None,
        hides_gpus=environment.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"),
        notes=tuple(notes),
    )


_SHARES = frozenset({"PYTORCH_CUDA_MEMORY_FRACTION"})
