"""A number that is read again and again."""

from __future__ import annotations

from collections.abc import Callable

from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.sampling import TimeIntegral
from snapviewer.model.system.counters import Processors, busy_share, read_processors


class Watched:
    """Keeps the mean and the highest of the readings, not the readings.

    Args:
        read: How to read it.
    """

    def __init__(self, read: Callable[[], Quantity]) -> None:
        self._read = read
        self._course = TimeIntegral()
        self._highest: Quantity | None = None
        self._last = unavailable("", "it was not read")

    def sample(self) -> None:
        """Read it once more."""
        self._last = reading = self._read()
        if reading.value is None:
            return
        self._course.add(reading.value)
        if self._highest is None or reading.value > (self._highest.value or 0.0):
            self._highest = reading

    def mean(self) -> Quantity:
        """Tell the mean over time."""
        return self._told(self._course.mean, "mean")

    def peak(self) -> Quantity:
        """Tell the highest."""
        return self._told(self._course.peak, "highest")

    def _told(self, value: float | None, word: str) -> Quantity:
        if value is None or self._highest is None:
            return self._last
        count = self._course.count
        source = f"{self._highest.source}, {word} of {count} reading{'s' if count > 1 else ''}"
        return Quantity(value, self._highest.unit, "measured", source)


class BusyShare:
    """The share of time in which the processors were busy, since the reading before."""

    def __init__(self) -> None:
        self._before: Processors | None = None

    def read(self) -> Quantity:
        """Tell the share."""
        before, now = self._before, read_processors()
        share = unavailable("%", "the time was too short to tell")
        if before is not None:
            share = busy_share(before, now)
        # A time too short to tell is counted with the next.
        if before is None or share.value is not None:
            self._before = now
        return share
