"""Questions in SQL as the window asks them, without a window."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from snapviewer.gui import queries as queries_module
from snapviewer.gui import state as state_module
from snapviewer.gui.panes.schema import EXAMPLES, NOTES, TABLES
from snapviewer.gui.queries import Queries
from snapviewer.gui.settings import WindowSettings
from snapviewer.gui.state import State
from support import hostile
from support.inline_jobs import InlineJobs

# What an answer does not show: how events are packed.
HIDDEN = {"event_columns", "extras"}


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A snapshot of two devices, the second with more memory."""
    plain = hostile.small_snapshot()
    plain["device_traces"] = [plain["device_traces"][0], [_alloc(n) for n in range(3)]]
    path = tmp_path / "two.pickle"
    path.write_bytes(pickle.dumps(plain))
    return path


def _alloc(place: int) -> dict[str, Any]:
    event = {"action": "alloc", "addr": 0x7A00_0000_0000 + place * 2**20, "size": 100_000 + place}
    return event | {"stream": 0, "time_us": 1_700_000_000_000_000, "frames": []}


def _opened(path: Path, **options: Any) -> State:
    state = State(InlineJobs(**options), WindowSettings())
    state.open(path)
    assert state.notice is None
    return state


def _answered(state: State, sql: str) -> tuple[tuple[Any, ...], ...]:
    state.queries.run(sql)
    assert state.queries.error == ""
    assert state.queries.answer is not None
    return state.queries.answer.rows


def _released(state: State, name: str) -> None:
    assert isinstance(state.jobs, InlineJobs)
    state.jobs.release(name)


def test_a_query_is_answered_and_remembered(small: Path) -> None:
    state = _opened(small)
    reports: list[bool] = []
    state.on(lambda: reports.append(state.queries.is_running), "query")

    state.queries.run("  select size, 'x' as name from allocations order by size\n")

    queries = state.queries
    assert queries.answer is not None
    assert queries.answer.columns == ("size", "name")
    assert (1000, "x") in queries.answer.rows
    assert not queries.answer.is_truncated
    assert queries.answer.seconds > 0
    assert queries.text == "select size, 'x' as name from allocations order by size"
    assert queries.history == [queries.text] == state.settings.queries
    assert reports == [True, False]


def test_what_is_asked_again_is_remembered_once_and_on_top(small: Path) -> None:
    state = _opened(small)

    for sql in ("select 1", "select 2", "select 1"):
        state.queries.run(sql)

    assert state.queries.history == ["select 1", "select 2"]


def test_nothing_is_asked_without_words_or_without_a_file(small: Path) -> None:
    state = _opened(small)
    state.queries.run(" \n ")
    closed = State(InlineJobs(), WindowSettings())
    closed.queries.run("select 1")

    assert (state.queries.answer, state.queries.history) == (None, [])
    assert (closed.queries.answer, closed.queries.is_running) == (None, False)


def test_an_error_is_shown_in_words_and_replaces_the_answer(small: Path) -> None:
    state = _opened(small)
    state.queries.run("select 1")

    state.queries.run("select nothing\nfrom nowhere")

    assert state.queries.error == 'near "nothing": syntax error, at character 7'
    assert state.queries.answer is None
    assert not state.queries.is_running


def test_too_many_rows_are_cut_off_and_that_is_said(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries_module, "MAX_ROWS", 2)
    state = _opened(small)

    rows = _answered(state, "select value from json_each('[1, 2, 3]')")

    assert rows == ((1,), (2,))
    assert state.queries.answer is not None
    assert state.queries.answer.is_truncated


def test_a_query_waits_for_the_file_to_be_made_ready(small: Path) -> None:
    state = _opened(small, held=["convert"])

    state.queries.run("select 5")

    assert (state.queries.is_running, state.queries.is_preparing) == (True, True)
    assert state.queries.answer is None

    _released(state, "convert")

    assert (state.queries.is_running, state.queries.is_preparing) == (False, False)
    assert state.queries.answer is not None
    assert state.queries.answer.rows == ((5,),)


def test_a_query_that_waits_can_be_cancelled(small: Path) -> None:
    state = _opened(small, held=["convert"])
    state.queries.run("select 5")

    state.queries.cancel()
    _released(state, "convert")

    assert (state.queries.is_running, state.queries.is_cancelled) == (False, True)
    assert state.queries.answer is None


def test_a_file_that_cannot_be_made_ready_is_tried_again_with_the_next_query(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> Path:
        raise OSError("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(state_module, "cached_bundle", full)
        state = _opened(small)
        state.queries.run("select 5")
        error, is_running = state.queries.error, state.queries.is_running

    assert "the disk is full" in error
    assert error == state.bundle_error
    assert not is_running
    assert _answered(state, "select 5") == ((5,),)
    assert state.bundle_error == ""


def test_a_query_that_runs_can_be_cancelled(small: Path) -> None:
    state = _opened(small, held=["query"])
    state.queries.run("select 5")
    job = next(job for job in state.jobs.running() if job.name == "query")

    state.queries.cancel()

    assert job.cancel.is_set()
    assert job.title == "running the query"
    assert (state.queries.is_running, state.queries.is_cancelled) == (False, True)
    assert isinstance(state.jobs, InlineJobs)
    state.jobs.held.clear()
    assert _answered(state, "select 6") == ((6,),)


def test_another_file_has_other_answers(small: Path, two: Path) -> None:
    state = _opened(small)
    state.queries.run("select 1")

    state.open(two)

    assert state.queries.answer is None
    assert state.queries.history == ["select 1"]


def test_a_query_can_ask_about_the_selection_and_what_is_in_view(two: Path) -> None:
    state = _opened(two)
    assert (state.which, state.device is not None) == (1, True)
    assert state.device is not None
    first = state.device.first_idx

    assert _answered(state, "select count(*) from selection") == ((0,),)
    state.select(1)
    assert _answered(state, "select idx, size from Selection") == ((first + 1, 100_001),)
    seen = _answered(state, "select idx, callstack from visible order by idx")
    assert seen == tuple((first + place, "") for place in range(3))


def test_only_what_a_query_speaks_of_is_lent(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = _opened(small)
    monkeypatch.setattr(state, "visible", lambda: pytest.fail("nobody asked"))

    assert _answered(state, "select 'invisible', count(*) > 0 from allocations") == (
        ("invisible", 1),
    )


def test_a_row_with_an_idx_leads_to_its_allocation(two: Path) -> None:
    state = _opened(two)
    rows = _answered(state, "select size, idx as IDX from allocations order by idx")
    assert state.document is not None

    found = [state.queries.allocation_of(row) for row in rows]

    assert len(found) == len(rows) > 3
    for row, place in zip(rows, found, strict=True):
        assert place is not None
        which, allocation = place
        assert state.document.traces[which].device.allocations.size[allocation] == row[0]
    assert {place[0] for place in found if place is not None} == {0, 1}


@pytest.mark.parametrize("sql", ["select 1 as x", "select 99999 as idx", "select null as idx"])
def test_a_row_without_a_known_idx_leads_nowhere(small: Path, sql: str) -> None:
    state = _opened(small)

    (row,) = _answered(state, sql)

    assert state.queries.allocation_of(row) is None
    assert Queries(state).allocation_of(row) is None


def test_the_schema_that_is_shown_is_the_one_that_there_is(small: Path) -> None:
    state = _opened(small)
    named = "select name from sqlite_schema where type in ('table', 'view')"
    there = {name for (name,) in _answered(state, named)} - HIDDEN

    state.queries.load_schema(tuple(TABLES))

    shown = state.queries.columns
    assert set(shown) == set(TABLES) == there | {"events", "visible", "selection"}
    for name, columns in shown.items():
        state.queries.run(f"select * from {name} limit 0")
        assert state.queries.answer is not None, (name, state.queries.error)
        # Generated columns come last or first, as SQLite likes.
        assert set(columns) == set(state.queries.answer.columns), name
    assert set(NOTES) <= {column for columns in shown.values() for column in columns}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.question)
def test_every_example_is_answered(small: Path, example: Any) -> None:
    state = _opened(small)
    assert state.device is not None
    state.select(0)

    rows = _answered(state, example.sql)

    # The small snapshot has something of everything but short lives of large allocations.
    assert rows or "large" in example.question
