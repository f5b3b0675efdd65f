"""What the machine counts from its start on: two readings tell of the time between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from snapviewer.model.nvml import NoAnswerError
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.system.asking import asked, psutil, refusals
from snapviewer.model.system.cpu import throttle_count
from snapviewer.model.system.memory import resident_peak


@dataclass(frozen=True, slots=True)
class Processors:
    """The seconds that all processors together were busy, and all their seconds."""

    busy: Quantity
    whole: Quantity


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters at one moment."""

    processors: Processors
    disk_read: Quantity
    disk_written: Quantity
    received: Quantity
    sent: Quantity
    throttles: Quantity
    memory_peak: Quantity


def read_counters() -> Counters:
    """Read all counters."""
    return Counters(
        processors=read_processors(),
        disk_read=asked("B", "psutil, all disks", lambda: _disks().read_bytes),
        disk_written=asked("B", "psutil, all disks", lambda: _disks().write_bytes),
        received=asked("B", "psutil, all networks", lambda: _networks().bytes_recv),
        sent=asked("B", "psutil, all networks", lambda: _networks().bytes_sent),
        throttles=throttle_count(),
        memory_peak=resident_peak(),
    )


def read_processors() -> Processors:
    """Read how long the processors were busy."""
    try:
        times = psutil().cpu_times()
    except refusals() as error:
        return Processors(unavailable("s", str(error)), unavailable("s", str(error)))
    # Linux counts the time of guests a second time under these two names.
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
    """Tell how much a counter grew.

    >>> change(Quantity(5.0, "B", "measured", "disk"), Quantity(7.0, "B", "measured", "disk")).value
    2.0
    """
    if before.value is None or after.value is None:
        return before if before.value is None else after
    if after.value < before.value:
        return unavailable(after.unit, f"{after.source}: the counter went back")
    return Quantity(after.value - before.value, after.unit, "measured", after.source)


def busy_share(before: Processors, after: Processors) -> Quantity:
    """Tell the share of their time that the processors were busy."""
    busy, whole = change(before.busy, after.busy), change(before.whole, after.whole)
    if busy.value is None or whole.value is None:
        return unavailable("%", busy.source)
    # The processors' clocks have steps of 10 ms.
    if whole.value < 0.05:
        return unavailable("%", "the time was too short to tell")
    share = min(1.0, busy.value / whole.value)
    return Quantity(share * 100, "%", "measured", f"{busy.source}, all programs together")


def _disks() -> Any:
    counters = psutil().disk_io_counters()
    if counters is None:
        raise NoAnswerError("psutil sees no disk")
    return counters


def _networks() -> Any:
    counters = psutil().net_io_counters()
    if counters is None:
        raise NoAnswerError("psutil sees no network")
    return counters
