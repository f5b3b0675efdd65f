"""The window does what its controls say: real keys and a real mouse, compared in states and pixels.

What the plot shows is compared with what the engine draws of the same part, pixel by pixel.
"""

from __future__ import annotations

import re
import tkinter as tk
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from threading import Event
from tkinter import ttk
from typing import Literal, cast, get_args

import numpy as np
import pytest

from display import (
    LEFT,
    RIGHT,
    click,
    drag,
    key,
    key_down,
    key_up,
    mouse_down,
    mouse_up,
    move,
    screenshot,
    wheel,
    write,
)
from driver import BACKGROUND, Driver, cut_off, holding, real
from snapviewer.gui.commands import commands_of
from snapviewer.gui.jobs import Job
from snapviewer.gui.keys import Direction, HeldKeys
from snapviewer.gui.menus import bind_keys
from snapviewer.gui.panes.virtual_table import VirtualTable
from snapviewer.gui.theme import palette_of
from snapviewer.gui.views import View
from snapviewer.gui.words import alive_text, clock_text
from snapviewer.report.picture.options import Coloring, Order
from snapviewer.units import format_bytes, format_duration_us

pytestmark = pytest.mark.gui

MIB = 2**20


def _zoomed_in(driver: Driver) -> View:
    """The middle of the trace, so that there is room to go anywhere."""
    world = driver.state.world
    driver.state.go(View(world.right * 0.4, world.right * 0.5, world.high * 0.2, world.high * 0.6))
    driver.settle()
    return driver.state.view


def _shares(view: View, x: float, y: float) -> tuple[float, float]:
    return (x - view.left) / view.width, (y - view.low) / view.height


# The picture


def _move_about(driver: Driver) -> None:
    wheel(*driver.at(*driver.spot(0.4, 0.8)), 5)
    drag(driver.at(*driver.spot(0.5, 0.5)), driver.at(*driver.spot(0.37, 0.61)))


def _select(driver: Driver) -> None:
    x, y, _ = driver.pixel_with(lambda _: True)
    click(*driver.at(x, y))


def _type_filter(text: str) -> None:
    key("slash")
    write(text)


def _show_only(text: str) -> None:
    _type_filter(text)
    key("Escape", "m")


LOOKS: dict[str, Callable[[Driver], None]] = {
    "as it opens": lambda _: None,
    "moved and zoomed": _move_about,
    "with a selection": _select,
    "with matches highlighted": lambda _: _type_filter("forward"),
    "with nothing but matches": lambda _: _show_only("forward"),
    "in dark": lambda _: key("t"),
    "along the clock": lambda _: key("x"),
    "along the clock without idle times": lambda _: key("x", "x"),
    "in other colours": lambda _: key("c"),
    "in another order": lambda _: key("v"),
    "of another device": lambda _: key("g"),
    "without the overview": lambda _: key("F7"),
}


@pytest.mark.parametrize("look", LOOKS)
def test_the_plot_shows_exactly_what_the_engine_draws(driver: Driver, look: str) -> None:
    before = driver.pixels()

    LOOKS[look](driver)
    driver.done()
    driver.away()

    driver.assert_drawn()
    after = driver.pixels()
    is_same = before.shape == after.shape and bool((before == after).all())
    assert is_same == (look == "as it opens")


@pytest.mark.parametrize("name", ["t26-20k-events", "t28-ring-full-annot", "TRIMMED-mini"])
def test_real_files_are_shown_as_the_engine_draws_them(driver: Driver, name: str) -> None:
    driver.open(real(name))
    driver.assert_drawn()

    wheel(*driver.at(*driver.spot(0.6, 0.7)), 6)
    key("d", "w", "t")
    driver.away()

    driver.assert_drawn()


def test_the_picture_is_there_again_after_something_lay_over_it(driver: Driver) -> None:
    other = tk.Toplevel(driver.root)
    other.geometry("500x400+300+200")
    driver.until(lambda: driver.differing() > 0)

    other.destroy()

    driver.assert_drawn()


# Moving


MOVES: dict[str, Direction] = {
    "w": (0, 1),
    "a": (-1, 0),
    "s": (0, -1),
    "d": (1, 0),
    "Up": (0, 1),
    "Left": (-1, 0),
    "Down": (0, -1),
    "Right": (1, 0),
}


@pytest.mark.parametrize("name", MOVES)
def test_a_held_key_moves_on_smoothly_and_stops_when_it_is_released(
    driver: Driver, name: str
) -> None:
    start = _zoomed_in(driver)
    seen: list[View] = []
    driver.state.on("view", lambda: seen.append(driver.state.view))
    x, y = MOVES[name]

    key_down(name)
    driver.until(lambda: len(seen) >= 8)
    key_up(name)
    driver.until(lambda: not driver.window._held._down)

    stopped, frames = driver.state.view, driver.plot.drawn.number
    for _ in range(5):
        driver.settle()
    assert driver.state.view == stopped
    assert driver.plot.drawn.number <= frames + 1, "no frames were waiting"
    moved = [(one.left - start.left, one.low - start.low) for one in seen]
    assert all(np.sign(one).tolist() == [x, y] for one in moved), "that way and no other"
    assert all(np.hypot(*b) > np.hypot(*a) for a, b in pairwise(moved)), "always on"
    assert (stopped.width, stopped.height) == pytest.approx((start.width, start.height))
    driver.state._listeners["view"].pop()
    driver.assert_drawn()


def test_a_tap_moves_a_little_and_two_keys_move_both_ways(driver: Driver) -> None:
    start = _zoomed_in(driver)

    key("d")
    driver.until(lambda: not driver.window._held._down)
    tapped = driver.state.view
    with holding("w"), holding("a"):
        driver.until(lambda: driver.state.view.left < start.left)
    driver.until(lambda: not driver.window._held._down)

    assert start.left < tapped.left < start.left + 0.5 * start.width
    assert tapped.low == start.low
    assert driver.state.view.low > start.low


def test_moving_ends_at_the_end_of_the_world(driver: Driver) -> None:
    whole = driver.state.view

    key("a", "Right", "w", "Down")
    driver.until(lambda: not driver.window._held._down)

    assert driver.state.view == whole


def test_the_window_stops_moving_when_it_loses_the_keyboard(driver: Driver) -> None:
    _zoomed_in(driver)

    key_down("d")
    driver.until(lambda: driver.window._held._down)
    key("slash")
    driver.settle()
    key_up("d")
    driver.until(lambda: not driver.window._held._down)
    stopped = driver.state.view
    driver.settle()

    assert driver.state.view == stopped


def test_a_left_drag_takes_the_picture_along(driver: Driver) -> None:
    start = _zoomed_in(driver)
    a, b = driver.spot(0.6, 0.4), driver.spot(0.35, 0.7)
    held = driver.state.point_of(*a)

    drag(driver.at(*a), driver.at(*b))
    driver.settle()

    assert driver.state.point_of(*b) == pytest.approx(held)
    assert (driver.state.view.width, driver.state.view.height) == pytest.approx(
        (start.width, start.height)
    )
    assert driver.state.selection is None, "a drag is no click"
    driver.away()
    driver.assert_drawn()


@pytest.mark.parametrize(
    ("modifier", "axes"), [("", (True, True)), ("ctrl", (True, False)), ("alt", (False, True))]
)
@pytest.mark.parametrize("steps", [3, -2])
def test_the_wheel_zooms_and_what_is_under_the_pointer_stays(
    driver: Driver, modifier: str, axes: tuple[bool, bool], steps: int
) -> None:
    start = _zoomed_in(driver)
    place = driver.spot(0.7, 0.3)
    point = driver.state.point_of(*place)

    if modifier:
        with holding(modifier):
            wheel(*driver.at(*place), steps)
            driver.settle()
    else:
        wheel(*driver.at(*place), steps)
    driver.settle()

    now, factor = driver.state.view, 0.8**steps
    assert driver.state.point_of(*place) == pytest.approx(point)
    assert now.width == pytest.approx(start.width * (factor if axes[0] else 1))
    assert now.height == pytest.approx(start.height * (factor if axes[1] else 1))
    driver.away()
    driver.assert_drawn()


def test_shift_and_wheel_moves_sideways(driver: Driver) -> None:
    start = _zoomed_in(driver)

    with holding("shift"):
        wheel(*driver.at(*driver.spot(0.5, 0.5)), -2)
        driver.settle()
    right = driver.state.view
    with holding("shift"):
        wheel(*driver.at(*driver.spot(0.5, 0.5)), 4)
        driver.settle()

    assert right.left > start.left > driver.state.view.left
    assert right.width == pytest.approx(start.width)
    assert right.low == driver.state.view.low == start.low


@pytest.mark.parametrize(
    ("keys", "factors"),
    [
        ("plus", (0.8, 0.8)),
        ("equal", (0.8, 0.8)),
        ("minus", (1.25, 1.25)),
        ("ctrl+plus", (0.8, 1)),
        ("ctrl+minus", (1.25, 1)),
        ("alt+plus", (1, 0.8)),
        ("alt+minus", (1, 1.25)),
    ],
)
def test_plus_and_minus_zoom_at_the_pointer(
    driver: Driver, keys: str, factors: tuple[float, float]
) -> None:
    start = _zoomed_in(driver)
    place = driver.spot(0.25, 0.5)
    move(*driver.at(*place))
    driver.settle()
    point = driver.state.point_of(*place)

    key(keys)
    driver.settle()

    now = driver.state.view
    assert (now.width / start.width, now.height / start.height) == pytest.approx(factors)
    assert driver.state.point_of(*place) == pytest.approx(point)


def test_a_right_drag_frames_what_is_shown_then(driver: Driver) -> None:
    a, b = driver.spot(0.3, 0.35), driver.spot(0.55, 0.8)
    corners = driver.state.point_of(*a), driver.state.point_of(*b)
    accent = tuple(int(palette_of("light").accent[n : n + 2], 16) for n in (1, 3, 5))

    move(*driver.at(*a))
    mouse_down(RIGHT)
    move(*driver.at(a[0] + 20, a[1] + 20))
    move(*driver.at(*b))
    driver.settle()
    driver.until(lambda: tuple(driver.pixels()[a[1], a[0] + 60]) == accent)
    framed = driver.pixels()
    mouse_up(RIGHT)
    driver.settle()

    assert (framed[a[1], a[0] : b[0]] == accent).all(), "the upper edge"
    assert (framed[a[1] : b[1], a[0]] == accent).all(), "the left edge"
    view = driver.state.view
    assert view.x_span == pytest.approx((corners[0][0], corners[1][0]))
    assert (view.low, view.high) == pytest.approx((corners[1][1], corners[0][1]))
    driver.away()
    driver.assert_drawn()


def test_escape_takes_a_frame_back(driver: Driver) -> None:
    whole = driver.state.view

    move(*driver.at(*driver.spot(0.3, 0.3)))
    mouse_down(RIGHT)
    move(*driver.at(*driver.spot(0.5, 0.5)))
    move(*driver.at(*driver.spot(0.6, 0.6)))
    driver.until(lambda: driver.plot._zoom_box is not None)
    key("Escape")
    driver.settle()
    mouse_up(RIGHT)
    driver.settle()

    assert driver.state.view == whole


def test_home_shows_everything_and_backspace_what_was_before(driver: Driver) -> None:
    whole = driver.state.view
    closer = _zoomed_in(driver)

    key("Home")
    driver.settle()
    assert driver.state.view == whole
    key("BackSpace")
    driver.settle()
    assert driver.state.view == closer
    key("End")
    driver.settle()
    assert driver.state.view.x_span == closer.x_span
    assert (driver.state.view.low, driver.state.view.high) == (whole.low, whole.high)
    key("BackSpace", "BackSpace")
    driver.settle()
    assert driver.state.view == whole


def test_backspace_undoes_a_whole_motion(driver: Driver) -> None:
    start = _zoomed_in(driver)

    with holding("d"):
        driver.until(lambda: driver.state.view.left > start.left + 0.1 * start.width)
    driver.until(lambda: not driver.window._held._down)
    key("BackSpace")
    driver.settle()

    assert driver.state.view == start


def test_p_goes_to_the_peak(driver: Driver) -> None:
    whole = driver.state.view
    driver.state.set_cursor(5)

    key("p")
    driver.settle()

    peak = int(driver.device.totals.argmax())
    assert driver.state.cursor == peak
    view = driver.state.view
    assert view.width < whole.width / 2
    assert (view.left + view.right) / 2 == pytest.approx(peak, abs=view.width / 2)
    assert view.high > driver.device.peak_bytes


def test_o_visits_every_out_of_memory_and_shift_o_goes_back(driver: Driver) -> None:
    ooms = sorted(set(driver.device.oom_at))
    assert len(ooms) > 1, "the demo runs out of memory more than once"
    driver.state.set_cursor(0)

    seen = []
    for name in ["o"] * len(ooms) + ["O"] * (len(ooms) - 1):
        key(name)
        driver.settle()
        seen.append(driver.state.cursor)
        assert driver.state.view.left <= seen[-1] <= driver.state.view.right  # type: ignore[operator]

    assert seen == [*ooms, *ooms[-2::-1]]


# What is under the pointer


def _has_stack(driver: Driver) -> Callable[[int], bool]:
    a, snapshot = driver.device.allocations, driver.document.snapshot
    return lambda one: a.stack[one] != BACKGROUND and bool(snapshot.frames(a.stack[one]))


def test_the_pointer_is_told_size_lifetime_and_line(driver: Driver) -> None:
    a, snapshot = driver.device.allocations, driver.document.snapshot

    def own(allocation: int) -> list[str]:
        stack = int(a.stack[allocation])
        frames = [] if stack == BACKGROUND else snapshot.frames(stack)
        return [f"model.py:{f.line} {f.name}" for f in frames if f.filename.endswith("/model.py")]

    x, y, allocation = driver.pixel_with(lambda one: bool(own(one)))

    move(*driver.at(x, y))
    driver.settle()

    first, second = driver.plot._tip.text.splitlines()
    size = format_bytes(int(a.size[allocation]))
    assert first == f"{size}  ·  {alive_text(driver.trace, allocation)}"
    assert second == own(allocation)[0], "the innermost line of one's own code"
    pointer = driver.state.pointer
    assert pointer is not None
    assert pointer.allocation == allocation
    column = driver.state.view.left + x * driver.state.view.width / driver.state.plot_px[0]
    per_pixel = driver.state.view.width / driver.state.plot_px[0]
    assert abs(pointer.event - column) <= per_pixel + 1


def test_a_tip_does_not_swallow_the_mouse(driver: Driver) -> None:
    x, y, _ = driver.pixel_with(_has_stack(driver))
    move(*driver.at(x, y))
    driver.settle()
    tip = driver.plot._tip.label
    on_tip = driver.middle(tip)
    place = on_tip[0] - driver.at(0, 0)[0], on_tip[1] - driver.at(0, 0)[1]
    below = int(driver.image().ids[place[1], place[0]])

    move(*on_tip)
    driver.settle()

    assert driver.state.pointer is not None
    assert (driver.state.pointer.x_px, driver.state.pointer.y_px) == place
    click(*on_tip)
    driver.done()
    assert driver.state.selection == (None if below == BACKGROUND else below)


def test_the_tip_goes_when_the_pointer_leaves(driver: Driver) -> None:
    x, y, _ = driver.pixel_with(lambda _: True)
    move(*driver.at(x, y))
    driver.until(driver.plot._tip.label.winfo_ismapped)

    driver.away()

    assert not driver.plot._tip.label.winfo_ismapped()
    assert driver.state.pointer is None


def test_tips_stay_inside_of_the_plot(driver: Driver) -> None:
    for x, y in ((0.02, 0.97), (0.99, 0.97), (0.99, 0.8)):
        move(*driver.at(*driver.spot(x, y)))
        driver.settle()
        tip = driver.plot._tip.label
        assert tip.winfo_ismapped()
        assert tip.winfo_x() >= 0
        assert tip.winfo_y() >= 0
        assert tip.winfo_x() + tip.winfo_width() <= driver.state.plot_px[0]
        assert tip.winfo_y() + tip.winfo_height() <= driver.state.plot_px[1]


def test_the_status_line_tells_of_the_pointer(driver: Driver) -> None:
    x, y, _ = driver.pixel_with(lambda _: True)
    move(*driver.at(x, y))
    driver.settle()

    status, pointer = driver.window.status, driver.state.pointer
    assert pointer is not None
    total = int(driver.device.totals[pointer.event])
    assert status._where.cget("text").startswith(f"event {pointer.event:,} of 9,000")
    assert status._alive.cget("text") == f"{format_bytes(total)} live"
    assert status._under.cget("text") == f"pointer at {format_bytes(pointer.byte)}"


def test_a_click_selects_and_fills_the_details(driver: Driver) -> None:
    x, y, allocation = driver.pixel_with(_has_stack(driver))

    click(*driver.at(x, y))
    driver.done()

    a = driver.device.allocations
    assert driver.state.selection == allocation
    assert _tab(driver) == 0, "the details are in front"
    page = driver.window.side.details._text.get("1.0", "end")
    assert f"{int(a.size[allocation]):,} B" in page
    assert f"0x{int(a.address[allocation]):x}" in page
    frames = driver.document.snapshot.frames(a.stack[allocation])
    assert frames[-1].name in page or "frames" in page
    driver.away()
    driver.assert_drawn()


def test_a_click_beside_everything_selects_nothing(driver: Driver) -> None:
    _select(driver)
    driver.done()
    assert driver.state.selection is not None

    ids = driver.image().ids
    y, x = np.argwhere(ids == BACKGROUND)[0].tolist()
    click(*driver.at(x, y))
    driver.done()

    assert driver.state.selection is None


def test_a_right_click_tells_memory_and_time(driver: Driver) -> None:
    place = driver.spot(0.31, 0.5)

    click(*driver.at(*place), button=RIGHT)
    driver.done()

    device, trace = driver.device, driver.trace
    clock = device.clock()
    assert clock is not None
    text = driver.plot._tip.text
    event = int(re.match(r"event ([\d,]+) of 9,000", text)[1].replace(",", ""))  # type: ignore[index]
    per_pixel = driver.state.view.width / driver.state.plot_px[0]
    assert abs(event - driver.state.point_of(*place)[0]) <= per_pixel + 1
    assert driver.state.cursor == event, "the cursor is there"
    assert f"{format_bytes(int(device.totals[event]))} alive" in text
    assert f"{format_duration_us(clock.at(event))} after the first" in text
    assert clock_text(clock.start_us + clock.at(event)) in text
    byte = int(driver.state.point_of(place[0] + 0.5, place[1] + 0.5)[1])
    assert f"at {format_bytes(byte)}" in text
    assert trace.unix_us_of(event) == clock.start_us + clock.at(event)
    driver.away()
    assert driver.plot._tip.text == text, "it stays to be read"


def test_escape_clears_what_is_told_and_selected(driver: Driver) -> None:
    _select(driver)
    driver.done()
    click(*driver.at(*driver.spot(0.6, 0.3)), button=RIGHT)
    driver.settle()
    driver.away()
    assert driver.plot._tip.text

    key("Escape")
    driver.settle()

    assert driver.plot._tip.text == ""
    assert driver.state.selection is None
    assert driver.state.facts is None


def test_f_shows_all_of_the_selection(driver: Driver) -> None:
    a, events = driver.device.allocations, driver.trace.events
    short = _has_stack(driver)
    x, y, allocation = driver.pixel_with(
        lambda one: short(one) and a.alloc_event[one] >= 0 and a.free_event[one] < events
    )
    click(*driver.at(x, y))
    driver.done()
    before = np.count_nonzero(driver.image().ids == allocation)

    key("f")
    driver.done()

    view = driver.state.view
    assert view.left <= a.alloc_event[allocation]
    assert view.right >= a.free_event[allocation]
    assert view.width < driver.state.world.right
    assert np.count_nonzero(driver.image().ids == allocation) > 2 * before, "it is larger"
    driver.away()
    driver.assert_drawn()


def test_brackets_go_through_the_allocations_of_a_stack(driver: Driver) -> None:
    a = driver.device.allocations
    counts = np.bincount(a.stack[a.stack != BACKGROUND])
    stack = int(np.flatnonzero(counts >= 5)[0])
    same = np.flatnonzero(a.stack == stack)
    same = same[np.argsort(a.alloc_event[same], kind="stable")].tolist()
    driver.state.select(same[1])

    seen = []
    for name in ("bracketright", "bracketright", "bracketleft", "bracketleft", "bracketleft"):
        key(name)
        driver.done()
        seen.append(driver.state.selection)
        selected = int(seen[-1] or 0)
        assert a.alloc_event[selected] <= driver.state.view.right
        assert a.free_event[selected] >= driver.state.view.left

    assert seen == [same[2], same[3], same[2], same[1], same[0]]
    key("bracketleft")
    driver.settle()
    assert driver.notice == "This is the first allocation of its stack."


# The overview


def test_the_overview_moves_the_part_in_view(driver: Driver) -> None:
    start = _zoomed_in(driver)
    minimap = driver.window.area._minimap
    left, right = minimap._box()
    top, y = minimap.winfo_rootx(), driver.middle(minimap)[1]
    a, b = round((left + right) / 2), round((left + right) / 2) + 150
    world, width = driver.state.world.right, minimap.winfo_width()

    drag((top + a, y), (top + b, y))
    driver.settle()
    dragged = driver.state.view
    click(top + 200, y)
    driver.settle()
    clicked = driver.state.view

    assert dragged.left - start.left == pytest.approx(150 / width * world)
    assert (clicked.left + clicked.right) / 2 == pytest.approx(200 / width * world, rel=0.02)
    for view in (dragged, clicked):
        assert view.width == pytest.approx(start.width)
        assert (view.low, view.high) == (start.low, start.high)
    driver.away()
    driver.assert_drawn()


# How it is shown


def _choose(driver: Driver, box: ttk.Combobox, down: int) -> None:
    """Choose another entry of a list, by mouse and keys."""
    click(*driver.middle(box))
    driver.settle()
    key(*["Down"] * down, "Return")
    driver.done()


def test_the_toolbars_lists_choose_device_axis_colour_and_order(driver: Driver) -> None:
    toolbar, state = driver.window.toolbar, driver.state
    first = state.which

    _choose(driver, toolbar._axis._box, 1)
    assert state.look.axis == "time"
    _choose(driver, toolbar._color._box, 2)
    assert state.look.color == get_args(Coloring)[2]
    _choose(driver, toolbar._order._box, 1)
    assert state.look.order == "stack"
    assert toolbar._order._box.get() == "stack"
    box = toolbar._device._box
    assert box.get() == f"GPU {driver.device.index}"
    click(*driver.middle(box))
    driver.settle()
    key("Up" if first else "Down", "Return")
    driver.done()
    assert state.which == 1 - first
    driver.away()
    driver.assert_drawn()
    key("Home")
    driver.settle()
    assert state.view == state.world.whole(), "keys belong to the plot again"


def test_keys_change_axis_colour_order_theme_and_device_in_turn(driver: Driver) -> None:
    state, toolbar = driver.state, driver.window.toolbar
    seen: dict[str, list[str]] = {"x": [], "c": [], "v": [], "t": [], "g": []}
    read = {
        "x": toolbar._axis._box.get,
        "c": toolbar._color._box.get,
        "v": toolbar._order._box.get,
        "t": lambda: state.look.theme,
        "g": toolbar._device._box.get,
    }
    for name, values in seen.items():
        for _ in range({"t": 2, "g": 2, "x": 4}.get(name, 6)):
            key(name)
            driver.done()
            values.append(read[name]())

    assert seen["x"] == ["time", "busy time", "events", "time"]
    assert seen["c"] == [*get_args(Coloring)[1:], "stack"]
    assert seen["v"] == [*get_args(Order)[1:], "allocation"]
    assert seen["t"] == ["dark", "light"]
    assert sorted(seen["g"]) == ["GPU 0", "GPU 1"]


def test_dark_is_dark_everywhere(driver: Driver) -> None:
    key("t", "ctrl+3")
    driver.done()
    driver.away()

    driver.assert_drawn()
    root = driver.root
    left, top = root.winfo_rootx(), root.winfo_rooty()
    pixels = np.asarray(screenshot())[
        top : top + root.winfo_height(), left : left + root.winfo_width()
    ]
    (x, y), (width, height) = driver.at(0, 0), driver.state.plot_px
    outside = np.ones(pixels.shape[:2], dtype=bool)
    outside[y - top : y - top + height, x - left : x - left + width] = False
    light = (pixels.min(axis=2) > 200) & outside
    assert light.mean() < 0.02, "only letters are light"


def test_time_along_the_axis_keeps_the_same_events_in_view(driver: Driver) -> None:
    _zoomed_in(driver)
    first, last = driver.state.visible_events()

    key("x")
    driver.done()

    now = driver.state.visible_events()
    assert abs(now[0] - first) <= 2
    assert abs(now[1] - last) <= 2
    assert driver.trace.clock is not None
    assert driver.state.view.left == pytest.approx(driver.trace.clock.at(first), abs=2)


# Filtering


def _frames_match(driver: Driver, pattern: str) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which allocations have a frame that matches, one by one."""
    snapshot, stacks = driver.document.snapshot, driver.device.allocations.stack.tolist()
    texts = {
        stack: [f"{f.name} ({f.filename}:{f.line})" for f in snapshot.frames(stack)]
        for stack in set(stacks)
        if stack != BACKGROUND
    }
    found = re.compile(pattern, re.IGNORECASE)
    return np.array([any(found.search(text) for text in texts.get(s, [])) for s in stacks])


def test_a_filter_that_is_typed_counts_and_dims(driver: Driver) -> None:
    _type_filter("forward|backward size>=1MiB")
    driver.until(lambda: driver.state.filter.matches is not None)
    driver.done()

    a = driver.device.allocations
    mask = _frames_match(driver, "forward|backward") & (a.size >= MIB)
    count, size = int(mask.sum()), int(a.size[mask].sum())
    bar = driver.window.toolbar.filter
    assert count > 0
    assert bar._count.cget("text") == f"{count:,} match  ·  {format_bytes(size)}"
    matches = driver.state.filter.matches
    assert matches is not None
    assert (matches.mask == mask).all()
    assert driver.timeline.shown == len(a), "they are only highlighted"


def test_m_and_the_switch_stack_only_matches(driver: Driver) -> None:
    _type_filter("size>=1MiB")
    driver.done()
    key("Escape", "m")
    driver.done()
    a = driver.device.allocations
    shown, button = driver.timeline.shown, driver.window.toolbar.filter._mode

    assert shown == int((a.size >= MIB).sum()) < len(a)
    assert button.cget("text") == "only these"
    click(*driver.middle(button))
    driver.done()
    assert driver.state.filter.mode == "highlight"
    assert driver.timeline.shown == len(a)
    driver.state.clear_filter()
    key("m")
    driver.done()
    assert driver.timeline.shown == len(a), "without a filter there is nothing to leave out"
    key("m")
    driver.done()


def test_keys_that_are_typed_into_the_filter_do_nothing_else(driver: Driver) -> None:
    view, look = _zoomed_in(driver), driver.state.look

    key("slash")
    write("wasd xcvt pfo + - g")
    key("Home", "BackSpace", "Left", "question")
    driver.done()

    assert driver.state.view == view
    assert driver.state.look == look
    assert driver.window.toolbar.filter.entry.get() == "?wasd xcvt pfo + - g"


def test_control_a_marks_all_of_a_text(driver: Driver) -> None:
    _type_filter("forward")
    key("ctrl+a")
    write("backward")
    driver.done()
    key("ctrl+l")
    write("select 1")
    key("ctrl+a")
    write("select 2")
    driver.done()

    assert driver.state.filter.text == "backward"
    assert driver.window.side.sql.sql == "select 2"


def test_escape_leaves_the_filter_and_keys_move_again(driver: Driver) -> None:
    start = _zoomed_in(driver)
    _type_filter("forward")
    driver.done()

    key("Escape")
    driver.settle()
    assert driver.state.filter.text == "forward", "it stays"
    key("d")
    driver.until(lambda: not driver.window._held._down)
    assert driver.state.view.left > start.left
    key("ctrl+BackSpace")
    driver.done()
    assert driver.state.filter.text == ""
    assert driver.window.toolbar.filter.entry.get() == ""


def test_a_wrong_filter_is_told_of_in_words_below_it(driver: Driver) -> None:
    _type_filter("size>>3")
    driver.until(lambda: driver.state.filter.error)

    bar = driver.window.toolbar.filter
    error = bar._error
    assert error.winfo_ismapped()
    assert "size>>3" in error.cget("text")
    assert "is not understood" in error.cget("text")
    right = error.winfo_rootx() + error.winfo_width()
    assert right <= driver.root.winfo_rootx() + driver.root.winfo_width()
    assert driver.timeline.shown == len(driver.device.allocations)
    key("BackSpace", "BackSpace", "BackSpace")
    write(">=3")
    driver.until(lambda: driver.state.filter.matches is not None)
    assert not error.winfo_ismapped()


def test_terms_can_be_chosen_from_a_menu(driver: Driver) -> None:
    bar = driver.window.toolbar.filter

    driver.root.after(200, lambda: key("Down", "Return"))
    click(*driver.middle(bar._terms))
    driver.until(lambda: driver.state.filter.matches is not None)

    assert bar.entry.get() == "size>=1MiB"
    assert driver.state.filter.text == "size>=1MiB"


def test_k_shows_what_the_selections_stack_made_and_l_what_is_alive(driver: Driver) -> None:
    key("k")
    driver.settle()
    assert driver.notice == "Select an allocation first: click it."
    x, y, allocation = driver.pixel_with(_has_stack(driver))
    click(*driver.at(x, y))
    driver.done()
    a = driver.device.allocations

    key("k")
    driver.done()
    assert driver.timeline.shown == np.count_nonzero(a.stack == a.stack[allocation])
    key("l")
    driver.done()
    cursor = driver.state.cursor
    assert cursor is not None
    alive = (a.alloc_event <= cursor) & (a.free_event > cursor)
    assert driver.timeline.shown == np.count_nonzero(alive)
    key("ctrl+BackSpace", "m")
    driver.done()
    assert driver.timeline.shown == len(a)
    driver.away()
    driver.assert_drawn()


# The tables beside


def _row(table: VirtualTable, row: int) -> tuple[int, int]:
    """The first cell of a row, on the screen."""
    box = cast("tuple[int, int, int, int]", table.tree.bbox(str(row - table.first), "0"))
    x, y, _, height = box
    return table.tree.winfo_rootx() + x + 12, table.tree.winfo_rooty() + y + height // 2


def test_a_query_finds_a_row_and_the_row_the_allocation(driver: Driver) -> None:
    driver.until(lambda: driver.document.bundle is not None)
    key("ctrl+l")
    driver.settle()
    write("select idx, size from allocations where device = ")
    write(f"{driver.device.index} order by size desc, idx limit 20")
    key("ctrl+Return")
    driver.until(lambda: driver.state.queries.answer is not None)
    sql, a = driver.window.side.sql, driver.device.allocations

    click(*_row(sql.results, 2))
    driver.done()

    order = np.lexsort((np.arange(len(a)), -a.size.astype(np.int64)))
    assert driver.state.selection == order[2]
    assert (driver.image().ids == order[2]).any(), "it is in view"
    assert "20 rows" in sql.status.cget("text")


def test_a_wrong_query_is_told_of(driver: Driver) -> None:
    driver.until(lambda: driver.document.bundle is not None)
    key("ctrl+l")
    driver.settle()
    write("select idx from nowhere")
    key("ctrl+Return")
    driver.until(lambda: driver.state.queries.error)

    assert "nowhere" in driver.window.side.sql.status.cget("text")
    assert driver.state.document is not None


def test_a_query_can_be_typed_at_once_after_its_key(driver: Driver) -> None:
    look = driver.state.look

    key("ctrl+l")
    write("select 1")
    driver.done()

    assert driver.window.side.sql.sql == "select 1"
    assert driver.state.look == look


def test_the_list_of_events_follows_the_cursor_and_leads_it(driver: Driver) -> None:
    key("ctrl+4")
    driver.settle()
    table = driver.window.side.events.table
    click(*driver.at(*driver.spot(0.4, 0.4)), button=RIGHT)
    driver.done()

    cursor = driver.state.cursor
    assert cursor is not None
    assert table.row == cursor, "it follows"
    assert table.first <= cursor < table.first + table.page
    click(*_row(table, cursor + 2))
    driver.done()
    assert driver.state.cursor == cursor + 2, "it leads"
    driver.away()
    driver.assert_drawn()


def test_an_event_that_is_gone_to_comes_into_view(driver: Driver) -> None:
    _zoomed_in(driver)
    key("ctrl+4")
    driver.settle()
    entry = driver.window.side.events.entry
    click(*driver.middle(entry))
    driver.settle()
    write("8,000")
    key("Return")
    driver.done()

    assert driver.state.cursor == 8000
    assert driver.state.view.left <= 8000 <= driver.state.view.right


def test_the_table_at_the_cursor_holds_what_is_alive(driver: Driver) -> None:
    pane, a, peak = (
        driver.window.side.at_cursor,
        driver.device.allocations,
        driver.device.peak_event,
    )
    alive = (a.alloc_event <= peak) & (a.free_event > peak)
    total = format_bytes(int(a.size[alive].sum()))

    title = pane.title.cget("text")
    largest = int((a.size * alive).argmax())

    assert title == f"At the peak · {total} in {np.count_nonzero(alive):,} allocations"
    click(*_row(pane.largest, 0))
    driver.done()
    assert driver.state.selection is not None
    assert a.size[driver.state.selection] == a.size[largest]
    key("Escape")
    click(*driver.at(*driver.spot(0.1, 0.3)), button=RIGHT)
    driver.done()
    cursor = driver.state.cursor
    assert cursor is not None
    held = format_bytes(int(driver.device.totals[cursor]))
    assert pane.title.cget("text").startswith(f"After event {cursor:,} · {held} in ")


# Panes and sizes


def _tab(driver: Driver) -> int:
    """Which tab is in front."""
    return int(driver.window.side._book.index("current"))  # type: ignore[no-untyped-call]


def test_keys_show_and_hide_the_panes(driver: Driver) -> None:
    area, side = driver.window.area, driver.window.side
    width, height = driver.state.plot_px
    shown: list[tuple[bool, bool, bool]] = []
    for name in ("F7", "F8", "F9", "F7", "F8", "F9"):
        key(name)
        driver.settle()
        parts = (area._minimap, area._lanes._canvas, side)
        shown.append(
            cast("tuple[bool, bool, bool]", tuple(bool(p.winfo_ismapped()) for p in parts))
        )
        if name == "F9" and not shown[-1][2]:
            assert driver.state.plot_px[0] > width
            assert driver.state.plot_px[1] > height
            driver.assert_drawn()

    assert shown == [
        (False, True, True),
        (False, False, True),
        (False, False, False),
        (True, False, False),
        (True, True, False),
        (True, True, True),
    ]
    assert driver.state.plot_px == (width, height)


def test_control_and_a_number_bring_a_tab_to_the_front(driver: Driver) -> None:
    for number in (1, 3, 4, 2):
        key(f"ctrl+{number}")
        driver.settle()
        assert _tab(driver) == number - 1
    key("F9")
    driver.settle()
    assert not driver.window.side.winfo_ismapped()
    key("ctrl+1")
    driver.settle()
    assert driver.window.side.winfo_ismapped(), "asking for a tab shows the pane"


def test_the_side_pane_can_be_made_wider(driver: Driver) -> None:
    side = driver.window.side
    width, plot = side.winfo_width(), driver.state.plot_px[0]
    x, y = side.winfo_rootx() - 3, driver.middle(side)[1]

    drag((x, y), (x - 120, y))
    driver.settle()

    assert side.winfo_width() == pytest.approx(width + 120, abs=6)
    assert driver.state.plot_px[0] == pytest.approx(plot - 120, abs=6)
    key("F9")
    driver.settle()
    key("F9")
    driver.settle()
    assert side.winfo_width() == pytest.approx(width + 120, abs=6), "it comes back as it was"
    driver.assert_drawn()


def _resize(driver: Driver, width: int, height: int) -> None:
    driver.root.geometry(f"{width}x{height}")
    driver.until(lambda: (driver.root.winfo_width(), driver.root.winfo_height()) == (width, height))


def test_the_side_pane_folds_away_in_a_narrow_window_and_comes_back(driver: Driver) -> None:
    _select(driver)  # which shows the details
    driver.done()

    _resize(driver, 1090, 700)
    assert not driver.window.side.winfo_ismapped()
    key("ctrl+2")
    driver.settle()
    assert driver.window.side.winfo_ismapped(), "it was asked for"
    _resize(driver, 1200, 700)
    assert driver.window.side.winfo_ismapped()
    _resize(driver, 1000, 700)
    assert not driver.window.side.winfo_ismapped()
    driver.away()
    driver.assert_drawn()


@pytest.mark.parametrize("size", ["the least", (1100, 700), (2400, 1300)])
@pytest.mark.parametrize("text", ["", "forward size>=1MiB"])
def test_nothing_is_cut_off(
    driver: Driver, size: tuple[int, int] | Literal["the least"], text: str
) -> None:
    size = driver.root.minsize() if size == "the least" else size
    _resize(driver, *size)
    if text:
        _type_filter(text)
        driver.until(lambda: driver.state.filter.matches is not None)
    move(*driver.at(*driver.spot(0.5, 0.95)))
    driver.until(lambda: not driver.state.jobs.running())

    assert cut_off(driver.window.toolbar, driver.root) == []
    assert cut_off(driver.window.status, driver.root) == []
    assert driver.window.toolbar.filter.entry.winfo_width() >= 80
    assert driver.state.plot_px[0] > 0.4 * size[0]
    assert driver.state.plot_px[1] > 0.5 * size[1]


def test_work_aside_does_not_change_the_size_of_the_plot(driver: Driver) -> None:
    driver.until(lambda: not driver.state.jobs.running())
    size, go_on = driver.state.plot_px, Event()

    driver.state.start(Job("wait", "waiting"), lambda _: go_on.wait(), print, print)
    driver.until(driver.window.status._work.winfo_ismapped)
    meanwhile, cut = driver.state.plot_px, cut_off(driver.window.status, driver.root)
    go_on.set()
    driver.done()

    assert meanwhile == size
    assert cut == []
    assert not driver.window.status._work.winfo_ismapped()
    assert driver.state.plot_px == size


# Commands, menus and keys


def _entries(menu: tk.Menu) -> list[tuple[str, str]]:
    """The label and the key of each command in a menu and its submenus."""
    found = []
    last = menu.index("end")
    for place in range(0 if last is None else last + 1):
        kind = menu.type(place)
        if kind == "cascade":
            found += _entries(menu.nametowidget(menu.entrycget(place, "menu")))
        elif kind == "command" and menu.entrycget(place, "accelerator"):
            found.append((menu.entrycget(place, "label"), menu.entrycget(place, "accelerator")))
    return found


def test_every_command_is_in_a_menu_with_its_key(driver: Driver) -> None:
    commands = commands_of(driver.state, driver.window)
    bar = driver.root.nametowidget(driver.root.cget("menu"))

    entries = _entries(bar)

    assert sorted(entries) == sorted((one.label, one.shown) for one in commands)
    assert all(one.keys and one.shown for one in commands)
    keys = [name for one in commands for name in one.keys]
    assert len(keys) == len(set(keys)), "no key means two things"


_TYPED = {"Control": "ctrl", "Shift": "shift", "Alt": "alt"}


def _typed(name: str) -> str:
    """How xdotool writes a key of Tk's.

    >>> _typed("<Control-Shift-O>"), _typed("<Control-Key-1>"), _typed("<O>")
    ('ctrl+shift+o', 'ctrl+1', 'O')
    """
    *modifiers, letter = name.strip("<>").replace("Key-", "").split("-")
    if modifiers and len(letter) == 1:
        letter = letter.lower()
    return "+".join([*(_TYPED[one] for one in modifiers), letter])


def test_every_key_runs_its_command_and_no_other(driver: Driver) -> None:
    ran: list[str] = []
    commands = [
        replace(one, run=partial(ran.append, one.label))
        for one in commands_of(driver.state, driver.window)
    ]
    top = tk.Toplevel(driver.root)
    top.geometry("200x100+50+50")
    held = HeldKeys(top, driver.state)
    held.press = lambda key, direction: ran.append(str(direction))  # type: ignore[method-assign]
    bind_keys(cast("tk.Tk", top), commands, held)
    driver.until(top.winfo_viewable)
    top.focus_force()
    driver.settle()

    expected = []
    for command in commands:
        for name in dict.fromkeys(map(_typed, command.keys)):
            key(name)
            expected.append(command.label if command.hold is None else str(command.hold))
    driver.until(lambda: len(ran) >= len(expected))
    top.destroy()
    driver.root.focus_force()
    driver.settle()

    assert ran == expected


def test_capital_letters_do_the_same_as_small_ones(driver: Driver) -> None:
    key("X", "T")
    driver.done()

    assert driver.state.look.axis == "time"
    assert driver.state.look.theme == "dark"


@pytest.mark.parametrize(
    ("name", "title", "words"),
    [
        ("F1", "Keys and mouse", ["Ctrl+O", "To the peak", "Right drag"]),
        ("question", "Keys and mouse", ["Home"]),
        ("F2", "What a filter can say", ["size>=1MiB", "attention|mlp"]),
        ("ctrl+F1", "About snapviewer", ["Tk", "Python", "MIT"]),
    ],
)
def test_help_opens_and_escape_closes_it(
    driver: Driver, name: str, title: str, words: list[str]
) -> None:
    before = _windows(driver.root)
    key(name)
    driver.until(lambda: _windows(driver.root) != before)
    (opened,) = [one for one in _windows(driver.root) if one not in before]
    texts = _texts(opened)

    assert opened.title() == title
    assert [word for word in words if word not in texts] == []
    assert opened.winfo_width() >= opened.winfo_reqwidth()
    assert opened.winfo_reqwidth() <= 1280
    assert opened.winfo_reqheight() <= 700, "it fits on a small screen"
    key("Escape")
    driver.until(lambda: _windows(driver.root) == before)
    key("t")
    driver.settle()
    assert driver.state.look.theme == "dark", "keys go to the window again"


def _windows(root: tk.Tk) -> list[tk.Toplevel]:
    return [
        one
        for one in root.winfo_children()
        if isinstance(one, tk.Toplevel) and one.winfo_viewable()
    ]


def _texts(widget: tk.Misc) -> list[str]:
    own = [str(widget.cget("text"))] if isinstance(widget, ttk.Label) else []
    return [*own, *(text for child in widget.winfo_children() for text in _texts(child))]


def test_every_menu_opens_and_its_entries_run(driver: Driver) -> None:
    bar = driver.root.nametowidget(driver.root.cget("menu"))
    view = bar.nametowidget(bar.entrycget("View", "menu"))
    start = _zoomed_in(driver)

    driver.root.after(300, lambda: key("Return"))
    key("alt+v")
    driver.until(lambda: driver.state.view != start)

    assert view.entrycget(0, "label") == "Fit all"
    assert driver.state.view == driver.state.world.whole()


# Trust


def _badge(driver: Driver) -> str:
    return str(driver.window.status._badge.cget("text"))


def test_the_badge_says_that_a_file_reconciles_and_why(driver: Driver) -> None:
    assert _badge(driver) == "✓ reconciles"

    click(*driver.middle(driver.window.status._badge))
    driver.settle()

    assert driver.notice.startswith("Trace and segments agree to the byte")
    assert driver.window.cover._notice.winfo_ismapped()


Grade = Literal["Good", "Warn", "Error"]


@pytest.mark.parametrize(
    ("name", "badge", "words", "grade"),
    [
        ("t26-20k-events", "✓ reconciles", "agree to the byte", "Good"),
        ("TRIMMED-mini", "⚠ off by 384 MiB", "402,719,744 bytes", "Error"),
        ("private-pools-state-only", "✓ a state, no trace", "There is no trace", "Good"),
    ],
)
def test_the_badge_says_how_far_a_real_file_can_be_trusted(
    driver: Driver, name: str, badge: str, words: str, grade: Grade
) -> None:
    driver.open(real(name))

    assert _badge(driver).startswith(badge)
    style = str(driver.window.status._badge.cget("style"))
    assert style == f"{grade}.TLabel" or (grade == "Good" and "(!)" in _badge(driver))
    click(*driver.middle(driver.window.status._badge))
    driver.settle()
    assert words in driver.notice


def test_a_notice_can_be_closed(driver: Driver) -> None:
    click(*driver.middle(driver.window.status._badge))
    driver.settle()
    notice = driver.window.cover._notice
    assert notice.winfo_ismapped()

    click(*driver.middle(notice._close), button=LEFT)
    driver.settle()

    assert driver.state.notice is None
    assert not notice.winfo_ismapped()
    driver.away()
    driver.assert_drawn()
