"""The memory of the machine and of this program."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.system.asking import asked, psutil
from snapviewer.model.system.cgroup import CGROUP, memory_limit_bytes
from snapviewer.model.system.cpu import PROC


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory at one moment. `limit` is that of the container, if there is one."""

    total: Quantity
    available: Quantity
    limit: Quantity
    program: Quantity
    program_peak: Quantity


def read_memory(*, proc: Path = PROC, cgroup: Path = CGROUP) -> Memory:
    """Look at the memory."""
    limit = memory_limit_bytes(proc, cgroup)
    return Memory(
        total=asked("B", "psutil", lambda: psutil().virtual_memory().total),
        available=asked("B", "psutil", lambda: psutil().virtual_memory().available),
        limit=unavailable("B", "no control group limits it")
        if limit is None
        else Quantity(float(limit), "B", "measured", "control group"),
        program=resident(),
        program_peak=resident_peak(),
    )


def resident() -> Quantity:
    """Tell how much memory this program holds now."""
    return asked("B", "psutil, resident memory", lambda: psutil().Process().memory_info().rss)


def resident_peak() -> Quantity:
    """Tell the most that this program held since it started."""
    return asked("B", "the system, since the program started", _peak_bytes)


def _peak_bytes() -> float | None:
    # Linux tells getrusage's peak from before the program began, too: that of who started it.
    with suppress(OSError, ValueError, IndexError):
        for line in (PROC / "self" / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return float(line.split()[1]) * 1024
    try:
        import resource
    except ImportError:  # not a Unix
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak if sys.platform == "darwin" else peak * 1024)
