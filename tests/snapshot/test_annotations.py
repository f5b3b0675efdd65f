"""Annotations are paired and laid out as the slow, obvious version says."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import snapviewer
from snapviewer.snapshot.annotations import MAX_LANES, Span, spans_of
from snapviewer.snapshot.clock import shown_us
from support import hostile, oracle
from support.patience import PATIENT

START_US = 1_700_000_000_000_000

Mark = tuple[str, str, int | None, int]


def _spans(marks: list[Mark], times: list[int], index: int = 0) -> tuple[Span, ...]:
    """The spans of a device whose events have these times; those of marks count from the first."""
    snapshot: Any = SimpleNamespace(
        annotations=[(name, stage, of, START_US + at) for name, stage, of, at in marks]
    )
    device: Any = SimpleNamespace(index=index, events=len(times))
    clock: Any = SimpleNamespace(
        start_us=START_US, length_us=times[-1], times=np.array(times, dtype=np.uint64)
    )
    return spans_of(snapshot, device, clock)


def _slow_spans(marks: list[Mark], times: list[int], index: int) -> Counter[tuple[object, ...]]:
    """What the spans are but for their lanes: each END looks back for its START."""
    mine = [mark for mark in marks if mark[2] in (None, index)]
    start_of: dict[int, int] = {}
    for place, (name, stage, _, _) in enumerate(mine):
        if stage == "END":
            for before in reversed(range(place)):
                is_taken = before in start_of.values()
                if mine[before][:2] == (name, "START") and not is_taken:
                    start_of[place] = before
                    break
    ends = [(start_of.get(place), place) for place, mark in enumerate(mine) if mark[1] == "END"]
    starts: list[tuple[int | None, int | None]] = [
        (place, None)
        for place, mark in enumerate(mine)
        if mark[1] == "START" and place not in start_of.values()
    ]
    spans: Counter[tuple[object, ...]] = Counter()
    for start, end in [*ends, *starts]:
        start_us = -1 if start is None else mine[start][3]
        end_us = times[-1] + 1 if end is None else max(mine[end][3], start_us)
        if (end is not None and end_us < 0) or (start is not None and start_us > times[-1]):
            continue
        name = mine[start if start is not None else end][0]  # type: ignore[index]
        cut = (max(start_us, 0), min(end_us, times[-1]))
        inside = [event for event, time in enumerate(times) if cut[0] <= time <= cut[1]]
        is_open = (start_us < 0, end_us > times[-1])
        spans[(name, *cut, tuple(inside), *is_open)] += 1
    return spans


def _without_lane(span: Span) -> tuple[object, ...]:
    events = tuple(range(span.start_event, span.end_event))
    is_open = (span.is_open_start, span.is_open_end)
    return (span.name, span.start_us, span.end_us, events, *is_open)


def _slow_lane(span: Span, placed: list[Span]) -> int:
    """The first lane that is free where a span begins, and beyond what is around it."""
    there = [other for other in placed if other.end_us > span.start_us]
    around = [other.lane for other in there if other.end_us >= span.end_us]
    lane = max(around, default=-1) + 1
    while lane in {other.lane for other in there}:
        lane += 1
    return lane


MARKS = st.lists(
    st.tuples(
        st.sampled_from(["step", "forward", "backward"]),
        st.sampled_from(["START", "END", "START", "END", "other"]),
        st.sampled_from([None, 0, 0, 1]),
        st.integers(-30, 130),
    ),
    max_size=30,
)
TIMES = st.lists(st.integers(0, 100), min_size=1, max_size=20).map(lambda all_: sorted([0, *all_]))


@PATIENT
@given(MARKS, TIMES, st.booleans())
def test_spans_are_those_of_the_slow_version(
    marks: list[Mark], times: list[int], is_sorted: bool
) -> None:
    if is_sorted:
        marks = sorted(marks, key=lambda mark: mark[3])

    spans = _spans(marks, times)

    assert Counter(map(_without_lane, spans)) == _slow_spans(marks, times, 0)


@PATIENT
@given(MARKS, TIMES)
def test_every_span_is_in_the_first_lane_that_is_right(marks: list[Mark], times: list[int]) -> None:
    spans = _spans(marks, times)

    assert list(spans) == sorted(spans, key=lambda span: (span.start_us, -span.end_us))
    for place, span in enumerate(spans):
        assert span.lane == _slow_lane(span, list(spans[:place]))


def _spans_of(marks: str) -> tuple[Span, ...]:
    """The spans of marks such as `a START 10`, of device 0 and a trace from 0 to 100 µs."""
    parts = [mark.strip().rsplit(" ", 2) for mark in marks.split(",")]
    return _spans([(name, stage, 0, int(time)) for name, stage, time in parts], [0, 100])


def test_names_are_paired_from_the_inside_even_if_they_lie_across() -> None:
    spans = _spans_of("a START 10, b START 20, a START 30, a END 40, a END 50, b END 60")

    found = [(span.name, span.start_us, span.end_us, span.lane) for span in spans]
    assert found == [("a", 10, 50, 0), ("b", 20, 60, 1), ("a", 30, 40, 2)]


def test_what_lost_its_other_half_or_reaches_out_of_the_trace_is_cut_and_open() -> None:
    spans = _spans_of(
        "long gone START -90, long gone END -80, early START -5, lost END 30, early END 40, "
        "late START 50, unended START 60, late END 120, to come START 110"
    )

    found = {span.name: (span.start_us, span.end_us) for span in spans}
    assert found == {
        "early": (0, 40),
        "lost": (0, 30),
        "late": (50, 100),
        "unended": (60, 100),
    }
    assert {span.name for span in spans if span.is_open_start} == {"early", "lost"}
    assert {span.name for span in spans if span.is_open_end} == {"late", "unended"}


def test_events_at_the_very_start_and_end_are_in_a_span() -> None:
    marks: list[Mark] = [("a", "START", None, 10), ("a", "END", None, 20)]

    (span,) = _spans(marks, [0, 10, 10, 15, 20, 20, 21])

    assert [span.has(event) for event in range(7)] == [False, *[True] * 5, False]


def test_of_another_device_there_are_none() -> None:
    marks: list[Mark] = [("a", "START", 1, 10), ("a", "END", 1, 20)]

    assert _spans(marks, [0, 100], index=0) == ()
    assert len(_spans(marks, [0, 100], index=1)) == 1


def test_without_times_or_events_there_are_none(tmp_path: Path) -> None:
    plain = hostile.small_snapshot()
    plain["external_annotations"] = [
        {"name": "a", "stage": "START", "device": 0, "time_us": START_US}
    ]
    for event in plain["device_traces"][0]:
        del event["time_us"]
    snapshot = _load(plain, tmp_path)

    assert len(snapshot.annotations) == 1
    assert spans_of(snapshot, snapshot.devices[0], snapshot.devices[0].clock()) == ()


def test_a_hundred_thousand_that_never_end_are_laid_out_in_few_lanes() -> None:
    marks: list[Mark] = [(f"{n}", "START", 0, n % 100) for n in range(100_000)]

    spans = _spans(marks, [0, 100])

    assert len(spans) == 100_000
    assert {span.lane for span in spans} == set(range(MAX_LANES))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("t28-ring-full-annot", [("Optimizer.step#AdamW.step", 0, True, False)]),
        (
            "SYNTHETIC-mosaic",
            # The file lists the END of the inner one of the same name first.
            [
                ("Annotation3", 0, False, True),
                ("Annotation3", 1, False, False),
                ("Annotation1", 2, False, False),
            ],
        ),
        ("t211-4dev", []),
        ("private-pools-state-only", []),
    ],
)
def test_a_real_file_has_these_spans(name: str, found: list[object]) -> None:
    path = oracle.SNAPSHOTS / f"{name}.pickle"
    if not path.exists():
        pytest.skip(f"{path.parent} is absent")
    snapshot = snapviewer.load(path)
    device = snapshot.devices[0]

    spans = spans_of(snapshot, device, device.clock())

    assert [(s.name, s.lane, s.is_open_start, s.is_open_end) for s in spans] == found


def test_a_shortened_clock_shows_a_time_where_it_says_that_it_does(tmp_path: Path) -> None:
    plain = hostile.small_snapshot()
    times = (0, 10, 9_000_000, 9_000_004, 9_000_009, 50_000_000, 50_000_001)
    for event, at in zip(plain["device_traces"][0], times, strict=True):
        event["time_us"] = START_US + at
    clock = _load(plain, tmp_path).devices[0].clock(compress=True)
    assert clock is not None
    assert clock.gaps

    real = np.linspace(0, 50_000_001, 1000)
    shown = shown_us(clock, real)

    assert [clock.real(place) for place in shown.tolist()] == pytest.approx(real.tolist(), abs=1e-3)
    assert (np.diff(shown) > 0).all()
    assert shown_us(clock, 50_000_001) == clock.length_us


def _load(plain: Any, directory: Path) -> snapviewer.Snapshot:
    path = directory / "snap.pickle"
    path.write_bytes(pickle.dumps(plain))
    return snapviewer.load(path)
