"""The limits of the control group (version 1 or 2) that a container runs in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from snapviewer.model.system.probe import small_text

CGROUP = Path("/sys/fs/cgroup")

# Version 1 writes "no limit" as the largest number of pages.
_NO_LIMIT = 2**60


def memory_limit_bytes(proc: Path, cgroup: Path = CGROUP) -> int | None:
    """Return the smallest memory limit of the group and its parents; None without a limit."""
    limits = [
        int(text)
        for directory, is_v2 in _directories(proc, cgroup, "memory")
        if (
            text := _read(directory / ("memory.max" if is_v2 else "memory.limit_in_bytes"))
        ).isdecimal()
    ]
    return min((limit for limit in limits if limit < _NO_LIMIT), default=None)


def cpu_quota(proc: Path, cgroup: Path = CGROUP) -> float | None:
    """Return how many processors the group may use; None without a limit."""
    quotas = []
    for directory, is_v2 in _directories(proc, cgroup, "cpu"):
        if is_v2:
            quota, _, period = _read(directory / "cpu.max").partition(" ")
        else:
            quota = _read(directory / "cpu.cfs_quota_us")
            period = _read(directory / "cpu.cfs_period_us")
        if quota.isdecimal() and period.isdecimal() and int(period) > 0:
            quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def _directories(proc: Path, cgroup: Path, controller: str) -> Iterator[tuple[Path, bool]]:
    """Yield the directories of our group and its parents, and whether they are of version 2."""
    for line in _read(proc / "self" / "cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        is_v2 = number == "0" and not controllers
        if not is_v2 and controller not in controllers.split(","):
            continue
        parts = [part for part in group.split("/") if part not in ("", ".", "..")][:64]
        tops = (cgroup, cgroup / "unified") if is_v2 else (cgroup / controller,)
        for top in tops:
            for depth in range(len(parts) + 1):
                yield top.joinpath(*parts[:depth]), is_v2


def _read(file: Path) -> str:
    try:
        return small_text(file).strip()
    except OSError:
        return ""
