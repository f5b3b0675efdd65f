"""Details of an allocation are those in the file, for all files that we have."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import snapviewer
from snapviewer import Device, Snapshot
from snapviewer.demo import DemoOptions, write_demo
from snapviewer.report.snapshot.allocation_details import as_text, runs_of
from snapviewer.snapshot.allocation_details import (
    AllocationDetails,
    FrameDetails,
    Length,
    SameStack,
    When,
    _name,
    allocation_details,
    pool_name,
)
from support import oracle
from support.detailed_snapshot import BASE, START_US, detailed_snapshot
from support.patience import PATIENT
from support.random_snapshots import snapshots

FILES = sorted(oracle.SNAPSHOTS.glob("*.pickle"))
NAMES = [path.stem for path in FILES] or ["absent"]


def _load(plain: Any, directory: Path) -> Snapshot:
    path = directory / "snap.pickle"
    path.write_bytes(pickle.dumps(plain))
    return snapviewer.load(path)


def _facts_at(snapshot: Snapshot, event: int, address: int) -> AllocationDetails:
    """The facts of what an event made at an address; -1 is before the first."""
    (device,) = snapshot.devices
    a = device.allocations
    (found,) = np.flatnonzero((a.alloc_event == event) & (a.address == address)).tolist()
    return allocation_details(snapshot, device, found)


def _lines(frames: tuple[FrameDetails, ...]) -> list[int]:
    return [frame.frame.line for frame in frames]


def test_everything_that_a_file_says_of_an_allocation_is_shown(tmp_path: Path) -> None:
    snapshot = _load(detailed_snapshot(), tmp_path)

    facts = _facts_at(snapshot, 1, BASE)

    assert facts.name == "b7f0000000000_1"
    assert (facts.size_bytes, facts.rounded_bytes) == (1000, None)
    assert (facts.address, facts.stream, facts.device) == (BASE, 7, 0)
    assert (facts.pool, facts.category) == ("private pool 3", "activation")
    assert facts.allocated == When(1, START_US + 1000)
    assert facts.freed == When(5, START_US + 3000)
    assert (facts.lifetime, facts.is_lifetime_whole) == (Length(4, 2000), True)
    assert facts.free_requested == When(3, START_US + 2000)
    assert facts.pending == Length(2, 1000)
    assert facts.flags == ()
    assert (facts.compile_context, facts.user_metadata) == ("0/1", "layer 3")
    assert facts.annotations == ("step", "forward")
    assert facts.forward_frames == ("model.py:70 f", "model.py:71 g")
    assert _lines(facts.frames) == [0, 17, 77, 5, 9]
    assert [frame.kind for frame in facts.frames] == ["torch", "torch", "own", "library", "own"]
    assert [frame.is_main for frame in facts.frames] == [False, False, True, False, False]
    assert facts.free_frames is not None
    assert _lines(facts.free_frames) == [31]


def test_the_first_event_is_an_event_like_any_other(tmp_path: Path) -> None:
    def event(action: str, addr: int, **more: Any) -> dict[str, Any]:
        return {"action": action, "addr": addr, "size": 512, "stream": 0, "frames": [], **more}

    first = [
        event("alloc", BASE, compile_context="0/1", user_metadata="layer 3"),
        event("free_requested", BASE),
        event("free_completed", BASE),
    ]
    old = [event("free_requested", BASE), event("free_completed", BASE), event("alloc", BASE)]
    later = [event("alloc", BASE + 512), *first, event("free_completed", BASE + 512)]

    made = _facts_at(_load({"device_traces": [first], "segments": []}, tmp_path), 0, BASE)
    older = _facts_at(_load({"device_traces": [old], "segments": []}, tmp_path), -1, BASE)
    second = _facts_at(_load({"device_traces": [later], "segments": []}, tmp_path), 1, BASE)

    assert (made.compile_context, made.user_metadata) == ("0/1", "layer 3")
    assert (made.allocated, made.freed) == (When(0, None), When(2, None))
    assert (made.lifetime, made.is_lifetime_whole) == (Length(2, None), True)
    assert (made.free_requested, made.pending) == (When(1, None), Length(1, None))
    assert made.flags == ()
    assert (older.allocated, older.freed) == (None, When(1, None))
    assert (older.free_requested, older.pending) == (When(0, None), Length(1, None))
    assert (older.is_lifetime_whole, older.flags) == (False, ("older than the recording",))
    assert (made.allocation, second.allocation) == (0, 1)
    assert second.lifetime == Length(2, None)


@pytest.mark.parametrize(
    ("index", "words"), [(0, "unknown pool"), (1, "default pool"), (2, "private pool 3")]
)
def test_a_pool_has_its_name(index: int, words: str) -> None:
    assert pool_name([(0, 0), (0, 3)], index) == words


def test_what_is_odd_about_an_allocation_is_shown(tmp_path: Path) -> None:
    snapshot = _load(detailed_snapshot(), tmp_path)

    flags = {
        "older": _facts_at(snapshot, -1, BASE).flags,
        "alive": _facts_at(snapshot, 2, BASE + 4096).flags,
        "lost": _facts_at(snapshot, 4, BASE + 2 * 4096).flags,
        "gone": _facts_at(snapshot, 6, BASE + 2 * 4096).flags,
        "state": _facts_at(snapshot, -1, BASE + 5 * 4096).flags,
    }

    assert flags == {
        "older": ("older than the recording",),
        "alive": ("alive at the end",),
        "lost": ("free lost",),
        "gone": ("no block at the end", "alive at the end"),
        "state": ("not in the trace", "older than the recording", "alive at the end"),
    }


def test_what_is_not_known_is_none(tmp_path: Path) -> None:
    snapshot = _load(detailed_snapshot(), tmp_path)

    alive = _facts_at(snapshot, 2, BASE + 4096)
    older = _facts_at(snapshot, -1, BASE)

    assert (alive.compile_context, alive.user_metadata, alive.category) == (None, None, None)
    assert (alive.freed, alive.free_requested, alive.pending) == (None, None, None)
    assert (alive.lifetime, alive.is_lifetime_whole) == (Length(5, 2000), False)
    assert alive.rounded_bytes == 1536
    assert alive.free_frames is None
    assert (older.allocated, older.frames, older.annotations) == (None, (), ())
    assert (older.lifetime, older.is_lifetime_whole) == (Length(0, 0), False)


def test_what_the_same_stack_made_is_counted(tmp_path: Path) -> None:
    snapshot = _load(detailed_snapshot(), tmp_path)
    (device,) = snapshot.devices

    facts = _facts_at(snapshot, 2, BASE + 4096)

    # The peak has 0 and 1, what is known from the segments, and 2.
    assert device.peak_bytes == 1000 + 1001 + 8 + 1002
    assert facts.same_stack == SameStack(2, 2001, 2001, 2001 / 3011)


def test_a_state_without_a_trace_has_no_lifetimes(tmp_path: Path) -> None:
    plain = detailed_snapshot()
    snapshot = _load(plain | {"device_traces": []}, tmp_path)

    facts = _facts_at(snapshot, -1, BASE + 4096)

    assert (facts.lifetime, facts.allocated, facts.freed) == (None, None, None)
    assert facts.flags == ("not in the trace",)
    assert facts.same_stack == SameStack(1, 1001, 1001, 1001 / 1009)
    assert "alive" not in as_text(facts)
    assert "99 % of the memory" in as_text(facts)
    assert "peak" not in as_text(facts)


def test_the_text_is_complete_and_aligned(tmp_path: Path) -> None:
    snapshot = _load(detailed_snapshot(), tmp_path)

    text = as_text(_facts_at(snapshot, 1, BASE))

    assert (
        text
        == """\
b7f0000000000_1
  size            1,000 B
  alive           1 – 5
  lifetime        4 events · 2.00 ms
  allocated       2023-11-14 22:13:20.001000 UTC
  freed           2023-11-14 22:13:20.003000 UTC
  free requested  3 · 2023-11-14 22:13:20.002000 UTC
  pending         2 events · 1.00 ms
  address         0x7f0000000000
  stream          7
  pool            private pool 3
  device          0
  category        activation
  compiling       0/1
  metadata        layer 3
  during          step › forward
  stack           1: 2 allocations with this stack, 1.95 KiB together · 66 % of the peak
  its bytes       1.95 KiB (2,001 B) in total, 1.95 KiB (2,001 B) at the peak

allocated by:
  at::native::linear(at::Tensor const&)
  _call_impl (/x/site-packages/torch/nn/module.py:17)
  attention (/home/a/model.py:77)
  generate (/x/site-packages/transformers/utils.py:5)
  main (/home/a/train.py:9)

in the forward pass:
  model.py:70 f
  model.py:71 g

freed by:
  clear (/home/a/train.py:31)
"""
    )


def test_untrusted_names_stay_on_their_line_and_do_nothing(tmp_path: Path) -> None:
    plain = detailed_snapshot()
    evil = "a\nb\x1b[2Jc\x00\u202e"
    plain["external_annotations"][1]["name"] = evil
    plain["external_annotations"][3]["name"] = evil
    event = plain["device_traces"][0][1]
    event |= {"user_metadata": evil, "compile_context": evil, "forward_frames": [evil]}
    event["frames"] = [{"name": evil, "filename": f"/home/{evil}.py", "line": 3}]
    snapshot = _load(plain, tmp_path)

    text = as_text(_facts_at(snapshot, 1, BASE))

    assert all(line.isprintable() for line in text.splitlines())
    # The core divides forward stacks into lines, at whatever ends one.
    assert text.count("a b?[2Jc??") == 5


@given(
    st.lists(st.sampled_from(["own", "library", "torch", "other"]), max_size=200),
    st.integers(0, 199),
)
def test_folding_keeps_every_frame_and_hides_none_of_the_users(kinds: list[Any], main: int) -> None:
    frame: Any = None
    frames = [FrameDetails(frame, kind, n == main) for n, kind in enumerate(kinds)]

    runs = runs_of(frames)

    assert [fact for run in runs for fact in run.frames] == frames
    for run in runs:
        is_shown = [fact.is_own or fact.is_library or fact.is_main for fact in run.frames]
        assert run.frames
        # Of the user's own only very many in a row are folded.
        assert not run.is_folded or not any(is_shown) or run.words.endswith("more frames")
    assert sum(not run.is_folded for run in runs) or len(runs) <= 1


def test_of_a_deep_recursion_the_middle_is_folded() -> None:
    frame: Any = None
    frames = [FrameDetails(frame, "own", n == 0) for n in range(1500)]

    runs = runs_of(frames)

    assert [(len(run.frames), run.words) for run in runs] == [
        (30, ""),
        (1465, "… 1,465 more frames"),
        (5, ""),
    ]


# Against slow versions, on files


@pytest.mark.parametrize("name", NAMES)
def test_names_are_those_of_the_bundle(name: str, tmp_path: Path) -> None:
    _assert_named_as_in_a_bundle(_source(name), tmp_path / "out.zip")


def test_names_of_a_demo_are_those_of_the_bundle(tmp_path: Path) -> None:
    path = tmp_path / "demo.pickle"
    write_demo(path, DemoOptions(events=4000))

    _assert_named_as_in_a_bundle(path, tmp_path / "out.zip")


@PATIENT
@given(snapshots())
def test_names_in_any_snapshot_are_those_of_the_bundle(
    tmp_path_factory: pytest.TempPathFactory, plain: dict[str, Any]
) -> None:
    directory = tmp_path_factory.mktemp("any")
    path = directory / "snap.pickle"
    path.write_bytes(pickle.dumps(plain))

    _assert_named_as_in_a_bundle(path, directory / "out.zip")


def _assert_named_as_in_a_bundle(path: Path, bundle: Path) -> None:
    snapviewer.convert(path, bundle)
    sql = "select name from identities order by idx"
    _, rows, _ = snapviewer.query(bundle, sql, max_rows=10**6)

    ours = [
        _name(device, allocation)
        for device in snapviewer.load(path).devices
        for allocation in range(len(device.allocations))
    ]

    assert ours == [name for (name,) in rows]


@pytest.mark.parametrize("name", NAMES)
def test_facts_of_a_real_file_are_those_of_its_bundle_and_of_the_model(
    name: str, tmp_path: Path
) -> None:
    path = _source(name)
    snapshot = snapviewer.load(path)
    snapviewer.convert(path, tmp_path / "out.zip")
    bundle = snapviewer.load(tmp_path / "out.zip")

    for device, other in zip(snapshot.devices, bundle.devices, strict=True):
        for allocation in _some(device):
            facts = allocation_details(snapshot, device, allocation)
            assert facts == allocation_details(bundle, other, allocation)
            assert facts.same_stack == _slow_same_stack(device, facts.stack)
            assert as_text(facts).startswith(facts.name)


def _some(device: Device) -> list[int]:
    """A few allocations of each kind."""
    a = device.allocations
    kinds = [a.flags, a.alloc_event < 0, a.free_event >= int(device.events), a.stack == 0]
    if len(a) == 0:
        return []
    _, firsts = np.unique(np.stack(kinds, axis=1).astype(np.int64), axis=0, return_index=True)
    spread = np.linspace(0, len(a) - 1, 12).astype(np.int64)
    return sorted({*firsts.tolist(), *spread.tolist()})


def _slow_same_stack(device: Device, stack: int) -> SameStack:
    a, peak = device.allocations, device.peak_event
    columns = (a.stack, a.size, a.alloc_event, a.free_event)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    same = [row for row in rows if row[0] == stack]
    held = sum(size for _, size, made, ended in same if made <= peak < ended)
    return SameStack(
        len(same), sum(row[1] for row in same), held, held / device.peak_bytes if held else 0.0
    )


def _source(name: str) -> Path:
    if not FILES:
        pytest.skip(f"{oracle.SNAPSHOTS} is absent")
    return oracle.SNAPSHOTS / f"{name}.pickle"
