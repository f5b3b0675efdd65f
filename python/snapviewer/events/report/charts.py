"""Lays out charts as shapes. Nothing overlaps and nothing is cut off: texts are measured first.

The title of a chart is not among the shapes: a page sets it as text, in as many lines as it needs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from snapviewer.events.document import Bar, BarChart, LineChart, Series
from snapviewer.events.report.colors import series_ink
from snapviewer.events.report.lettering import fitted, width_px
from snapviewer.events.report.scales import Scale, place_scale, sane, value_scale
from snapviewer.events.report.shapes import Dot, Drawing, Label, Line, Polyline, Rect, Shape

WIDTH_PX = 760.0
LABEL_PX = 13.0
SMALL_PX = 12.0
MOST_DOTS = 60

_GAP_PX = 8.0
_ROW_PX = 28.0
_BAR_PX = 18.0
_AXIS_PX = 24.0  # the height of the labels below an axis
_PLOT_PX = 250.0
_LEGEND_ROW_PX = 22.0
_LEGEND_LINE_PX = 20.0
_LEGEND_GAP_PX = 20.0


def draw(chart: BarChart | LineChart) -> Drawing:
    """Lay out a chart of either kind."""
    return draw_bars(chart) if isinstance(chart, BarChart) else draw_lines(chart)


def draw_bars(chart: BarChart) -> Drawing:
    """Lay out bars: the label to the left, the bar, and the note at its end."""
    if not chart.bars:
        return _nothing()
    labels = [fitted(bar.label, 0.34 * WIDTH_PX, LABEL_PX) for bar in chart.bars]
    left = max(width_px(label, LABEL_PX) for label in labels) + _GAP_PX
    note = max(width_px(fitted(bar.note, 130, LABEL_PX), LABEL_PX) for bar in chart.bars)
    right = WIDTH_PX - max(note + 1.5 * _GAP_PX, 40.0)
    scale = _bar_scale(max(_length(bar) for bar in chart.bars), right - left)
    bottom = len(chart.bars) * _ROW_PX + 4
    shapes: list[Shape] = []
    for mark in scale.marks:
        x = left + scale.share(mark.value) * (right - left)
        shapes.append(Line(x, 0, x, bottom, "axis" if mark.value == 0 else "grid"))
    for row, (bar, label) in enumerate(zip(chart.bars, labels, strict=True)):
        width = scale.share(_length(bar)) * (right - left)
        shapes.extend(_bar(bar, label, left, 4 + row * _ROW_PX, width))
    shapes.extend(_across(scale, left, right, bottom + 16))
    last = right + width_px(scale.marks[-1].label, SMALL_PX) / 2
    unit = fitted(chart.unit, right - left, SMALL_PX)
    if width_px(unit, SMALL_PX) <= WIDTH_PX - last - _GAP_PX:
        shapes.append(Label(WIDTH_PX, bottom + 16, unit, SMALL_PX, "end", "secondary"))
        return Drawing(WIDTH_PX, bottom + _AXIS_PX, tuple(shapes))
    # No room beside the numbers: below them.
    shapes.append(_centred(unit, left, right, bottom + 34))
    return Drawing(WIDTH_PX, bottom + _AXIS_PX + 18, tuple(shapes))


def _bar_scale(high: float, room_px: float) -> Scale:
    """Choose the axis of bars: as many marks as stand apart."""
    for most in (6, 5, 4, 3, 2):
        scale = value_scale(0, high, most=most)
        widest = max(width_px(mark.label, SMALL_PX) for mark in scale.marks)
        if (widest + 2 * _GAP_PX) * (len(scale.marks) - 1) <= room_px:
            break
    return scale


def _length(bar: Bar) -> float:
    return max(0.0, sane(bar.value))


def _bar(bar: Bar, label: str, left: float, top: float, width: float) -> Iterator[Shape]:
    base = top + _ROW_PX / 2 + 0.35 * LABEL_PX
    yield Label(left - _GAP_PX, base, label, LABEL_PX, "end", "text")
    if width > 0:
        # What is there can be seen, however small.
        yield Rect(left, top + (_ROW_PX - _BAR_PX) / 2, max(width, 1.0), _BAR_PX, bar.tone)
    beside, inside = WIDTH_PX - left - width - _GAP_PX, width - 2 * _GAP_PX
    note = fitted(bar.note, max(beside, inside), LABEL_PX)
    if width_px(note, LABEL_PX) <= beside:
        yield Label(left + width + _GAP_PX, base, note, LABEL_PX, "start", "text")
    else:
        yield Label(left + width - _GAP_PX, base, note, LABEL_PX, "end", "paper")


def draw_lines(chart: LineChart) -> Drawing:
    """Lay out lines over a common axis: unit and legend on top, the title of the axis below."""
    lines = [_sane_points(series) for series in chart.series]
    xs = [x for points in lines for x, _ in points]
    ys = [y for points in lines for _, y in points]
    if not xs:
        return _nothing()
    y_scale = line_scale(ys)
    labels_px = max(width_px(mark.label, SMALL_PX) for mark in y_scale.marks)
    left = labels_px + _GAP_PX
    # Half of the last label stands to the right of the axis.
    right = WIDTH_PX - max(12.0, _widest(min(xs), max(xs)) / 2)
    legend = list(_legend(chart.series)) if len(chart.series) > 1 else []
    head = max((shape.y_px for shape in legend if isinstance(shape, Label)), default=0.0) + 8
    unit = fitted(chart.unit, WIDTH_PX / 2, SMALL_PX)
    top = head + (24 if unit else 6)
    bottom = top + _PLOT_PX

    def has_room(step: float, label: str) -> bool:
        return step * (right - left) >= max(width_px(label, SMALL_PX) + 2 * _GAP_PX, 40)

    x_scale = place_scale(
        min(xs), max(xs), are_whole=all(x == int(x) for x in xs), has_room=has_room
    )
    shapes: list[Shape] = [*legend]
    if unit:
        shapes.append(Label(0, head + 8, unit, SMALL_PX, "start", "secondary"))
    for mark in y_scale.marks:
        y = bottom - y_scale.share(mark.value) * _PLOT_PX
        ink = "axis" if mark.value == 0 or y == bottom else "grid"
        shapes.append(Line(left, y, right, y, ink))
        base = y + 0.35 * SMALL_PX
        shapes.append(Label(labels_px, base, mark.label, SMALL_PX, "end", "secondary"))
    for mark in x_scale.marks:
        x = left + x_scale.share(mark.value) * (right - left)
        shapes.append(Line(x, bottom, x, bottom + 4, "axis"))
    shapes.extend(_across(x_scale, left, right, bottom + 19))
    for index, (series, points) in enumerate(zip(chart.series, lines, strict=True)):
        places = tuple(
            (
                left + x_scale.share(x) * (right - left),
                bottom - y_scale.share(y) * _PLOT_PX,
            )
            for x, y in points
        )
        shapes.extend(_line(series, places, index))
    shapes.append(_centred(chart.x_title, left, right, bottom + 40))
    return Drawing(WIDTH_PX, bottom + 48, tuple(shapes))


def line_scale(ys: Sequence[float]) -> Scale:
    """Choose the axis of lines: it begins at zero, unless all values are far from it.

    >>> line_scale([3, 20]).low, line_scale([23.0, 23.9]).low, line_scale([-3, 5]).low
    (0.0, 23.0, -4.0)
    """
    low, high = min(ys), max(ys)
    is_far = abs(low + high) > 3 * (high - low)
    # A thousandth is enough to look at: below it, an axis would show noise.
    if low * high > 0 and is_far and high - low > 1e-3 * max(abs(low), abs(high)):
        return value_scale(low, high)
    return value_scale(min(low, 0.0), max(high, 0.0))


def _sane_points(series: Series) -> tuple[tuple[float, float], ...]:
    """Return the points that are numbers; a log may hold others."""
    return tuple(
        (sane(x), sane(y)) for x, y in series.points if math.isfinite(x) and math.isfinite(y)
    )


def _line(
    series: Series, places: tuple[tuple[float, float], ...], index: int
) -> Iterator[Polyline | Dot]:
    ink = series_ink(index)
    if len(places) > 1:
        yield Polyline(places, ink, is_dashed=series.is_trend)
    # A single point is no line: it is a dot, whatever it is.
    if len(places) == 1 or (len(places) <= MOST_DOTS and not series.is_trend):
        yield from (Dot(x, y, 3.0, ink) for x, y in places)


def _legend(all_series: Sequence[Series]) -> Iterator[Polyline | Dot | Label]:
    """Set the names of the series in rows, each after a piece of its line."""
    x, row = 0.0, 0
    for index, series in enumerate(all_series):
        name = fitted(series.name, 0.45 * WIDTH_PX, LABEL_PX)
        wide = _LEGEND_LINE_PX + 6 + width_px(name, LABEL_PX)
        if x > 0 and x + wide > WIDTH_PX:
            x, row = 0.0, row + 1
        base = 14 + row * _LEGEND_ROW_PX
        middle = base - 0.35 * LABEL_PX
        sample = ((x, middle), (x + _LEGEND_LINE_PX, middle))
        yield Polyline(sample, series_ink(index), is_dashed=series.is_trend)
        if not series.is_trend and len(series.points) <= MOST_DOTS:
            yield Dot(x + _LEGEND_LINE_PX / 2, middle, 3.0, series_ink(index))
        yield Label(x + _LEGEND_LINE_PX + 6, base, name, LABEL_PX, "start", "text")
        x += wide + _LEGEND_GAP_PX


def _across(scale: Scale, left: float, right: float, base: float) -> Iterator[Label]:
    """Set the labels of an axis that runs to the right."""
    for mark in scale.marks:
        x = left + scale.share(mark.value) * (right - left)
        yield Label(x, base, mark.label, SMALL_PX, "middle", "secondary")


def _centred(text: str, left: float, right: float, base: float) -> Label:
    shown = fitted(text, right - left, SMALL_PX)
    return Label((left + right) / 2, base, shown, SMALL_PX, "middle", "secondary")


def _widest(low: float, high: float) -> float:
    """Estimate the widest label of an axis between two numbers."""
    always = place_scale(low, high, are_whole=False, has_room=lambda step, label: step > 0.1)
    return max((width_px(mark.label, SMALL_PX) for mark in always.marks), default=0.0)


def _nothing() -> Drawing:
    label = Label(WIDTH_PX / 2, 28, "–", LABEL_PX, "middle", "secondary")
    return Drawing(WIDTH_PX, 44, (label,))
