"""Queries of an opened bundle, and the tables that a caller adds to them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import snapviewer
from snapviewer import _core
from snapviewer.demo import DemoOptions, write_demo

ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n"
NAMES = "select name from sqlite_temp_schema order by name"


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a snapshot of two devices and two bundles of it."""
    directory = tmp_path_factory.mktemp("demos")
    write_demo(directory / "demo.pickle", DemoOptions(events=3000, devices=2))
    for bundle in ("demo.zip", "demo"):
        _core.convert(directory / "demo.pickle", directory / bundle)
    return directory


@pytest.fixture(params=["demo", "demo.zip"])
def bundle(request: pytest.FixtureRequest, demos: Path) -> Path:
    return demos / str(request.param)


def _idx(*numbers: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(numbers, dtype=np.int64)


def test_an_opened_bundle_answers_as_its_file_does(bundle: Path) -> None:
    snap = snapviewer.load(bundle)
    sql = "select * from allocs where size > 1000 order by idx"

    for _ in range(2):
        assert snap.query(sql, max_rows=7) == snapviewer.query(bundle, sql, max_rows=7)
    assert snap.query("select 1 as one") == (["one"], [(1,)], False)


def test_a_snapshot_that_is_no_bundle_cannot_be_queried(demos: Path) -> None:
    path = demos / "demo.pickle"

    with pytest.raises(snapviewer.SnapshotError, match="only a bundle can be queried") as raised:
        snapviewer.load(path).query("select 1")

    with pytest.raises(snapviewer.SnapshotError) as same:
        snapviewer.query(path, "select 1")
    assert str(raised.value) == str(same.value)
    assert str(raised.value).endswith(str(path))


def test_a_table_has_the_allocations_that_its_device_has(bundle: Path) -> None:
    snap = snapviewer.load(bundle)
    device = snap.devices[1]
    a = device.allocations
    shown = np.flatnonzero(device.mask("size>=1KiB"))
    tables = {"visible": device.first_idx + shown, "selection": _idx(device.first_idx + 5)}

    _, rows, _ = snap.query(
        "select size, stack, alloc_event, free_event, device from visible order by idx",
        max_rows=10**6,
        tables=tables,
    )
    _, ((size, callstack),), _ = snap.query(
        "select sum(size), max(callstack) from selection", tables=tables
    )

    columns = (a.size, a.stack, a.alloc_event, a.free_event)
    expected = list(zip(*(column[shown].tolist() for column in columns), strict=True))
    assert 0 < len(shown) < len(a)
    assert rows == [(*row, 1) for row in expected]
    assert size == a.size[5]
    frames = snap.frames(int(a.stack[5]))
    assert callstack == "\n".join(f"{f.name} ({f.filename}:{f.line})" for f in frames)


def test_callstacks_of_a_table_are_those_of_allocs(bundle: Path) -> None:
    sql = "select v.callstack, count(*), sum(v.size) from {} v {} group by 1 order by 1"
    chosen = np.arange(0, 900, 3, dtype=np.int64)
    plain = sql.format("allocs", "where v.idx < 900 and v.idx % 3 = 0")

    grouped = snapviewer.query(bundle, sql.format("visible", ""), tables={"visible": chosen})

    assert grouped == snapviewer.query(bundle, plain)
    assert len(grouped[1]) > 3


@pytest.mark.parametrize(
    "chosen",
    [
        np.arange(10**6, dtype=np.int64),
        np.arange(10**6, dtype=np.int64)[::-1],
        np.repeat(np.arange(1000, dtype=np.int64), 1000),
        np.broadcast_to(np.int64(3), 10**6),
    ],
    ids=["ascending", "descending", "repeated", "one"],
)
def test_a_million_of_them_are_fine(bundle: Path, chosen: Any) -> None:
    snap = snapviewer.load(bundle)
    everything = sum(len(device.allocations) for device in snap.devices)
    there = min(everything, len(set(chosen.tolist())))

    _, ((count, distinct),), _ = snap.query(
        "select count(*), count(distinct idx) from many", tables={"many": chosen}
    )

    assert count == distinct == there


def test_tables_are_gone_after_the_query_however_it_ends(bundle: Path) -> None:
    snap = snapviewer.load(bundle)
    before = snap.query(NAMES)
    tables = {"selection": _idx(1, 2)}
    cancel = threading.Event()
    cancel.set()

    snap.query("select * from selection", tables=tables)
    with pytest.raises(snapviewer.SnapshotError, match="nonsense"):
        snap.query("select nonsense from selection", tables=tables)
    with pytest.raises(snapviewer.SnapshotError, match="took longer"):
        snap.query(ENDLESS, max_seconds=0.05, tables=tables)
    with pytest.raises(snapviewer.CancelledError):
        snap.query(ENDLESS, cancel=cancel, tables=tables)
    with pytest.raises(snapviewer.SnapshotError, match="only reading"):
        snap.query("create temp table t as select * from selection", tables=tables)

    assert snap.query(NAMES) == before
    with pytest.raises(snapviewer.SnapshotError, match="no such table: selection; see `snap"):
        snap.query("select * from selection")


@pytest.mark.parametrize("name", ["allocations", "Allocs", "events", "json_each"])
def test_a_name_that_hides_a_table_is_refused(name: str, bundle: Path) -> None:
    with pytest.raises(ValueError, match=f"there is a table {name} already"):
        snapviewer.load(bundle).query("select 1", tables={name: _idx(1)})


@pytest.mark.parametrize("name", ["", "a b", "1a", 'a"; drop view x; --', "é", "sqlite_a"])
def test_a_name_that_is_none_is_refused(name: str, bundle: Path) -> None:
    for ask in (snapviewer.load(bundle).query, lambda *a, **k: snapviewer.query(bundle, *a, **k)):
        with pytest.raises(ValueError, match="cannot be a table"):
            ask("select 1", tables={name: _idx(1)})


@pytest.mark.parametrize(
    "tables",
    [{"a": [1, 2]}, {"a": np.array([1.5])}, {"a": np.zeros((2, 2), np.int64)}, {1: _idx(1)}, 7],
    ids=["list", "float", "2d", "number", "no-mapping"],
)
def test_what_is_no_table_is_a_type_error(tables: Any, bundle: Path) -> None:
    with pytest.raises(TypeError):
        snapviewer.load(bundle).query("select 1", tables=tables)


def test_another_thread_cancels_a_query_and_nothing_waits_for_it(bundle: Path) -> None:
    snap, cancel, is_running = snapviewer.load(bundle), threading.Event(), threading.Event()
    outcome: list[BaseException] = []

    class Watched:
        def is_set(self) -> bool:
            is_running.set()
            return cancel.is_set()

    def ask() -> None:
        try:
            snap.query(ENDLESS, max_seconds=600, cancel=Watched(), tables={"a": _idx(1)})
        except snapviewer.CancelledError as error:
            outcome.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    assert is_running.wait(60)
    # While the query runs, everything else is answered.
    assert snap.frames(1)
    assert len(snap.devices[0].event_rows(0, 10)) == 10
    assert len(snap.devices[0].events_of("alloc")) > 0
    assert isinstance(snap.annotations, tuple)
    assert snap.devices[0].rounded_size(0) is not None
    assert thread.is_alive()
    cancel.set()
    thread.join(60)

    assert not thread.is_alive()
    assert len(outcome) == 1
