"""The memory map, the lines of reserved memory and the reason of an OOM in a real window."""

from __future__ import annotations

import numpy as np
import pytest

from snapviewer.gui.dock.map_tab import MapTab
from snapviewer.gui.dock.map_view import MapView
from snapviewer.gui.plot.marks import columns_of, cursor_column
from snapviewer.gui.theme import palette_of
from support.display import click, drag, key, move, screenshot, wheel
from support.driver import BACKGROUND, Driver, real, select_one, tab_of

pytestmark = pytest.mark.gui


def _shown(driver: Driver) -> MapView:
    """The map, once it is there."""
    key("F5")
    tab = driver.window.dock.view("map")
    assert isinstance(tab, MapTab)
    view = tab.map
    driver.until(lambda: view.map is not None and view.winfo_ismapped())
    driver.done()
    return view


def _corner(view: MapView) -> tuple[int, int]:
    return view.surface.widget.winfo_rootx(), view.surface.widget.winfo_rooty()


def _pixels(view: MapView) -> np.ndarray:
    (left, top), widget = _corner(view), view.surface.widget
    picture = np.asarray(screenshot())
    return picture[top : top + widget.winfo_height(), left : left + widget.winfo_width()]


def _a_block(view: MapView) -> tuple[int, int, int]:
    """A pixel in the middle of an allocation of the map, and the allocation."""
    assert view.image is not None
    ids = view.image.ids
    inside = (ids[2:-2, 2:-2] != BACKGROUND) & (ids[2:-2, :-4] == ids[2:-2, 4:])
    y, x = np.argwhere(inside)[0].tolist()
    return x + 2, y + 2, int(ids[y + 2, x + 2])


def test_a_key_shows_the_map_under_the_timeline_and_another_hides_it(driver: Driver) -> None:
    height = driver.state.plot_px[1]

    view = _shown(driver)

    driver.until(lambda: driver.state.plot_px[1] < height)
    assert view.winfo_rooty() > driver.plot.widget.winfo_rooty() + driver.state.plot_px[1]
    key("F5")
    driver.until(lambda: driver.state.plot_px[1] == height)
    assert not view.winfo_ismapped()


def test_the_screen_has_what_the_core_draws(driver: Driver) -> None:
    view = _shown(driver)
    driver.away()

    assert view.image is not None
    drawn = view.image.rgb
    # Headings are labels over the picture.
    sizes = view.sizes
    assert view.map is not None
    is_row = np.zeros(drawn.shape[0], dtype=bool)
    for top, kind, _, _ in view.map.rows(view.top, view.top + drawn.shape[0]):
        first = max(top - view.top, 0)
        is_row[first : first + sizes.row] |= kind == "segment"
    driver.until(lambda: bool((_pixels(view)[is_row] == drawn[is_row]).all()))


def test_a_click_in_the_map_selects_in_the_timeline_and_back(driver: Driver) -> None:
    view = _shown(driver)
    x, y, allocation = _a_block(view)
    left, top = _corner(view)

    click(left + x, top + y)
    driver.done()

    assert driver.state.selection == allocation
    assert tab_of(driver) == 0, "its details are shown"
    accent = tuple(bytes.fromhex(palette_of("light").accent[1:]))
    assert (_pixels(view) == accent).all(axis=2).any(), "the block is outlined"
    select_one(driver)
    driver.done()
    chosen = driver.state.selection
    assert chosen is not None
    assert view.map is not None
    at = view.map.top_of(chosen)
    if at is not None:
        driver.until(lambda: view.top <= at < view.top + view.surface.widget.winfo_height())


def test_the_tip_of_a_block_has_its_size_and_line(driver: Driver) -> None:
    view = _shown(driver)
    x, y, allocation = _a_block(view)
    left, top = _corner(view)

    move(left + x, top + y)
    driver.until(lambda: view._tip.text)

    line = driver.document.line_of(int(driver.device.allocations.stack[allocation]))
    assert line in view._tip.text
    assert "in a segment of" in view._tip.text


def test_dragging_the_cursor_moves_the_map(driver: Driver) -> None:
    view = _shown(driver)
    width, height = driver.state.plot_px
    driver.state.set_cursor(driver.trace.events // 2)
    driver.done()
    column, before = cursor_column(driver.state), driver.state.view
    assert column is not None

    drag(driver.at(column, height // 2), driver.at(width // 4, height // 2))
    driver.done()

    expected = driver.trace.event_at("event", driver.state.point_of(width // 4, 0)[0])
    assert driver.state.cursor == expected
    assert driver.state.view == before, "it did not pan"
    memory = driver.state.replayed.memory()
    assert memory is not None
    assert memory.event == expected
    assert view.map is not None


def test_keys_step_through_events(driver: Driver) -> None:
    _shown(driver)
    driver.state.set_cursor(100)

    key("period", "period", "comma")
    driver.done()
    assert driver.state.cursor == 101
    key("n")
    driver.done()

    replay = driver.state.replayed.replay
    assert replay is not None
    assert driver.state.cursor in replay.segment_events


def test_the_wheel_scrolls_and_a_key_zooms(driver: Driver) -> None:
    driver.open(real("t26-1722-segments"))
    view = _shown(driver)
    left, top = _corner(view)

    wheel(left + 200, top + 60, -5)
    driver.until(lambda: view.top > 0)
    before = driver.state.replayed.row_bytes_of(view._size, view.sizes)
    key("z")
    driver.done()

    assert before is not None
    assert driver.state.replayed.row_bytes == before // 2


def test_lines_come_and_go_with_a_key(driver: Driver) -> None:
    box = driver.window.area.amounts

    key("r")
    driver.until(box.winfo_ismapped)

    driver.until(lambda: len(box.lines) == 8)
    assert "reserved" in driver.window.status._live.label.cget("text")
    key("r")
    driver.until(lambda: not box.winfo_ismapped())


def test_a_click_on_the_flag_opens_the_reason(driver: Driver) -> None:
    column = int(columns_of(driver.state, driver.trace.oom_events)[0])

    click(*driver.at(column, 1))
    driver.until(lambda: driver.state.cursor in driver.trace.oom_events)
    driver.until(lambda: driver.state.replayed.replay is not None)
    driver.done()

    assert tab_of(driver) == 1
    label = driver.window.side.at_cursor.oom
    assert label.winfo_ismapped()
    verdicts = {oom.event: oom.verdict for oom in driver.device.ooms}
    assert driver.state.cursor is not None
    assert f": {verdicts[driver.state.cursor]}: " in label.cget("text")


def test_the_height_of_the_map_is_remembered(driver: Driver) -> None:
    _shown(driver)
    room = driver.window.left.winfo_height()
    driver.window.left.sashpos(0, room - 330)  # type: ignore[no-untyped-call]
    driver.settle()
    height = driver.window.dock.winfo_height()

    key("F5", "F5")
    driver.done()

    assert driver.state.settings.dock_height == height
    assert abs(driver.window.dock.winfo_height() - height) <= 1
    key("F5")
    driver.settle()
