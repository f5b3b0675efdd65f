"""The marks of axes lie where people count, and their labels stand apart."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from snapviewer.report.ticks import Piece, Ticks, byte_ticks, number_ticks, time_ticks
from snapviewer.text.units import BYTE_UNITS

MAX_BYTES = 2**64 - 1


def _width_of(label: str) -> float:
    return 7.0 * len(label)


def _assert_evenly_spaced(ticks: Ticks) -> None:
    assert len({b.value - a.value for a, b in pairwise(ticks.marks)}) <= 1


def _assert_labels_stand_apart(ticks: Ticks, low: float, high: float, length_px: float) -> None:
    ends = [
        ((mark.value - low) * length_px / (high - low), _width_of(mark.label) / 2)
        for mark in ticks.marks
    ]
    for (one, half), (other, other_half) in pairwise(ends):
        assert one + half < other - other_half


def _assert_readable(ticks: Ticks, span: tuple[int, int], length_px: int) -> None:
    low, high = span
    assert all(low <= mark.value <= high for mark in ticks.marks)
    _assert_evenly_spaced(ticks)
    _assert_labels_stand_apart(ticks, low, high, length_px)


@st.composite
def _spans(draw: st.DrawFn, most: int) -> tuple[int, int]:
    low = draw(st.integers(0, most - 1))
    return low, draw(st.integers(low + 1, most))


@given(_spans(MAX_BYTES), st.integers(1, 40))
def test_marks_of_bytes_are_few_even_and_within_the_axis(span: tuple[int, int], most: int) -> None:
    low, high = span

    ticks = byte_ticks(low, high, max_ticks=most)

    assert len(ticks.marks) <= most
    assert all(low <= mark.value <= high for mark in ticks.marks)
    assert len({mark.label for mark in ticks.marks}) == len(ticks.marks)
    _assert_evenly_spaced(ticks)


@given(_spans(MAX_BYTES), st.integers(2, 40))
def test_a_label_of_bytes_says_exactly_where_it_is(span: tuple[int, int], most: int) -> None:
    ticks = byte_ticks(*span, max_ticks=most)

    unit = 1024 ** BYTE_UNITS.index(ticks.unit)
    for mark in ticks.marks:
        whole, _, part = mark.label.replace(",", "").partition(".")
        said = int(whole) * unit + int(part or "0") * unit // 10 ** len(part)
        assert said == mark.value


@given(st.integers(1, MAX_BYTES), st.integers(4, 40))
def test_an_axis_of_bytes_from_zero_has_some_marks(high: int, most: int) -> None:
    ticks = byte_ticks(0, high, max_ticks=most)

    assert ticks.marks[0].label == "0"
    assert high == 1 or len(ticks.marks) >= 2


def test_bytes_are_said_in_the_unit_of_the_peak() -> None:
    for high, expected in {
        900: ("B", "900"),
        2**20: ("MiB", "1.00"),
        800 * 2**20: ("MiB", "800"),
        3 * 2**30: ("GiB", "3.0"),
        70 * 2**30: ("GiB", "64"),
    }.items():
        marks, unit = byte_ticks(0, high, max_ticks=10)
        assert (unit, marks[-1].label) == expected


@given(_spans(2**40), st.integers(100, 8000))
def test_marks_of_events_are_even_and_their_labels_stand_apart(
    span: tuple[int, int], length_px: int
) -> None:
    ticks = number_ticks(*span, length_px, _width_of)

    assert all(mark.label == f"{mark.value:,}" for mark in ticks.marks)
    _assert_readable(ticks, span, length_px)


@given(_spans(2**40), st.integers(800, 8000))
def test_a_long_axis_of_events_has_enough_marks(span: tuple[int, int], length_px: int) -> None:
    low, high = span
    assume(high - low >= 10)

    assert len(number_ticks(low, high, length_px, _width_of).marks) >= 2


@given(
    st.floats(0, 1e6, allow_nan=False),
    st.floats(1e-3, 1e6, allow_nan=False),
    st.integers(100, 8000),
)
def test_a_view_between_events_has_marks_at_whole_events_only(
    low: float, length: float, length_px: int
) -> None:
    ticks = number_ticks(low, low + length, length_px, _width_of)

    assert all(low <= mark.value <= low + length for mark in ticks.marks)
    _assert_labels_stand_apart(ticks, low, low + length, length_px)


@given(_spans(10**13), st.integers(100, 8000))
def test_marks_of_time_are_even_and_their_labels_stand_apart(
    span: tuple[int, int], length_px: int
) -> None:
    _assert_readable(time_ticks(*span, length_px, _width_of), span, length_px)


@pytest.mark.parametrize(
    ("high_us", "unit", "labels"),
    [
        (40, "µs", ["0", "10", "20", "30", "40"]),
        (4_000, "ms", ["0", "1", "2", "3", "4"]),
        (1_500_000, "s", ["0.0", "0.5", "1.0", "1.5"]),
        (90_000_000, "s", ["0", "20", "40", "60", "80"]),
        (240_000_000, "min:s", ["0:00", "1:00", "2:00", "3:00", "4:00"]),
        (7_200_000_000, "h:min:s", ["0:00:00", "0:30:00", "1:00:00", "1:30:00", "2:00:00"]),
    ],
)
def test_times_are_said_as_people_say_them(high_us: int, unit: str, labels: list[str]) -> None:
    ticks = time_ticks(0, high_us, 420, _width_of)

    assert (ticks.unit, [mark.label for mark in ticks.marks]) == (unit, labels)


@given(
    st.lists(
        st.tuples(st.integers(1, 10**7), st.integers(1, 10**5), st.integers(10**5, 10**9)),
        min_size=1,
        max_size=8,
    ),
    st.integers(200, 4000),
)
def test_where_idle_time_is_shortened_marks_show_the_real_time(
    parts: list[tuple[int, int, int]], length_px: int
) -> None:
    pieces, at, real = [], 0, 0
    for busy_us, gap_us, real_gap_us in parts:
        pieces.append(Piece(at, at + busy_us, real))
        at += busy_us + gap_us
        real += busy_us + real_gap_us

    ticks = time_ticks(0, at, length_px, _width_of, pieces=pieces)

    _assert_labels_stand_apart(ticks, 0, at, length_px)
    for mark in ticks.marks:
        piece = next(one for one in pieces if one.start <= mark.value <= one.end)
        said_us = _microseconds(mark.label, ticks.unit)
        assert math.isclose(said_us, piece.real + mark.value - piece.start, abs_tol=1)


def _microseconds(label: str, unit: str) -> float:
    if ":" in unit:
        parts = [int(part) for part in label.replace(",", "").split(":")]
        return 1e6 * sum(part * float(60**power) for power, part in enumerate(reversed(parts)))
    return float(label.replace(",", "")) * {"s": 1e6, "ms": 1e3, "µs": 1}[unit]
