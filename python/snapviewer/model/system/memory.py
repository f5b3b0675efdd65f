"""The memory of the machine and of this program."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.system.cgroup import CGROUP, memory_limit_bytes
from snapviewer.model.system.cpu import PROC
from snapviewer.model.system.probe import probe, psutil


@dataclass(frozen=True, slots=True)
class MachineMemory:
    """Memory at one moment; `limit` is that of the container, if there is one."""

    total: Quantity
    available: Quantity
    limit: Quantity
    program: Quantity
    program_peak: Quantity


def read_memory(*, proc: Path = PROC, cgroup: Path = CGROUP) -> MachineMemory:
    """Read the state of the memory."""
    limit = memory_limit_bytes(proc, cgroup)
    return MachineMemory(
        total=probe("B", "psutil", lambda: psutil().virtual_memory().total),
        available=probe("B", "psutil", lambda: psutil().virtual_memory().available),
        limit=unavailable("B", "no control group limits it")
        if limit is None
        else Quantity(float(limit), "B", "measured", "control group"),
        program=resident(),
        program_peak=resident_peak(),
    )


def resident() -> Quantity:
    """Return the memory that this program holds now."""
    return probe("B", "psutil, resident memory", lambda: psutil().Process().memory_info().rss)


def resident_peak() -> Quantity:
    """Return the peak memory of this program since it started."""
    return probe("B", "the system, since the program started", _peak_bytes)


def _peak_bytes() -> float | None:
    # On Linux the peak of getrusage includes the process that started this one.
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
