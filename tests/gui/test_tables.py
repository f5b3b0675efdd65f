"""The panes with tables, used as a person uses them: real widgets, keys and clicks."""

from __future__ import annotations

import gc
import pickle
import time
import tkinter as tk
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import pytest

from snapviewer import SnapshotError
from snapviewer.gui.jobs import ThreadJobs
from snapviewer.gui.panes.at_cursor import AtCursor
from snapviewer.gui.panes.events_pane import EventsPane
from snapviewer.gui.panes.sql_pane import SqlPane
from snapviewer.gui.panes.virtual_table import Column, RowHooks, Rows, VirtualTable
from snapviewer.gui.settings import WindowSettings
from snapviewer.gui.state import State
from snapviewer.gui.theme import apply_theme, palette_of
from support import hostile
from support.display import click, drag, key, key_down, key_up, move, wheel, write

pytestmark = pytest.mark.gui

MANY = 5_000_000
ENDLESS = "with recursive c(x) as (select 1 union all select x+1 from c) select count(*) from c"
TIME_LIMIT_SECONDS = 60

Pane = TypeVar("Pane", AtCursor, EventsPane, SqlPane)


@pytest.fixture(scope="module")
def app(display: str) -> Iterator[tk.Tk]:
    """One for all tests: Tk 8.6 crashes when one takes the keyboard after another that is gone."""
    app = tk.Tk()
    app.withdraw()
    yield app
    app.destroy()
    # Tk's variables and images want to go on this thread, not whenever another one collects.
    gc.collect()


@pytest.fixture
def root(app: tk.Tk) -> Iterator[tk.Toplevel]:
    apply_theme(app, "light")
    errors: list[BaseException] = []
    app.report_callback_exception = lambda _, error, __: errors.append(error)
    root = tk.Toplevel(app)
    root.geometry("640x800+10+10")
    yield root
    root.destroy()
    app.update()
    assert errors == []


@pytest.fixture
def state(root: tk.Toplevel) -> Iterator[State]:
    jobs = ThreadJobs(root)
    yield State(jobs, WindowSettings())
    jobs.stop_all()


@pytest.fixture
def busy(tmp_path: Path) -> Path:
    """A snapshot with some lines of code, each of which makes allocations of its own size."""
    trace = []
    for number in range(60):
        line = number % 6
        frames = [{"name": f"step_{line}", "filename": f"/home/me/part_{line}.py", "line": 10}]
        common = {"stream": 0, "time_us": 1_700_000_000_000_000 + number, "frames": frames}
        address = 0x7F00_0000_0000 + number * 2**20
        trace.append({"action": "alloc", "addr": address, "size": 1000 * line + number, **common})
    path = tmp_path / "busy.pickle"
    path.write_bytes(pickle.dumps({"device_traces": [trace], "segments": []}))
    return path


def _until(widget: tk.Misc, is_so: Callable[[], object]) -> None:
    """Let the window work until something is so."""
    end = time.monotonic() + TIME_LIMIT_SECONDS
    while not is_so():
        assert time.monotonic() < end, "it never came to that"
        widget.update()
        time.sleep(0.005)
    widget.update()


def _becomes(widget: tk.Misc, value: Callable[[], object], expected: object) -> None:
    """Let the window work until something has a value."""
    _until(widget, lambda: value() == expected)


def _settled(widget: tk.Misc) -> None:
    """Let the window do what it has to do, and then a little more."""
    for _ in range(10):
        widget.update()
        time.sleep(0.005)


def _packed(widget: tk.Widget, root: tk.Toplevel) -> None:
    widget.pack(fill="both", expand=True)
    root.update()
    root.focus_force()
    _settled(root)


def _opened(state: State, widget: tk.Misc, path: Path) -> None:
    state.open(path)
    _until(widget, lambda: state.alive is not None or state.notice is not None)
    assert state.notice is None


def _open_in(pane: Pane, state: State, path: Path) -> Pane:
    """Show a pane and open a file."""
    _packed(pane, cast(tk.Toplevel, pane.winfo_toplevel()))
    _opened(state, pane, path)
    _settled(pane)
    return pane


def _point(table: VirtualTable, row: int, column: str = "0") -> tuple[int, int]:
    """The middle of a row's cell on the screen."""
    box = cast("tuple[int, int, int, int]", table.tree.bbox(str(row - table.first), column))
    x, y, _, height = box
    return table.tree.winfo_rootx() + x + 12, table.tree.winfo_rooty() + y + height // 2


def _heading(table: VirtualTable, column: str) -> tuple[int, int]:
    x, _ = _point(table, table.first, column)
    return x, table.tree.winfo_rooty() + 8


def _texts(table: VirtualTable) -> list[list[str]]:
    """What the rows on the screen say."""
    return [[str(text) for text in table.tree.item(item, "values")] for item in _items(table)]


def _items(table: VirtualTable) -> tuple[str, ...]:
    return table.tree.get_children()


def _shown(table: VirtualTable) -> list[int]:
    """The rows that are shown as marked."""
    return [table.first + int(item) for item in table.tree.selection()]


# A table of millions


class _Many:
    """A table of many rows, which notes what it is asked."""

    def __init__(self, root: tk.Toplevel, count: int) -> None:
        self.asked: list[tuple[int, int]] = []
        self.reports: list[int] = []
        self.opened: list[int] = []
        columns = (Column("Number", "5,000,000", is_number=True), Column("Text", "x", grows=True))
        hooks = RowHooks(on_select=self.reports.append, on_open=self.opened.append)
        self.table = VirtualTable(root, columns, self._rows, hooks)
        _packed(self.table, root)
        self.table.set_count(count)
        _settled(root)

    def _rows(self, first: int, last: int) -> Rows:
        self.asked.append((first, last))
        return [(f"{row:,}", f"row {row}") for row in range(first, last)]


@pytest.fixture
def many(root: tk.Toplevel) -> _Many:
    return _Many(root, MANY)


def test_of_millions_of_rows_only_those_on_the_screen_are_made(many: _Many) -> None:
    table = many.table

    assert 10 < len(_items(table)) < 60
    assert _texts(table)[0] == ["0", "row 0"]
    assert all(last - first <= 60 for first, last in many.asked)

    click(*_point(table, 2))
    key("ctrl+End")
    _until(many.table, lambda: table.first > 0)

    assert _texts(table)[-1] == ["4,999,999", "row 4999999"]
    assert _shown(table) == [MANY - 1]
    assert all(last - first <= 60 for first, last in many.asked)


def test_keys_go_through_a_table(many: _Many) -> None:
    table = many.table
    click(*_point(table, 0))
    page = table.page

    for name, expected in [
        ("Down", 1),
        ("Down", 2),
        ("Next", 2 + page),
        ("Up", 1 + page),
        ("Prior", 1),
        ("Up", 0),
        ("Up", 0),
        ("ctrl+End", MANY - 1),
        ("ctrl+Home", 0),
    ]:
        key(name)
        _becomes(many.table, lambda: many.reports[-1:], [expected])
        _settled(many.table)
        assert _shown(table) == [expected]

    key("Return")
    _until(many.table, lambda: many.opened == [0])


def test_a_held_key_goes_on_to_where_it_is_released(many: _Many) -> None:
    click(*_point(many.table, 0))
    key_down("Down")
    _until(many.table, lambda: len(many.reports) > 10 and many.reports[-1] > 60)
    key_up("Down")
    _settled(many.table)

    assert many.reports == list(range(many.reports[-1] + 1))
    assert _shown(many.table) == [many.reports[-1]]


def test_the_wheel_and_the_scroll_bar_go_through_the_whole(many: _Many) -> None:
    table = many.table
    x, y = _point(table, 3)

    wheel(x, y, -4)
    _until(many.table, lambda: table.first == 12)
    wheel(x, y, 1)
    _until(many.table, lambda: table.first == 9)

    bar = table.winfo_rootx() + table.winfo_width() - 4
    top, height = table.tree.winfo_rooty(), table.tree.winfo_height()
    drag((bar, top + 3), (bar, top + 3 + height // 2))
    _until(many.table, lambda: table.first > MANY // 3)
    assert table.first < 2 * MANY // 3

    drag((bar, top + 3 + height // 2), (bar, top + 2 * height))
    _until(many.table, lambda: table.first == MANY - table.page)
    assert many.reports == []


def test_a_stretch_of_rows_is_marked_with_shift_or_by_dragging(many: _Many) -> None:
    table = many.table
    click(*_point(table, 2))
    key_down("shift")
    click(*_point(table, 5))
    key_up("shift")
    _until(many.table, lambda: table.marked == range(2, 6))
    _settled(many.table)
    assert _shown(table) == [2, 3, 4, 5]

    drag(_point(table, 8), _point(table, 6))
    _until(many.table, lambda: table.marked == range(6, 9))

    key("ctrl+a")
    _until(many.table, lambda: table.marked == range(MANY))


def test_what_is_marked_from_elsewhere_is_shown_without_an_event(many: _Many) -> None:
    many.table.mark(3_000_000)
    _settled(many.table)

    assert _shown(many.table) == [3_000_000]
    assert ["3,000,000", "row 3000000"] in _texts(many.table)
    assert many.reports == []

    many.table.mark(None)
    _settled(many.table)
    assert _shown(many.table) == []


def test_a_taller_table_has_more_rows(root: tk.Toplevel, many: _Many) -> None:
    few = len(_items(many.table))
    many.table.mark(MANY - 1)
    _settled(many.table)

    root.geometry("640x1200")
    _until(many.table, lambda: len(_items(many.table)) > few + 10)
    assert _texts(many.table)[-1] == ["4,999,999", "row 4999999"]

    root.geometry("640x300")
    _until(many.table, lambda: len(_items(many.table)) < few)
    _settled(many.table)
    assert _shown(many.table) == [MANY - 1]


def test_a_double_click_opens_a_row(many: _Many) -> None:
    click(*_point(many.table, 4), times=2)
    _until(many.table, lambda: many.opened == [4])


# At the cursor


@pytest.fixture
def at_cursor(root: tk.Toplevel, state: State, busy: Path) -> AtCursor:
    return _open_in(AtCursor(root, state), state, busy)


def test_the_pane_says_what_is_alive_at_the_peak(at_cursor: AtCursor) -> None:
    assert at_cursor.title.cget("text") == "At the peak · 148 KiB in 60 allocations"
    assert at_cursor.subtitle.cget("text").startswith("event 59 of 60")
    rows = _texts(at_cursor.groups)
    assert [row[2] for row in rows] == [
        f"part_{line}.py:10 step_{line}" for line in range(5, -1, -1)
    ]
    assert [row[1] for row in rows] == ["10"] * 6
    assert _texts(at_cursor.largest)[0] == ["4.94 KiB", "part_5.py:10 step_5", "59 – end"]
    assert at_cursor.groups.tree.item("0", "text") == "33%"


def test_another_cursor_is_another_moment(state: State, at_cursor: AtCursor) -> None:
    state.set_cursor(5)
    _until(at_cursor, lambda: state.alive is not None and state.alive.event == 5)
    _settled(at_cursor)

    assert at_cursor.title.cget("text") == "After event 5 · 14.7 KiB in 6 allocations"
    assert len(_items(at_cursor.largest)) == 6


def test_a_row_selects_in_the_plot(state: State, at_cursor: AtCursor) -> None:
    assert state.device is not None
    a = state.device.allocations

    click(*_point(at_cursor.largest, 1))
    _until(at_cursor, lambda: state.selection is not None)
    assert state.selection is not None
    assert a.size[state.selection] == 5053

    click(*_point(at_cursor.groups, 2))
    _until(at_cursor, lambda: a.size[cast(int, state.selection)] == 3057)
    _settled(at_cursor)
    # The group's largest is marked where it is listed, too.
    assert _shown(at_cursor.groups) == [2]
    (shown,) = _shown(at_cursor.largest)
    assert _texts(at_cursor.largest)[shown - at_cursor.largest.first][1] == "part_3.py:10 step_3"

    key("Down")
    _until(at_cursor, lambda: a.size[cast(int, state.selection)] == 2056)


def test_what_is_selected_elsewhere_is_marked_and_nothing_moves(
    state: State, at_cursor: AtCursor
) -> None:
    view, reports = state.view, []
    state.on(lambda: reports.append(state.selection), "selection")

    state.select(4)
    _settled(at_cursor)

    assert _shown(at_cursor.groups) == [1]
    assert _texts(at_cursor.largest)[_shown(at_cursor.largest)[0] - at_cursor.largest.first][2] == (
        "4 – end"
    )
    assert (state.view, reports) == (view, [4])

    state.select(None)
    _settled(at_cursor)
    assert (_shown(at_cursor.groups), _shown(at_cursor.largest)) == ([], [])


def test_a_heading_sorts_and_the_selection_stays_marked(state: State, at_cursor: AtCursor) -> None:
    table = at_cursor.groups
    state.select(4)
    _settled(at_cursor)

    click(*_heading(table, "2"))
    _until(at_cursor, lambda: _texts(table)[0][2] == "part_0.py:10 step_0")
    assert table.tree.heading("2", "text") == "Group ▴"
    assert _shown(table) == [4]

    click(*_heading(table, "2"))
    _until(at_cursor, lambda: _texts(table)[0][2] == "part_5.py:10 step_5")
    assert table.tree.heading("2", "text") == "Group ▾"
    assert _shown(table) == [1]

    # Another moment is sorted alike.
    state.set_cursor(3)
    _until(at_cursor, lambda: len(_items(table)) == 4)
    assert _texts(table)[0][2] == "part_3.py:10 step_3"


def test_a_double_click_on_a_line_filters_to_it(state: State, at_cursor: AtCursor) -> None:
    click(*_point(at_cursor.groups, 0), times=2)
    _until(at_cursor, lambda: state.filter.matches is not None)

    assert state.filter.mode == "highlight"
    assert state.filter.text == "part_5.py:10", "as a person would type it"
    assert state.filter.matches is not None
    assert (state.filter.matches.count, state.filter.matches.size_bytes) == (10, 50_320)


def test_bars_have_the_colours_of_the_plot_in_both_themes(
    root: tk.Toplevel, state: State, at_cursor: AtCursor
) -> None:
    assert state.device is not None
    assert state.alive is not None
    largest = state.alive.groups[0].largest

    for theme in ("light", "dark"):
        state.set_look(theme=theme)
        _settled(at_cursor)
        image = at_cursor.groups.tree.item("0", "image")[0]
        color = tuple(int(part) for part in root.tk.splitlist(root.tk.call(image, "get", 0, 0)))
        assert color == tuple(state.device.colors("stack", theme)[largest])


def _bar_lengths(root: tk.Toplevel, table: VirtualTable) -> list[int]:
    """The lengths of the bars on the screen, in pixels."""
    lengths = []
    for item in _items(table):
        image = table.tree.item(item, "image")[0]
        width = int(root.tk.call("image", "width", image))
        drawn = [root.tk.call(image, "transparency", "get", x, 0) for x in range(width)]
        lengths.append(sum(not int(is_clear) for is_clear in drawn))
    return lengths


def test_the_longest_bar_is_as_wide_as_its_column(root: tk.Toplevel, at_cursor: AtCursor) -> None:
    table = at_cursor.largest
    for width in (70, 140):
        table.tree.column("#0", width=width)
        table._resize_column(tk.Event())
        _settled(at_cursor)

        lengths = _bar_lengths(root, table)
        assert width - 12 <= max(lengths) <= width
        assert lengths == sorted(lengths, reverse=True)
    shares = _bar_lengths(root, at_cursor.groups)
    sizes = [group.size_bytes for group in at_cursor._groups]
    room = int(at_cursor.groups.tree.column("#0", "width")) - at_cursor.groups._beside_bar()
    assert shares[0] == pytest.approx(room * sizes[0] / sum(sizes), abs=1)


# Events


@pytest.fixture
def events(root: tk.Toplevel, state: State, small: Path) -> EventsPane:
    return _open_in(EventsPane(root, state), state, small)


def test_events_are_listed(events: EventsPane) -> None:
    rows = _texts(events.table)

    assert [row[2] for row in rows] == [
        "segment_alloc",
        "alloc",
        "alloc",
        "free_requested",
        "free_completed",
        "oom",
        "snapshot",
    ]
    assert rows[1][:4] == ["1", "0.000000", "alloc", "1,000 B"]
    assert rows[1][4:] == ["model.py:7 forward", "0x7f0000000000", "0"]
    tags = [events.table.tree.item(item, "tags") for item in _items(events.table)]
    assert ("oom",) in [tuple(tag) for tag in tags]
    assert str(events.table.tree.tag_configure("oom", "foreground")) == palette_of("light").oom


def test_the_list_follows_the_cursor(state: State, events: EventsPane) -> None:
    state.set_cursor(5)
    _settled(events)
    assert _shown(events.table) == [5]


def test_the_list_leads_the_cursor_and_selects(state: State, events: EventsPane) -> None:
    assert state.device is not None
    a = state.device.allocations
    first = int(np.flatnonzero(a.alloc_event == 1)[0])

    click(*_point(events.table, 1))
    _until(events, lambda: state.cursor == 1)
    assert state.selection == first

    for name, event, allocation in [("Down", 2, None), ("Down", 3, first), ("Down", 4, first)]:
        key(name)
        _becomes(events, lambda: state.cursor, event)
        assert allocation is None or state.selection == allocation

    key("ctrl+End")
    _until(events, lambda: state.cursor == 6)
    assert state.selection is None


def test_one_can_go_to_an_event_by_its_number(state: State, events: EventsPane) -> None:
    click(events.entry.winfo_rootx() + 10, events.entry.winfo_rooty() + 10)
    write("4")
    key("Return")
    _until(events, lambda: state.cursor == 4)
    _settled(events)
    assert _shown(events.table) == [4]

    write("x")
    key("Return")
    _until(events, lambda: str(events.entry.cget("style")) == "Wrong.TEntry")
    assert state.cursor == 4


def test_one_can_step_through_the_events_of_an_action(state: State, events: EventsPane) -> None:
    state.set_cursor(0)
    events.action.set("alloc")

    for button, expected in [(events.next, 1), (events.next, 2), (events.previous, 1)]:
        click(button.winfo_rootx() + 8, button.winfo_rooty() + 8)
        _becomes(events, lambda: state.cursor, expected)

    click(events.previous.winfo_rootx() + 8, events.previous.winfo_rooty() + 8)
    _until(events, lambda: state.notice is not None)
    assert state.notice is not None
    assert state.notice.text == "No alloc before this event."


def test_a_device_without_events_says_so(root: tk.Toplevel, state: State, tmp_path: Path) -> None:
    pane = EventsPane(root, state)
    _packed(pane, root)
    assert "Open a file" in pane.message.cget("text")
    plain = hostile.small_snapshot() | {"device_traces": [[]]}
    path = tmp_path / "still.pickle"
    path.write_bytes(pickle.dumps(plain))

    _opened(state, root, path)
    _settled(root)

    assert "has no events" in pane.message.cget("text")
    assert not pane.table.winfo_ismapped()


class _Unreadable:
    """A device whose events cannot be read."""

    def __init__(self, device: Any) -> None:
        self._device = device

    def __getattr__(self, name: str) -> Any:
        return getattr(self._device, name)

    def event_rows(self, _: int, __: int) -> None:
        raise SnapshotError("the bundle is damaged")


def test_events_that_cannot_be_read_are_reported(state: State, events: EventsPane) -> None:
    assert state.document is not None
    trace = state.document.traces[0]
    device = trace.device
    trace.device = cast(Any, _Unreadable(device))
    events.table.refresh()
    _settled(events)

    assert events.message.cget("text") == "Could not read the events: the bundle is damaged"
    assert str(events.message.cget("style")) == "Error.TLabel"

    trace.device = device
    events.table.refresh()
    _settled(events)
    assert not events.message.winfo_ismapped()


# SQL


@pytest.fixture
def sql(root: tk.Toplevel, state: State, busy: Path) -> SqlPane:
    pane = _open_in(SqlPane(root, state), state, busy)
    _until(pane, lambda: state.document is not None and state.document.bundle is not None)
    pane.focus_query()
    _settled(root)
    return pane


def _asked(pane: SqlPane, text: str) -> None:
    pane.focus_query()
    pane.write("")
    pane.update()
    write(text)
    _until(pane, lambda: pane.sql == text)
    key("ctrl+Return")


def test_a_query_is_typed_run_and_a_row_selects_its_allocation(state: State, sql: SqlPane) -> None:
    _asked(sql, "select idx, size, address, callstack from visible order by size desc")
    _until(sql, lambda: state.queries.answer is not None)
    _settled(sql)

    assert sql.status.cget("text").startswith("60 rows in ")
    row = _texts(sql.results)[0]
    assert row == ["59", "4.94 KiB", "0x7f0003b00000", "part_5.py:10 step_5"]

    click(*_point(sql.results, 3))
    _until(sql, lambda: state.selection is not None)
    assert state.selection == 41

    state.select(53)
    _settled(sql)
    assert _shown(sql.results) == [1]


def test_rows_are_sorted_by_a_heading_and_copied_as_they_are(
    root: tk.Toplevel, state: State, sql: SqlPane
) -> None:
    _asked(sql, "select size, alloc_event from allocations order by size desc limit 3")
    _until(sql, lambda: state.queries.answer is not None)
    _settled(sql)

    click(*_heading(sql.results, "1"))
    click(*_heading(sql.results, "1"))
    _until(sql, lambda: _texts(sql.results)[0][1] == "47")
    click(*_point(sql.results, 0))
    key_down("shift")
    key("Down")
    key_up("shift")
    _until(sql, lambda: len(sql.results.marked) == 2)
    key("ctrl+c")
    _until(sql, lambda: state.notice is not None)
    assert root.clipboard_get() == "size\talloc_event\n5047\t47\n5053\t53\n"

    sql.copy_button.invoke()
    assert root.clipboard_get() == "size,alloc_event\n5047,47\n5053,53\n5059,59\n"


def test_an_error_is_reported_in_the_pane(state: State, sql: SqlPane) -> None:
    _asked(sql, "select nothing from nowhere")
    _until(sql, lambda: state.queries.error != "")

    assert sql.status.cget("text") == 'near "nothing": syntax error, at character 7'
    assert str(sql.status.cget("style")) == "Error.TLabel"
    assert sql.results.count == 0


def test_an_endless_query_is_cancelled_and_typing_goes_on_meanwhile(
    state: State, sql: SqlPane
) -> None:
    _asked(sql, ENDLESS)
    _until(sql, lambda: state.queries.is_running)
    assert sql.status.cget("text") == "Running …"

    write(" -- typed meanwhile")
    _until(sql, lambda: sql.sql.endswith("meanwhile"))
    assert state.queries.is_running

    job = next(job for job in state.jobs.running() if job.name == "query")
    button = sql.cancel_button
    click(button.winfo_rootx() + 10, button.winfo_rooty() + 10)
    _until(sql, lambda: not state.queries.is_running)
    assert job.cancel.is_set()
    assert sql.status.cget("text") == "Cancelled."

    _asked(sql, "select 7 as x")
    _until(sql, lambda: state.queries.answer is not None)


def test_earlier_queries_come_back(state: State, sql: SqlPane) -> None:
    for text in ("select 1 as a", "select 2 as b"):
        _asked(sql, text)
        _until(sql, lambda: not state.queries.is_running and state.queries.answer is not None)
    sql.write("draft")

    for name, expected in [
        ("ctrl+Up", "select 2 as b"),
        ("ctrl+Up", "select 1 as a"),
        ("ctrl+Up", "select 1 as a"),
        ("ctrl+Down", "select 2 as b"),
        ("ctrl+Down", "draft"),
    ]:
        key(name)
        _becomes(sql, lambda: sql.sql, expected)

    sql._list_history()
    sql.history.invoke(1)
    assert sql.sql == "select 1 as a"


def test_tables_are_shown_and_a_double_click_writes_a_name(sql: SqlPane) -> None:
    assert not sql.tables.winfo_ismapped()
    sql.tables_button.invoke()
    _until(sql, sql.tables.winfo_ismapped)
    item = "allocations"
    _settled(sql)
    x, y, _, height = cast("tuple[int, int, int, int]", sql.tables.bbox(item, "#0"))

    click(sql.tables.winfo_rootx() + x + 40, sql.tables.winfo_rooty() + y + height // 2, times=2)
    _until(sql, lambda: sql.sql == "allocations")

    sql.tables_button.invoke()
    _until(sql, lambda: not sql.tables.winfo_ismapped())


def test_an_example_is_written_and_can_be_undone(sql: SqlPane) -> None:
    sql.write("mine")

    sql.examples.invoke(0)
    assert sql.sql.startswith("select count(*)")
    key("ctrl+z")
    _until(sql, lambda: sql.sql == "mine")


def test_a_cell_says_all_when_the_mouse_rests_on_it(state: State, sql: SqlPane) -> None:
    _asked(sql, "select 1342177280 as size")
    _until(sql, lambda: state.queries.answer is not None)
    _settled(sql)
    x, y = _point(sql.results, 0)
    move(x, y)
    move(x + 1, y)

    def bubbles() -> list[str]:
        windows = [w for w in sql.results.winfo_children() if isinstance(w, tk.Toplevel)]
        return [str(label.cget("text")) for w in windows for label in w.winfo_children()]

    _until(sql, lambda: bubbles() == ["1,342,177,280 bytes"])
    move(x, y + 200)
    _until(sql, lambda: bubbles() == [])


def test_a_query_before_the_file_is_ready_says_so(
    root: tk.Toplevel, state: State, busy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "convert", lambda: None)
    pane = SqlPane(root, state)
    _packed(pane, root)
    assert pane.status.cget("text") == "Open a file to query it."

    _opened(state, root, busy)
    pane.write("select 1")
    pane.run()
    assert pane.status.cget("text") == "Preparing queries …"

    state.bundle_error = "The file could not be made ready for queries: no room"
    state.changed("bundle")
    assert pane.status.cget("text") == state.bundle_error
    assert str(pane.status.cget("style")) == "Error.TLabel"
