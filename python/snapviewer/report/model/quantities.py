"""Quantities in words: numbers in units that people read, and how each was obtained."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from math import isinf
from typing import TYPE_CHECKING, Any

from snapviewer.model.analysis import ModelAnalysis
from snapviewer.model.graph import Graph, InputSize, TensorSpec, Unknown, Value
from snapviewer.model.nodes import NodeDetails
from snapviewer.model.quantity import Quantity
from snapviewer.model.recommend import Recommendation
from snapviewer.model.work import Totals, kind_of
from snapviewer.text.sanitize import sanitize
from snapviewer.text.units import (
    count_of,
    format_bytes,
    format_count,
    format_duration,
    percentages,
    three_digits,
)

if TYPE_CHECKING:
    from snapviewer.model.inference import NodeProfile, Pattern, Profile

_PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_PREFIXED = ("FLOP", "MAC", "FLOP/s", "FLOP/J", "1/s")
_SMALL_PREFIXES = (*_PREFIXES, (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"), (1e-12, "p"))
_SMALL = {"J": 1.0, "nJ": 1e-9, "g CO2": 1.0}  # units of small values, in base units
# Sources may quote a file, and be long.
_MAX_SOURCE_CHARS = 300
_MAX_LISTED = 4
_MAX_INPUT_DEPTH = 3
_HEAVY = ("Convolution", "Linear", "MatMul", "Attention", "Recurrent")
_MIB = 2**20
_MANY = 1_000_000


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
    """Format a number in a unit.

    >>> format_number(0.0003833, "J"), format_number(5.121e-08, "g CO2"), format_number(1.6e5, "nJ")
    ('383 µJ', '51.2 ng CO2', '160 µJ')
    """
    if unit == "s":
        return _format_seconds(value)
    if unit in ("B", "bytes"):
        return format_bytes(round(value))
    if unit == "B/s":
        return f"{format_bytes(round(value))}/s"
    if unit in _SMALL:
        return _format_small(value * _SMALL[unit], "J" if unit == "nJ" else unit)
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


def _format_small(value: float, unit: str) -> str:
    """Format a value with three significant digits and the prefix that suits it.

    >>> [_format_small(value, "J") for value in (0.0, 0.9999, 62.5e-3, 2.311, 1e-15)]
    ['0 J', '1.00 J', '62.5 mJ', '2.31 J', '0.00 pJ']
    """
    if not value:
        return f"0 {unit}"
    # A number that would round to 1,000 has the next prefix.
    found = (one for one in _SMALL_PREFIXES if abs(value) >= 0.9995 * one[0])
    size, prefix = next(found, _SMALL_PREFIXES[-1])
    return f"{three_digits(value / size)} {prefix}{unit}"


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


def format_parameters(count: int) -> str:
    """Format a number of parameters, a large one also in millions or billions.

    >>> format_parameters(869), format_parameters(100_240_000_000)
    ('869', '100,240,000,000 (100.2 B)')
    """
    return f"{count:,} ({format_count(count)})" if count >= _MANY else f"{count:,}"


def format_measured_share(share: float | None) -> str:
    """Format a share as the promised blocks do, or say that it was not measured.

    >>> format_measured_share(0.125), format_measured_share(None)
    ('12.50%', 'not measured')
    """
    return "not measured" if share is None else f"{100 * share:.2f}%"


def format_statistic(value: float | None) -> str:
    """Format a number of which four digits matter.

    >>> format_statistic(-0.0123449), format_statistic(None)
    ('-0.01234', '–')
    """
    return "–" if value is None else f"{value:.4g}"


def format_decibels(value: float | None) -> str:
    """Format a signal-to-noise ratio; a lossless one is infinite.

    >>> format_decibels(48.36), format_decibels(float("inf")), format_decibels(None)
    ('48.4 dB', 'lossless', '–')
    """
    if value is None:
        return "–"
    return "lossless" if isinf(value) else f"{value:.1f} dB"


_BARS = "▁▂▃▄▅▆▇█"


def format_histogram(counts: Iterable[int], empty: str = "·") -> str:
    """Draw the bins in one line; a bin that is not empty is visible.

    >>> format_histogram([0, 1, 100])
    '[·▁█]'
    """
    counts = list(counts)
    most = max(counts, default=0)
    if not most:
        return "none"
    bars = empty + _BARS
    return f"[{''.join(bars[-(-8 * count // most)] for count in counts)}]"


def provenance(quantity: Quantity) -> str:
    """Return the status and the source of a quantity."""
    return f"{quantity.status}: {sanitize(quantity.source, _MAX_SOURCE_CHARS)}"


def describe_inputs(graph: Graph) -> str:
    """Describe the inputs of a model in the syntax of `--input`, and where they come from."""
    return f"{', '.join(map(_input, graph.inputs)) or 'none'} ({graph.input_source})"


def describe_sizes(graph: Graph) -> list[str]:
    """Describe which sizes of the inputs may vary, how far, and which are suggested."""
    return [_size(size) for size in graph.input_sizes]


def _size(size: InputSize) -> str:
    if not size.varies:
        return f"{size.role}: only {size.size:,} ({sanitize(size.reason)})"
    limits = [f"from {size.least:,}"] if size.least is not None and size.least > 1 else []
    if size.most is not None:
        limits.append(f"at most {size.most:,}")
    text = f"{size.role}: {', '.join(limits) or 'any'} ({sanitize(size.reason)})"
    if not size.suggested:
        return text
    return f"{text}; suggested: {', '.join(f'{one:,}' for one in size.suggested)}"


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


def flops_by_kind(totals: Totals) -> list[tuple[str, int, float]]:
    """Return the kinds of operations with FLOPs: kind, FLOPs, and their share in percent."""
    counts = {kind: work.flops for kind, work in totals.by_kind.items() if work.flops}
    shares = percentages(list(counts.values()))
    return [(*counted, share) for counted, share in zip(counts.items(), shares, strict=True)]


def performance_figures(profile: Profile) -> list[tuple[str, Quantity]]:
    """Return the figures of the whole model with their labels."""
    return [
        ("Measured FLOPs", profile.measured_flops),
        ("Rate", profile.rate),
        ("Memory bandwidth", profile.bandwidth),
        ("Arithmetic intensity", profile.intensity),
        ("Profiling overhead", profile.overhead),
    ]


def energy_figures(analysis: ModelAnalysis) -> list[tuple[str, Quantity]]:
    """Return how the energy of a run divides and varies; nothing if the model was not run."""
    if analysis.profile is None:
        return []
    in_nodes, rest = analysis.energy_of_nodes
    return [
        ("Energy of the operations", in_nodes),
        ("Energy between operations", rest),
        ("Spread of the energy", analysis.profile.energy_spread),
    ]


def describe_energy_runs(profile: Profile) -> str | None:
    """Describe the runs whose energy is reported; None if there were none."""
    runs, energy = profile.energy_runs, profile.energy
    if not runs.runs or energy is None:
        return None
    is_shared = profile.system is not None and profile.system.is_shared
    return (
        f"{count_of(runs.runs, 'run')} after the timed ones, mean "
        f"{format_quantity(energy.seconds)}, median {format_quantity(runs.median)} (fastest "
        f"{format_quantity(runs.fastest)}, slowest {format_quantity(runs.slowest)}); the timed "
        f"runs had a median of {format_quantity(profile.plain.median)}"
        + ("; other programs used the machine" if is_shared else "")
    )


def describe_pattern(pattern: Pattern) -> str:
    """Name a way to run the model; the runs as they are with all of their settings."""
    if not pattern.is_as_run:
        return pattern.name
    settings = f"{count_of(pattern.threads, 'thread')}, batch of {pattern.batch}"
    return f"{pattern.name}: {settings}, {pattern.layout}, {pattern.dtype}"


def describe_best_pattern(profile: Profile) -> str | None:
    """Say which way of those that were tried takes the fewest joules; None if none was."""
    patterns = profile.patterns
    if patterns is None:
        return None
    best = next((pattern for pattern in patterns.tried if pattern.name == patterns.best), None)
    if best is None:
        return f"unavailable ({sanitize(patterns.tried[0].energy.source, _MAX_SOURCE_CHARS)})"
    how = f"the energy is {best.energy.status}"
    if profile.system is not None and profile.system.is_shared:
        how += "; other programs used the machine: try again without them"
    if best.is_as_run:
        return f"{best.name}: no other way saves more than the spread of the runs ({how})"
    return f"{best.name}, {best.saving.value or 0:.1f} % less than {patterns.tried[0].name} ({how})"


def slowest_nodes(profile: Profile, count: int) -> list[tuple[NodeProfile, float]]:
    """Return the operations that took longest, the slowest first, with their shares in percent."""
    times = [node.time.median.value or 0.0 for node in profile.nodes]
    shared = zip(profile.nodes, percentages(times), strict=True)
    return sorted(shared, key=lambda pair: -(pair[0].time.median.value or 0.0))[:count]


def time_shares(nodes: Sequence[NodeDetails]) -> list[float]:
    """Return the shares of nodes in the time of all operations, in percent."""
    known = [node.time_share.value or 0.0 for node in nodes]
    # Operations in loops are not matched with nodes: what they take is the rest.
    return percentages([*known, max(0.0, 100 - sum(known))])[:-1]


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


# Labels of fields whose names leave open what they are of.
_LABELS = {
    "disk_read": "disk read (this process)",
    "disk_written": "disk written (this process)",
    "network_received": "network received (whole machine)",
    "network_sent": "network sent (whole machine)",
}


def describe_dtype(profile: Profile) -> str | None:
    """Compare runs in another dtype; None if there were none."""
    run = profile.dtype_run
    if run is None:
        return None
    differ = run.difference
    outputs = (
        f"outputs differ by up to {differ.value:.2g} % of the largest"
        if differ.value is not None
        else format_quantity(differ)
    )
    return f"{run.dtype}: {format_quantity(run.time.median)}, {outputs}"


def parts_of(record: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of a record or a dict with their labels; each item of a list by itself."""
    if isinstance(record, dict):
        yield from record.items()
        return
    for field in fields(record):
        name = _LABELS.get(field.name, field.name.replace("_", " "))
        value = getattr(record, field.name)
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
