"""The part of the timeline in view: panning and zooming as plain arithmetic.

x is events, or microseconds on a clock; y is bytes, upwards. A viewport is always inside of its
world, so the timeline cannot get lost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

MAX_BYTES = 2**64 - 1
_MIN_WIDTH = 4.0
_MIN_HEIGHT = 64.0
_HEADROOM = 1.08  # above the peak, for its label
_MIN_FILLED = 0.05  # of the height, where the memory in view is highest


@dataclass(frozen=True, slots=True)
class Viewport:
    """A rectangle of the world.

    >>> Viewport(0, 100, 0, 50).zoomed(0.5, 1, x=0, y=0)
    Viewport(left=0.0, right=50.0, low=0, high=50)
    >>> Viewport(0, 100, 0, 50).moved(10, -5)
    Viewport(left=10, right=110, low=-5, high=45)
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
        """From and to in whole bytes, at least one, as the engine takes it."""
        low = min(max(int(self.low), 0), MAX_BYTES - 1)
        return low, min(max(int(self.high), low + 1), MAX_BYTES)

    def moved(self, x: float, y: float) -> Viewport:
        return Viewport(self.left + x, self.right + x, self.low + y, self.high + y)

    def zoomed(self, x_factor: float, y_factor: float, *, x: float, y: float) -> Viewport:
        """Grow or shrink around a point of the world, which stays where it is on the screen."""
        return Viewport(
            x - (x - self.left) * x_factor,
            x + (self.right - x) * x_factor,
            y - (y - self.low) * y_factor,
            y + (self.high - y) * y_factor,
        )

    def padded(self) -> Viewport:
        """Return it with some room on each side."""
        x, y = self.width * 0.1 + 1, self.height * 0.25 + 64
        return Viewport(self.left - x, self.right + x, self.low - y, self.high + y)

    def revealing(self, other: Viewport) -> Viewport:
        """Move so that another rectangle is in view; the scale stays.

        >>> Viewport(0, 100, 0, 100).revealing(Viewport(40, 50, 0, 10))
        Viewport(left=0, right=100, low=0, high=100)
        >>> Viewport(0, 100, 0, 100).revealing(Viewport(140, 150, 0, 10)).x_span
        (95.0, 195.0)
        """
        x = y = 0.0
        if not (other.left < self.right and other.right > self.left):
            x = (other.left + other.right - self.left - self.right) / 2
        if not (other.low < self.high and other.high > self.low):
            y = (other.low + other.high - self.low - self.high) / 2
        return self.moved(x, y) if x or y else self

    def lowered_to(self, highest: float) -> Viewport:
        """Move down until the memory in view, which reaches up to `highest`, fills a part of it.

        >>> Viewport(0, 9, 500, 600).lowered_to(100)
        Viewport(left=0, right=9, low=95.0, high=195.0)
        >>> Viewport(0, 9, 0, 600).lowered_to(100)
        Viewport(left=0, right=9, low=0, high=600)
        """
        excess = self.low - max(highest - _MIN_FILLED * self.height, 0.0)
        return self.moved(0, -excess) if excess > 0 else self


@dataclass(frozen=True, slots=True)
class World:
    """Everything there is to see: from 0 to `right`, and from 0 to a little above `peak_bytes`."""

    right: float
    peak_bytes: int

    @property
    def high(self) -> float:
        return min(max(self.peak_bytes * _HEADROOM, _MIN_HEIGHT), float(MAX_BYTES))

    def whole(self) -> Viewport:
        return Viewport(0.0, float(self.right), 0.0, self.high)

    def clamp(self, view: Viewport) -> Viewport:
        """Move a viewport into the world; one that is too small or too large is resized.

        >>> World(100, 1000).clamp(Viewport(90, 110, 0, 500)).x_span
        (80.0, 100.0)
        >>> World(100, 1000).clamp(Viewport(-900, 900, 0, 500)).x_span
        (0.0, 100.0)
        """
        left, right = _clamp(view.left, view.right, _MIN_WIDTH, self.right)
        low, high = _clamp(view.low, view.high, _MIN_HEIGHT, self.high)
        return Viewport(left, right, low, high)


def _clamp(start: float, end: float, least: float, most: float) -> tuple[float, float]:
    # Far from 0, floating-point numbers are further apart than the smallest length.
    length = min(max(end - start, least, 8 * math.ulp(most)), most)
    if length != end - start:
        start = (start + end - length) / 2
    start = min(max(start, 0.0), most - length)
    return float(start), float(start + length)
