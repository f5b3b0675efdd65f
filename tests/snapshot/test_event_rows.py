"""Events in words, blocks and annotations are what the file says, from a snapshot and a bundle."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import snapviewer
from snapviewer import _core
from snapviewer.demo import DemoOptions, write_demo
from support import hostile, oracle
from support.hostile_bundles import change_database
from support.oracle import SNAPSHOTS
from support.patience import PATIENT
from support.random_snapshots import snapshots

Plain = dict[str, Any]
Frames = tuple[tuple[str, str, int], ...]

BASE = 0x7F00_0000_0000
KINDS = ("file", "out", "out.zip")
FILES = sorted(SNAPSHOTS.glob("*.pickle"))
OPTIONAL_TEXTS = ("compile_context", "user_metadata", "internal_metadata", "category")


# The slow, obvious version


def _traces(plain: Plain) -> dict[int, list[Plain]]:
    traces = dict(enumerate(plain.get("device_traces") or []))
    host: list[Plain] = []
    for item in plain.get("host_traces") or []:
        host.extend(item if isinstance(item, list) else [item])
    return traces | {oracle.HOST_DEVICE: host}


def _segments(plain: Plain, device: int) -> list[Plain]:
    if device == oracle.HOST_DEVICE:
        return list(plain.get("host_segments") or [])
    return [s for s in plain.get("segments") or [] if s.get("device", 0) == device]


def _words(index: int, event: Plain, known: dict[int, Frames]) -> dict[str, Any]:
    """What is expected of an event, by attribute; its frames instead of its stack."""
    frames = event.get("frames") or []
    if id(frames) not in known:
        known[id(frames)] = tuple(
            (f.get("name", ""), f.get("filename", ""), f.get("line", 0)) for f in frames
        )
    is_oom = event["action"] == "oom"
    place = (event["device_free"] if "device_free" in event else event.get("addr", 0)) & oracle.U64
    return {
        "index": index,
        "action": {"free": "free_completed"}.get(event["action"], event["action"]),
        "address": 0 if is_oom else place,
        "size": event.get("size", 0),
        "stream": event.get("stream", 0),
        "time_us": event.get("time_us") or None,
        "frames": known[id(frames)] if frames else (),
        **{name: event.get(name) or None for name in OPTIONAL_TEXTS},
        "pool": tuple(event["pool_id"]) if "pool_id" in event else None,
        "forward_frames": tuple(event.get("forward_frames") or ()),
        "device_free": place if is_oom else None,
    }


def _said(snapshot: Any, event: Any, known: dict[int, Frames]) -> dict[str, Any]:
    if event.stack not in known:
        frames = snapshot.frames(event.stack)
        known[event.stack] = tuple((f.name, f.filename, f.line) for f in frames)
    names = ("index", "action", "address", "size", "stream", "time_us", *OPTIONAL_TEXTS)
    others = ("pool", "forward_frames", "device_free")
    return {name: getattr(event, name) for name in (*names, *others)} | {
        "frames": known[event.stack]
    }


def _block_sizes(segments: list[Plain]) -> dict[int, int]:
    sizes: dict[int, int] = {}
    for segment in segments:
        address = segment.get("address", 0)
        for block in segment.get("blocks") or []:
            address = block.get("address", address)
            if block.get("state") in oracle.ACTIVE_STATES:
                sizes.setdefault(address & oracle.U64, block.get("size", 0))
            address += block.get("size", 0)
    return sizes


def _assert_all_is_there(path: Path, plain: Plain) -> None:
    snapshot = snapviewer.load(path)
    traces = _traces(plain)
    annotations = plain.get("external_annotations") or []
    assert snapshot.annotations == tuple(
        (a.get("name", ""), a.get("stage", ""), a.get("device"), a.get("time_us", 0))
        for a in annotations
    )
    first = 0
    known: dict[int, Frames] = {}
    stacks: dict[int, Frames] = {}
    for device in snapshot.devices:
        trace = traces.get(device.index, [])
        rows = [
            event
            for start in range(0, len(trace), 10_000)
            for event in device.event_rows(start, start + 10_000)
        ]
        assert device.event_rows(len(trace), len(trace) + 10_000) == []
        expected = [_words(index, event, known) for index, event in enumerate(trace)]
        said = [_said(snapshot, event, stacks) for event in rows]
        assert oracle.first_difference(said, expected) is None
        for action in sorted({e["action"] for e in expected} | {"oom", "unheard of"}):
            events = device.events_of(action)
            assert events.dtype == np.int64
            assert events.tolist() == [e["index"] for e in expected if e["action"] == action]
        assert device.first_idx == first
        first += len(device.allocations)
        _assert_rounded(device, _block_sizes(_segments(plain, device.index)))


def _assert_rounded(device: Any, sizes: dict[int, int]) -> None:
    a = device.allocations
    columns = (a.address.tolist(), a.free_event.tolist())
    alive = [n for n, end in enumerate(columns[1]) if end == len(device.events)]
    dead = [n for n, end in enumerate(columns[1]) if end < len(device.events)]
    for number in alive:
        assert device.rounded_size(number) == sizes.get(columns[0][number])
    assert all(device.rounded_size(number) is None for number in dead[:200])


def _kinds(source: Path, directory: Path) -> Iterator[Path]:
    yield source
    for name in KINDS[1:]:
        _core.convert(source, directory / name, force=True)
        yield directory / name


@pytest.mark.parametrize("path", FILES or [None], ids=lambda path: path and path.stem)
def test_all_of_a_real_file_is_there(path: Path | None, tmp_path: Path) -> None:
    if path is None:
        pytest.skip(f"{SNAPSHOTS} is absent")
    plain = oracle.load_plain(path)

    for kind in _kinds(path, tmp_path):
        _assert_all_is_there(kind, plain)


def test_all_of_a_demo_is_there(tmp_path: Path) -> None:
    path = tmp_path / "demo.pickle"
    options = DemoOptions(events=3000, devices=2, host=True, oom=True, annotations=True)
    write_demo(path, options)

    for kind in _kinds(path, tmp_path):
        _assert_all_is_there(kind, oracle.load_plain(path))


@settings(PATIENT, max_examples=60)
@given(plain=snapshots())
def test_all_of_any_file_is_there(plain: Plain, tmp_path: Path) -> None:
    path = tmp_path / "any.pickle"
    path.write_bytes(pickle.dumps(plain))

    for kind in _kinds(path, tmp_path):
        _assert_all_is_there(kind, plain)


# What is asked for


@pytest.fixture(params=KINDS)
def small_kind(request: pytest.FixtureRequest, small: Path) -> Path:
    """The small snapshot, or a bundle of it."""
    if request.param == "file":
        return small
    _core.convert(small, small.parent / request.param)
    return small.parent / str(request.param)


def test_events_are_cut_to_what_there_is(small_kind: Path) -> None:
    (device,) = snapviewer.load(small_kind).devices

    indexes = {
        (first, last): [event.index for event in device.event_rows(first, last)]
        for first, last in [(0, 3), (5, 99), (-3, 2), (3, 3), (4, 2), (7, 9), (-9, -2)]
    }

    assert indexes == {
        (0, 3): [0, 1, 2],
        (5, 99): [5, 6],
        (-3, 2): [0, 1],
        (3, 3): [],
        (4, 2): [],
        (7, 9): [],
        (-9, -2): [],
    }
    with pytest.raises(ValueError, match="at most 10000"):
        device.event_rows(0, 10_001)
    with pytest.raises(ValueError, match="at most 10000"):
        device.event_rows(-(2**63), 2**63 - 1)


def test_an_event_is_a_frozen_record(small_kind: Path) -> None:
    (device,) = snapviewer.load(small_kind).devices

    (event,) = device.event_rows(5, 6)

    assert type(event) is snapviewer.Event
    assert (event.action, event.device_free, event.address) == ("oom", 512, 0)
    assert event == device.event_rows(5, 6)[0]
    assert hash(event) == hash(device.event_rows(5, 6)[0])
    assert event != device.event_rows(6, 7)[0]
    assert repr(event) == "Event(index=5, action='oom', address=0x0, size=4096)"
    with pytest.raises(AttributeError):
        event.size = 1  # type: ignore[misc]


def test_odd_events_say_what_they_can(tmp_path: Path) -> None:
    plain = hostile.small_snapshot()
    trace = plain["device_traces"][0]
    trace += [
        {"action": 7, "addr": 1, "size": 1},
        {"action": "alloc", "addr": -512, "size": 1, "forward_frames": ["a\nb", ""]},
        {"action": "alloc", "addr": 99, "size": 1, "user_metadata": "", "time_us": 0},
    ]
    plain["external_annotations"] += [{"name": "x", "stage": "", "device": None}]
    path = tmp_path / "odd.pickle"
    path.write_bytes(pickle.dumps(plain))

    for kind in _kinds(path, tmp_path):
        snapshot = snapviewer.load(kind)
        (device,) = snapshot.devices
        nameless, forward, bare = device.event_rows(7, 10)
        assert (nameless.action, device.events_of("(none)").tolist()) == ("(none)", [7])
        assert forward.address == 2**64 - 512
        assert forward.forward_frames == ("a", "b", "")
        assert (bare.user_metadata, bare.time_us, bare.stack) == (None, None, 0)
        assert snapshot.annotations == (
            ("step", "START", 0, 1),
            ("x", "", None, 0),
        )


def test_what_was_set_aside_for_an_allocation_is_its_block(small_kind: Path) -> None:
    (device,) = snapviewer.load(small_kind).devices
    sizes = device.allocations.size.tolist()

    rounded = [device.rounded_size(number) for number in range(len(sizes))]

    assert dict(zip(sizes, rounded, strict=True)) == {1000: None, 2000: 2048}
    for beyond in (2, -1, 2**70):
        with pytest.raises(IndexError, match="of 2"):
            device.rounded_size(beyond)


def test_a_mask_is_what_a_timeline_shows(small_kind: Path) -> None:
    (device,) = snapviewer.load(small_kind).devices

    for where in ("", "size>=2000", "forward", "!forward", "lifetime<4 main"):
        mask = device.mask(where)
        assert mask.dtype == np.bool_
        assert len(mask) == len(device.allocations)
        assert mask.sum() == device.timeline(where=where).shown
    with pytest.raises(ValueError, match="filter: "):
        device.mask("size>=much")


# Databases that lie


LIES = {
    "drop table annotations": ("annotations", "its tables are not snapviewer's"),
    "update annotations set time_us = 'soon'": ("annotations", "is damaged"),
    "update blocks set size = 'large'": ("rounded_size", "is damaged"),
    "update blocks set size = -7": ("rounded_size", "a block has no size"),
    "update event_columns set events = 3": ("event_rows", "another number of events"),
    "update event_columns set stack = address": ("event_rows", "a stack is out of range"),
    "update event_columns set extras = size": ("event_rows", "is missing"),
    "update event_columns set action = address": ("events_of", "an action is out of range"),
    "update event_columns set action = stream": ("event_rows", ""),
    "update event_columns set action = x'00'": ("events_of", "a column is cut off"),
    "delete from event_columns": ("event_rows", "another number of events"),
    "delete from actions": ("event_rows", "an action has no name"),
    "update actions set name = null": ("event_rows", "is damaged"),
    "update extras set pool = '[0'": ("event_rows", "a memory pool is not a pair"),
    "update extras set extras = extras + 1": ("event_rows", "not numbered"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_in_the_database_is_reported(lie: str, small: Path, tmp_path: Path) -> None:
    asked, words = LIES[lie]
    bundle = tmp_path / "out"
    _core.convert(small, bundle)
    change_database(bundle, lie)
    snapshot = snapviewer.load(bundle)
    (device,) = snapshot.devices
    answers = {
        "annotations": lambda: snapshot.annotations,
        "rounded_size": lambda: [device.rounded_size(n) for n in range(2)],
        "event_rows": lambda: device.event_rows(0, 7),
        "events_of": lambda: device.events_of("oom"),
    }

    if not words:
        assert len(answers[asked]()) == 7, "another truth, but one"  # type: ignore[no-untyped-call]
        return
    with pytest.raises(snapviewer.SnapshotError, match=words) as raised:
        answers[asked]()  # type: ignore[no-untyped-call]

    assert "convert the snapshot again" in str(raised.value)
    assert str(raised.value).endswith(str(bundle)) or str(raised.value).endswith("elements.db")


# Bundles of other versions


def test_what_is_of_another_version_says_so_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "elements.db").touch()

    def refusal(document: Any) -> str:
        (tmp_path / "allocations.json").write_text(json.dumps(document))
        with pytest.raises(snapviewer.SnapshotError) as error:
            snapviewer.load(tmp_path)
        return str(error.value)

    older = refusal([{"timesteps": [0, 5], "offsets": [0, 0], "size": 512}])
    newer = refusal({"format": "snapviewer", "version": _core.FORMAT_VERSION + 1})

    assert older.startswith("made by the older Snapviewer")
    assert "open the original snapshot, or convert it again with `convert_snap.py" in older
    assert newer.startswith("made by a newer snapviewer (format 4, this one reads 3)")
    assert "update snapviewer, or open the original snapshot" in newer
