"""Quantities in words: numbers in units that people read, and how each was obtained."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from snapviewer.model.analysis import ModelAnalysis
from snapviewer.model.graph import Graph, TensorSpec, Unknown, Value
from snapviewer.model.quantity import Quantity
from snapviewer.model.recommend import Recommendation
from snapviewer.model.work import Totals, kind_of
from snapviewer.text.sanitize import sanitize
from snapviewer.text.units import count_of, format_bytes, format_duration

if TYPE_CHECKING:
    from snapviewer.model.inference import NodeProfile, Profile

_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_PREFIXED = ("FLOP", "MAC", "FLOP/s", "FLOP/J", "1/s")
# Sources may quote a file, and be long.
_MAX_SOURCE_CHARS = 300
_MAX_LISTED = 4
_MAX_INPUT_DEPTH = 3
_HEAVY = ("Convolution", "Linear", "MatMul", "Attention", "Recurrent")
_MIB = 2**20


def format_quantity(quantity: Quantity) -> str:
    """Format a quantity, or say why it has no value.

    >>> format_quantity(Quantity(3.6e9, "FLOP", "computed", "shapes"))
    '3.60 GFLOP'
    >>> [format_quantity(Quantity(v, u, "measured", "")) for v, u in ((0.0123, "s"), (2048, "B"))]
    ['12.3 ms', '2.00 KiB']
    """
    value = quantity.value
    if value is None:
        return f"unavailable ({sanitize(quantity.source, _MAX_SOURCE_CHARS)})"
    return format_number(value, quantity.unit)


def format_number(value: float, unit: str) -> str:
    """Format a number in a unit."""
    if unit == "s":
        return _format_seconds(value)
    if unit in ("B", "bytes"):
        return format_bytes(round(value))
    if unit == "B/s":
        return f"{format_bytes(round(value))}/s"
    size, prefix = si_prefix(value)
    if unit in _PREFIXED and prefix:
        return f"{value / size:.2f} {prefix}{unit}"
    shown = f"{value:,.4g}" if abs(value) < 1e6 else f"{value:.3e}"
    return shown if unit in ("", "1") else f"{shown} {unit}"


def si_prefix(value: float) -> tuple[float, str]:
    """Return the factor and the letter of the SI prefix that suits a value.

    >>> si_prefix(272_900), si_prefix(3)
    ((1000.0, 'k'), (1.0, ''))
    """
    return next((found for found in _PREFIXES if abs(value) >= found[0]), (1.0, ""))


def _format_seconds(seconds: float) -> str:
    if 0 < abs(seconds) < 99.5e-6:
        return f"{seconds * 1e6:.2f} µs"
    return format_duration(seconds * 1e6) if seconds >= 0 else f"{seconds:.3g} s"


def format_rate(quantity: Quantity) -> str:
    """Format a number per second.

    >>> format_rate(Quantity(12345.6, "1/s", "computed", ""))
    '12,346'
    """
    value = quantity.value
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def format_percent(percent: float) -> str:
    """Format a percentage, a small one with one digit more.

    >>> format_percent(2.51), format_percent(101.4)
    ('2.5 %', '101 %')
    """
    return f"{percent:.1f} %" if percent < 10 else f"{percent:.0f} %"


def format_mb(size_bytes: int) -> str:
    """Format a size as the promised blocks do: in units of 2²⁰ bytes, called MB.

    >>> format_mb(164_815_176)
    '157.18 MB'
    """
    return f"{size_bytes / _MIB:.2f} MB"


def format_measured_share(share: float | None) -> str:
    """Format a share as the promised blocks do, or say that it was not measured.

    >>> format_measured_share(0.125), format_measured_share(None)
    ('12.50%', 'not measured')
    """
    return "not measured" if share is None else f"{100 * share:.2f}%"


def provenance(quantity: Quantity) -> str:
    """Return the status and the source of a quantity."""
    return f"{quantity.status}: {sanitize(quantity.source, _MAX_SOURCE_CHARS)}"


def describe_inputs(graph: Graph) -> str:
    """Describe the inputs of a model in the syntax of `--input`, and where they come from."""
    return f"{', '.join(map(_input, graph.inputs)) or 'none'} ({graph.input_source})"


def _input(value: Value, depth: int = 0) -> str:
    if isinstance(value, TensorSpec):
        sizes = "x".join("?" if size is None else str(size) for size in value.shape) or "scalar"
        return sizes if value.dtype in ("float32", "") else f"{sizes}:{sanitize(value.dtype)}"
    if isinstance(value, Unknown):
        return "unknown"
    if isinstance(value, tuple) and depth < _MAX_INPUT_DEPTH:
        rest = ", …" if len(value) > _MAX_LISTED else ""
        return f"[{', '.join(_input(item, depth + 1) for item in value[:_MAX_LISTED])}{rest}]"
    return sanitize(str(value), 40)


def describe_uncounted(totals: Totals) -> str:
    """Name the operations that are missing from the totals, the likely heavy ones first."""
    counts = Counter(node.op for node, _ in totals.uncounted)
    ranked = sorted(counts.items(), key=lambda item: (kind_of(item[0]) not in _HEAVY, -item[1]))
    listed = [f"{sanitize(op, 60)} ×{count}" for op, count in ranked[:_MAX_LISTED]]
    rest = ", …" if len(ranked) > _MAX_LISTED else ""
    return f"{count_of(len(totals.uncounted), 'operation')} ({', '.join(listed)}{rest})"


def describe_gain(item: Recommendation) -> str:
    """Return what a recommendation gains, or why that is unknown."""
    if item.gain.value is None:
        return f"{item.gain.status}: {item.gain.source}"
    return f"{format_quantity(item.gain)}, {100 * item.share:.1f} % of {item.share_of}"


def flops_by_kind(totals: Totals) -> dict[str, int]:
    """Return the FLOPs of each kind of operation that has any."""
    return {kind: work.flops for kind, work in totals.by_kind.items() if work.flops}


def performance_figures(profile: Profile) -> list[tuple[str, Quantity]]:
    """Return the figures of the whole model with their labels."""
    return [
        ("Rate", profile.rate),
        ("Memory bandwidth", profile.bandwidth),
        ("Arithmetic intensity", profile.intensity),
        ("Profiling overhead", profile.overhead),
    ]


def slowest_nodes(profile: Profile, count: int) -> list[NodeProfile]:
    """Return the operations that took longest, the slowest first."""
    return sorted(profile.nodes, key=lambda node: -(node.time.median.value or 0.0))[:count]


def describe_layouts(profile: Profile) -> str | None:
    """Compare the times of the two memory layouts; None if they were not tried."""
    layouts = profile.layouts
    if layouts is None:
        return None
    last, usual = layouts.channels_last, layouts.contiguous
    return (
        f"channels_last: {format_quantity(last.median)}, contiguous: "
        f"{format_quantity(usual.median)} (median absolute deviations "
        f"{format_quantity(last.deviation)} and {format_quantity(usual.deviation)}, "
        f"{usual.runs} alternating runs each)"
    )


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


def machine_parts(analysis: ModelAnalysis) -> Iterator[tuple[str, Any]]:
    """Yield the parts of the machine, and what the runs used of it, with their labels."""
    if analysis.system is not None:
        yield from parts_of(analysis.system)
    if analysis.profile is not None and analysis.profile.system is not None:
        yield "during runs", analysis.profile.system


def wrap_lines(lines: Iterable[str], width: int | None) -> Iterator[str]:
    """Wrap lines to the width of a terminal; continuation lines are indented.

    The lines that programs look for stay whole: those that begin with `Analyzed` or `File`.

    >>> list(wrap_lines(["  a long line of words"], 20))
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
