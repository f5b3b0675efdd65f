"""The hit rate of the last-level cache, from the performance counters of Linux."""

from __future__ import annotations

from pathlib import Path

from snapviewer.model.nvml import NoAnswerError
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.system.cpu import PROC
from snapviewer.model.system.perf_events import PerfEvent, PerfEvents

_HARDWARE = 0
_REFERENCES, _MISSES = PerfEvent(_HARDWARE, 2), PerfEvent(_HARDWARE, 3)


class CacheCounters:
    """Counts accesses to the last-level cache and misses, from `start` to `stop`."""

    def __init__(self, proc: Path = PROC) -> None:
        self._events = PerfEvents((_REFERENCES, _MISSES), "cache", proc)
        self._why = "the counters were not started"

    def start(self) -> None:
        """Begin to count; if that is not possible, `stop` returns the reason."""
        self._why = ""
        try:
            self._events.start()
        except NoAnswerError as error:
            self._why = str(error)

    def stop(self) -> Quantity:
        """Return the share of accesses that were hits."""
        if self._why:
            return unavailable("%", self._why)
        try:
            accesses, misses = self._events.read()
        except NoAnswerError as error:
            return unavailable("%", str(error))
        finally:
            self._events.close()
        if accesses <= 0:
            return unavailable("%", "the counters counted nothing")
        hits = max(0.0, 1 - misses / accesses) * 100
        return Quantity(hits, "%", "measured", f"perf_event, {accesses:.3g} last-cache accesses")
