"""Axes whose marks stand at round numbers: 1, 2 or 5 times a power of ten.

Values are between −10^15 and 10^15 and either zero or at least 10^-12 away from it: `sane`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

# Beyond these powers of ten a label is written with an exponent.
_PLAIN_POWERS = range(-6, 13)


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark on an axis and what it says."""

    value: float
    label: str


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from `low` to `high`, with its marks in ascending order."""

    low: float
    high: float
    marks: tuple[Mark, ...]

    def share(self, value: float) -> float:
        """Tell how far along the axis a value is: 0 at its beginning, 1 at its end."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


def sane(value: float) -> float:
    """Bring a value to where floats can be reckoned with; what is no number is zero.

    >>> sane(2.5), sane(1e300), sane(float("nan"))
    (2.5, 1000000000000000.0, 0.0)
    """
    if math.isnan(value) or abs(value) < 1e-12:
        return 0.0
    return min(max(value, -1e15), 1e15)


def value_scale(low: float, high: float, *, most: int = 6) -> Scale:
    """Make an axis that begins and ends at a mark, at or around the values given.

    Args:
        low: The least value.
        high: The greatest value.
        most: How many steps from mark to mark there may be.

    >>> [mark.label for mark in value_scale(0, 10.58).marks]
    ['0', '2', '4', '6', '8', '10', '12']
    >>> [mark.label for mark in value_scale(-0.3, 0.8).marks]
    ['−0.4', '−0.2', '0', '0.2', '0.4', '0.6', '0.8']
    """
    low, high = _apart(low, high)
    for factor, power in _steps((high - low) / most):
        first = math.floor(_steps_to(low, factor, power) + 1e-9)
        last = math.ceil(_steps_to(high, factor, power) - 1e-9)
        if last - first <= most:
            break
    marks = _marks(range(first, last + 1), factor, power)
    return Scale(min(marks[0].value, low), max(marks[-1].value, high), marks)


def place_scale(
    low: float, high: float, *, are_whole: bool, has_room: Callable[[float, str], bool]
) -> Scale:
    """Make an axis from one value to another, with marks at the round numbers between them.

    Args:
        low: Where it begins.
        high: Where it ends.
        are_whole: Whether there is nothing between two whole numbers.
        has_room: Tells for a step from mark to mark, as a share of the axis, and the longest
            label, whether labels would stand apart.

    >>> axis = place_scale(0, 9, are_whole=True, has_room=lambda step, label: step > 0.2)
    >>> [mark.label for mark in axis.marks]
    ['0', '2', '4', '6', '8']
    """
    low, high = _apart(low, high) if low < high else (low - 0.5, high + 0.5)
    whole = high - low
    marks: tuple[Mark, ...] = ()
    for factor, power in _steps(whole / 1000):
        if are_whole and power < 0:
            continue
        step = _number(factor, power)
        if step / whole < 0.01:
            continue  # not worth making them all
        first = math.ceil(_steps_to(low, factor, power) - 1e-9)
        last = math.floor(_steps_to(high, factor, power) + 1e-9)
        marks = _marks(range(first, last + 1), factor, power)
        longest = max((mark.label for mark in marks), key=len, default="")
        if len(marks) <= 1 or has_room(step / whole, longest):
            break
    return Scale(low, high, marks)


def _apart(low: float, high: float) -> tuple[float, float]:
    """Widen what is (nearly) a point; a value and zero make an axis together."""
    if high - low > 1e-9 * max(abs(low), abs(high)):
        return low, high
    return (0.0, 1.0) if low == high == 0 else (min(low, 0.0), max(high, 0.0))


def _steps(least: float) -> Iterator[tuple[int, int]]:
    """Yield steps as a factor and a power of ten, from about `least` on."""
    power = math.floor(math.log10(least))
    while True:
        for factor in (1, 2, 5):
            yield factor, power
        power += 1


def _number(count: int, power: int) -> float:
    """Return count × 10^power, rounded once, so that 3 × 10^-1 is 0.3."""
    return float(count * 10**power) if power >= 0 else count / 10**-power


def _steps_to(value: float, factor: int, power: int) -> float:
    return value / _number(factor, power)


def _marks(counts: range, factor: int, power: int) -> tuple[Mark, ...]:
    return tuple(
        Mark(_number(count * factor, power), _label(count * factor, power)) for count in counts
    )


def _label(count: int, power: int) -> str:
    if count == 0:
        return "0"
    if power not in _PLAIN_POWERS:
        text = f"{_number(count, power):.3g}"
    elif power >= 0:
        text = f"{count * 10**power:,}"
    else:
        text = f"{_number(count, power):,.{-power}f}"
    return text.replace("-", "−")
