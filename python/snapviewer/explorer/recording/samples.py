"""Times of any number of calls in little memory.

The number of calls, the sum, the least and the most are exact. The median and the distance to it
are exact up to `MOST_KEPT` calls; of more, they are those of `MOST_KEPT` calls that are drawn so
that each has the same chance, whenever it was.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence

from snapviewer.explorer.timing import Spread

MOST_KEPT = 256


class Samples:
    """Times, in nanoseconds."""

    __slots__ = ("_kept", "count", "max_ns", "min_ns", "sum_ns")

    def __init__(self) -> None:
        self.count = 0
        self.sum_ns = 0
        self.min_ns = 0
        self.max_ns = 0
        self._kept = array("q")

    def add(self, time_ns: int) -> None:
        self.min_ns = min(self.min_ns, time_ns) if self.count else time_ns
        self.max_ns = max(self.max_ns, time_ns)
        self.sum_ns += time_ns
        self.count += 1
        if self.count <= MOST_KEPT:
            self._kept.append(time_ns)
        elif (place := _DRAW.randrange(self.count)) < MOST_KEPT:
            self._kept[place] = time_ns

    def spread(self) -> Spread | None:
        """Return the times in seconds, or None if there are none.

        >>> samples = Samples()
        >>> for time_ns in (1_000, 2_000, 9_000):
        ...     samples.add(time_ns)
        >>> round(samples.spread().median_s * 1e6), round(samples.spread().deviation_s * 1e6)
        (2, 1)
        """
        # A copy: another thread may be recording.
        kept = self._kept.tolist()
        if not kept:
            return None
        median = _median(kept)
        deviation = _median([abs(time - median) for time in kept])
        exact = (self.min_ns, self.max_ns, self.sum_ns)
        return Spread(self.count, median / 1e9, deviation / 1e9, *(time / 1e9 for time in exact))


def _median(values: Sequence[float]) -> float:
    # `statistics.median` takes so long that of 50,000 modules it would be seconds.
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


# One of its own: drawing must not disturb the random numbers of the program that is recorded.
_DRAW = random.Random(0)
