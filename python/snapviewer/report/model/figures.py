"""Quantities in words: numbers with units that people read, and how each is known."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from snapviewer.model.quantity import Quantity
from snapviewer.texts import clean
from snapviewer.units import format_bytes, format_duration_us

_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_PREFIXED = ("FLOP", "MAC", "FLOP/s", "FLOP/J", "1/s")
# What is shown of a source: those of strangers' files may be long.
_MOST_SOURCE = 300


def said(quantity: Quantity) -> str:
    """Say a quantity, or why it is not there.

    >>> said(Quantity(3.6e9, "FLOP", "computed", "shapes"))
    '3.60 GFLOP'
    >>> said(Quantity(0.0123, "s", "measured", "clock")), said(Quantity(2048, "B", "computed", ""))
    ('12.3 ms', '2.00 KiB')
    """
    value = quantity.value
    if value is None:
        return f"unavailable ({clean(quantity.source, _MOST_SOURCE)})"
    return number(value, quantity.unit)


def number(value: float, unit: str) -> str:
    """Say a number in a unit."""
    if unit == "s":
        return _duration(value)
    if unit in ("B", "bytes"):
        return format_bytes(round(value))
    if unit == "B/s":
        return f"{format_bytes(round(value))}/s"
    if unit in _PREFIXED:
        for size, prefix in _PREFIXES:
            if abs(value) >= size:
                return f"{value / size:.2f} {prefix}{unit}"
    shown = f"{value:,.4g}" if abs(value) < 1e6 else f"{value:.3e}"
    return shown if unit == "1" else f"{shown} {unit}"


def _duration(seconds: float) -> str:
    if 0 < abs(seconds) < 99.5e-6:
        return f"{seconds * 1e6:.2f} µs"
    return format_duration_us(seconds * 1e6) if seconds >= 0 else f"{seconds:.3g} s"


def per_second(quantity: Quantity) -> str:
    """Say how many there are in a second.

    >>> per_second(Quantity(12345.6, "1/s", "computed", ""))
    '12,346'
    """
    value = quantity.value
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def how(quantity: Quantity) -> str:
    """Say how a quantity is known."""
    return f"{quantity.status}: {clean(quantity.source, _MOST_SOURCE)}"


def quantity_of(document: dict[str, Any]) -> Quantity:
    """Return the quantity that a document holds."""
    return Quantity(document["value"], document["unit"], document["status"], document["source"])


def is_quantity(value: Any) -> bool:
    """Tell whether a part of a document is a quantity."""
    return isinstance(value, dict) and {"value", "unit", "status", "source"} <= set(value)


def wrapped(lines: Iterable[str], width: int | None) -> Iterator[str]:
    """Break lines that are longer than a terminal is wide, each further part set in.

    The lines that programs look for stay whole: what begins with `Analyzed` or `File`.

    >>> list(wrapped(["  a long line of words"], 20))
    ['  a long line of', '      words']
    """
    for line in lines:
        if width is None or len(line) <= width or line.startswith(("Analyzed", "File: ")):
            yield line
            continue
        start = len(line) - len(line.lstrip())
        yield from textwrap.wrap(
            line,
            max(width, 20),
            subsequent_indent=" " * (start + 4),
            break_on_hyphens=False,
        )
