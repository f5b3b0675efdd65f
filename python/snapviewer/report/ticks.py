"""Ticks of axes: where they stand and how they are labelled, whatever draws them.

Steps are 1, 2 and 5 times a power of ten for numbers and seconds; for bytes also powers of two, in
one binary unit. The labels of an axis have one unit and the same decimals, and never touch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from snapviewer.text.units import BYTE_UNITS

WidthOf = Callable[[str], float]
"""How wide a label is on the screen."""

# Beyond these powers of ten a label is written with an exponent.
_PLAIN_POWERS = range(-6, 13)


class Tick(NamedTuple):
    """A tick: its place in the axis's own measure, and its label."""

    value: float
    label: str


class Ticks(NamedTuple):
    """The ticks of an axis, in ascending order, and the unit of their labels."""

    marks: tuple[Tick, ...]
    unit: str = ""


class Scale(NamedTuple):
    """An axis from `low` to `high`."""

    low: float
    high: float
    marks: tuple[Tick, ...]

    def share(self, value: float) -> float:
        """Return how far along the axis a value is: 0 at its beginning, 1 at its end."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


class Piece(NamedTuple):
    """A part of a time axis where time runs evenly: from, to, and the real time at its start."""

    start: float
    end: float
    real: float


def byte_ticks(low: int, high: int, *, max_ticks: int) -> Ticks:
    """Mark an axis of bytes.

    Args:
        low: Where the axis begins.
        high: Where it ends.
        max_ticks: How many ticks there is room for, at least 1.

    >>> axis = byte_ticks(0, 7 * 2**30, max_ticks=5)
    >>> [mark.label for mark in axis.marks], axis.unit
    (['0', '2', '4', '6'], 'GiB')
    >>> axis = byte_ticks(0, 3 * 2**29, max_ticks=8)
    >>> [mark.label for mark in axis.marks], axis.unit
    (['0', '0.25', '0.50', '0.75', '1.00', '1.25', '1.50'], 'GiB')
    """
    step, power = next(
        (step, power)
        for step, power in _byte_steps(high)
        if high // step - -(-low // step) + 1 <= max_ticks
    )
    unit = 1024**power
    decimals = 0 if step >= unit else 1 if 2 * step == unit else 2
    marks = (
        Tick(value, f"{value // unit:,}" if decimals == 0 else f"{value / unit:,.{decimals}f}")
        for value in range(-(-low // step) * step, high + 1, step)
    )
    zero = Tick(0, "0")
    return Ticks(tuple(zero if mark.value == 0 else mark for mark in marks), BYTE_UNITS[power])


def _byte_steps(high: int) -> Iterator[tuple[int, int]]:
    """Yield steps in ascending order, each with the power of 1,024 of its unit."""
    last = len(BYTE_UNITS) - 1
    for power in range(len(BYTE_UNITS)):
        reaches_next = power < last and high >= 1024 ** (power + 1)
        for factor in (1, 2, 4, 5, 8, 10, 16, 20, 32, 40, 50, 64, 80, 100, 128, 200, 256, 500, 512):
            if factor <= 80 or not reaches_next:
                yield factor * 1024**power, power
            elif factor in (256, 512):  # quarters and halves of the next unit
                yield factor * 1024**power, power + 1
    step = 1024 ** (last + 1)
    while True:
        yield step, last
        step *= 2


def number_ticks(
    low: float, high: float, length_px: float, width_of: WidthOf, *, are_whole: bool = True
) -> Ticks:
    """Mark an axis of numbers, such as events.

    Args:
        low: Where the axis begins.
        high: Where it ends.
        length_px: How long it is on the screen.
        width_of: How wide a label is there.
        are_whole: Whether there is nothing between two whole numbers.

    >>> axis = number_ticks(0, 2500, 500, lambda label: 8.0 * len(label))
    >>> [mark.label for mark in axis.marks]
    ['0', '500', '1,000', '1,500', '2,000', '2,500']
    """
    px_each = length_px / (high - low)
    least = _least_apart(width_of) / px_each
    for factor, power in _round_steps(max(least, 1) if are_whole else least):
        marks = tuple(
            _round_tick(count * factor, power) for count in _counts(low, high, factor, power)
        )
        if _have_room(marks, px_each, width_of):
            break
    return Ticks(marks)


def number_scale(low: float, high: float, *, max_steps: int = 6) -> Scale:
    """Make an axis that begins and ends with a tick, at or around two values.

    Args:
        low: The least value.
        high: The greatest value.
        max_steps: How many steps from tick to tick there may be.

    >>> [mark.label for mark in number_scale(0, 10.58).marks]
    ['0', '2', '4', '6', '8', '10', '12']
    >>> [mark.label for mark in number_scale(-0.3, 0.8).marks]
    ['−0.4', '−0.2', '0', '0.2', '0.4', '0.6', '0.8']
    """
    low, high = _apart(low, high)
    for factor, power in _round_steps((high - low) / max_steps):
        first = math.floor(low / _number(factor, power) + 1e-9)
        last = math.ceil(high / _number(factor, power) - 1e-9)
        if last - first <= max_steps:
            break
    marks = tuple(_round_tick(count * factor, power) for count in range(first, last + 1))
    return Scale(min(marks[0].value, low), max(marks[-1].value, high), marks)


def drawable(value: float) -> float:
    """Return a value within what `number_scale` can mark: up to ±10^15, and NaN as zero.

    >>> drawable(2.5), drawable(1e300), drawable(float("nan"))
    (2.5, 1000000000000000.0, 0.0)
    """
    if math.isnan(value) or abs(value) < 1e-12:
        return 0.0
    return min(max(value, -1e15), 1e15)


def time_ticks(
    low: float,
    high: float,
    length_px: float,
    width_of: WidthOf,
    *,
    pieces: Sequence[Piece] | None = None,
) -> Ticks:
    """Mark an axis of time.

    Args:
        low: Where the axis begins, in microseconds since the first event.
        high: Where it ends.
        length_px: How long it is on the screen.
        width_of: How wide a label is there.
        pieces: If idle times are shortened on the axis, the parts where they are not. Ticks stand
            at even real times within these; their `value` is the place on the axis.

    >>> axis = time_ticks(0, 2_500_000, 500, lambda label: 8.0 * len(label))
    >>> [mark.label for mark in axis.marks], axis.unit
    (['0.0', '0.5', '1.0', '1.5', '2.0', '2.5'], 's')
    >>> axis = time_ticks(0, 300_000_000, 500, lambda label: 8.0 * len(label))
    >>> [mark.label for mark in axis.marks], axis.unit
    (['0:00', '1:00', '2:00', '3:00', '4:00', '5:00'], 'min:s')
    """
    shown = _within(low, high, pieces or [Piece(low, high, low)])
    latest = max((piece.real + piece.end - piece.start for piece in shown), default=high)
    px_each = length_px / (high - low)
    for step in _time_steps(_least_apart(width_of) / px_each, latest):
        label, unit = _time_label(latest, step)
        marks = tuple(
            Tick(round(piece.start + count * step - piece.real), label(count * step))
            for piece in shown
            for count in _counts(piece.real, piece.real + piece.end - piece.start, step, 0)
        )
        if len(shown) > 1:
            marks = tuple(_thinned(marks, px_each, width_of))
        if _have_room(marks, px_each, width_of):
            break
    return Ticks(marks, unit)


def _within(low: float, high: float, pieces: Sequence[Piece]) -> list[Piece]:
    """Cut pieces to what is shown."""
    cut = (
        Piece(max(piece.start, low), min(piece.end, high), piece.real + max(low - piece.start, 0))
        for piece in pieces
    )
    return [piece for piece in cut if piece.end >= piece.start]


_SECOND = 1_000_000
_CLOCK_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)


def _time_steps(least: float, latest: float) -> Iterator[int]:
    """Yield steps in microseconds: decimal ones, but minutes and hours for what is that long."""
    has_minutes = latest >= 120 * _SECOND
    for factor, power in _round_steps(max(least, 1)):
        step = factor * 10**power
        if has_minutes and step >= _SECOND:
            break
        yield step
    yield from (seconds * _SECOND for seconds in _CLOCK_STEPS if seconds * _SECOND >= least)
    step = 86400 * _SECOND
    while True:
        yield step
        step *= 2


def _time_label(latest: float, step: int) -> tuple[Callable[[int], str], str]:
    """Choose a format and a unit for the times of an axis that goes up to `latest`."""
    if latest >= 120 * _SECOND and step >= _SECOND:
        return (_hours, "h:min:s") if latest >= 3600 * _SECOND else (_minutes, "min:s")
    size, unit = next(
        (size, unit)
        for size, unit in ((_SECOND, "s"), (1000, "ms"), (1, "µs"))
        if latest >= size or size == 1
    )
    decimals = next(digits for digits in range(7) if step * 10**digits % size == 0)
    return (lambda time: f"{time / size:,.{decimals}f}"), unit


def _minutes(time_us: int) -> str:
    minutes, seconds = divmod(round(time_us / _SECOND), 60)
    return f"{minutes}:{seconds:02}"


def _hours(time_us: int) -> str:
    minutes, seconds = divmod(round(time_us / _SECOND), 60)
    return f"{minutes // 60:,}:{minutes % 60:02}:{seconds:02}"


def _apart(low: float, high: float) -> tuple[float, float]:
    """Widen what is (nearly) a point; a value and zero make an axis together."""
    if high - low > 1e-9 * max(abs(low), abs(high)):
        return low, high
    return (0.0, 1.0) if low == high == 0 else (min(low, 0.0), max(high, 0.0))


def _round_steps(least: float) -> Iterator[tuple[int, int]]:
    """Yield steps as a factor (1, 2 or 5) and a power of ten, from about `least` on."""
    power = math.floor(math.log10(least))
    while True:
        for factor in (1, 2, 5):
            yield factor, power
        power += 1


def _number(count: int, power: int) -> float:
    """Return count × 10^power: exactly if whole, else rounded once, so that 3 × 10^-1 is 0.3."""
    ten: int = 10 ** abs(power)
    return count * ten if power >= 0 else count / ten


def _counts(low: float, high: float, factor: int, power: int) -> range:
    """Return which multiples of a step lie from `low` to `high`, both included."""
    step = _number(factor, power)
    # Fractions are rounded: one that is off by a little is meant to be there.
    slack = 0 if power >= 0 else 1e-9
    first, last = math.ceil(low / step - slack), math.floor(high / step + slack)
    if power >= 0:
        # A quotient may have been rounded past a whole number.
        first += first * step < low
        last -= last * step > high
    return range(first, last + 1)


def _round_tick(count: int, power: int) -> Tick:
    value = _number(count, power)
    if count == 0:
        return Tick(value, "0")
    if power not in _PLAIN_POWERS:
        label = f"{value:.3g}"
    else:
        label = f"{value:,}" if power >= 0 else f"{value:,.{-power}f}"
    return Tick(value, label.replace("-", "−"))


def _have_room(marks: Sequence[Tick], px_each: float, width_of: WidthOf) -> bool:
    """Return whether labels that are centred on their ticks stand apart."""
    return all(_are_apart(one, other, px_each, width_of) for one, other in pairwise(marks))


def _are_apart(one: Tick, other: Tick, px_each: float, width_of: WidthOf) -> bool:
    needed = (width_of(one.label) + width_of(other.label)) / 2 + 2 * width_of("0")
    return (other.value - one.value) * px_each >= max(needed, _least_apart(width_of))


def _least_apart(width_of: WidthOf) -> float:
    """Return how far short labels stand apart at least: many of them would be restless."""
    return 9 * width_of("0")


def _thinned(marks: Sequence[Tick], px_each: float, width_of: WidthOf) -> Iterator[Tick]:
    """Leave out ticks too near to the one before: across a shortened time they come unevenly."""
    kept: Tick | None = None
    for mark in marks:
        if kept is None or _are_apart(kept, mark, px_each, width_of):
            yield mark
            kept = mark
