"""The window's timeline under real keys and a real mouse: what it shows, and how one moves in it.

What the plot shows is compared with what the engine draws of the same part, pixel by pixel.
"""

from __future__ import annotations

import tkinter as tk
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from snapviewer.gui.keys import Direction
from snapviewer.gui.theme import palette_of
from snapviewer.gui.viewport import Viewport
from support.display import RIGHT, drag, key, key_down, key_up, mouse_down, mouse_up, move, wheel
from support.driver import Driver, holding, real, select_one, type_filter, zoom_in

pytestmark = pytest.mark.gui

MIB = 2**20


def _shares(view: Viewport, x: float, y: float) -> tuple[float, float]:
    return (x - view.left) / view.width, (y - view.low) / view.height


# The picture


def _move_about(driver: Driver) -> None:
    wheel(*driver.at(*driver.spot(0.4, 0.8)), 5)
    drag(driver.at(*driver.spot(0.5, 0.5)), driver.at(*driver.spot(0.37, 0.61)))


def _show_only(text: str) -> None:
    type_filter(text)
    key("Escape", "m")


LOOKS: dict[str, Callable[[Driver], None]] = {
    "as it opens": lambda _: None,
    "moved and zoomed": _move_about,
    "with a selection": select_one,
    "with matches highlighted": lambda _: type_filter("forward"),
    "with nothing but matches": lambda _: _show_only("forward"),
    "in dark": lambda _: key("t"),
    "along the clock": lambda _: key("x"),
    "along the clock without idle times": lambda _: key("x", "x"),
    "in other colours": lambda _: key("c"),
    "in another order": lambda _: key("v"),
    "of another device": lambda _: key("g"),
    "without the overview": lambda _: key("F7"),
}


@pytest.mark.promise("S08")
@pytest.mark.parametrize("look", LOOKS)
def test_the_plot_shows_exactly_what_the_engine_draws(driver: Driver, look: str) -> None:
    # The legend finds its place once nothing has been drawn for a moment.
    driver.until(lambda: driver.window.area.legend._due is None)
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


@pytest.mark.promise("S05")
@pytest.mark.parametrize("name", MOVES)
def test_a_held_key_moves_on_smoothly_and_stops_when_it_is_released(
    driver: Driver, name: str
) -> None:
    start = zoom_in(driver)
    seen: list[Viewport] = []
    driver.state.on(lambda: seen.append(driver.state.view), "view")
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


@pytest.mark.promise("S05")
def test_a_tap_moves_a_little_and_two_keys_move_both_ways(driver: Driver) -> None:
    start = zoom_in(driver)

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
    zoom_in(driver)

    key_down("d")
    driver.until(lambda: driver.window._held._down)
    key("slash")
    driver.settle()
    key_up("d")
    driver.until(lambda: not driver.window._held._down)
    stopped = driver.state.view
    driver.settle()

    assert driver.state.view == stopped


@pytest.mark.promise("S05")
def test_a_left_drag_takes_the_picture_along(driver: Driver) -> None:
    start = zoom_in(driver)
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


@pytest.mark.promise("S06")
@pytest.mark.parametrize(
    ("modifier", "axes"), [("", (True, True)), ("ctrl", (True, False)), ("alt", (False, True))]
)
@pytest.mark.parametrize("steps", [3, -2])
def test_the_wheel_zooms_and_what_is_under_the_pointer_stays(
    driver: Driver, modifier: str, axes: tuple[bool, bool], steps: int
) -> None:
    start = zoom_in(driver)
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
    start = zoom_in(driver)

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
    start = zoom_in(driver)
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
    closer = zoom_in(driver)

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
    start = zoom_in(driver)

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
