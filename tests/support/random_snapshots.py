"""Random snapshots, with few addresses, so that every pairing of allocations and frees comes up."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from support import oracle

Plain = dict[str, Any]


BASES = (0x7F00_0000_0000, 0x7F00_0010_0000, 2**64 - 0x80_0000)
ROUNDED_SIZE = 512
ADDRESSES = tuple(base + n * ROUNDED_SIZE for base in BASES for n in range(3))
SIZES = st.sampled_from([0, 1, 100, 512, 513, 2**20, 2**33, 2**40])
STREAMS = st.sampled_from([0, 7, 0x5555_0000_1000])
TEXTS = st.one_of(
    st.sampled_from(["forward", "backward", "", "??", "a" * 300]),
    st.text(st.characters(codec="utf-8"), max_size=8),
)
ACTIONS = st.sampled_from(
    ["alloc"] * 6
    + ["free_requested"] * 4
    + ["free_completed"] * 4
    + ["free", "segment_alloc", "segment_free", "segment_map", "segment_unmap"]
    + ["oom", "snapshot", "annotate", "user_defined", "workspace_snapshot", "", "Alloc"]
)
STATES = st.sampled_from(
    ["active_allocated"] * 3
    + ["inactive"] * 2
    + ["active_pending_free", "active_awaiting_free", "unheard_of"]
)
EXTRAS: st.SearchStrategy[Plain] = st.sampled_from(
    [
        {"compile_context": "N/A"},
        {"user_metadata": "lr=0.1"},
        {"forward_frames": ["train.py:7:step", "loss.py:1:loss"]},
        {"pool_id": (0, 1)},
        {"pool_id": (0, 0)},
        {"pool_id": (3, -1), "category": "Optimizer_State"},
        {"internal_metadata": ""},
        {"category": "activation"},
        {"category": "unheard of"},
        {"unheard_of": {"deep": [None, True, 1.5, -1, 2**65, [], {}, (), (1, 2, 3)]}},
        {"names": {"addr": 1, "size": 2, "frames": []}},
    ]
)


# Snapshots


def _is_chance(draw: st.DrawFn, one_in: int) -> bool:
    return draw(st.integers(1, one_in)) == one_in


def _shuffled(draw: st.DrawFn, fields: Plain) -> Plain:
    """The same dict with its keys in another order."""
    keys = sorted(fields)
    # One number is drawn, not a permutation: with one for each key the test takes twice as long.
    if order := draw(st.integers(0, 999)):
        Random(order).shuffle(keys)
    return {key: fields[key] for key in keys}


def _thinned(draw: st.DrawFn, fields: Plain, optional: tuple[str, ...]) -> Plain:
    """The same dict without some of its optional keys."""
    gone = draw(st.sets(st.sampled_from(optional))) if _is_chance(draw, 4) else set()
    return {key: value for key, value in fields.items() if key not in gone}


@st.composite
def frame_lists(draw: st.DrawFn) -> list[Plain]:
    """A stack: some frames, some of them the same object, some with fields too many or few."""
    frames: list[Plain] = []
    for _ in range(draw(st.integers(0, 4))):
        if frames and _is_chance(draw, 4):
            frames.append(draw(st.sampled_from(frames)))
            continue
        line = draw(st.sampled_from([0, 1, 255, 256, 70_000, 2**31 - 1]))
        frame = {"name": draw(TEXTS), "filename": draw(TEXTS), "line": line}
        if _is_chance(draw, 8):
            frame["fx_node_op"] = "call_function"
        frames.append(_shuffled(draw, _thinned(draw, frame, ("name", "filename", "line"))))
    return frames


def _frames(draw: st.DrawFn, stacks: list[list[Plain]]) -> list[Plain]:
    """A stack of the file: the very list, a list of the very frames, or a copy of it all."""
    frames = draw(st.sampled_from(stacks))
    way = draw(st.integers(0, 5))
    return copy.deepcopy(frames) if way == 5 else list(frames) if way == 4 else frames


def _written(draw: st.DrawFn, address: int) -> int:
    """An address as Python writes it, or as C++ does."""
    is_signed = address >= 2**63 and draw(st.booleans())
    return address - 2**64 if is_signed else address


@st.composite
def traces(draw: st.DrawFn, stacks: list[list[Plain]], actions: list[str]) -> list[Plain]:
    """The events of one device; some are the same object twice."""
    trace: list[Plain] = []
    for _ in range(draw(st.integers(0, 24))):
        if trace and _is_chance(draw, 12):
            trace.append(draw(st.sampled_from(trace)))
            continue
        event: Plain = {
            "action": draw(st.sampled_from(actions)),
            "addr": _written(draw, draw(st.sampled_from(ADDRESSES))),
            "size": draw(SIZES),
            "stream": draw(STREAMS),
            "time_us": 1_700_000_000_000_000 + len(trace) // 2,
            "frames": _frames(draw, stacks),
        }
        if event["action"] == "oom":
            event["device_free"] = event.pop("addr") % 2**40
        if event["action"] in ("alloc", "free_requested", "free_completed") and _is_chance(draw, 9):
            event["internal_metadata"] = "mallocWithAddress"
        elif _is_chance(draw, 4):
            event |= draw(EXTRAS)
        event = _thinned(draw, event, ("stream", "time_us", "frames"))
        trace.append(_shuffled(draw, event))
    return trace


def _block(draw: st.DrawFn, address: int, requested: int, state: str, frames: list[Plain]) -> Plain:
    """A block as one of the versions of torch writes it."""
    block: Plain = {"size": ROUNDED_SIZE, "state": state}
    version = draw(st.sampled_from(["2.0", "2.1", "2.1", "2.1", "bare"]))
    if version == "2.0":
        entry = {"addr": address, "real_size": requested, "frames": frames}
        older = {"addr": address, "real_size": 1, "frames": []}
        block["history"] = [entry, older] if draw(st.booleans()) else [entry]
    elif version == "2.1":
        block |= {"address": address, "requested_size": requested, "frames": frames}
    return _shuffled(draw, block)


def _segment(
    draw: st.DrawFn, device: int, base: int, blocks: list[Plain], pools: list[oracle.Pool]
) -> Plain:
    size = sum(block["size"] for block in blocks) + draw(st.sampled_from([0, 2**21]))
    segment: Plain = {
        "device": device,
        "address": base,
        "total_size": size,
        "allocated_size": size,
        "active_size": size,
        "requested_size": size,
        "stream": draw(STREAMS),
        "segment_type": draw(st.sampled_from(["small", "large"])),
        "segment_pool_id": draw(st.sampled_from(pools)),
        "is_expandable": draw(st.booleans()),
        "frames": [],
        "blocks": blocks,
    }
    optional = ("allocated_size", "active_size", "requested_size", "stream", "segment_type")
    more = ("segment_pool_id", "is_expandable", "frames")
    return _shuffled(draw, _thinned(draw, segment, optional + more))


@st.composite
def segment_lists(
    draw: st.DrawFn, device: int, stacks: list[list[Plain]], open_sizes: dict[int, int]
) -> list[Plain]:
    """The segments of a device, with or without regard to what its trace left open."""
    is_consistent = draw(st.booleans())
    uncovered = dict(open_sizes)
    pools = draw(st.sampled_from([[(0, 0)], [(0, 0), (0, 1), (0, 2)], [(0, 1), (-1, 5)]]))
    segments = []
    for base in draw(st.lists(st.sampled_from(BASES), unique=True)):
        blocks = []
        for number in range(draw(st.integers(0, 4))):
            address = base + number * ROUNDED_SIZE
            requested, state = draw(st.sampled_from([1, 100, 511, 512])), draw(STATES)
            open_size = uncovered.pop(address, None)
            frames = _frames(draw, stacks)
            block = _block(draw, _written(draw, address), requested, state, frames)
            if is_consistent and open_size is not None:
                block |= {"state": "active_allocated", "requested_size": open_size}
            blocks.append(block)
        segments.append(_segment(draw, device, _written(draw, base), blocks, pools))
    if is_consistent:
        for address, size in uncovered.items():
            block = {"size": ROUNDED_SIZE, "requested_size": size, "state": "active_allocated"}
            segments.append(_segment(draw, device, address, [block], pools))
    return draw(st.permutations(segments))


@st.composite
def snapshots(draw: st.DrawFn) -> Plain:
    """A whole file: some devices, maybe the host, segments that fit or do not, other keys."""
    stacks = draw(st.lists(frame_lists(), min_size=1, max_size=4))
    # Few kinds of action in a file, so that files without any `free_completed` are common.
    actions = draw(st.lists(ACTIONS, min_size=1, max_size=8))
    device_traces = draw(st.lists(traces(stacks, actions), max_size=3))
    if device_traces and _is_chance(draw, 6):
        device_traces.append(draw(st.sampled_from(device_traces)))

    plain: Plain = {"device_traces": device_traces}
    if _is_chance(draw, 6):
        trace = draw(traces(stacks, actions))
        plain["host_traces"] = [trace] if draw(st.booleans()) else trace
    open_sizes = _open_sizes(plain)
    if not _is_chance(draw, 10):
        plain["segments"] = []
        for device in range(len(device_traces) + 1):
            if draw(st.booleans()):
                made = segment_lists(device, stacks, open_sizes.get(device, {}))
                plain["segments"].extend(draw(made))
        if not plain["device_traces"] and draw(st.booleans()):
            del plain["device_traces"]
    if "host_traces" in plain and draw(st.booleans()):
        made = segment_lists(oracle.HOST_DEVICE, stacks, open_sizes.get(oracle.HOST_DEVICE, {}))
        plain["host_segments"] = draw(made)
    if draw(st.booleans()):
        plain["allocator_settings"] = {"expandable_segments": False, "max_split_size": -1}
        plain["external_annotations"] = [{"name": "a", "stage": "END", "device": 0, "time_us": 1}]
    if _is_chance(draw, 6):
        plain["source_code"] = {"a.py": "print()\n"}
        plain["unheard_of"] = [stacks, {"segments": stacks}]
    assume(oracle.describe(plain))
    return _shuffled(draw, plain)


def _open_sizes(plain: Plain) -> dict[int, dict[int, int]]:
    """Address and size of what each device's trace leaves open."""
    return {
        model.device: {a.address: a.size for a in model.allocations if a.free_event == model.events}
        for model in oracle.describe(plain)
    }
