"""The legend in the window: every colouring, its toggle, what a click on a line does."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from snapviewer.gui.viewport import Viewport
from snapviewer.report.picture.legend import Entry
from snapviewer.report.picture.options import Coloring, core_color
from support.display import click, key
from support.driver import Driver

pytestmark = pytest.mark.gui


def _shown(driver: Driver) -> tuple[Entry, ...]:
    """Wait for the lines of the part in view."""
    legend = driver.window.area.legend
    driver.until(lambda: legend.entries and legend._due is None)
    driver.done()
    return legend.entries


def _line(driver: Driver, row: int) -> tuple[int, int]:
    """The middle of a line, on the screen."""
    legend = driver.window.area.legend
    return legend.winfo_rootx() + 30, legend.winfo_rooty() + round((row + 1.5) * legend.line_px)


@pytest.mark.parametrize("color", get_args(Coloring))
def test_every_colouring_has_a_legend(driver: Driver, color: Coloring) -> None:
    driver.state.set_look(color=color)
    key("F6")
    entries = _shown(driver)

    colors = driver.device.colors(core_color(color), "light")
    in_view = {tuple(rgb) for rgb in colors[np.unique(driver.image().ids)[:-1]].tolist()}
    assert entries[0].is_heading
    explained = {swatch for entry in entries for swatch in entry.colors}
    if color in ("size", "lifetime"):
        assert len(explained) >= 3, "a scale"
    else:
        # What holds too little to be drawn is still named, with its share of the peak.
        a, peak = driver.device.allocations, driver.device.peak_event
        alive = (a.alloc_event <= peak) & (a.free_event > peak)
        assert explained <= in_view | {tuple(rgb) for rgb in colors[alive].tolist()}
    drawn = {
        str(driver.window.area.legend.itemcget(item, "fill"))  # type: ignore[no-untyped-call]
        for item in driver.window.area.legend.find_all()
    }
    assert {"#{:02x}{:02x}{:02x}".format(*swatch) for swatch in explained} <= drawn
    driver.away()
    driver.assert_drawn()


def test_it_names_what_holds_the_peak_in_view(driver: Driver) -> None:
    key("F6")
    entries = _shown(driver)
    group = driver.state.alive.groups[0]  # type: ignore[union-attr]
    assert entries[1].text == group.line
    assert entries[1].amount == f"{group.size_bytes / driver.device.peak_bytes:.0%}".replace(
        "%", " %"
    )

    driver.state.go(Viewport(0, 300, 0, driver.state.world.high))
    driver.settle()
    driver.until(lambda: _shown(driver) != entries)

    first, last = driver.state.visible_events()
    driver.state.set_cursor(first + int(driver.timeline.totals[first:last].argmax()))
    driver.done()
    assert _shown(driver)[1].text == driver.state.alive.groups[0].line  # type: ignore[union-attr]


def test_a_click_on_a_line_highlights_it_and_another_shows_all_again(driver: Driver) -> None:
    key("F6")
    entry = _shown(driver)[1]

    click(*_line(driver, 1))
    driver.done()

    assert driver.state.filter.mode == "highlight"
    matches = driver.state.filter.matches
    assert matches is not None
    expected = np.isin(driver.device.allocations.stack, entry.keys)
    assert matches.mask[expected].all()
    assert "stack=" not in driver.state.filter.text or " stack=" in driver.state.filter.text
    click(*_line(driver, 1))
    driver.done()
    assert driver.state.filter.text == ""


@pytest.mark.parametrize(("color", "term"), [("stream", "stream="), ("pool", "pool=")])
def test_lines_of_streams_and_pools_filter_by_them(
    driver: Driver, color: Coloring, term: str
) -> None:
    driver.state.set_look(color=color)
    key("F6")
    _shown(driver)

    click(*_line(driver, 1))
    driver.done()

    assert driver.state.filter.text.startswith(term)
    assert driver.state.filter.matches is not None
    assert driver.state.filter.matches.count > 0


def test_it_folds_by_key_and_by_click_and_that_is_remembered(driver: Driver, demo: Path) -> None:
    legend, settings = driver.window.area.legend, driver.state.settings
    assert not settings.show_legend
    folded = legend.winfo_height()
    assert legend.winfo_ismapped()

    key("F6")
    _shown(driver)
    assert settings.show_legend
    assert legend.winfo_height() > 3 * folded
    click(*_line(driver, -1))
    driver.settle()
    assert not settings.show_legend
    assert legend.winfo_height() == folded
    click(*driver.middle(legend))
    driver.settle()
    assert settings.show_legend


@pytest.mark.parametrize("size", ["1800x900", "900x600"])
def test_it_stays_inside_of_the_plot(driver: Driver, size: str) -> None:
    driver.root.geometry(size)
    driver.settle()
    key("F6")
    _shown(driver)
    legend, (width, height) = driver.window.area.legend, driver.state.plot_px

    assert legend.winfo_x() >= 0
    assert legend.winfo_x() + legend.winfo_width() <= width
    assert legend.winfo_y() + legend.winfo_height() <= height
    driver.away()
    driver.assert_drawn()
