"""Charts: all is inside the frame, marks are round, bars are as long as they should be."""

from __future__ import annotations

import math
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapviewer.report.blocks import Bar, BarChart, LineChart, Series
from snapviewer.report.ticks import drawable, number_scale, number_ticks
from snapviewer.report.writers.charts import MAX_DOTS, SLIM_PX, WIDTH_PX, draw, line_scale
from snapviewer.report.writers.colors import PALETTES
from snapviewer.report.writers.lettering import fitted, width_px
from snapviewer.report.writers.shapes import Dot, Drawing, Label, Line, Polyline, Rect, Shape
from snapviewer.text.sanitize import sanitize
from support.documents import HOSTILE, LONG_WORD

Box = tuple[float, float, float, float]

usual = st.floats(1e-3, 1e7) | st.just(0.0)
any_float = st.floats(allow_nan=True, allow_infinity=True)
labels = st.text(max_size=40) | st.sampled_from(["显存分析报告", HOSTILE, LONG_WORD, ""])
frames = st.sampled_from([WIDTH_PX, SLIM_PX])


@st.composite
def bar_charts(draw_from: st.DrawFn, values: st.SearchStrategy[float] = any_float) -> BarChart:
    tones = st.sampled_from(["plain", "good", "warning", "bad"])
    bars = st.builds(Bar, labels, values, labels, tones)
    return BarChart("title", draw_from(labels), tuple(draw_from(st.lists(bars, max_size=40))))


@st.composite
def line_charts(draw_from: st.DrawFn, values: st.SearchStrategy[float] = any_float) -> LineChart:
    def series(name: str, points: list[tuple[float, float]], is_trend: bool) -> Series:
        return Series(name, tuple(points), is_trend)

    points = st.lists(st.tuples(values, values), max_size=8)
    several = st.lists(st.builds(series, labels, points, st.booleans()), max_size=12)
    return LineChart("title", draw_from(labels), draw_from(labels), tuple(draw_from(several)))


def box(shape: Shape) -> Box:
    """The left, top, right and bottom of a shape."""
    match shape:
        case Rect(x, y, width, height, _):
            return x, y, x + width, y + height
        case Line(x1, y1, x2, y2, _):
            return min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2)
        case Polyline(points, _, _):
            xs, ys = zip(*points, strict=True)
            return min(xs), min(ys), max(xs), max(ys)
        case Dot(x, y, radius, _):
            return x - radius, y - radius, x + radius, y + radius
        case Label(x, y, text, size, anchor, _):
            width = width_px(text, size)
            left = x - {"start": 0.0, "middle": 0.5, "end": 1.0}[anchor] * width
            return left, y - 0.85 * size, left + width, y + 0.2 * size


def assert_inside(drawing: Drawing) -> None:
    for shape in drawing.shapes:
        left, top, right, bottom = box(shape)
        assert left >= -0.01, shape
        assert top >= -0.01, shape
        assert right <= drawing.width_px + 0.01, shape
        assert bottom <= drawing.height_px + 0.01, shape


def assert_labels_apart(drawing: Drawing) -> None:
    shown = [shape for shape in drawing.shapes if isinstance(shape, Label) and shape.text.strip()]
    for one, other in combinations(shown, 2):
        left, top, right, bottom = box(one)
        left_2, top_2, right_2, bottom_2 = box(other)
        is_apart = right <= left_2 or right_2 <= left or bottom <= top_2 or bottom_2 <= top
        assert is_apart, (one, other)


@given(bar_charts() | line_charts(), frames)
def test_everything_is_inside_the_frame_whatever_the_values(
    chart: BarChart | LineChart, frame: float
) -> None:
    drawing = draw(chart, width_px=frame)

    assert drawing.width_px == frame
    assert_inside(drawing)


@given(bar_charts(usual) | line_charts(usual), frames)
def test_labels_do_not_overlap(chart: BarChart | LineChart, frame: float) -> None:
    assert_labels_apart(draw(chart, width_px=frame))


@given(bar_charts() | line_charts())
def test_every_ink_has_a_colour_in_light_and_dark(chart: BarChart | LineChart) -> None:
    inks = {shape.ink for shape in draw(chart).shapes}

    assert inks <= PALETTES["light"].keys()
    assert PALETTES["light"].keys() == PALETTES["dark"].keys()


@given(st.lists(st.floats(1, 1e7), min_size=1, max_size=40))
def test_bars_are_as_long_as_their_values(values: list[float]) -> None:
    chart = BarChart("", "GB", tuple(Bar("a", value, "note") for value in values))

    rects = [shape for shape in draw(chart).shapes if isinstance(shape, Rect)]
    longest = max(range(len(values)), key=values.__getitem__)

    assert len(rects) == len(values)
    for rect, value in zip(rects, values, strict=True):
        expected = rects[longest].width_px * value / values[longest]
        assert rect.width_px == pytest.approx(max(expected, 1.0), abs=1e-6)


def test_a_bar_of_zero_is_not_drawn_but_named() -> None:
    drawing = draw(BarChart("", "GB", (Bar("init", 0, "0 GB"), Bar("end", 2, "2 GB"))))

    assert sum(isinstance(shape, Rect) for shape in drawing.shapes) == 1
    assert {"init", "0 GB", "end", "2 GB"} <= texts(drawing)


def test_a_note_without_room_beside_its_bar_stands_inside() -> None:
    note = "a note of usual words " * 3
    drawing = draw(BarChart("", "GB", (Bar("a", 10.0, note), Bar("b", 1.0, note))))

    inks = [
        shape.ink for shape in drawing.shapes if isinstance(shape, Label) and "note" in shape.text
    ]

    assert inks == ["paper", "text"]


def texts(drawing: Drawing) -> set[str]:
    return {shape.text for shape in drawing.shapes if isinstance(shape, Label)}


@pytest.mark.parametrize(
    "points",
    [
        ((3.0, 2.5),),
        ((0.0, 5.0), (1.0, 5.0)),
        ((0.0, 0.0), (1.0, 0.0)),
        ((1.0, 1.0), (1.0, 2.0)),
        ((0.0, -3.0), (9.0, 4.0)),
    ],
)
def test_a_line_of_few_points_shows_a_dot_for_each(points: tuple[tuple[float, float], ...]) -> None:
    drawing = draw(LineChart("", "step", "GB", (Series("one", points),)))

    assert sum(isinstance(shape, Dot) for shape in drawing.shapes) == len(points)
    assert {"GB", "step", "0"} <= texts(drawing)
    assert_inside(drawing)


def test_many_points_are_a_line_without_dots() -> None:
    points = tuple((float(x), math.sin(x)) for x in range(MAX_DOTS + 1))

    shapes = draw(LineChart("", "step", "GB", (Series("one", points),))).shapes

    assert not any(isinstance(shape, Dot) for shape in shapes)
    assert [len(shape.points) for shape in shapes if isinstance(shape, Polyline)] == [len(points)]


def test_several_series_have_a_legend_and_one_has_none() -> None:
    def chart(count: int) -> LineChart:
        some = (Series(f"run {n}", ((0.0, 1.0), (1.0, 2.0))) for n in range(count))
        return LineChart("", "step", "GB", tuple(some))

    assert {f"run {n}" for n in range(12)} <= texts(draw(chart(12)))
    assert "run 0" not in texts(draw(chart(1)))


def test_a_trend_is_dashed_and_has_no_dots() -> None:
    points = ((0.0, 1.0), (5.0, 2.0))
    chart = LineChart("", "step", "GB", (Series("trend", points, is_trend=True),))

    shapes = draw(chart).shapes

    assert [shape.is_dashed for shape in shapes if isinstance(shape, Polyline)] == [True]
    assert not any(isinstance(shape, Dot) for shape in shapes)


def test_nothing_to_draw_is_a_small_drawing() -> None:
    for chart in (BarChart("", "GB", ()), LineChart("", "step", "GB", (Series("one", ()),))):
        assert draw(chart).height_px < 50


@given(usual, usual, st.integers(2, 8))
def test_marks_of_values_are_round_even_and_around_the_values(
    one: float, other: float, most: int
) -> None:
    low, high = sorted((drawable(one), drawable(other)))

    scale = number_scale(low, high, max_steps=most)
    values = [mark.value for mark in scale.marks]
    steps = [after - before for before, after in pairwise(values)]

    assert scale.low <= low
    assert scale.high >= high
    assert 1 <= len(steps) <= most
    assert all(is_round(step) for step in steps), steps
    assert len({mark.label for mark in scale.marks}) == len(values)


def is_round(step: float) -> bool:
    """Whether a number is 1, 2 or 5 times a power of ten, within the precision of floats."""
    digit = step / 10 ** math.floor(math.log10(step) + 1e-6)
    return any(math.isclose(digit, whole, rel_tol=1e-3) for whole in (1, 2, 5))


@given(st.integers(-1000, 1000), st.integers(1, 10**6))
def test_marks_of_whole_steps_are_whole(low: int, length: int) -> None:
    marks = number_ticks(low, low + length, 600, lambda label: 7.0 * len(label)).marks

    assert marks
    assert all(mark.value == int(mark.value) for mark in marks)
    assert all(low <= mark.value <= low + length for mark in marks)


def test_an_axis_of_lines_begins_at_zero_unless_all_values_are_far_from_it() -> None:
    assert line_scale([10.0, 20.0]).low == 0
    assert line_scale([23.1, 23.6]).low == pytest.approx(23.1)
    assert line_scale([-3.0, 5.0]).low == -4
    assert line_scale([5.0, 5.0]).low == 0, "all equal: there is no change to look at"


@given(st.text(max_size=300), st.floats(0, 500), st.floats(6, 30))
def test_a_fitted_text_fits_and_keeps_both_ends(text: str, room: float, size: float) -> None:
    shown = fitted(text, room, size)

    assert width_px(shown, size) <= room + 1e-6
    if width_px(sanitize(text, strip=False), size) > room and shown:
        beginning, end = shown.split("…", 1) if text.count("…") == 0 else ("", "")
        assert sanitize(text, strip=False).startswith(beginning)
        assert sanitize(text, strip=False).endswith(end)
