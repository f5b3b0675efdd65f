"""Charts as Mermaid's `xychart-beta`, in fences that GitHub and many editors draw.

Such a chart has no gaps, legends or uneven distances: lines that do not begin and end together get
a chart each, names of series stand below, and points at uneven distances are interpolated.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TypeAlias

from snapviewer.report.blocks import BarChart, LineChart, Series
from snapviewer.report.ticks import drawable, number_scale
from snapviewer.report.writers.charts import finite_points, line_scale
from snapviewer.report.writers.colors import SERIES_HEX
from snapviewer.report.writers.lettering import fitted
from snapviewer.text.sanitize import sanitize

MAX_POINTS = 60
_MAX_NAMED = 12  # points whose x are labels

# Mermaid's first default colour is hardly visible on white.
_COLORS = '"themeVariables": {"xyChart": {"plotColorPalette": "' + ", ".join(SERIES_HEX) + '"}}'

_KEPT = frozenset(" .,:/-_+()%=…'×–°、。，：；（）")
_SIMILAR = str.maketrans({'"': "'", "`": "'", "[": "(", "]": ")", "{": "(", "}": ")", "−": "-"})

Points: TypeAlias = tuple[tuple[float, float], ...]


def bar_fence(chart: BarChart) -> str:
    """Render bars as a Mermaid fence."""
    labels = _distinct([fitted(bar.label, 220, 13) for bar in chart.bars])
    values = [max(0.0, drawable(bar.value)) for bar in chart.bars]
    if not values:
        return ""
    scale = number_scale(0, max(values))
    return _fence(
        chart.title,
        f"x-axis [{', '.join(labels)}]",
        f"y-axis {_quoted(chart.unit)} {_number(scale.low)} --> {_number(scale.high)}",
        [f"bar [{', '.join(map(_number, values))}]"],
        bar_count=len(values),
    )


def line_fences(chart: LineChart, names: Sequence[str]) -> str:
    """Render lines as one Mermaid fence, or one each if they do not begin and end together.

    Args:
        chart: The lines.
        names: The names of the series, in Markdown.
    """
    lines = [
        (series, points, name)
        for series, name in zip(chart.series, names, strict=True)
        if (points := tuple(sorted(finite_points(series))))
    ]
    if not lines:
        return ""
    starts = {points[0][0] for _, points, _ in lines}
    ends = {points[-1][0] for _, points, _ in lines}
    if len(starts) == len(ends) == 1:
        fence = _line_fence(chart, chart.title, [(series, points) for series, points, _ in lines])
        legend = " · ".join(f"{index}. {name}" for index, (*_, name) in enumerate(lines, start=1))
        # The number is escaped: it begins a paragraph, not a list.
        return f"{fence}\n\n{legend.replace('.', chr(92) + '.', 1)}" if len(lines) > 1 else fence
    return "\n\n".join(
        _line_fence(chart, f"{chart.title}: {series.name}", [(series, points)])
        for series, points, _ in lines
    )


def _line_fence(chart: LineChart, title: str, lines: Sequence[tuple[Series, Points]]) -> str:
    xs = sorted({x for _, points in lines for x, _ in points})
    places = _places(xs)
    values = [
        [_interpolated(points, places, index, series.is_trend) for index in range(len(places))]
        for series, points in lines
    ]
    scale = line_scale([value for row in values for value in row])
    if len(places) <= _MAX_NAMED:
        span = f"[{', '.join(_distinct([_number(x) for x in places]))}]"
    else:
        span = f"{_number(places[0])} --> {_number(places[-1])}"
    return _fence(
        title,
        f"x-axis {_quoted(chart.x_title)} {span}",
        f"y-axis {_quoted(chart.unit)} {_number(scale.low)} --> {_number(scale.high)}",
        [f"line [{', '.join(map(_number, row))}]" for row in values],
    )


def _places(xs: Sequence[float]) -> list[float]:
    """Return evenly spaced places from the first to the last x: the xs themselves if they are."""
    low, high = xs[0], xs[-1]
    if low == high:
        return [low]
    step = (high - low) / (len(xs) - 1)
    is_even = all(abs(x - low - index * step) <= 0.01 * step for index, x in enumerate(xs))
    most = len(xs) if is_even and len(xs) <= MAX_POINTS else MAX_POINTS
    count = next(count for count in range(most, 1, -1) if count <= 3 or _reached(low, high, count))
    return [low + (high - low) * index / (count - 1) for index in range(count)]


def _reached(low: float, high: float, count: int) -> bool:
    """Return whether Mermaid, which adds up the steps of an axis, counts the same points."""
    step = (high - low) / (count - 1)
    place, counted = low, 0
    while place <= high:
        place, counted = place + step, counted + 1
    return counted == count


def _interpolated(points: Points, places: Sequence[float], index: int, is_trend: bool) -> float:
    """Interpolate a line at a place; of several points nearby, take the highest: peaks matter."""
    place = places[index]
    reach = (places[1] - places[0]) / 2 if len(places) > 1 else 0.0
    xs = [x for x, _ in points]
    near = points[bisect_left(xs, place - reach) : bisect_right(xs, place + reach)]
    if near and not is_trend:
        return max(y for _, y in near)
    after = min(max(bisect_left(xs, place), 1), len(xs) - 1)
    if len(xs) == 1:
        return points[0][1]
    (x1, y1), (x2, y2) = points[after - 1], points[after]
    return y2 if x1 == x2 else y1 + (y2 - y1) * (min(max(place, x1), x2) - x1) / (x2 - x1)


def _fence(title: str, x_axis: str, y_axis: str, data: Sequence[str], *, bar_count: int = 0) -> str:
    height_px = 90 + 34 * bar_count if bar_count else 360
    lines = [
        f'%%{{init: {{"xyChart": {{"width": 760, "height": {height_px}}}, {_COLORS}}}}}%%',
        "xychart-beta horizontal" if bar_count else "xychart-beta",
        *(f"    {line}" for line in (f"title {_quoted(title)}", x_axis, y_axis, *data)),
    ]
    return "\n".join(["```mermaid", *lines, "```"])


def _distinct(labels: Sequence[str]) -> list[str]:
    """Quote labels, and number equal ones: Mermaid would draw them as one.

    >>> _distinct(["a", "b", "a"])
    ['"a"', '"b"', '"a (2)"']
    """
    quoted: list[str] = []
    for label in map(_quoted, labels):
        number, distinct = 1, label
        while distinct in quoted:
            number += 1
            distinct = f'{label[:-1]} ({number})"'
        quoted.append(distinct)
    return quoted


def _quoted(text: str) -> str:
    """Quote a text: letters, digits and harmless signs, and never empty.

    >>> print(_quoted('a "b" %%{init}%%'), _quoted(""))
    "a 'b' %(init)%" "–"
    """
    similar = sanitize(text, 120, strip=False).translate(_SIMILAR)
    kept = "".join(c if c.isalnum() or c in _KEPT else " " for c in similar)
    while "%%" in kept or "--" in kept:
        kept = kept.replace("%%", "%").replace("--", "-")  # a comment, an arrow
    return f'"{" ".join(kept.split()) or "–"}"'


def _number(value: float) -> str:
    """Format a number for Mermaid, without an exponent.

    >>> _number(10.5), _number(1e-7), _number(3.0), _number(1 / 3)
    ('10.5', '0.0000001', '3', '0.333333')
    """
    if value == 0:
        return "0"
    digits = max(0, 5 - math.floor(math.log10(abs(value))))
    text = f"{value:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
