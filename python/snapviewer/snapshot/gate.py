"""Limits on the peak of a snapshot, and those that it is over.

The peak is the one that `info` and `report` show: the most bytes that allocations held at a time,
as requested. Reserved memory, which depends on the allocator too, is not checked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from snapviewer._core import Device
from snapviewer.text.units import format_bytes, increased


@dataclass(frozen=True, slots=True)
class Failure:
    """A peak that is above its limit; a regression's limit is the baseline and some percent."""

    kind: Literal["over", "regression"]
    device: int
    peak_bytes: int
    limit_bytes: int
    baseline_bytes: int | None = None
    percent: float | None = None

    @property
    def reason(self) -> str:
        """Why it failed, as a sentence."""
        peak, limit = format_bytes(self.peak_bytes), format_bytes(self.limit_bytes)
        if peak == limit:  # they differ in digits that are not shown
            peak, limit = f"{self.peak_bytes:,} B", f"{self.limit_bytes:,} B"
        where = "pinned host memory" if self.device < 0 else f"device {self.device}"
        if self.baseline_bytes is None:
            return f"the peak of {where}, {peak}, is over {limit}"
        base = format_bytes(self.baseline_bytes)
        allowed = f"{base} + {self.percent:g} % = {limit}" if self.percent else limit
        return f"the peak of {where}, {peak}, is over that of the baseline ({allowed})"


def over(devices: Iterable[Device], limit_bytes: int) -> tuple[Failure, ...]:
    """Return the devices whose peaks are above a limit."""
    return tuple(
        Failure("over", device.index, device.peak_bytes, limit_bytes)
        for device in devices
        if device.peak_bytes > limit_bytes
    )


def regressions(pairs: Iterable[tuple[Device, Device]], percent: float) -> tuple[Failure, ...]:
    """Return the devices whose peaks are above those of a baseline by more than some percent."""
    found = []
    for before, after in pairs:
        limit = increased(before.peak_bytes, percent)
        if after.peak_bytes > limit:
            failure = Failure(
                "regression", after.index, after.peak_bytes, limit, before.peak_bytes, percent
            )
            found.append(failure)
    return tuple(found)
