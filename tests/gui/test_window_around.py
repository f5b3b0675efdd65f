"""What is around the timeline, with real keys and a real mouse: tables, panes, menus, badge."""

from __future__ import annotations

import tkinter as tk
from dataclasses import replace
from functools import partial
from threading import Event
from tkinter import ttk
from typing import Literal, cast

import numpy as np
import pytest

from snapviewer.gui.commands import commands_of
from snapviewer.gui.jobs import Job
from snapviewer.gui.keys import HeldKeys
from snapviewer.gui.menus import bind_keys
from snapviewer.gui.panes.virtual_table import VirtualTable
from snapviewer.text.units import format_bytes
from support.display import LEFT, RIGHT, click, drag, key, move, write
from support.driver import Driver, cut_off, real, select_one, tab_of, type_filter, zoom_in

pytestmark = pytest.mark.gui

MIB = 2**20


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


def test_a_wrong_query_is_reported(driver: Driver) -> None:
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
    zoom_in(driver)
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


def test_keys_show_and_hide_the_panes(driver: Driver) -> None:
    area, side = driver.window.area, driver.window.side
    width, height = driver.state.plot_px
    shown: list[tuple[bool, bool, bool]] = []
    for name in ("F7", "F8", "F9", "F7", "F8", "F9"):
        key(name)
        driver.settle()
        parts = (area._minimap, area.lanes._canvas, side)
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
        assert tab_of(driver) == number - 1
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
    select_one(driver)  # which shows the details
    driver.done()

    _resize(driver, 1090, 700)
    assert not driver.window.side.winfo_ismapped()
    key("ctrl+2")
    # The X server shows it when it comes to it, which may be after the window is done.
    driver.until(driver.window.side.winfo_ismapped)
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
        type_filter(text)
        driver.until(lambda: driver.state.filter.matches is not None)
    move(*driver.at(*driver.spot(0.5, 0.95)))
    driver.until(lambda: not driver.state.jobs.running())

    assert cut_off(driver.window.toolbar, driver.root) == []
    assert cut_off(driver.window.status, driver.root) == []
    assert driver.window.toolbar.filter.entry.winfo_width() >= 80
    assert driver.state.plot_px[0] > 0.4 * size[0]
    assert driver.state.plot_px[1] > 0.5 * size[1]


@pytest.mark.parametrize("is_narrow", [False, True])
def test_a_narrow_status_bar_leaves_out_times(driver: Driver, is_narrow: bool) -> None:
    status, (least, height) = driver.window.status, driver.root.minsize()
    _resize(driver, least if is_narrow else 1800, height)
    move(*driver.at(*driver.spot(0.5, 0.95)))
    driver.until(lambda: not driver.state.jobs.running())
    # The longest badge that a file may have.
    status._badge.configure(text="⚠ trace differs from memory by 1,023 MiB  ·  2 notes")
    move(*driver.at(*driver.spot(0.6, 0.95)))
    driver.until(lambda: str(status._height.label.cget("text")).startswith("pointer at"))
    driver.settle()

    event = str(status._event.label.cget("text"))
    assert event.startswith("event ")
    assert ("after the first" in event) != is_narrow
    assert cut_off(status, driver.root) == []
    status._show_badge()


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
        ("F1", "Keys and mouse", ["Ctrl+O", "Go to peak", "Right drag"]),
        ("question", "Keys and mouse", ["Home"]),
        ("F2", "Filter syntax", ["size>=1MiB", "attention|mlp"]),
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
    start = zoom_in(driver)

    driver.root.after(300, lambda: key("Return"))
    key("alt+v")
    driver.until(lambda: driver.state.view != start)

    assert view.entrycget(0, "label") == "Fit all"
    assert driver.state.view == driver.state.world.whole()


# Trust


def _badge(driver: Driver) -> str:
    return str(driver.window.status._badge.cget("text"))


def _explained(driver: Driver) -> list[str]:
    """Click the badge, and return the texts of the window that opens; it is closed again."""
    click(*driver.middle(driver.window.status._badge))
    driver.settle()
    (window,) = _windows(driver.root)
    texts = [window.title(), *_texts(window)]
    window.destroy()
    return texts


def test_the_badge_opens_its_explanation(driver: Driver) -> None:
    assert _badge(driver) == "✓ trace matches memory"

    title, heading, badge, sentence, *_ = _explained(driver)

    assert title == heading == "Is this picture complete?"
    assert badge == _badge(driver)
    assert sentence.startswith("Replaying the trace gives exactly the memory")


Grade = Literal["Good", "Warn", "Error"]


@pytest.mark.parametrize(
    ("name", "badge", "words", "grade"),
    [
        ("t26-20k-events", "✓ trace matches memory", "exactly the memory", "Good"),
        ("TRIMMED-mini", "⚠ trace differs from memory by 384 MiB", "402,719,744 bytes (", "Error"),
        ("private-pools-state-only", "✓ state only, no trace", "has no trace:", "Good"),
        ("SYNTHETIC-mosaic", "✓ trace matches memory  ·  1 note", "exactly the memory", "Warn"),
    ],
)
def test_the_badge_says_whether_a_real_file_is_complete(
    driver: Driver, name: str, badge: str, words: str, grade: Grade
) -> None:
    driver.open(real(name))

    assert _badge(driver) == badge
    assert str(driver.window.status._badge.cget("style")) == f"{grade}.TLabel"
    assert words in " ".join(_explained(driver))


def test_a_notice_can_be_closed(driver: Driver) -> None:
    key("k")  # without a selection
    driver.settle()
    notice = driver.window.overlay._notice
    assert notice.winfo_ismapped()

    click(*driver.middle(notice._close), button=LEFT)
    driver.settle()

    assert driver.state.notice is None
    assert not notice.winfo_ismapped()
    driver.away()
    driver.assert_drawn()
