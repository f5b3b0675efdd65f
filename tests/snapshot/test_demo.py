"""The demo generator against a checker that is too simple to be wrong."""

from __future__ import annotations

import io
import pickle
import pickletools
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from snapviewer.demo import DemoOptions, dump, snapshot, write_demo

Snapshot = dict[str, Any]
EVENT_KEYS = ["action", "addr", "size", "stream", "time_us", "compile_context", "user_metadata",
              "frames"]  # fmt: skip
SEGMENT_KEYS = ["device", "address", "total_size", "allocated_size", "active_size",
                "requested_size", "stream", "segment_type", "segment_pool_id", "is_expandable",
                "frames", "blocks"]  # fmt: skip
BLOCK_KEYS = ["address", "size", "requested_size", "state", "frames"]
OPCODES_OF_REAL_FILES = frozenset({
    "PROTO", "FRAME", "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "MARK", "SETITEM", "SETITEMS",
    "APPEND", "APPENDS", "MEMOIZE", "BINGET", "LONG_BINGET", "SHORT_BINUNICODE", "BINUNICODE",
    "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "NEWTRUE", "NEWFALSE", "NONE", "TUPLE2",
    "STOP",
})  # fmt: skip
OPCODES_OF_CPP = frozenset({
    "PROTO", "EMPTY_DICT", "EMPTY_LIST", "MARK", "SETITEMS", "APPENDS", "BINPUT", "LONG_BINPUT",
    "BINGET", "LONG_BINGET", "BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT",
    "NEWTRUE", "NEWFALSE", "TUPLE2", "STOP",
})  # fmt: skip
OPCODES_OF_A_FREE = (
    "EMPTY_DICT MEMOIZE MARK GET GET GET LONG1 GET INT GET INT GET LONG1 "
    "GET SHORT_BINUNICODE MEMOIZE GET GET GET GET SETITEMS"
)
SIGN_OF_RESERVED = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}

small_options = st.builds(
    DemoOptions,
    events=st.integers(1, 2500),
    seed=st.integers(0, 2**32),
    devices=st.integers(1, 2),
    streams=st.integers(1, 4),
    expandable=st.booleans(),
    private_pools=st.booleans(),
    oom=st.booleans(),
    annotations=st.booleans(),
    before_recording=st.booleans(),
    ring=st.booleans(),
    host=st.booleans(),
    leak=st.booleans(),
    compiled=st.booleans(),
    live=st.integers(1, 150),
    context=st.sampled_from(["alloc", "all"]),
)
slow = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class NothingUnpickler(pickle.Unpickler):
    """Loads plain data only."""

    def find_class(self, module: str, name: str) -> Any:
        raise AssertionError(f"a snapshot names no class: {module}.{name}")


def load(data: bytes) -> Snapshot:
    loaded: Snapshot = NothingUnpickler(io.BytesIO(data)).load()
    return loaded


def pickled(snap: Snapshot, protocol: int = 4) -> bytes:
    file = io.BytesIO()
    dump(snap, file, protocol=protocol)
    return file.getvalue()


def as_cpp_writes(snap: Snapshot) -> Snapshot:
    """The same snapshot without what PyTorch's C++ code leaves out."""

    def strip(event: dict[str, Any]) -> dict[str, Any]:
        left_out = {"compile_context", "user_metadata"}
        if not event["frames"]:
            left_out.add("frames")
        return {key: value for key, value in event.items() if key not in left_out}

    stripped = {**snap, "device_traces": [list(map(strip, t)) for t in snap["device_traces"]]}
    if "host_traces" in snap:
        stripped["host_traces"] = list(map(strip, snap["host_traces"]))
    return stripped


def check_structure(segments: list[dict[str, Any]]) -> None:
    """Blocks cover their segment without a gap, and the sums are sums."""
    for segment in segments:
        assert list(segment) == SEGMENT_KEYS
        at = segment["address"]
        for block in segment["blocks"]:
            assert list(block) == BLOCK_KEYS
            assert block["address"] == at
            assert block["size"] > 0
            at += block["size"]
            if block["state"] != "inactive":
                assert block["requested_size"] <= block["size"]
        assert at == segment["address"] + segment["total_size"]
        active = [b for b in segment["blocks"] if b["state"] != "inactive"]
        allocated = [b for b in active if b["state"] == "active_allocated"]
        assert segment["allocated_size"] == sum(b["size"] for b in allocated)
        assert segment["active_size"] == sum(b["size"] for b in active)
        assert segment["requested_size"] == sum(b["requested_size"] for b in active)


class Replay:
    """The trace of one device played forwards from the state that it must have begun in."""

    def __init__(self, segments: list[dict[str, Any]], trace: list[dict[str, Any]]) -> None:
        blocks = [b for s in segments for b in s["blocks"] if b["state"] != "inactive"]
        self.final = {b["address"]: (b["requested_size"], b["state"]) for b in blocks}
        self.final_mapped = [(s["address"], s["address"] + s["total_size"]) for s in segments]
        self.trace = trace
        self.live = self._initial_allocations()
        self.mapped = self._initial_ranges()

    def _initial_allocations(self) -> dict[int, tuple[int, str]]:
        """Play backwards: undo each event, from the last to the first."""
        live = dict(self.final)
        for event in reversed(self.trace):
            addr = event.get("addr")
            if event["action"] == "alloc":
                assert live.pop(addr) == (event["size"], "active_allocated")
            elif event["action"] == "free_requested":
                assert live[addr] == (event["size"], "active_pending_free")
                live[addr] = (event["size"], "active_allocated")
            elif event["action"] == "free_completed":
                assert addr not in live
                live[addr] = (event["size"], "active_pending_free")
        return live

    def _initial_ranges(self) -> Counter[int]:
        """The 2 MiB pages that were mapped at first, each at most once."""
        pages = Counter(page for low, high in self.final_mapped for page in pages_of(low, high))
        for event in reversed(self.trace):
            sign = SIGN_OF_RESERVED.get(event["action"], 0)
            if sign:
                low = event["addr"]
                change = pages_of(low, low + event["size"])
                for page in change:
                    pages[page] -= sign
                    assert pages[page] in (0, 1)
        return +pages

    def check(self) -> None:
        for event in self.trace:
            action, addr, size = event["action"], event.get("addr", 0), event["size"]
            if action == "alloc":
                assert all(self.mapped[page] for page in pages_of(addr, addr + size))
                assert addr not in self.live
                self.live[addr] = (size, "active_allocated")
            elif action == "free_requested":
                self.live[addr] = (size, "active_pending_free")
            elif action == "free_completed":
                del self.live[addr]
            elif sign := SIGN_OF_RESERVED.get(action, 0):
                for page in pages_of(addr, addr + size):
                    self.mapped[page] += sign
                    assert self.mapped[page] in (0, 1)
        assert self.live == self.final

    def check_no_overlap(self) -> None:
        """Sorted by address at every event, each live block ends before the next one begins."""
        for event in self.trace:
            action, addr, size = event["action"], event.get("addr", 0), event["size"]
            if action == "alloc":
                assert not any(
                    addr < other + max(1, length) and other < addr + max(1, size)
                    for other, (length, _) in self.live.items()
                )
                self.live[addr] = (size, "active_allocated")
            elif action == "free_completed":
                self.live.pop(addr)


def pages_of(low: int, high: int) -> range:
    return range(low >> 21, -(-high >> 21))


def _devices(snap: dict[str, Any]) -> Iterator[tuple[list[Any], list[Any]]]:
    """Yield the segments and the trace of each device."""
    for device, trace in enumerate(snap["device_traces"]):
        yield [s for s in snap["segments"] if s["device"] == device], trace


@slow
@given(small_options)
def test_trace_and_segments_agree(options: DemoOptions) -> None:
    snap = snapshot(options)

    check_structure(snap["segments"])
    assert len(snap["device_traces"]) == options.devices
    for segments, trace in _devices(snap):
        assert len(trace) == options.events
        assert [s["address"] for s in segments] == sorted(s["address"] for s in segments)
        Replay(segments, trace).check()


@slow
@given(small_options)
def test_live_blocks_never_overlap(options: DemoOptions) -> None:
    snap = snapshot(options)

    for segments, trace in _devices(snap):
        Replay(segments, trace).check_no_overlap()


@slow
@given(small_options)
def test_reserved_memory_is_never_negative_and_begins_at_nothing(options: DemoOptions) -> None:
    snap = snapshot(options)

    for device, trace in enumerate(snap["device_traces"]):
        final = sum(s["total_size"] for s in snap["segments"] if s["device"] == device)
        changes = [SIGN_OF_RESERVED.get(e["action"], 0) * e["size"] for e in trace]
        reserved = final - sum(changes)
        if not options.before_recording and not options.ring:
            assert reserved == 0
        for change in changes:
            assert reserved >= 0
            reserved += change
        assert reserved == final


@slow
@given(small_options)
def test_events_look_as_pytorch_writes_them(options: DemoOptions) -> None:
    snap = snapshot(options)

    for trace in snap["device_traces"]:
        times = [event["time_us"] for event in trace]
        assert times == sorted(times)
        for event in trace:
            expected = EVENT_KEYS.copy()
            if event["action"] == "oom":
                expected[1] = "device_free"
                assert event["device_free"] >= 0
            assert list(event) == expected


@slow
@given(small_options, st.sampled_from([2, 4, 5]))
def test_what_is_written_loads_as_what_was_made(options: DemoOptions, protocol: int) -> None:
    snap = snapshot(options)

    loaded = load(pickled(snap, protocol))

    assert loaded == (as_cpp_writes(snap) if protocol == 2 else snap)


@settings(max_examples=15, deadline=None)
@given(small_options)
def test_equal_options_make_equal_bytes(options: DemoOptions) -> None:
    assert pickled(snapshot(options)) == pickled(snapshot(options))


def test_another_seed_makes_another_trace() -> None:
    first, second = (snapshot(DemoOptions(events=500, seed=seed)) for seed in (1, 2))

    assert first["device_traces"] != second["device_traces"]


def test_snapshot_events_give_the_active_bytes_of_that_moment() -> None:
    snap = snapshot(DemoOptions(events=9000, live=60, before_recording=False))
    (trace,) = snap["device_traces"]
    sizes = [event["size"] for event in trace if event["action"] == "snapshot"]
    assert sizes

    cut = next(i for i, event in enumerate(trace) if event["action"] == "snapshot")
    then = snapshot(DemoOptions(events=cut + 1, live=60, before_recording=False))

    assert sizes[0] == sum(segment["active_size"] for segment in then["segments"])


def test_a_shorter_trace_is_the_beginning_of_a_longer_one() -> None:
    long, short = (snapshot(DemoOptions(events=n, live=60)) for n in (900, 333))

    assert long["device_traces"][0][:333] == short["device_traces"][0]


def test_requested_sizes_are_not_rounded_but_blocks_are() -> None:
    snap = snapshot()
    (trace,) = snap["device_traces"]
    blocks = [b for s in snap["segments"] for b in s["blocks"]]

    assert any(event["size"] % 512 for event in trace if event["action"] == "alloc")
    assert all(block["size"] % 512 == 0 for block in blocks)


def test_an_allocation_and_its_frees_share_one_list_of_shared_frames() -> None:
    (trace,) = snapshot(DemoOptions(events=5000, live=60))["device_traces"]
    open_: dict[int, Any] = {}
    frames: dict[tuple[Any, ...], set[int]] = {}
    lists = [id(event["frames"]) for event in trace if event["action"] == "alloc"]

    assert len(set(lists)) == len(lists), "each captured event has a list of its own"
    for event in trace:
        if event["action"] == "alloc":
            open_[event["addr"]] = event["frames"]
        elif event["action"].startswith("free") and event["addr"] in open_:
            assert event["frames"] is open_[event["addr"]]
        for frame in event["frames"]:
            frames.setdefault(tuple(frame.values()), set()).add(id(frame))
    assert all(len(objects) == 1 for objects in frames.values())


def test_with_context_all_a_free_has_a_stack_of_its_own() -> None:
    (trace,) = snapshot(DemoOptions(events=2000, live=60, context="all"))["device_traces"]

    for event in trace:
        if event["action"] == "free_requested":
            assert "::free(" in event["frames"][3]["name"]


def test_each_event_has_its_own_compile_context_and_shares_the_empty_metadata() -> None:
    (trace,) = snapshot(DemoOptions(events=1000))["device_traces"]

    assert len({id(event["compile_context"]) for event in trace}) == len(trace)
    assert len({id(event["user_metadata"]) for event in trace}) == 1


def test_compiled_stacks_are_many_and_deep() -> None:
    (trace,) = snapshot(DemoOptions(events=20_000, compiled=True))["device_traces"]
    stacks = {tuple(map(id, event["frames"])) for event in trace}

    assert len(stacks) > 1000
    assert max(map(len, stacks)) > 60
    assert {"0/0", "1/0", "N/A"} <= {event["compile_context"] for event in trace}


def test_a_usual_run_has_hundreds_of_stacks_about_thirty_frames_deep() -> None:
    (trace,) = snapshot()["device_traces"]
    stacks = {tuple(map(id, event["frames"])) for event in trace}

    assert 100 < len(stacks) < 1000
    assert 28 < sum(len(event["frames"]) for event in trace) / len(trace) < 36


def test_an_event_takes_as_many_bytes_as_in_a_real_file() -> None:
    data = pickled(snapshot(DemoOptions(events=20_000)))

    assert 100 < len(data) / 20_000 < 180


def test_the_peak_is_believable_and_the_run_has_several_steps() -> None:
    snap = snapshot()
    steps = [a for a in snap["external_annotations"]
             if a["stage"] == "START" and a["name"] == "forward"]  # fmt: skip
    peak = sum(s["total_size"] for s in snap["segments"])

    assert len(steps) >= 5
    assert 2e9 < peak < 80e9


def test_deferred_frees_carry_the_stack_of_a_later_request() -> None:
    (trace,) = snapshot(DemoOptions(events=3000, live=60, streams=3))["device_traces"]
    requested = {}
    deferred = []
    for before, event in pairwise(trace):
        if event["action"] == "free_requested":
            requested[event["addr"]] = event["frames"]
        if event["action"] == "free_completed" and before["addr"] != event["addr"]:
            deferred.append((requested[event["addr"]], event["frames"]))

    assert deferred
    for own, carried in deferred:
        assert carried is not own
        crossed = {"next_batch", "torch::autograd::generated::ReduceHook::apply("}
        assert any(frame["name"].startswith(tuple(crossed)) for frame in own)
    assert len({event["stream"] for event in trace}) == 3


@pytest.mark.parametrize("expandable", [False, True])
def test_an_oom_follows_the_release_of_what_was_cached_and_the_run_goes_on(
    expandable: bool,
) -> None:
    options = DemoOptions(events=8000, live=60, oom=True, expandable=expandable)
    (trace,) = snapshot(options)["device_traces"]
    actions = [event["action"] for event in trace]
    first = actions.index("oom")

    assert ("segment_unmap" if expandable else "segment_free") in actions[:first]
    assert "oom" in actions[first + 1 :], "a second try fails as well"
    assert actions[first:].count("alloc") > 1000
    assert "addr" not in trace[first]


def test_the_free_memory_of_an_oom_and_what_is_reserved_add_up_to_the_device() -> None:
    snap = snapshot(DemoOptions(events=8000, live=60, oom=True, before_recording=False))
    reserved, devices = 0, set()
    for event in snap["device_traces"][0]:
        reserved += SIGN_OF_RESERVED.get(event["action"], 0) * event["size"]
        if event["action"] == "oom":
            devices.add(event["device_free"] + reserved)

    assert len(devices) == 1


def test_expandable_segments_are_mapped_in_whole_granules() -> None:
    snap = snapshot(DemoOptions(events=9000, live=60, expandable=True))
    (trace,) = snap["device_traces"]
    actions = Counter(event["action"] for event in trace)

    assert actions["segment_map"]
    assert actions["segment_unmap"]
    assert not actions["segment_alloc"]
    assert all(segment["is_expandable"] for segment in snap["segments"])
    for event in trace:
        if event["action"] in ("segment_map", "segment_unmap"):
            assert event["size"] % (2 << 20) == 0


def test_private_pools_have_segments_of_their_own() -> None:
    snap = snapshot(DemoOptions(events=9000, live=60, private_pools=True))

    assert {s["segment_pool_id"] for s in snap["segments"]} == {(0, 0), (0, 1), (0, 2)}


def test_what_was_there_before_recording_has_no_event() -> None:
    snap = snapshot(DemoOptions(events=200, live=60))
    (trace,) = snap["device_traces"]
    allocated = {event["addr"] for event in trace if event["action"] == "alloc"}
    before = [b for s in snap["segments"] for b in s["blocks"]
              if b["state"] == "active_allocated" and b["address"] not in allocated]  # fmt: skip

    assert any(block["frames"] for block in before)
    assert any(not block["frames"] for block in before)


def test_a_full_ring_has_lost_the_oldest_events() -> None:
    ring = snapshot(DemoOptions(events=900, live=60, ring=True))["device_traces"][0]
    whole = snapshot(DemoOptions(events=1201, live=60))["device_traces"][0]

    assert ring == whole[-900:]


def test_a_leak_keeps_one_tensor_of_each_step() -> None:
    def leaked(leak: bool) -> int:
        snap = snapshot(DemoOptions(events=9000, live=60, leak=leak))
        names = [{frame["name"] for frame in block["frames"]}
                 for s in snap["segments"] for block in s["blocks"]]  # fmt: skip
        return sum("log_hidden" in each for each in names)

    assert leaked(True) > 10
    assert leaked(False) == 0


def test_pinned_memory_is_beside_the_devices() -> None:
    snap = snapshot(DemoOptions(events=9000, live=60, host=True))
    trace = snap["host_traces"]

    check_structure(snap["host_segments"])
    assert {segment["device"] for segment in snap["host_segments"]} == {-1}
    Replay(snap["host_segments"], [e for e in trace if not e["action"].startswith("seg")])
    assert {"segment_alloc", "alloc", "free_completed"} <= {event["action"] for event in trace}


def test_annotations_are_in_order_and_can_be_left_out() -> None:
    annotations = snapshot(DemoOptions(devices=2))["external_annotations"]
    times = [annotation["time_us"] for annotation in annotations]

    assert times == sorted(times)
    assert {tuple(annotation) for annotation in annotations} == {
        ("stage", "name", "device", "time_us")
    }
    assert snapshot(DemoOptions(events=500, annotations=False))["external_annotations"] == []


@pytest.mark.parametrize("live", [1000, 20_000])
def test_about_as_many_allocations_are_alive_as_asked_for(live: int) -> None:
    snap = snapshot(DemoOptions(events=live * 12, live=live))
    (trace,) = snap["device_traces"]
    changes = [{"alloc": 1, "free_completed": -1}.get(event["action"], 0) for event in trace]
    final = sum(b["state"] != "inactive" for s in snap["segments"] for b in s["blocks"])
    count, total = final - sum(changes), 0
    for change in changes:
        count += change
        total += count

    assert 0.7 < total / len(changes) / live < 1.3


def test_protocol_4_has_only_the_opcodes_of_real_files() -> None:
    data = pickled(snapshot(DemoOptions(events=2000, live=60, streams=2, host=True)))

    assert {opcode.name for opcode, _, _ in pickletools.genops(data)} <= OPCODES_OF_REAL_FILES


def test_a_freed_events_opcodes_are_those_of_a_real_one() -> None:
    """Taken from `free_completed` in a recording by torch 2.11; the integers differ, of course."""
    data = pickled(snapshot(DemoOptions(events=3000)))

    def kind(name: str) -> str:
        if name in ("BINGET", "LONG_BINGET"):
            return "GET"
        return "INT" if name.startswith("BININT") else name

    names = [kind(op.name) for op, _, _ in pickletools.genops(data) if op.name != "FRAME"]

    assert " ".join(names).count(OPCODES_OF_A_FREE) > 1000


def test_protocol_2_is_what_the_cpp_pickler_writes() -> None:
    data = pickled(snapshot(DemoOptions(events=500, live=60)), protocol=2)
    ops = [(op.name, arg) for op, arg, _ in pickletools.genops(data)]
    puts = [arg for name, arg in ops if name in ("BINPUT", "LONG_BINPUT")]
    texts = [arg for name, arg in ops if name == "BINUNICODE"]

    frames = [
        f for trace in load(data)["device_traces"] for e in trace for f in e.get("frames", [])
    ]
    assert len({id(frame) for frame in frames}) == len({tuple(f.values()) for f in frames})
    assert data[:2] == b"\x80\x02"
    assert puts == list(range(len(puts))), "memo numbers are in order"
    assert len(set(texts)) == len(texts), "a text is written once"
    assert {name for name, _ in ops} <= OPCODES_OF_CPP


def test_writing_replaces_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "demo.pickle"
    path.write_bytes(b"old")
    calls: list[tuple[int, int]] = []
    options = DemoOptions(events=3000, live=60, devices=2)

    write_demo(path, options, progress=lambda done, total: calls.append((done, total)))

    assert load(path.read_bytes()) == snapshot(options)
    assert calls == sorted(calls)
    assert calls[-1] == (6000, 6000)
    assert [p.name for p in tmp_path.iterdir()] == ["demo.pickle"]


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "demo.pickle"
    path.write_bytes(b"old")

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_demo(path, DemoOptions(events=3000), progress=interrupt)

    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["demo.pickle"]


@pytest.mark.parametrize("name", ["events", "devices", "streams", "live"])
def test_a_count_below_one_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be from 1 to"):
        DemoOptions(**cast(Any, {name: 0}))


def test_another_protocol_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="protocol must be 2, 4 or 5"):
        write_demo(tmp_path / "x", DemoOptions(events=1), protocol=3)

    assert list(tmp_path.iterdir()) == []
