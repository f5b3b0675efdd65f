"""Lanes show the program's spans where they are, however many there are."""

from __future__ import annotations

import pickle
import tkinter as tk
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapviewer.gui.plot.lanes import MAX_LANES, Lanes, boxes_of, lanes_of
from snapviewer.gui.settings import WindowSettings
from snapviewer.gui.state import State
from snapviewer.gui.theme import apply_theme, palette_of
from snapviewer.gui.viewport import Viewport
from snapviewer.snapshot.annotations import Span
from support.inline_jobs import InlineJobs
from support.patience import PATIENT

START_US = 1_700_000_000_000_000
WIDTH = 600


def _plain(marks: list[tuple[str, str, int]], *, gap_us: int = 0) -> dict[str, Any]:
    """A snapshot of 100 events, 10 µs apart but for one gap, with annotations."""
    trace = [
        {
            "action": "alloc",
            "addr": 4096 * event,
            "size": 512,
            "stream": 0,
            "time_us": START_US + event * 10 + (gap_us if event >= 50 else 0),
            "frames": [],
        }
        for event in range(100)
    ]
    annotations = [
        {"name": name, "stage": stage, "device": 0, "time_us": START_US + at}
        for name, stage, at in marks
    ]
    return {"segments": [], "device_traces": [trace], "external_annotations": annotations}


def _nested(depth: int) -> list[tuple[str, str, int]]:
    starts = [(f"n{n}", "START", 100 + n) for n in range(depth)]
    return [*starts, *((f"n{n}", "END", 900 - n) for n in reversed(range(depth)))]


@st.composite
def _rows_of_spans(draw: st.DrawFn) -> list[tuple[int, int]]:
    """Spans that do not overlap: from and to."""
    places = draw(st.lists(st.integers(0, 2000), max_size=120))
    places = sorted(places[: len(places) // 2 * 2])
    return list(zip(places[::2], places[1::2], strict=True))


@PATIENT
@given(
    _rows_of_spans(),
    st.integers(0, 1500),
    st.integers(4, 2500),
    st.integers(1, 300),
)
def test_every_span_in_view_is_in_one_box_and_there_are_never_too_many(
    ends: list[tuple[int, int]], left: int, length: int, width: int
) -> None:
    spans = tuple(Span("x", 0, *end, *end, False, False) for end in ends)
    trace: Any = SimpleNamespace(spans=spans, clock_of=lambda _: None)
    right, scale = left + length, width / length

    boxes = [
        box for lane in lanes_of(trace, "event") for box in boxes_of(lane, 0, left, right, width)
    ]

    inside = [n for n, (start, end) in enumerate(ends) if start <= right and end >= left]
    assert [n for box in boxes for n in range(box.first, box.last)] == inside
    assert len(boxes) <= width / 3 * 2 + 3
    for box in boxes:
        start, end = ends[box.first][0], ends[box.last - 1][1]
        assert box.left == pytest.approx(min(max((start - left) * scale, -1), width + 1))
        assert box.right >= min(max((end - left) * scale, -1), width + 1) - 1e-6
        assert box.right - box.left >= 3 - 1e-6
        if box.last - box.first > 1:
            assert all((e - s) * scale < 3.001 for s, e in ends[box.first + 1 : box.last - 1])


class Strip:
    """Lanes in a window of their own."""

    def __init__(self, root: tk.Tk) -> None:
        self.root = root
        self.state = State(InlineJobs(held={"convert"}), WindowSettings())
        self.state.plot_px = (WIDTH, 400)
        apply_theme(root, "light")
        self.lanes = Lanes(root, self.state)
        self.canvas = self.lanes._canvas
        self.lanes.pack(fill="x")
        root.geometry(f"{WIDTH}x300+0+0")
        root.update()

    def open(self, plain: Any, directory: Path) -> None:
        path = directory / "snap.pickle"
        path.write_bytes(pickle.dumps(plain))
        self.state.open(path)
        self.root.update()

    def texts(self) -> list[str]:
        return [self.option(item, "text") for item in self.canvas.find_withtag("names")]

    def texts_at_rest(self) -> list[str]:
        """What it says once it was drawn for the view as it is."""
        while self.lanes._drawn != self.state.view or self.lanes._due is not None:
            self.root.update()
        return self.texts()

    def option(self, item: int, name: str) -> str:
        return str(self.canvas.itemcget(item, name))  # type: ignore[no-untyped-call]

    def at(self, place: int) -> tuple[int, int]:
        """The middle of the mark that is in this place."""
        item = list(self.lanes._boxes)[place]
        left, top, right, bottom = self.canvas.coords(item)
        return round((left + right) / 2), round((top + bottom) / 2)


@pytest.fixture
def strip(display: str) -> Iterator[Strip]:
    root = tk.Tk()
    yield Strip(root)
    root.destroy()


ONE = [("step 1", "START", 200), ("step 1", "END", 600)]


@pytest.mark.gui
def test_a_span_is_drawn_where_it_is(strip: Strip, tmp_path: Path) -> None:
    strip.open(_plain(ONE), tmp_path)

    strip.state.set_look(axis="time")
    strip.root.update()

    (box,) = strip.lanes._boxes.values()
    assert box.left == pytest.approx(strip.state.pixel_of(200, 0)[0])
    assert box.right == pytest.approx(strip.state.pixel_of(600, 0)[0])
    assert strip.texts() == ["step 1"]


@pytest.mark.gui
def test_on_an_axis_of_events_it_has_its_events(strip: Strip, tmp_path: Path) -> None:
    strip.open(_plain(ONE), tmp_path)

    (box,) = strip.lanes._boxes.values()
    assert box.left == pytest.approx(strip.state.pixel_of(20, 0)[0])
    assert box.right == pytest.approx(strip.state.pixel_of(61, 0)[0])


@pytest.mark.gui
def test_on_a_shortened_clock_it_is_where_that_shows_it(strip: Strip, tmp_path: Path) -> None:
    gap_us = 60_000_000
    marks = [("late", "START", gap_us + 500), ("late", "END", gap_us + 700)]
    strip.open(_plain(marks, gap_us=gap_us), tmp_path)

    strip.state.set_look(axis="busy time")
    strip.root.update()

    clock = strip.state.clock
    assert clock is not None
    assert clock.gaps
    (box,) = strip.lanes._boxes.values()
    assert box.left == pytest.approx(strip.state.pixel_of(clock.at(50), 0)[0])
    assert box.right == pytest.approx(strip.state.pixel_of(clock.at(70), 0)[0])


@pytest.mark.gui
def test_it_follows_the_view_and_cuts_names_that_do_not_fit(strip: Strip, tmp_path: Path) -> None:
    strip.open(_plain([("a rather long name", stage, at) for _, stage, at in ONE]), tmp_path)
    whole = strip.texts()

    strip.state.go(Viewport(0, 30, 0, 1000))
    far_right = strip.texts_at_rest()
    strip.state.go(Viewport(0, 23, 0, 1000))
    narrow = strip.texts_at_rest()

    assert whole == far_right == ["a rather long name"]
    assert narrow[0].endswith("…")


@pytest.mark.gui
def test_in_a_motion_it_moves_along_before_it_is_drawn_anew(strip: Strip, tmp_path: Path) -> None:
    strip.open(_plain(ONE), tmp_path)
    strip.state.go(Viewport(10, 60, 0, 1000))
    strip.texts_at_rest()
    (item,) = strip.lanes._boxes
    left, _, right, _ = strip.lanes._canvas.coords(item)

    strip.state.move_to(Viewport(15, 65, 0, 1000))
    strip.state.move_to(Viewport(20, 70, 0, 1000))

    by = -10 * strip.lanes._canvas.winfo_width() / 50
    moved = strip.lanes._canvas.coords(item)
    assert (moved[0], moved[2]) == pytest.approx((left + by, right + by))


@pytest.mark.gui
def test_a_click_zooms_to_a_span(strip: Strip, tmp_path: Path) -> None:
    strip.open(_plain(ONE), tmp_path)
    x, y = strip.at(0)

    strip.canvas.event_generate("<Button-1>", x=x, y=y)

    view = strip.state.view
    assert view.left < 20
    assert view.right > 61
    assert view.width < 45
    zoomed = strip.state.view
    strip.state.back()
    assert strip.state.view != zoomed


@pytest.mark.gui
def test_the_name_on_a_box_has_its_tip_and_zooms_too(strip: Strip, tmp_path: Path) -> None:
    strip.open(_plain(ONE), tmp_path)
    left, top, right, bottom = strip.canvas.bbox("names")
    x, y, view = (left + right) // 2, (top + bottom) // 2, strip.state.view

    strip.canvas.event_generate("<Motion>", x=x, y=y)
    tip = strip.lanes._tip.text
    strip.canvas.event_generate("<Button-1>", x=x, y=y)

    assert tip.startswith("step 1\n")
    assert strip.state.view != view


@pytest.mark.gui
def test_a_tip_shows_name_and_duration(strip: Strip, tmp_path: Path) -> None:
    strip.open(_plain([*ONE, ("open", "START", 800)]), tmp_path)
    tips = []

    for place in range(2):
        x, y = strip.at(place)
        strip.canvas.event_generate("<Motion>", x=x, y=y)
        tips.append(strip.lanes._tip.text)
    strip.canvas.event_generate("<Leave>")

    assert tips == [
        "step 1\n400 µs · 41 events\nClick to zoom in.",
        "open\nat least 190 µs · 20 events\nClick to zoom in.",
    ]
    assert strip.lanes._tip.text == ""


@pytest.mark.gui
def test_between_spans_there_is_nothing_to_click(strip: Strip, tmp_path: Path) -> None:
    strip.open(_plain(ONE), tmp_path)
    _, y = strip.at(0)
    view = strip.state.view

    for x in (20, WIDTH - 20):
        strip.canvas.event_generate("<Motion>", x=x, y=y)
        strip.canvas.event_generate("<Button-1>", x=x, y=y)

    assert strip.state.view == view
    assert strip.lanes._tip.text == ""


@pytest.mark.gui
def test_of_many_lanes_the_number_not_shown_is_given(strip: Strip, tmp_path: Path) -> None:
    strip.open(_plain(_nested(9)), tmp_path)

    assert {box.lane for box in strip.lanes._boxes.values()} == set(range(MAX_LANES))
    assert "3 more lanes" in strip.texts()


@pytest.mark.gui
def test_very_many_are_shown_as_a_number(strip: Strip, tmp_path: Path) -> None:
    marks = [(f"{n}", stage, n // 50) for n in range(50_000) for stage in ("START", "END")]
    strip.open(_plain(marks), tmp_path)
    strip.state.set_look(axis="time")
    strip.root.update()
    x, y = strip.at(0)

    strip.canvas.event_generate("<Motion>", x=x, y=y)

    assert len(strip.lanes._boxes) == 1
    assert strip.texts() == ["49,550 spans"]
    assert strip.lanes._tip.text == "49,550 spans\nClick to zoom in."


@pytest.mark.gui
def test_without_spans_or_when_turned_off_it_takes_no_room(strip: Strip, tmp_path: Path) -> None:
    heights = [strip.lanes.winfo_height()]

    for marks in ([], ONE):
        strip.open(_plain(marks), tmp_path)
        heights.append(strip.lanes.winfo_height())
    for is_shown in (False, True):
        strip.state.set_pane("lanes", is_shown=is_shown)
        strip.root.update()
        heights.append(strip.lanes.winfo_height())

    assert [height <= 1 for height in heights] == [True, True, False, True, False]


@pytest.mark.gui
def test_colours_follow_the_theme(strip: Strip, tmp_path: Path) -> None:
    strip.open(_plain(ONE), tmp_path)

    strip.state.set_look(theme="dark")
    strip.root.update()

    colors = palette_of("dark")
    (item,) = strip.lanes._boxes
    assert strip.canvas.cget("background") == colors.background
    assert strip.option(item, "fill") == colors.border
