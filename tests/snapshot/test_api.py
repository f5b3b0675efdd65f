"""The Python API does what its documentation says, and its arrays are safe to keep."""

from __future__ import annotations

import gc
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import snapviewer
from snapviewer import _core
from snapviewer.demo import DemoOptions, write_demo
from support import hostile, program

COLUMNS = {
    "size": np.uint64,
    "address": np.uint64,
    "stream": np.int64,
    "stack": np.uint32,
    "alloc_event": np.int64,
    "free_event": np.int64,
    "free_requested": np.int64,
    "free_stack": np.uint32,
    "flags": np.uint8,
    "pool": np.uint16,
    "category": np.uint8,
}
KINDS = ("demo.pickle", "demo.zip", "demo")
BASE = 0x7F00_0000_0000


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a snapshot of two devices and pinned memory, and two bundles of it."""
    directory = tmp_path_factory.mktemp("demos")
    write_demo(directory / "demo.pickle", DemoOptions(events=2000, devices=2, host=True))
    for bundle in ("demo.zip", "demo"):
        _core.convert(directory / "demo.pickle", directory / bundle)
    return directory


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A snapshot that takes a moment to read."""
    path = tmp_path_factory.mktemp("large") / "large.pickle"
    write_demo(path, DemoOptions(events=300_000))
    return path


# What is in it


def test_everything_of_a_small_snapshot_is_as_it_was_written(small: Path) -> None:
    snap = snapviewer.load(small)

    (dev,) = snap.devices
    a = dev.allocations
    assert snap.format == "pickle"
    assert snap.warnings == ()
    assert (dev.index, dev.events, dev.reconciles, dev.warnings) == (0, 7, True, ())
    assert (dev.oom_events, dev.oom_at) == (1, (5,))
    assert (dev.initial_bytes, dev.peak_bytes, dev.peak_event) == (0, 3000, 2)
    assert (dev.final_bytes, dev.expected_final_bytes) == (2000, 2000)
    assert (dev.reserved_initial_bytes, dev.reserved_peak_bytes) == (0, 2_097_152)
    assert dev.totals.tolist() == [0, 1000, 3000, 3000, 2000, 2000, 2000]
    assert len(a) == 2
    columns = (a.size, a.address, a.stream, a.alloc_event, a.free_requested, a.free_event)
    assert sorted(zip(*(column.tolist() for column in columns), strict=True)) == [
        (1000, BASE, 0, 1, 3, 4),
        (2000, BASE + 1024, 0, 2, -1, 7),
    ]
    assert set(a.flags.tolist()) == {0}
    assert (dev.pools, a.pool.tolist(), a.category.tolist()) == (((0, 0),), [1, 1], [0, 0])


@pytest.mark.parametrize("kind", KINDS)
def test_devices_are_in_order_and_host_memory_is_the_last(demos: Path, kind: str) -> None:
    snap = snapviewer.load(demos / kind)

    assert isinstance(snap.devices, tuple)
    assert [dev.index for dev in snap.devices] == [0, 1, -1]
    assert snap.format == ("pickle" if kind == "demo.pickle" else "bundle of pickle")
    for dev in snap.devices:
        assert dev.reconciles
        assert dev.warnings == ()
        assert len(dev.allocations) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_events_are_a_number_and_a_length(demos: Path, kind: str) -> None:
    dev = snapviewer.load(demos / kind).devices[0]

    assert dev.events == 2000
    assert len(dev.events) == 2000
    assert isinstance(dev.events, int)
    assert dev.events - 1 == 1999
    assert list(range(dev.events))[-1] == 1999
    assert f"{dev.events:,}" == "2,000"


@pytest.mark.parametrize("kind", KINDS)
def test_events_of_allocations_are_in_the_trace_or_just_outside(demos: Path, kind: str) -> None:
    for dev in snapviewer.load(demos / kind).devices:
        a = dev.allocations
        assert a.alloc_event.min() >= -1
        assert a.alloc_event.max() < len(dev.events)
        assert a.free_event.max() <= len(dev.events)
        assert (a.alloc_event < a.free_event).all()
        assert (a.free_requested <= a.free_event).all()


@pytest.mark.parametrize("kind", KINDS)
def test_totals_are_the_sizes_of_what_is_live(demos: Path, kind: str) -> None:
    for dev in snapviewer.load(demos / kind).devices:
        a = dev.allocations
        change = np.zeros(len(dev.events) + 2, dtype=np.int64)
        np.add.at(change, a.alloc_event + 1, a.size.astype(np.int64))
        np.subtract.at(change, a.free_event + 1, a.size.astype(np.int64))
        levels = np.cumsum(change)[:-1]  # the first is before the first event

        assert dev.totals.dtype == np.uint64
        assert dev.totals.shape == (len(dev.events),)
        assert dev.totals.tolist() == levels[1:].tolist()
        assert dev.initial_bytes == levels[0]
        assert dev.final_bytes == levels[-1] == dev.expected_final_bytes
        assert dev.peak_bytes == dev.totals.max()
        assert dev.peak_event == dev.totals.argmax()
        assert dev.reserved_peak_bytes >= dev.peak_bytes


def stacks_of(snap: snapviewer.Snapshot) -> list[tuple[_core.Frame, ...]]:
    stacks: list[tuple[_core.Frame, ...]] = []
    try:
        while True:
            stacks.append(snap.frames(len(stacks)))
    except IndexError:
        return stacks


@pytest.mark.parametrize("kind", ["demo.zip", "demo"])
def test_a_bundle_has_the_columns_of_its_snapshot(demos: Path, kind: str) -> None:
    theirs, ours = snapviewer.load(demos / "demo.pickle"), snapviewer.load(demos / kind)

    assert len(ours.devices) == len(theirs.devices)
    assert stacks_of(ours) == stacks_of(theirs)
    for one, other in zip(ours.devices, theirs.devices, strict=True):
        assert one.totals.tolist() == other.totals.tolist()
        assert one.pools == other.pools
        for name in COLUMNS:
            left, right = (getattr(dev.allocations, name) for dev in (one, other))
            assert left.tolist() == right.tolist(), name


@pytest.mark.parametrize("kind", ["pickle", "zip"])
def test_a_demo_with_private_pools_shows_them(tmp_path: Path, kind: str) -> None:
    source = tmp_path / "demo.pickle"
    write_demo(source, DemoOptions(events=9000, live=60, private_pools=True))
    if kind == "zip":
        _core.convert(source, tmp_path / "demo.zip")

    snap = snapviewer.load(tmp_path / f"demo.{kind}")

    (dev,) = snap.devices
    of_captures, of_others = set[int](), set[int]()
    for stack, pool in zip(dev.allocations.stack, dev.allocations.pool.tolist(), strict=True):
        is_captured = any(frame.name == "make_graphed_callables" for frame in snap.frames(stack))
        (of_captures if is_captured else of_others).add(pool)
    assert dev.pools == ((0, 0), (0, 1), (0, 2))
    assert of_captures == {2, 3}
    assert of_others == {0, 1}, "some were in segments that are gone"


@pytest.mark.parametrize("kind", ["pickle", "zip"])
def test_categories_are_those_of_the_profiler(tmp_path: Path, kind: str) -> None:
    plain = hostile.small_snapshot()
    for event, category in zip(plain["device_traces"][0], ["", "input", "Gradient"], strict=False):
        event["category"] = category
    source = tmp_path / "small.pickle"
    source.write_bytes(pickle.dumps(plain))
    if kind == "zip":
        _core.convert(source, tmp_path / "small.zip")

    a = snapviewer.load(tmp_path / f"small.{kind}").devices[0].allocations

    assert isinstance(_core.CATEGORIES, tuple)
    assert [_core.CATEGORIES[n - 1] for n in a.category.tolist()] == ["input", "gradient"]


# The arrays


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*COLUMNS, "totals"])
def test_a_column_is_read_only_and_never_copied(demos: Path, kind: str, name: str) -> None:
    dev = snapviewer.load(demos / kind).devices[0]
    owner = dev if name == "totals" else dev.allocations
    again = dev if name == "totals" else dev.allocations
    column, second = getattr(owner, name), getattr(again, name)

    assert isinstance(column, np.ndarray)
    assert column.dtype == COLUMNS.get(name, np.uint64)
    assert column.ndim == 1
    assert len(column) == (len(dev.events) if name == "totals" else len(dev.allocations))
    assert column.ctypes.data == second.ctypes.data
    assert not column.flags.owndata
    assert not column.flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        column.flags.writeable = True
    with pytest.raises(ValueError, match="WRITEABLE"):
        column[:5].flags.writeable = True
    with pytest.raises(ValueError, match="read-only"):
        column[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        column.sort()


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_outlive_everything_they_came_from(demos: Path, kind: str) -> None:
    snap = snapviewer.load(demos / kind)
    dev = snap.devices[1]
    kept = {name: getattr(dev.allocations, name) for name in COLUMNS} | {"totals": dev.totals}
    copies = {name: column.copy() for name, column in kept.items()}
    parts = {name: column[3:50] for name, column in kept.items()}

    del snap, dev
    gc.collect()
    others = [snapviewer.load(demos / "demo.pickle") for _ in range(5)]  # would reuse the memory

    assert len(others) == 5
    for name, column in kept.items():
        assert np.array_equal(column, copies[name]), name
        assert np.array_equal(parts[name], copies[name][3:50]), name


def test_memory_goes_when_the_last_array_does(demos: Path) -> None:
    psutil = pytest.importorskip("psutil")
    path = demos / "demo.pickle"

    def rss() -> int:
        for _ in range(50):
            assert snapviewer.load(path).devices[0].totals[0] > 0
        gc.collect()
        return int(psutil.Process().memory_info().rss)

    rss()
    before = rss()
    after = max(rss(), rss())

    # Each load holds about 300 KB: a hundred of them kept would be 30 MB.
    assert after - before < 10_000_000


# Stacks


@pytest.mark.parametrize("bundle", [None, "bundle", "bundle.zip"])
def test_frames_are_innermost_first(small: Path, bundle: str | None) -> None:
    path = small
    if bundle:
        path = small.with_name(bundle)
        _core.convert(small, path)
    snap = snapviewer.load(path)

    stack = int(snap.devices[0].allocations.stack[0])
    frames = snap.frames(stack)

    assert isinstance(frames, tuple)
    assert [(f.name, f.filename, f.line) for f in frames] == [
        ("forward", "model.py", 7),
        ("main", "train.py", 99),
    ]
    assert snap.frames(0) == ()


@pytest.mark.parametrize("kind", KINDS)
def test_a_stack_beyond_the_last_is_an_index_error(demos: Path, kind: str) -> None:
    snap = snapviewer.load(demos / kind)

    count = len(stacks_of(snap))

    assert len(snap.frames(count - 1)) > 0
    for beyond in (count, 2**32 - 1):
        with pytest.raises(IndexError, match=str(beyond)):
            snap.frames(beyond)


@pytest.mark.parametrize("beyond", [-1, 2**32, 2**70])
def test_no_number_is_too_odd_for_an_index_error(small: Path, beyond: int) -> None:
    snap = snapviewer.load(small)

    with pytest.raises(IndexError):
        snap.frames(beyond)


def test_a_stack_id_of_numpy_is_a_stack_id(small: Path) -> None:
    snap = snapviewer.load(small)
    stack = snap.devices[0].allocations.stack[0]

    assert snap.frames(stack) == snap.frames(int(stack))
    with pytest.raises(TypeError):
        snap.frames("1")  # type: ignore[arg-type]


def test_equal_frames_are_equal_and_hash_alike(small: Path) -> None:
    one, other = snapviewer.load(small), snapviewer.load(small)

    inner, outer = one.frames(1)
    again, _ = other.frames(1)

    assert inner is not again
    assert inner == again
    assert (inner != again) is False
    assert hash(inner) == hash(again)
    assert inner != outer
    assert inner != ("forward", "model.py", 7)
    assert {inner, again, outer} == {inner, outer}


def test_frames_show_what_they_are(small: Path) -> None:
    frame = snapviewer.load(small).frames(1)[0]

    assert repr(frame) == "Frame(name='forward', filename='model.py', line=7)"
    assert str(frame) == "model.py:7:forward"


# Frozen


@pytest.mark.parametrize("name", ["Snapshot", "Device", "Allocations", "Frame", "Event"])
def test_what_is_returned_is_frozen(small: Path, name: str) -> None:
    snap = snapviewer.load(small)
    dev = snap.devices[0]
    objects: dict[str, tuple[Any, str]] = {
        "Snapshot": (snap, "format"),
        "Device": (dev, "index"),
        "Allocations": (dev.allocations, "size"),
        "Frame": (snap.frames(1)[0], "line"),
        "Event": (dev.event_rows(0, 1)[0], "size"),
    }
    thing, attribute = objects[name]

    assert type(thing) is getattr(snapviewer, name)
    assert name in repr(thing) or name.lower() in repr(thing)
    for setting in (attribute, "anything_else"):
        with pytest.raises(AttributeError):
            setattr(thing, setting, 1)
    with pytest.raises(AttributeError):
        delattr(thing, attribute)
    with pytest.raises(TypeError):
        type(thing)()


def test_all_that_is_public_is_there_and_documented() -> None:
    for name in snapviewer.__all__:
        assert getattr(snapviewer, name).__doc__
    assert issubclass(snapviewer.CancelledError, snapviewer.SnapshotError)


def test_a_public_name_means_the_same_whatever_was_imported() -> None:
    code = """
        import snapviewer
        before = {name: getattr(snapviewer, name) for name in snapviewer.__all__}
        import snapviewer.cli
        print([name for name in before if getattr(snapviewer, name) is not before[name]])
    """

    assert program.output_of(code) == "[]\n"


# Progress and cancellation

Work = Callable[..., object]


def _loading(source: Path, _: Path) -> Work:
    return lambda **options: snapviewer.load(source, **options)


def _converting_to(name: str) -> Callable[[Path, Path], Work]:
    def made(source: Path, directory: Path) -> Work:
        return lambda **options: _core.convert(source, directory / name, **options)

    return made


WORK = {
    "load": _loading,
    "zip": _converting_to("out.zip"),
    "directory": _converting_to("out"),
}


class After:
    """What says stop when it was asked some times."""

    def __init__(self, times: int) -> None:
        self.times = times

    def is_set(self) -> bool:
        self.times -= 1
        return self.times < 0


@pytest.mark.parametrize("work", WORK)
def test_progress_grows_and_stays_within_its_total(large: Path, tmp_path: Path, work: str) -> None:
    calls: list[tuple[int, int]] = []

    WORK[work](large, tmp_path)(progress=lambda *call: calls.append(call))

    done, totals = [call[0] for call in calls], {call[1] for call in calls}
    assert len(calls) >= 10
    assert len(totals) == 1
    assert done == sorted(done)
    assert 0 <= done[0] < done[-1] <= totals.pop()


@pytest.mark.parametrize(
    "work",
    [
        "load",
        "zip",
        "directory",
    ],
)
def test_progress_ends_at_its_total(demos: Path, tmp_path: Path, work: str) -> None:
    calls: list[tuple[int, int]] = []

    WORK[work](demos / "demo.pickle", tmp_path)(progress=lambda *call: calls.append(call))

    assert calls[-1][0] == calls[-1][1]


@pytest.mark.parametrize("kind", ["demo.zip", "demo"])
def test_progress_of_opening_a_bundle_grows_to_its_end(demos: Path, kind: str) -> None:
    calls: list[tuple[int, int]] = []

    snapviewer.load(demos / kind, progress=lambda *call: calls.append(call))

    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert calls[-1][0] == calls[-1][1] > 0


@pytest.mark.parametrize("work", WORK)
def test_what_is_cancelled_at_any_moment_leaves_nothing(
    demos: Path, tmp_path: Path, work: str
) -> None:
    calls: list[object] = []
    WORK[work](demos / "demo.pickle", tmp_path)(progress=lambda *call: calls.append(call))
    outputs = sorted(path.name for path in tmp_path.iterdir())
    directory = tmp_path / "cancelled"
    directory.mkdir()

    for moment in range(0, len(calls), max(1, len(calls) // 10)):
        with pytest.raises(snapviewer.CancelledError, match="cancelled"):
            WORK[work](demos / "demo.pickle", directory)(cancel=After(moment))
        assert list(directory.iterdir()) == []

    assert outputs == ([] if work == "load" else ["out.zip" if work == "zip" else "out"])


def test_an_event_that_another_thread_sets_cancels(large: Path, tmp_path: Path) -> None:
    cancel, began = threading.Event(), threading.Event()

    def stop() -> None:
        began.wait(30)
        cancel.set()

    thread = threading.Thread(target=stop)
    thread.start()
    with pytest.raises(snapviewer.CancelledError):
        _core.convert(large, tmp_path / "out.zip", progress=lambda *_: began.set(), cancel=cancel)
    thread.join()

    assert list(tmp_path.iterdir()) == []


def test_an_event_that_is_never_set_changes_nothing(small: Path) -> None:
    assert len(snapviewer.load(small, cancel=threading.Event()).devices) == 1


@pytest.mark.parametrize("raised", [ZeroDivisionError, KeyboardInterrupt, StopIteration])
@pytest.mark.parametrize("work", WORK)
def test_what_a_callback_raises_comes_out_as_it_is(
    demos: Path, tmp_path: Path, work: str, raised: type[BaseException]
) -> None:
    error = raised("my own")

    def progress(done: int, total: int) -> None:
        if work == "load" or done * 2 >= total:
            raise error

    with pytest.raises(raised) as caught:
        WORK[work](demos / "demo.pickle", tmp_path)(progress=progress)

    assert caught.value is error
    assert any(entry.name == "progress" for entry in caught.traceback)
    assert list(tmp_path.iterdir()) == []


def test_what_cancel_raises_comes_out_as_it_is(small: Path) -> None:
    class Broken:
        def is_set(self) -> bool:
            raise ZeroDivisionError("my own")

    with pytest.raises(ZeroDivisionError, match="my own"):
        snapviewer.load(small, cancel=Broken())
    with pytest.raises(AttributeError, match="is_set"):
        snapviewer.load(small, cancel=object())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not callable"):
        snapviewer.load(small, progress=1)  # type: ignore[arg-type]


def test_a_query_can_be_cancelled(demos: Path) -> None:
    endless = "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n"

    with pytest.raises(snapviewer.CancelledError):
        snapviewer.query(demos / "demo", endless, cancel=After(5))


# Threads


@contextmanager
def _no_voluntary_switches() -> Iterator[None]:
    """Whoever has the GIL keeps it until it waits for something."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(60)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


def test_other_threads_run_during_a_load(large: Path) -> None:
    count, is_over, is_counting = 0, threading.Event(), threading.Event()

    def advance() -> None:
        nonlocal count
        while not is_over.is_set():
            count += 1
            is_counting.set()
            time.sleep(0.0001)

    thread = threading.Thread(target=advance)
    with _no_voluntary_switches():
        thread.start()
        is_counting.wait(30)
        before = count
        snap = snapviewer.load(large)
        after = count
        is_over.set()
    thread.join()

    assert len(snap.devices[0].events) == 300_000
    assert after - before >= 5


def test_several_threads_load_at_once(demos: Path) -> None:
    expected = snapviewer.load(demos / "demo.pickle").devices[1].totals.tolist()

    with ThreadPoolExecutor(6) as pool:
        snaps = list(pool.map(lambda n: snapviewer.load(demos / KINDS[n % 3]), range(18)))

    assert all(snap.devices[1].totals.tolist() == expected for snap in snaps)


def test_several_threads_ask_one_bundle_at_once(demos: Path) -> None:
    plain, snap = snapviewer.load(demos / "demo.pickle"), snapviewer.load(demos / "demo.zip")
    ids = list(range(len(stacks_of(snap))))

    with ThreadPoolExecutor(6) as pool:
        stacks = list(pool.map(snap.frames, ids))

    assert stacks == [plain.frames(n) for n in ids]


# Paths


def test_paths_of_all_kinds_are_taken(demos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Somewhere:
        def __fspath__(self) -> str:
            return str(demos / "demo.pickle")

    monkeypatch.chdir(demos)

    for path in (demos / "demo.pickle", str(demos / "demo.pickle"), "demo.pickle", Somewhere()):
        assert len(snapviewer.load(path).devices) == 3
    with pytest.raises(TypeError):
        snapviewer.load(None)  # type: ignore[arg-type]


def test_the_system_says_no_in_its_own_kinds(small: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing.pickle"

    for path in (missing, str(missing)):
        with pytest.raises(FileNotFoundError, match=r"missing\.pickle"):
            snapviewer.load(path)
    with pytest.raises(FileNotFoundError, match=r"missing\.pickle"):
        _core.convert(missing, tmp_path / "out")
    with pytest.raises(NotADirectoryError, match="beneath"):
        snapviewer.load(small / "beneath")
    with pytest.raises(FileNotFoundError, match="absent"):
        _core.convert(small, tmp_path / "absent" / "out.zip")
    with pytest.raises(FileExistsError, match=r"set `force` to replace it: .*small\.pickle"):
        _core.convert(small, small)


def test_a_directory_is_taken_for_a_bundle_and_refused_as_one(tmp_path: Path) -> None:
    with pytest.raises(snapviewer.SnapshotError, match="not a snapviewer bundle"):
        snapviewer.load(tmp_path)


def test_a_file_that_changes_its_name_while_open_stays_open(small: Path) -> None:
    snap = snapviewer.load(small)

    os.unlink(small)

    assert snap.devices[0].totals.tolist()[-1] == 2000
    assert snap.frames(1)[0].name == "forward"
