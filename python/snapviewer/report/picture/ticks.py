"""Where an axis has its marks, and what they say. Knows nothing of how they are drawn.

Steps are what people count in: 1, 2 and 5 for events and seconds, and for bytes also the powers of
two that memory comes in, always of one binary unit. The labels of an axis have one unit and as
many decimals, and never touch each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from snapviewer.text.units import BYTE_UNITS

WidthOf = Callable[[str], float]
"""How wide a label is on the screen."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis: where, in the axis's own measure, and what it says."""

    value: int
    label: str


@dataclass(frozen=True, slots=True)
class Ticks:
    """The marks of an axis, in ascending order, and the unit of their labels."""

    marks: tuple[Tick, ...]
    unit: str


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a time axis on which time runs evenly: from, to, and the real time at its start."""

    start: float
    end: float
    real: float


def byte_ticks(low: int, high: int, *, most: int) -> Ticks:
    """Mark an axis of bytes.

    Args:
        low: Where the axis begins.
        high: Where it ends.
        most: How many marks there is room for, at least 1.

    >>> axis = byte_ticks(0, 7 * 2**30, most=5)
    >>> [mark.label for mark in axis.marks], axis.unit
    (['0', '2', '4', '6'], 'GiB')
    >>> axis = byte_ticks(0, 3 * 2**29, most=8)
    >>> [mark.label for mark in axis.marks], axis.unit
    (['0', '0.25', '0.50', '0.75', '1.00', '1.25', '1.50'], 'GiB')
    """
    step, power = next(
        (step, power)
        for step, power in _byte_steps(high)
        if high // step - -(-low // step) + 1 <= most
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
    """Yield steps in ascending order, each with the power of 1,024 to say it in."""
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


def event_ticks(low: float, high: float, length_px: float, width_of: WidthOf) -> Ticks:
    """Mark an axis of events.

    Args:
        low: Where the axis begins.
        high: Where it ends.
        length_px: How long it is on the screen.
        width_of: How wide a label is there.

    >>> axis = event_ticks(0, 2500, 500, lambda label: 8.0 * len(label))
    >>> [mark.label for mark in axis.marks]
    ['0', '500', '1,000', '1,500', '2,000', '2,500']
    """
    px_each = length_px / (high - low)
    for step in _decimal_steps(_least_apart(width_of) / px_each):
        marks = tuple(Tick(value, f"{value:,}") for value in _multiples(low, high, step))
        if _have_room(marks, px_each, width_of):
            break
    return Ticks(marks, "event")


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
        pieces: If idle times are shortened on the axis, the parts where they are not. Marks stand
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
            Tick(round(piece.start + time - piece.real), label(time))
            for piece in shown
            for time in _multiples(piece.real, piece.real + piece.end - piece.start, step)
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


def _decimal_steps(least: float) -> Iterator[int]:
    """Yield 1, 2 and 5 times the powers of ten from about `least` on."""
    power = 10 ** max(0, math.floor(math.log10(max(least, 1))))
    while True:
        yield from (power, 2 * power, 5 * power)
        power *= 10


_SECOND = 1_000_000
_CLOCK_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)


def _time_steps(least: float, latest: float) -> Iterator[int]:
    """Yield steps in microseconds: decimal ones, but minutes and hours for what is that long."""
    has_minutes = latest >= 120 * _SECOND
    for step in _decimal_steps(least):
        if has_minutes and step >= _SECOND:
            break
        yield step
    yield from (seconds * _SECOND for seconds in _CLOCK_STEPS if seconds * _SECOND >= least)
    step = 86400 * _SECOND
    while True:
        yield step
        step *= 2


def _time_label(latest: float, step: int) -> tuple[Callable[[int | float], str], str]:
    """Choose how to say the times of an axis that goes up to `latest`, and in what unit."""
    if latest >= 120 * _SECOND and step >= _SECOND:
        return (_hours, "h:min:s") if latest >= 3600 * _SECOND else (_minutes, "min:s")
    size, unit = next(
        (size, unit)
        for size, unit in ((_SECOND, "s"), (1000, "ms"), (1, "µs"))
        if latest >= size or size == 1
    )
    decimals = next(digits for digits in range(7) if step * 10**digits % size == 0)
    return (lambda time: f"{time / size:,.{decimals}f}"), unit


def _minutes(time_us: float) -> str:
    minutes, seconds = divmod(round(time_us / _SECOND), 60)
    return f"{minutes}:{seconds:02}"


def _hours(time_us: float) -> str:
    minutes, seconds = divmod(round(time_us / _SECOND), 60)
    return f"{minutes // 60:,}:{minutes % 60:02}:{seconds:02}"


def _multiples(low: float, high: float, step: int) -> range:
    """Return the multiples of a step from `low` to `high`, both included."""
    first, last = math.ceil(low / step) * step, math.floor(high / step) * step
    # A quotient may have been rounded past a whole number.
    first += step if first < low else 0
    last -= step if last > high else 0
    return range(first, last + 1, step)


def _have_room(marks: Sequence[Tick], px_each: float, width_of: WidthOf) -> bool:
    """Tell whether labels that are centred on their marks stand apart."""
    return all(_are_apart(one, other, px_each, width_of) for one, other in pairwise(marks))


def _are_apart(one: Tick, other: Tick, px_each: float, width_of: WidthOf) -> bool:
    needed = (width_of(one.label) + width_of(other.label)) / 2 + 2 * width_of("0")
    return (other.value - one.value) * px_each >= max(needed, _least_apart(width_of))


def _least_apart(width_of: WidthOf) -> float:
    """Return how far short labels stand apart at least: many of them would be restless."""
    return 9 * width_of("0")


def _thinned(marks: Sequence[Tick], px_each: float, width_of: WidthOf) -> Iterator[Tick]:
    """Leave out marks too near to the one before: across a shortened time they come unevenly."""
    kept: Tick | None = None
    for mark in marks:
        if kept is None or _are_apart(kept, mark, px_each, width_of):
            yield mark
            kept = mark
