"""Samples values during a run, in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.text.units import count_of

if TYPE_CHECKING:
    from typing_extensions import Self


class Sampler:
    """Calls a function at the beginning, at every interval and at the end of a `with` block.

    Args:
        sample: The function. It must not raise.
        interval_s: The seconds between calls.
    """

    def __init__(self, sample: Callable[[], None], *, interval_s: float) -> None:
        self._sample = sample
        self._interval_s = interval_s
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._sample()
        self._is_over.clear()
        self._thread = threading.Thread(target=self._run, name="snapviewer samples", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        if self._thread is not None:
            self._thread.join()
        self._sample()

    def _run(self) -> None:
        while not self._is_over.wait(self._interval_s):
            self._sample()


@dataclass(slots=True)
class TimeIntegral:
    """The integral over time of a sampled number (trapezoidal rule), its mean and its peak.

    Samples are not kept.

    >>> samples = TimeIntegral()
    >>> for at_s, value in ((0.0, 10.0), (1.0, 20.0), (3.0, 20.0)):
    ...     samples.add(value, at_s=at_s)
    >>> samples.area, samples.peak, round(samples.mean or 0, 2)
    (55.0, 20.0, 18.33)
    """

    count: int = 0
    area: float = 0.0
    peak: float | None = None
    _first_s: float = 0.0
    _last_s: float = 0.0
    _last: float = 0.0

    def add(self, value: float, *, at_s: float | None = None) -> None:
        """Add a number, sampled now or at a time after the previous one."""
        at_s = time.perf_counter() if at_s is None else at_s
        if self.count:
            self.area += (value + self._last) / 2 * (at_s - self._last_s)
        else:
            self._first_s = at_s
        self.peak = value if self.peak is None else max(self.peak, value)
        self._last, self._last_s = value, at_s
        self.count += 1

    @property
    def seconds(self) -> float:
        """The time between the first sample and the last."""
        return self._last_s - self._first_s

    @property
    def mean(self) -> float | None:
        """The mean over time; of a single sample, that sample."""
        if not self.count:
            return None
        return self.area / self.seconds if self.seconds > 0 else self._last


class SampledQuantity:
    """The mean over time and the highest of a quantity's readings, which are not kept.

    Args:
        read: Returns the quantity.
    """

    def __init__(self, read: Callable[[], Quantity]) -> None:
        self._read = read
        self._integral = TimeIntegral()
        self._highest: Quantity | None = None
        self._last = unavailable("", "it was not read")

    def sample(self) -> None:
        """Read it once more."""
        self._last = reading = self._read()
        if reading.value is None:
            return
        self._integral.add(reading.value)
        if self._highest is None or reading.value > (self._highest.value or 0.0):
            self._highest = reading

    def mean(self) -> Quantity:
        """Return the mean over time."""
        return self._quantity(self._integral.mean, "mean")

    def peak(self) -> Quantity:
        """Return the highest reading."""
        return self._quantity(self._integral.peak, "highest")

    def _quantity(self, value: float | None, word: str) -> Quantity:
        if value is None or self._highest is None:
            return self._last
        source = f"{self._highest.source}, {word} of {count_of(self._integral.count, 'reading')}"
        return Quantity(value, self._highest.unit, "measured", source)
