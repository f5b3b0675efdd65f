"""Measured statistics: a histogram, moments, NaNs, and the cost of quantizing or pruning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from snapviewer.explorer.formats import format_shape
from snapviewer.explorer.measuring import MeasuredTensor, Measurement, StatsSummary
from snapviewer.text.units import count_of

from . import ui

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snapviewer._core import Quality, Stats

_STEPS = " ▁▂▃▄▅▆▇█"
_ROWS = 6
_SPARKS = 16
_GOOD_SQNR_DB = 30.0
_POOR_SQNR_DB = 15.0


def content(measurement: Measurement, width: int) -> RenderableType:
    """Show the statistics of a tensor, or of the tensors of a module."""
    head = ui.title(measurement.path or "the whole model", "measured", width)
    if len(measurement.tensors) == 1:
        return ui.stack(head, *_single(measurement.tensors[0], width))
    return ui.stack(head, *_several(measurement, width))


def _single(measured: MeasuredTensor, width: int) -> list[RenderableType | None]:
    stats = measured.stats
    if stats is None:
        return [ui.sentence(f"Not measured: {measured.reason}.", style=ui.WARNING)]
    return [
        ui.section("Distribution", histogram(stats, width)),
        ui.section("Elements", _elements(stats)),
        ui.section(
            "Quantization", None if measured.quality is None else _bits(measured.quality, width)
        ),
        ui.section("Pruning", None if measured.quality is None else _pruned(measured, width)),
    ]


def _several(measurement: Measurement, width: int) -> list[RenderableType | None]:
    tensors, summary = measurement.tensors, measurement.summary
    if not tensors:
        return [ui.sentence("No tensors.")]
    odd = [each for each in tensors if each.stats and (each.stats.nan or each.stats.inf)]
    missing = [each for each in tensors if each.stats is None]
    start = len(measurement.path) + 1 if measurement.path else 0
    return [
        ui.section(
            "All parameters" if measurement.is_of_parameters else "All buffers", _summary(summary)
        ),
        ui.section("NaN or Inf", _named(odd, start, width, ui.BAD)),
        ui.section("Tensors", _table(tensors, start, width)),
        ui.section("Not measured", _named(missing, start, width, ui.WARNING)),
    ]


def number(value: float | None) -> str:
    """Format a number with four significant digits.

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
    """Draw a histogram of the elements, with its ends labelled below."""
    if stats.edges is None or not any(stats.histogram):
        return None
    cells = next((size for size in (64, 32, 16) if size <= width - 2), 8)
    counts = gathered(stats.histogram, cells)
    cells = len(counts)
    most = max(counts)
    text = Text(no_wrap=True)
    for row in reversed(range(_ROWS)):
        line = "".join(_block(count, most, row) for count in counts)
        text.append(line.rstrip() + "\n", style=ui.ACCENT)
    low, high = stats.edges
    ends = [number(low), number(high)]
    axis = ends[0] + " " * max(1, cells - len(ends[0]) - len(ends[1])) + ends[1]
    zero = round(cells * -low / (high - low)) if low < 0 < high else -1
    if 0 <= zero < len(axis) and not axis[max(0, zero - 1) : zero + 2].strip():
        axis = f"{axis[:zero]}0{axis[zero + 1 :]}"
    return text.append(axis, style=ui.QUIET)


def _block(count: int, most: int, row: int) -> str:
    """Return the part of a column that is in a row; at least an eighth if not zero."""
    eighths = max(1, round(8 * _ROWS * count / most)) if count else 0
    return _STEPS[min(8, max(0, eighths - 8 * row))]


def gathered(counts: Sequence[int], max_bins: int) -> list[int]:
    """Merge neighbouring bins until there are at most so many.

    >>> gathered([1, 2, 3, 4, 5], 3), gathered([1, 2], 3)
    ([3, 7, 5], [1, 2])
    """
    size = -(-len(counts) // max_bins)
    return [sum(counts[start : start + size]) for start in range(0, len(counts), size)]


def spark(stats: Stats) -> str:
    """Draw a histogram on one line."""
    counts = gathered(stats.histogram, _SPARKS)
    most = max(counts, default=0)
    return "".join(_STEPS[max(1, round(8 * count / most))] if count else " " for count in counts)


def _elements(stats: Stats) -> RenderableType | None:
    return ui.key_values(
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


def _oddities(stats: Stats | StatsSummary) -> list[tuple[str, str | Text | None]]:
    zeros = Text(f"{stats.zeros:,}")
    if stats.zeros:
        zeros.append(f"  {ui.percent(stats.zeros, stats.count)}", style=ui.QUIET)
    return [
        ("zeros", zeros),
        ("NaN", _alarming(stats.nan, stats.count)),
        ("Inf", _alarming(stats.inf, stats.count)),
    ]


def _alarming(count: int, whole: int) -> Text:
    if not count:
        return Text("none")
    return Text(f"{count:,}  {ui.percent(count, whole)}", style=f"bold {ui.BAD}")


def _bits(quality: Quality, width: int) -> RenderableType | None:
    """Return the signal-to-noise ratio of smaller formats: above 30 dB little is lost."""
    rows: list[Sequence[str | Text]] = [
        [each.format, _decibels(each.sqnr_db), _decibels(each.channel_sqnr_db)]
        for each in quality.round_trips
    ]
    columns = [ui.Column("format"), ui.Column("SQNR", "right"), ui.Column("by channel", "right")]
    return ui.table(columns, rows, width)


def _decibels(value: float | None) -> Text:
    if value is None:
        return Text("–", style=ui.QUIET)
    if math.isinf(value):
        return Text("exact", style=ui.GOOD)
    is_good, is_poor = value >= _GOOD_SQNR_DB, value < _POOR_SQNR_DB
    return Text(f"{value:.1f} dB", style=ui.GOOD if is_good else ui.BAD if is_poor else ui.WARNING)


def _pruned(measured: MeasuredTensor, width: int) -> RenderableType | None:
    quality = measured.quality
    if quality is None or not quality.pruning:
        return None
    rows = [
        [f"{100 * point.share:.0f} %", number(point.threshold), f"{100 * point.lost:.2f} %"]
        for point in quality.pruning[::2]
    ]
    columns = [ui.Column(name, "right") for name in ("set to 0", "below", "energy lost")]
    channels = quality.channels
    hint = None
    if channels is not None and channels.small:
        of = count_of(channels.count, "channel")
        hint = ui.sentence(
            f"{channels.small:,} of {of} have less than a tenth of the median norm.",
            style=ui.WARNING,
        )
    return ui.stack(ui.table(columns, rows, width), hint)


def _summary(summary: StatsSummary) -> RenderableType | None:
    return ui.key_values(
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
    tensors: Sequence[MeasuredTensor], start: int, width: int, style: str
) -> RenderableType | None:
    if not tensors:
        return None
    rows: list[Sequence[str | Text]] = []
    for each in tensors[: ui.MAX_ROWS]:
        stats = each.stats
        why = each.reason if stats is None else f"{stats.nan:,} NaN, {stats.inf:,} Inf"
        rows.append(
            [Text(ui.short_name(each.entry.path[start:])), Text(ui.short_name(why), style=style)]
        )
    return ui.table(
        [ui.Column("name", shrinks=True), ui.Column("", shrinks=True)],
        rows,
        width,
        total=len(tensors),
    )


def _table(tensors: Sequence[MeasuredTensor], start: int, width: int) -> RenderableType | None:
    rows: list[Sequence[str | Text]] = []
    known = [(each, each.stats) for each in tensors if each.stats is not None]
    for each, stats in known[: ui.MAX_ROWS]:
        cells: dict[str, str | Text] = {
            "name": Text(ui.short_name(each.entry.path[start:])),
            "shape": format_shape(each.entry.shape),
            "mean": number(stats.mean),
            "std": number(stats.std),
            "min": number(stats.min),
            "max": number(stats.max),
            "zeros": ui.percent(stats.zeros, stats.count),
            "": Text(spark(stats), style=ui.ACCENT),
        }
        rows.append([cells[name] for name in _columns(width)])
    columns = [
        ui.Column(name, "left" if name in ("name", "") else "right", shrinks=name == "name")
        for name in _columns(width)
    ]
    return ui.table(columns, rows, width, total=len(known))


def _columns(width: int) -> tuple[str, ...]:
    if width >= 100:
        return ("name", "shape", "mean", "std", "min", "max", "zeros", "")
    if width >= 76:
        return ("name", "mean", "std", "zeros", "")
    if width >= 56:
        return ("name", "mean", "std", "")
    return ("name", "mean", "std")
