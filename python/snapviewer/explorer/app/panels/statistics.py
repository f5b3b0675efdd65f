"""What was measured: a histogram, moments, oddities, and what fewer bits or values would cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from snapviewer.explorer.formats import format_shape
from snapviewer.explorer.measuring import Measured, Measurement, Summary
from snapviewer.text.units import count_of

from .parts import (
    ACCENT,
    BAD,
    GOOD,
    MOST_ROWS,
    QUIET,
    WARNING,
    Column,
    facts,
    percent,
    rows_of,
    section,
    sentence,
    shown,
    stacked,
    title,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snapviewer._core import Quality, Stats

_STEPS = " ▁▂▃▄▅▆▇█"
_ROWS = 6
_SPARKS = 16
_GOOD_SQNR_DB = 30.0
_POOR_SQNR_DB = 15.0


def content(measurement: Measurement, width: int) -> RenderableType:
    """Show what was measured of a tensor, or of the tensors of a module."""
    head = title(measurement.path or "the whole model", "measured", width)
    if len(measurement.tensors) == 1:
        return stacked(head, *_single(measurement.tensors[0], width))
    return stacked(head, *_several(measurement, width))


def _single(measured: Measured, width: int) -> list[RenderableType | None]:
    stats = measured.stats
    if stats is None:
        return [sentence(f"Not measured: {measured.reason}.", style=WARNING)]
    return [
        section("Distribution", histogram(stats, width)),
        section("Elements", _elements(stats)),
        section(
            "In fewer bits", None if measured.quality is None else _bits(measured.quality, width)
        ),
        section(
            "With fewer values", None if measured.quality is None else _pruned(measured, width)
        ),
    ]


def _several(measurement: Measurement, width: int) -> list[RenderableType | None]:
    tensors, summary = measurement.tensors, measurement.summary
    if not tensors:
        return [sentence("There are no tensors here.")]
    odd = [each for each in tensors if each.stats and (each.stats.nan or each.stats.inf)]
    missing = [each for each in tensors if each.stats is None]
    start = len(measurement.path) + 1 if measurement.path else 0
    return [
        section(
            "All parameters" if measurement.is_of_parameters else "All buffers", _summary(summary)
        ),
        section("Not finite", _named(odd, start, width, BAD)),
        section("Tensors", _table(tensors, start, width)),
        section("Not measured", _named(missing, start, width, WARNING)),
    ]


def number(value: float | None) -> str:
    """Say a measured number with four digits.

    >>> number(0.123456), number(-1234.5), number(1e-9), number(None), number(0.0)
    ('0.1235', '−1234', '1.000e−09', '–', '0')
    """
    if value is None:
        return "–"
    if value == 0:
        return "0"
    text = f"{value:.4g}" if 1e-4 <= abs(value) < 1e6 else f"{value:.3e}"
    return text.replace("-", "−")


def histogram(stats: Stats, width: int) -> Text | None:
    """Draw how many elements there are of which size, with the ends named below."""
    if stats.edges is None or not any(stats.histogram):
        return None
    cells = next((size for size in (64, 32, 16) if size <= width - 2), 8)
    counts = gathered(stats.histogram, cells)
    cells = len(counts)
    most = max(counts)
    text = Text(no_wrap=True)
    for row in reversed(range(_ROWS)):
        line = "".join(_block(count, most, row) for count in counts)
        text.append(line.rstrip() + "\n", style=ACCENT)
    low, high = stats.edges
    ends = [number(low), number(high)]
    axis = ends[0] + " " * max(1, cells - len(ends[0]) - len(ends[1])) + ends[1]
    zero = round(cells * -low / (high - low)) if low < 0 < high else -1
    if 0 <= zero < len(axis) and not axis[max(0, zero - 1) : zero + 2].strip():
        axis = f"{axis[:zero]}0{axis[zero + 1 :]}"
    return text.append(axis, style=QUIET)


def _block(count: int, most: int, row: int) -> str:
    """Return the part of a column that is in a row; what is not nothing is seen."""
    eighths = max(1, round(8 * _ROWS * count / most)) if count else 0
    return _STEPS[min(8, max(0, eighths - 8 * row))]


def gathered(counts: Sequence[int], most: int) -> list[int]:
    """Put neighbouring bins together until there are no more than so many.

    >>> gathered([1, 2, 3, 4, 5], 3), gathered([1, 2], 3)
    ([3, 7, 5], [1, 2])
    """
    size = -(-len(counts) // most)
    return [sum(counts[start : start + size]) for start in range(0, len(counts), size)]


def spark(stats: Stats) -> str:
    """Draw a histogram on one line."""
    counts = gathered(stats.histogram, _SPARKS)
    most = max(counts, default=0)
    return "".join(_STEPS[max(1, round(8 * count / most))] if count else " " for count in counts)


def _elements(stats: Stats) -> RenderableType | None:
    return facts(
        [
            ("mean", number(stats.mean)),
            ("std", number(stats.std)),
            ("min", number(stats.min)),
            ("max", number(stats.max)),
            *_oddities(stats),
            ("denormal", f"{stats.denormal:,}" if stats.denormal else None),
            ("norm", Text(f"L2 {number(stats.l2)}, L1 {number(stats.l1)}")),
            ("skewness", number(stats.skewness)),
            ("kurtosis", number(stats.kurtosis)),
            ("entropy", None if stats.entropy is None else f"{stats.entropy:.2f} bits"),
        ]
    )


def _oddities(stats: Stats | Summary) -> list[tuple[str, str | Text | None]]:
    zeros = Text(f"{stats.zeros:,}")
    if stats.zeros:
        zeros.append(f"  {percent(stats.zeros, stats.count)}", style=QUIET)
    return [
        ("zeros", zeros),
        ("NaN", _alarming(stats.nan, stats.count)),
        ("Inf", _alarming(stats.inf, stats.count)),
    ]


def _alarming(count: int, whole: int) -> Text:
    if not count:
        return Text("none")
    return Text(f"{count:,}  {percent(count, whole)}", style=f"bold {BAD}")


def _bits(quality: Quality, width: int) -> RenderableType | None:
    """Say what is left after storing in fewer bits: above 30 dB little is lost."""
    rows: list[Sequence[str | Text]] = [
        [each.format, _decibels(each.sqnr_db), _decibels(each.channel_sqnr_db)]
        for each in quality.round_trips
    ]
    columns = [Column("format"), Column("SQNR", "right"), Column("by channel", "right")]
    return rows_of(columns, rows, width)


def _decibels(value: float | None) -> Text:
    if value is None:
        return Text("–", style=QUIET)
    if math.isinf(value):
        return Text("exact", style=GOOD)
    is_good, is_poor = value >= _GOOD_SQNR_DB, value < _POOR_SQNR_DB
    return Text(f"{value:.1f} dB", style=GOOD if is_good else BAD if is_poor else WARNING)


def _pruned(measured: Measured, width: int) -> RenderableType | None:
    quality = measured.quality
    if quality is None or not quality.pruning:
        return None
    rows = [
        [f"{100 * point.share:.0f} %", number(point.threshold), f"{100 * point.lost:.2f} %"]
        for point in quality.pruning[::2]
    ]
    columns = [Column(name, "right") for name in ("set to 0", "below", "energy lost")]
    channels = quality.channels
    hint = None
    if channels is not None and channels.small:
        of = count_of(channels.count, "channel")
        hint = sentence(
            f"{channels.small:,} of {of} have less than a tenth of the median norm.", style=WARNING
        )
    return stacked(rows_of(columns, rows, width), hint)


def _summary(summary: Summary) -> RenderableType | None:
    return facts(
        [
            ("elements", f"{summary.count:,} in {count_of(summary.tensors, 'tensor')}"),
            ("mean", number(summary.mean)),
            ("std", number(summary.std)),
            ("min", number(summary.min)),
            ("max", number(summary.max)),
            *_oddities(summary),
        ]
    )


def _named(
    tensors: Sequence[Measured], start: int, width: int, style: str
) -> RenderableType | None:
    if not tensors:
        return None
    rows: list[Sequence[str | Text]] = []
    for each in tensors[:MOST_ROWS]:
        stats = each.stats
        why = each.reason if stats is None else f"{stats.nan:,} NaN, {stats.inf:,} Inf"
        rows.append([Text(shown(each.entry.path[start:])), Text(shown(why), style=style)])
    return rows_of(
        [Column("name", shrinks=True), Column("", shrinks=True)], rows, width, total=len(tensors)
    )


def _table(tensors: Sequence[Measured], start: int, width: int) -> RenderableType | None:
    rows: list[Sequence[str | Text]] = []
    known = [(each, each.stats) for each in tensors if each.stats is not None]
    for each, stats in known[:MOST_ROWS]:
        cells: dict[str, str | Text] = {
            "name": Text(shown(each.entry.path[start:])),
            "shape": format_shape(each.entry.shape),
            "mean": number(stats.mean),
            "std": number(stats.std),
            "min": number(stats.min),
            "max": number(stats.max),
            "zeros": percent(stats.zeros, stats.count),
            "": Text(spark(stats), style=ACCENT),
        }
        rows.append([cells[name] for name in _columns(width)])
    columns = [
        Column(name, "left" if name in ("name", "") else "right", shrinks=name == "name")
        for name in _columns(width)
    ]
    return rows_of(columns, rows, width, total=len(known))


def _columns(width: int) -> tuple[str, ...]:
    if width >= 100:
        return ("name", "shape", "mean", "std", "min", "max", "zeros", "")
    if width >= 76:
        return ("name", "mean", "std", "zeros", "")
    if width >= 56:
        return ("name", "mean", "std", "")
    return ("name", "mean", "std")
