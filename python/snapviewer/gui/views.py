"""Which part of the world the window shows: panning and zooming as plain arithmetic.

x is events, or microseconds on a clock; y is bytes, upwards. A view never leaves its world: the
timeline cannot be lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

MOST_BYTES = 2**64 - 1
_LEAST_WIDTH = 4.0
_LEAST_HEIGHT = 64.0
_HEADROOM = 1.08  # above the peak, for its label


@dataclass(frozen=True, slots=True)
class View:
    """A rectangle of the world.

    >>> View(0, 100, 0, 50).zoomed(0.5, 1, x=0, y=0)
    View(left=0.0, right=50.0, low=0, high=50)
    >>> View(0, 100, 0, 50).moved(10, -5)
    View(left=10, right=110, low=-5, high=45)
    """

    left: float
    right: float
    low: float
    high: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.high - self.low

    @property
    def x_span(self) -> tuple[float, float]:
        return self.left, self.right

    @property
    def byte_span(self) -> tuple[int, int]:
        """From and to in whole bytes, as pictures have it: at least one."""
        low = min(max(int(self.low), 0), MOST_BYTES - 1)
        return low, min(max(int(self.high), low + 1), MOST_BYTES)

    def moved(self, x: float, y: float) -> View:
        return View(self.left + x, self.right + x, self.low + y, self.high + y)

    def zoomed(self, x_factor: float, y_factor: float, *, x: float, y: float) -> View:
        """Grow or shrink around a point of the world, which stays where it is on the screen."""
        return View(
            x - (x - self.left) * x_factor,
            x + (self.right - x) * x_factor,
            y - (y - self.low) * y_factor,
            y + (self.high - y) * y_factor,
        )


@dataclass(frozen=True, slots=True)
class World:
    """All there is to see: from 0 to `right`, and from 0 to a little above `peak_bytes`."""

    right: float
    peak_bytes: int

    @property
    def high(self) -> float:
        return min(max(self.peak_bytes * _HEADROOM, _LEAST_HEIGHT), float(MOST_BYTES))

    def whole(self) -> View:
        return View(0.0, float(self.right), 0.0, self.high)

    def cut(self, view: View) -> View:
        """Move a view back into the world; one that is too small or too large is changed.

        >>> World(100, 1000).cut(View(90, 110, 0, 500)).x_span
        (80.0, 100.0)
        >>> World(100, 1000).cut(View(-900, 900, 0, 500)).x_span
        (0.0, 100.0)
        """
        left, right = _cut(view.left, view.right, _LEAST_WIDTH, self.right)
        low, high = _cut(view.low, view.high, _LEAST_HEIGHT, self.high)
        return View(left, right, low, high)


def _cut(start: float, end: float, least: float, most: float) -> tuple[float, float]:
    # Far from 0, numbers are further apart than what is asked for.
    length = min(max(end - start, least, 8 * math.ulp(most)), most)
    if length != end - start:
        start = (start + end - length) / 2
    start = min(max(start, 0.0), most - length)
    return float(start), float(start + length)
