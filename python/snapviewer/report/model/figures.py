"""Quantities in words: numbers with units that people read, and how each is known."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from snapviewer.model.analysis import ModelAnalysis
from snapviewer.model.graph import Graph, TensorSpec, Unknown, Value
from snapviewer.model.quantity import Quantity
from snapviewer.model.work import Totals, kind_of
from snapviewer.text.sanitize import sanitize
from snapviewer.text.units import count_of, format_bytes, format_duration

_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_PREFIXED = ("FLOP", "MAC", "FLOP/s", "FLOP/J", "1/s")
# What is shown of a source: those of strangers' files may be long.
_MOST_SOURCE = 300
_MOST_LISTED = 4
_DEEPEST_INPUT = 3
_HEAVY = ("Convolution", "Linear", "MatMul", "Attention", "Recurrent")


def said(quantity: Quantity) -> str:
    """Say a quantity, or why it is not there.

    >>> said(Quantity(3.6e9, "FLOP", "computed", "shapes"))
    '3.60 GFLOP'
    >>> said(Quantity(0.0123, "s", "measured", "clock")), said(Quantity(2048, "B", "computed", ""))
    ('12.3 ms', '2.00 KiB')
    """
    value = quantity.value
    if value is None:
        return f"unavailable ({sanitize(quantity.source, _MOST_SOURCE)})"
    return number(value, quantity.unit)


def number(value: float, unit: str) -> str:
    """Say a number in a unit."""
    if unit == "s":
        return _duration(value)
    if unit in ("B", "bytes"):
        return format_bytes(round(value))
    if unit == "B/s":
        return f"{format_bytes(round(value))}/s"
    size, prefix = prefix_of(value)
    if unit in _PREFIXED and prefix:
        return f"{value / size:.2f} {prefix}{unit}"
    shown = f"{value:,.4g}" if abs(value) < 1e6 else f"{value:.3e}"
    return shown if unit == "1" else f"{shown} {unit}"


def prefix_of(value: float) -> tuple[float, str]:
    """Return the prefix in which a value is best read, and what it stands for.

    >>> prefix_of(272_900), prefix_of(3)
    ((1000.0, 'k'), (1.0, ''))
    """
    return next((found for found in _PREFIXES if abs(value) >= found[0]), (1.0, ""))


def _duration(seconds: float) -> str:
    if 0 < abs(seconds) < 99.5e-6:
        return f"{seconds * 1e6:.2f} µs"
    return format_duration(seconds * 1e6) if seconds >= 0 else f"{seconds:.3g} s"


def per_second(quantity: Quantity) -> str:
    """Say how many there are in a second.

    >>> per_second(Quantity(12345.6, "1/s", "computed", ""))
    '12,346'
    """
    value = quantity.value
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def share_said(percent: float) -> str:
    """Say a share in percent, a small one with a digit more.

    >>> share_said(2.51), share_said(101.4)
    ('2.5 %', '101 %')
    """
    return f"{percent:.1f} %" if percent < 10 else f"{percent:.0f} %"


def inputs_said(graph: Graph) -> str:
    """Say what a model is called with, as `--input` takes it, and how that is known."""
    return f"{', '.join(map(_input, graph.inputs)) or 'none'} ({graph.input_source})"


def _input(value: Value, depth: int = 0) -> str:
    if isinstance(value, TensorSpec):
        sizes = "x".join("?" if size is None else str(size) for size in value.shape) or "scalar"
        return sizes if value.dtype in ("float32", "") else f"{sizes}:{sanitize(value.dtype)}"
    if isinstance(value, Unknown):
        return "not known"
    if isinstance(value, tuple) and depth < _DEEPEST_INPUT:
        rest = ", …" if len(value) > _MOST_LISTED else ""
        return f"[{', '.join(_input(item, depth + 1) for item in value[:_MOST_LISTED])}{rest}]"
    return sanitize(str(value), 40)


def uncounted_said(totals: Totals) -> str:
    """Say which operations are not in the sums: those that tend to be the most work first."""
    counts = Counter(node.op for node, _ in totals.uncounted)
    ranked = sorted(counts.items(), key=lambda item: (kind_of(item[0]) not in _HEAVY, -item[1]))
    listed = [f"{sanitize(op, 60)} ×{count}" for op, count in ranked[:_MOST_LISTED]]
    rest = ", …" if len(ranked) > _MOST_LISTED else ""
    return f"{count_of(len(totals.uncounted), 'operation')} ({', '.join(listed)}{rest})"


def how(quantity: Quantity) -> str:
    """Say how a quantity is known."""
    return f"{quantity.status}: {sanitize(quantity.source, _MOST_SOURCE)}"


def parts_of(record: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a record or a dict with their labels; each item of a list by itself."""
    if isinstance(record, dict):
        yield from record.items()
        return
    for field in fields(record):
        name, value = field.name.replace("_", " "), getattr(record, field.name)
        if not isinstance(value, tuple):
            yield name, value
        elif value and isinstance(value[0], tuple):
            yield name, dict(value)
        else:
            yield from ((f"{name} {place}", item) for place, item in enumerate(value))


def machine(analysis: ModelAnalysis) -> Iterator[tuple[str, Any]]:
    """Yield the parts of the machine, and what the runs used of it, with their labels."""
    if analysis.system is not None:
        yield from parts_of(analysis.system)
    if analysis.profile is not None and analysis.profile.system is not None:
        yield "during runs", analysis.profile.system


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
