"""Looking into the window with real keys and a real mouse: pointer, overview, looks, filter."""

from __future__ import annotations

import re
from collections.abc import Callable
from tkinter import ttk
from typing import get_args

import numpy as np
import pytest

from snapviewer.gui.labels import lifetime_label, time_of_day
from snapviewer.gui.theme import palette_of
from snapviewer.report.picture.options import Coloring, Order
from snapviewer.text.units import format_bytes, format_duration
from support.display import RIGHT, click, drag, key, move, screenshot, write
from support.driver import BACKGROUND, Driver, select_one, tab_of, type_filter, zoom_in

pytestmark = pytest.mark.gui

MIB = 2**20


# What is under the pointer


def _has_stack(driver: Driver) -> Callable[[int], bool]:
    a, snapshot = driver.device.allocations, driver.document.snapshot
    return lambda one: a.stack[one] != BACKGROUND and bool(snapshot.frames(a.stack[one]))


def test_the_tip_has_size_lifetime_and_line(driver: Driver) -> None:
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
    assert first == f"{size}  ·  {lifetime_label(driver.trace, allocation)}"
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


def test_the_status_line_shows_the_pointer(driver: Driver) -> None:
    x, y, _ = driver.pixel_with(lambda _: True)
    move(*driver.at(x, y))
    driver.settle()

    status, pointer = driver.window.status, driver.state.pointer
    assert pointer is not None
    total = int(driver.device.totals[pointer.event])
    assert status._event.label.cget("text").startswith(f"event {pointer.event:,} of 9,000")
    live, *reserved = status._live.label.cget("text").split("  ·  ")
    assert live == f"{format_bytes(total)} live"
    amounts = driver.device.curves.at(pointer.event)
    # The allocator is replayed aside.
    assert reserved in ([], [f"{format_bytes(amounts['reserved'])} reserved"])
    assert status._height.label.cget("text") == f"pointer at {format_bytes(pointer.byte)}"


@pytest.mark.promise("S07")
def test_a_click_selects_and_fills_the_details(driver: Driver) -> None:
    x, y, allocation = driver.pixel_with(_has_stack(driver))

    click(*driver.at(x, y))
    driver.done()

    a = driver.device.allocations
    assert driver.state.selection == allocation
    assert tab_of(driver) == 0, "the details are in front"
    page = driver.window.side.details._text.get("1.0", "end")
    assert f"{int(a.size[allocation]):,} B" in page
    assert f"0x{int(a.address[allocation]):x}" in page
    frames = driver.document.snapshot.frames(a.stack[allocation])
    assert frames[-1].name in page or "frames" in page
    driver.away()
    driver.assert_drawn()


def test_a_click_beside_everything_selects_nothing(driver: Driver) -> None:
    select_one(driver)
    driver.done()
    assert driver.state.selection is not None

    ids = driver.image().ids
    y, x = np.argwhere(ids == BACKGROUND)[0].tolist()
    click(*driver.at(x, y))
    driver.done()

    assert driver.state.selection is None


def test_a_click_on_the_background_moves_the_cursor(driver: Driver) -> None:
    select_one(driver)
    driver.done()
    assert tab_of(driver) == 0
    x, y = driver.spot(0.31, 0.02)
    assert driver.image().ids[y, x] == BACKGROUND

    click(*driver.at(x, y))
    driver.done()

    assert driver.state.cursor == int(driver.image().events[x])
    assert driver.state.alive is not None
    assert driver.state.alive.event == driver.state.cursor
    assert driver.state.selection is None
    assert tab_of(driver) == 1, "the live allocations there are in front"


def test_a_right_click_shows_memory_and_time(driver: Driver) -> None:
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
    assert f"{format_bytes(int(device.totals[event]))} live" in text
    assert f"{format_duration(clock.at(event))} after the first" in text
    assert time_of_day(clock.start_us + clock.at(event)) in text
    byte = int(driver.state.point_of(place[0] + 0.5, place[1] + 0.5)[1])
    assert f"at {format_bytes(byte)}" in text
    assert trace.unix_us_of(event) == clock.start_us + clock.at(event)
    driver.away()
    assert driver.plot._tip.text == text, "it stays to be read"


def test_escape_clears_the_notice_and_the_selection(driver: Driver) -> None:
    select_one(driver)
    driver.done()
    click(*driver.at(*driver.spot(0.6, 0.3)), button=RIGHT)
    driver.settle()
    driver.away()
    assert driver.plot._tip.text

    key("Escape")
    driver.settle()

    assert driver.plot._tip.text == ""
    assert driver.state.selection is None
    assert driver.state.allocation_details is None


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
    assert driver.notice == "This is the first allocation with its call stack."


# The overview


def test_the_overview_moves_the_part_in_view(driver: Driver) -> None:
    start = zoom_in(driver)
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

    _choose(driver, toolbar._looks["axis"]._box, 1)
    assert state.look.axis == "time"
    _choose(driver, toolbar._looks["color"]._box, 2)
    assert state.look.color == get_args(Coloring)[2]
    _choose(driver, toolbar._looks["order"]._box, 1)
    assert state.look.order == "stack"
    assert toolbar._looks["order"]._box.get() == "stack"
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
        "x": toolbar._looks["axis"]._box.get,
        "c": toolbar._looks["color"]._box.get,
        "v": toolbar._looks["order"]._box.get,
        "t": lambda: state.look.theme,
        "g": toolbar._device._box.get,
    }
    for name, values in seen.items():
        turns = {"t": 2, "g": 2, "x": 4, "c": len(get_args(Coloring)), "v": len(get_args(Order))}
        for _ in range(turns[name]):
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
    zoom_in(driver)
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
    type_filter("forward|backward size>=1MiB")
    driver.until(lambda: driver.state.filter.matches is not None)
    driver.done()

    a = driver.device.allocations
    mask = _frames_match(driver, "forward|backward") & (a.size >= MIB)
    count, size = int(mask.sum()), int(a.size[mask].sum())
    bar = driver.window.toolbar.filter
    assert count > 0
    assert bar._count.cget("text") == f"{count:,}  ·  {format_bytes(size)}"
    matches = driver.state.filter.matches
    assert matches is not None
    assert (matches.mask == mask).all()
    assert driver.timeline.shown == len(a), "they are only highlighted"


def test_m_and_the_switch_stack_only_matches(driver: Driver) -> None:
    type_filter("size>=1MiB")
    driver.done()
    key("Escape", "m")
    driver.done()
    a = driver.device.allocations
    shown, button = driver.timeline.shown, driver.window.toolbar.filter._mode

    assert shown == int((a.size >= MIB).sum()) < len(a)
    assert button.cget("text") == "show only"
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
    view, look = zoom_in(driver), driver.state.look

    key("slash")
    write("wasd xcvt pfo + - g")
    key("Home", "BackSpace", "Left", "question")
    driver.done()

    assert driver.state.view == view
    assert driver.state.look == look
    assert driver.window.toolbar.filter.entry.get() == "?wasd xcvt pfo + - g"


def test_control_a_marks_all_of_a_text(driver: Driver) -> None:
    type_filter("forward")
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
    start = zoom_in(driver)
    type_filter("forward")
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


def test_a_wrong_filter_is_reported_in_words_below_it(driver: Driver) -> None:
    type_filter("size>>3")
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


def test_h_and_the_switch_hide_older_allocations(driver: Driver) -> None:
    a, switch = driver.device.allocations, driver.window.toolbar.filter.older

    key("h")
    driver.done()
    assert driver.timeline.shown == np.count_nonzero(a.alloc_event >= 0) < len(a)
    assert switch.instate(["selected"])
    assert driver.plot._peak.cget("text").startswith("peak shown ")
    subtitle = str(driver.window.side.at_cursor.subtitle.cget("text"))
    assert "Without allocations older than the recording" in subtitle
    driver.away()
    driver.assert_drawn()

    click(*driver.middle(switch))
    driver.done()
    assert driver.timeline.shown == len(a)
    assert not switch.instate(["selected"])


@pytest.mark.parametrize("size", ["1800x900", "1300x800", "900x600"])
def test_the_hint_in_the_filter_fits_its_entry(driver: Driver, size: str) -> None:
    driver.root.geometry(size)
    driver.settle()

    entry, hint = driver.window.toolbar.filter.entry, driver.window.toolbar.filter._hint
    assert str(hint.cget("text")).startswith("Filter")
    assert hint.winfo_width() >= hint.winfo_reqwidth()
    assert hint.winfo_x() + hint.winfo_width() <= entry.winfo_width()
    driver.away()
    driver.assert_drawn()


@pytest.mark.parametrize("x_share", [0.0, 0.25, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("y_share", [0.0, 1.0])
def test_long_tips_are_not_clipped_in_a_small_window(
    driver: Driver, x_share: float, y_share: float
) -> None:
    driver.root.geometry("900x600")
    driver.settle()
    plot, tip = driver.plot.widget, driver.plot._tip
    x, y = driver.spot(x_share, y_share)

    tip.show("attention " * 60, x, y, palette_of("light"))
    driver.settle()

    label = tip.label
    assert label.winfo_x() >= 0
    assert label.winfo_x() + label.winfo_width() <= plot.winfo_width()
    assert label.winfo_y() >= 0
    assert label.winfo_y() + label.winfo_height() <= plot.winfo_height()
    assert label.winfo_height() >= label.winfo_reqheight()
    tip.hide()


def test_k_shows_what_the_selections_stack_made_and_l_what_is_alive(driver: Driver) -> None:
    key("k")
    driver.settle()
    assert driver.notice == "Click an allocation to select it first."
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
