"""The times of repeated runs: median, deviation, fastest and slowest."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from snapviewer.model.quantity import Quantity, unavailable


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of some runs, in seconds.

    `deviation` is the median absolute deviation: half of the runs are closer to the median.
    """

    median: Quantity
    deviation: Quantity
    fastest: Quantity
    slowest: Quantity
    runs: int


def timing_of(times_ns: Sequence[int], source: str) -> Timing:
    """Summarize the times of runs.

    >>> timing_of([1_000_000_000, 2_000_000_000, 9_000_000_000], "clock").deviation.value
    1.0
    """
    if not times_ns:
        return no_timing("nothing was timed")
    median = statistics.median(times_ns)
    deviation = statistics.median(abs(time - median) for time in times_ns)

    def measured(value_ns: float, word: str) -> Quantity:
        return Quantity(value_ns / 1e9, "s", "measured", f"{source}, {word} of {len(times_ns)}")

    return Timing(
        measured(median, "median"),
        measured(deviation, "median absolute deviation"),
        measured(min(times_ns), "fastest"),
        measured(max(times_ns), "slowest"),
        len(times_ns),
    )


def no_timing(why: str) -> Timing:
    """Return unavailable times."""
    nothing = unavailable("s", why)
    return Timing(nothing, nothing, nothing, nothing, 0)


def ratio(part: Quantity, whole: Quantity, unit: str, source: str, scale: float = 1.0) -> Quantity:
    """Divide one quantity by another, if both have values.

    >>> half = Quantity(1.0, "s", "measured", "clock")
    >>> ratio(half, Quantity(2.0, "s", "measured", "clock"), "%", "half / all", 100).value
    50.0
    """
    for number in (part, whole):
        if number.value is None:
            return unavailable(unit, number.source)
    if part.value is None or not whole.value:
        return unavailable(unit, "it took less time than the clock resolves")
    return Quantity(part.value / whole.value * scale, unit, "computed", source)
