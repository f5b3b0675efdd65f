"""Counters of the machine and of this process; two readings give the use in between."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from snapviewer.model.nvml import NoAnswerError
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.system.cpu import PROC, throttle_count
from snapviewer.model.system.memory import resident_peak
from snapviewer.model.system.probe import probe, probe_errors, psutil, small_text

TOO_SHORT = "the time was too short to measure it"
# Linux does not count the network of a process.
_NETWORK = "psutil, the whole machine: all networks, all programs"


class Processors(NamedTuple):
    """The busy seconds and all seconds, summed over the processors."""

    busy: Quantity
    whole: Quantity


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters at one moment; the network's are of the whole machine."""

    processors: Processors
    disk_read: Quantity
    disk_written: Quantity
    received: Quantity
    sent: Quantity
    throttles: Quantity
    memory_peak: Quantity


def read_counters(proc: Path = PROC) -> Counters:
    """Read all counters.

    Args:
        proc: The directory of the process file system.
    """
    return Counters(
        processors=read_processors(),
        disk_read=_disk_of_process(proc, "read_bytes"),
        disk_written=_disk_of_process(proc, "write_bytes"),
        received=probe("B", _NETWORK, lambda: _networks().bytes_recv),
        sent=probe("B", _NETWORK, lambda: _networks().bytes_sent),
        throttles=throttle_count(),
        memory_peak=resident_peak(),
    )


def read_processors() -> Processors:
    """Read the busy time of the processors."""
    try:
        times = psutil().cpu_times()
    except probe_errors() as error:
        return Processors(unavailable("s", str(error)), unavailable("s", str(error)))
    # Linux counts the time of guests under these two names a second time.
    seconds = {
        name: float(getattr(times, name))
        for name in times._fields
        if name not in ("guest", "guest_nice")
    }
    whole_s = sum(seconds.values())
    busy_s = whole_s - seconds.get("idle", 0.0) - seconds.get("iowait", 0.0)
    return Processors(
        Quantity(busy_s, "s", "measured", "psutil"), Quantity(whole_s, "s", "measured", "psutil")
    )


def change(before: Quantity, after: Quantity) -> Quantity:
    """Return how much a counter grew.

    >>> change(Quantity(5.0, "B", "measured", "disk"), Quantity(7.0, "B", "measured", "disk")).value
    2.0
    """
    if before.value is None or after.value is None:
        return before if before.value is None else after
    if after.value < before.value:
        return unavailable(after.unit, f"{after.source}: the counter decreased")
    return Quantity(after.value - before.value, after.unit, "measured", after.source)


def busy_share(before: Processors, after: Processors) -> Quantity:
    """Return the share of time in which the processors were busy."""
    busy, whole = change(before.busy, after.busy), change(before.whole, after.whole)
    if busy.value is None or whole.value is None:
        return unavailable("%", busy.source)
    # These counters have steps of 10 ms.
    if whole.value < 0.05:
        return unavailable("%", TOO_SHORT)
    share = min(1.0, busy.value / whole.value)
    return Quantity(share * 100, "%", "measured", f"{busy.source}, all programs")


class BusyShare:
    """The share of time in which the processors were busy since the previous reading."""

    def __init__(self) -> None:
        self._before: Processors | None = None

    def read(self) -> Quantity:
        """Return the share."""
        before, now = self._before, read_processors()
        share = unavailable("%", TOO_SHORT) if before is None else busy_share(before, now)
        # A time too short to measure is added to the next.
        if before is None or share.value is not None:
            self._before = now
        return share


def _disk_of_process(proc: Path, name: str) -> Quantity:
    """Read what this process had the disks read or write; what a cache served is not part of it."""
    file = proc / "self" / "io"
    if not proc.is_dir():  # not Linux
        source = "psutil, this process"
        return probe("B", source, lambda: getattr(psutil().Process().io_counters(), name))

    def read() -> float | None:
        counts = dict(line.split(": ", 1) for line in small_text(file).splitlines() if ": " in line)
        return float(counts[name]) if name in counts else None

    return probe("B", f"{file}, this process", read)


def _networks() -> Any:
    counters = psutil().net_io_counters()
    if counters is None:
        raise NoAnswerError("psutil sees no network")
    return counters
