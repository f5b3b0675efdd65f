"""Lays out charts as shapes, for SVG and PDF. Labels are measured first, so that none overlap.

The title of a chart is not among the shapes: the page sets it as text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from snapviewer.report.blocks import Bar, BarChart, LineChart, Series
from snapviewer.report.ticks import Scale, drawable, number_scale, number_ticks
from snapviewer.report.writers.colors import series_ink
from snapviewer.report.writers.lettering import fitted, width_px
from snapviewer.report.writers.shapes import Dot, Drawing, Label, Line, Polyline, Rect, Shape

WIDTH_PX = 760.0
SLIM_PX = 360.0  # a phone
LABEL_PX = 13.0
SMALL_PX = 12.0
MAX_DOTS = 60

_GAP_PX = 8.0
_ROW_PX = 28.0
_LOW_ROW_PX = 21.0  # so that forty bars fit on a page
_FEW_BARS = 16
_AXIS_PX = 24.0  # the height of the labels below an axis
_PLOT_PX = 250.0
_LEGEND_ROW_PX = 22.0
_LEGEND_LINE_PX = 20.0
_LEGEND_GAP_PX = 20.0


def draw(chart: BarChart | LineChart, *, width_px: float = WIDTH_PX) -> Drawing:
    """Lay out a chart of either kind.

    Args:
        chart: Bars or lines.
        width_px: How wide the frame is, 320 pixels or more.
    """
    return _bars(chart, width_px) if isinstance(chart, BarChart) else _lines(chart, width_px)


def _bars(chart: BarChart, frame_px: float) -> Drawing:
    """Lay out bars: the label to the left, the bar, and the note at its end."""
    if not chart.bars:
        return _nothing(frame_px)
    labels = [fitted(bar.label, 0.33 * frame_px, LABEL_PX) for bar in chart.bars]
    left = max(width_px(label, LABEL_PX) for label in labels) + _GAP_PX
    # Room for usual notes beside the longest bar; longer ones go into it.
    note = max(width_px(fitted(bar.note, 110, LABEL_PX), LABEL_PX) for bar in chart.bars)
    high = max(_length(bar) for bar in chart.bars)
    last = _label_px(number_scale(0, high).marks[-1].label) / 2
    right = frame_px - max(note + 1.5 * _GAP_PX, last, 40.0)
    scale = _bar_scale(high, right - left)
    row_px = _ROW_PX if len(chart.bars) <= _FEW_BARS else _LOW_ROW_PX
    bottom = len(chart.bars) * row_px + 4
    shapes: list[Shape] = []
    for mark in scale.marks:
        x = left + scale.share(mark.value) * (right - left)
        shapes.append(Line(x, 0, x, bottom, "axis" if mark.value == 0 else "grid"))
    for row, (bar, label) in enumerate(zip(chart.bars, labels, strict=True)):
        width = scale.share(_length(bar)) * (right - left)
        middle = 4 + (row + 0.5) * row_px
        shapes.append(Label(left - _GAP_PX, _base(middle), label, LABEL_PX, "end", "text"))
        if width > 0:
            # Visible, however small.
            top, height = middle - 0.32 * row_px, 0.64 * row_px
            shapes.append(Rect(left, top, max(width, 1.0), height, bar.tone))
        shapes.append(_note(bar, left, left + width, frame_px, _base(middle)))
    shapes.extend(_across(scale, left, right, bottom + 16))
    unit = fitted(chart.unit, right - left, SMALL_PX)
    if width_px(unit, SMALL_PX) <= frame_px - right - last - _GAP_PX:
        shapes.append(Label(frame_px, bottom + 16, unit, SMALL_PX, "end", "secondary"))
        return Drawing(frame_px, bottom + _AXIS_PX, tuple(shapes))
    # No room beside the numbers: below them.
    shapes.append(_centred(unit, left, right, bottom + 34))
    return Drawing(frame_px, bottom + _AXIS_PX + 18, tuple(shapes))


def _bar_scale(high: float, room_px: float) -> Scale:
    """Choose the axis of bars, with as many ticks as there is room for."""
    for most in (6, 5, 4, 3, 2, 1):
        scale = number_scale(0, high, max_steps=most)
        widest = max(_label_px(mark.label) for mark in scale.marks)
        if (widest + 2 * _GAP_PX) * (len(scale.marks) - 1) <= room_px:
            break
    return scale


def _length(bar: Bar) -> float:
    return max(0.0, drawable(bar.value))


def _note(bar: Bar, start: float, end: float, frame_px: float, base: float) -> Label:
    """Place the note of a bar beside its end, or inside if there is more room."""
    beside, inside = frame_px - end - _GAP_PX, end - start - 2 * _GAP_PX
    note = fitted(bar.note, max(beside, inside), LABEL_PX)
    if width_px(note, LABEL_PX) <= beside:
        return Label(end + _GAP_PX, base, note, LABEL_PX, "start", "text")
    return Label(end - _GAP_PX, base, note, LABEL_PX, "end", "paper")


def _base(middle: float) -> float:
    """Return the baseline of text that is centred at a height."""
    return middle + 0.35 * LABEL_PX


def _lines(chart: LineChart, frame_px: float) -> Drawing:
    """Lay out lines over a common axis: unit and legend on top, the title of the axis below."""
    lines = [finite_points(series) for series in chart.series]
    xs = [x for points in lines for x, _ in points]
    ys = [y for points in lines for _, y in points]
    if not xs:
        return _nothing(frame_px)
    y_scale = line_scale(ys)
    labels_px = max(_label_px(mark.label) for mark in y_scale.marks)
    left = labels_px + _GAP_PX
    low, high = min(xs), max(xs)
    low, high = (low, high) if low < high else (low - 0.5, high + 0.5)
    # Half of the last label stands to the right of the axis.
    right = frame_px - max(12.0, *(_label_px(f"{x:,.0f}") / 2 for x in (low, high)))
    legend = list(_legend(chart.series, frame_px)) if len(chart.series) > 1 else []
    head = max((shape.y_px + 18 for shape in legend if isinstance(shape, Label)), default=4.0)
    unit = fitted(chart.unit, frame_px / 2, SMALL_PX)
    top = head + (24 if unit else 6)
    bottom = top + _PLOT_PX

    are_whole = all(x == int(x) for x in xs)
    x_ticks = number_ticks(low, high, right - left, _label_px, are_whole=are_whole)
    x_scale = Scale(low, high, x_ticks.marks)
    shapes: list[Shape] = [*legend]
    if unit:
        shapes.append(Label(0, head + 8, unit, SMALL_PX, "start", "secondary"))
    for mark in y_scale.marks:
        y = bottom - y_scale.share(mark.value) * _PLOT_PX
        ink = "axis" if mark.value == 0 or y == bottom else "grid"
        shapes.append(Line(left, y, right, y, ink))
        shapes.append(Label(labels_px, _base(y), mark.label, SMALL_PX, "end", "secondary"))
    for mark in x_scale.marks:
        x = left + x_scale.share(mark.value) * (right - left)
        shapes.append(Line(x, bottom, x, bottom + 4, "axis"))
    shapes.extend(_across(x_scale, left, right, bottom + 19))
    drawn: list[Polyline | Dot] = []
    for index, (series, points) in enumerate(zip(chart.series, lines, strict=True)):
        places = tuple(
            (
                left + x_scale.share(x) * (right - left),
                bottom - y_scale.share(y) * _PLOT_PX,
            )
            for x, y in points
        )
        drawn.extend(_line(series, places, index))
    # Dots come last, so that a trend does not cross out what was measured.
    shapes.extend(sorted(drawn, key=lambda shape: isinstance(shape, Dot)))
    shapes.append(_centred(chart.x_title, left, right, bottom + 40))
    return Drawing(frame_px, bottom + 48, tuple(shapes))


def line_scale(ys: Sequence[float]) -> Scale:
    """Choose the axis of lines: it begins at zero, unless all values are far from it.

    >>> line_scale([3, 20]).low, line_scale([23.0, 23.9]).low, line_scale([-3, 5]).low
    (0, 23.0, -4)
    """
    low, high = min(ys), max(ys)
    is_far = abs(low + high) > 3 * (high - low)
    # A range below a thousandth would show noise.
    if low * high > 0 and is_far and high - low > 1e-3 * max(abs(low), abs(high)):
        return number_scale(low, high)
    return number_scale(min(low, 0.0), max(high, 0.0))


def finite_points(series: Series) -> tuple[tuple[float, float], ...]:
    """Return the points whose coordinates are finite."""
    return tuple(
        (drawable(x), drawable(y))
        for x, y in series.points
        if math.isfinite(x) and math.isfinite(y)
    )


def _line(
    series: Series, places: tuple[tuple[float, float], ...], index: int
) -> Iterator[Polyline | Dot]:
    ink = series_ink(index)
    if len(places) > 1:
        yield Polyline(places, ink, is_dashed=series.is_trend)
    # A single point makes no line, so a trend has a dot, too.
    if len(places) == 1 or (len(places) <= MAX_DOTS and not series.is_trend):
        yield from (Dot(x, y, 3.0, ink) for x, y in places)


def _legend(all_series: Sequence[Series], frame_px: float) -> Iterator[Polyline | Dot | Label]:
    """Place the names of the series in rows, each after a piece of its line."""
    x, row = 0.0, 0
    for index, series in enumerate(all_series):
        name = fitted(series.name, 0.45 * frame_px, LABEL_PX)
        wide = _LEGEND_LINE_PX + 6 + width_px(name, LABEL_PX)
        if x > 0 and x + wide > frame_px:
            x, row = 0.0, row + 1
        base = 14 + row * _LEGEND_ROW_PX
        middle = base - 0.35 * LABEL_PX
        sample = ((x, middle), (x + _LEGEND_LINE_PX, middle))
        yield Polyline(sample, series_ink(index), is_dashed=series.is_trend)
        if not series.is_trend and len(series.points) <= MAX_DOTS:
            yield Dot(x + _LEGEND_LINE_PX / 2, middle, 3.0, series_ink(index))
        yield Label(x + _LEGEND_LINE_PX + 6, base, name, LABEL_PX, "start", "text")
        x += wide + _LEGEND_GAP_PX


def _label_px(label: str) -> float:
    return width_px(label, SMALL_PX)


def _across(scale: Scale, left: float, right: float, base: float) -> Iterator[Label]:
    """Place the labels of a horizontal axis."""
    for mark in scale.marks:
        x = left + scale.share(mark.value) * (right - left)
        yield Label(x, base, mark.label, SMALL_PX, "middle", "secondary")


def _centred(text: str, left: float, right: float, base: float) -> Label:
    shown = fitted(text, right - left, SMALL_PX)
    return Label((left + right) / 2, base, shown, SMALL_PX, "middle", "secondary")


def _nothing(frame_px: float) -> Drawing:
    label = Label(frame_px / 2, 28, "–", LABEL_PX, "middle", "secondary")
    return Drawing(frame_px, 44, (label,))
