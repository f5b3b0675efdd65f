"""The slow, obvious model of a memory snapshot that the product is compared with.

It follows sections 5 to 8 of the snapshot format literally, with plain Python dicts, and shares
no code with the product. Where the format leaves a choice, the choice is stated beside the code.

`python tests/support/oracle.py DIR` prints one line per device of each snapshot in a directory.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import pickle
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import Any

Frames = tuple[tuple[str, str, int], ...]
Pool = tuple[int, int]

ACTIVE_STATES = frozenset({"active_allocated", "active_pending_free", "active_awaiting_free"})
ENDING_ACTIONS = frozenset({"free_completed", "free"})
GROWING_ACTIONS = frozenset({"segment_alloc", "segment_map"})
CATEGORIES = frozenset(
    {"parameter", "optimizer_state", "input", "temporary"}
    | {"activation", "gradient", "autograd_detail", "unknown"}
)
DEFAULT_POOL = (0, 0)
HOST_DEVICE = -1
U64 = 2**64 - 1
NO_STACK = 2**32 - 1

SNAPSHOTS = Path(__file__).resolve().parents[3] / "shared" / "snapshots"


@dataclass(frozen=True, slots=True)
class AllocationModel:
    """One allocation, from the event that made it to the event that ended it."""

    address: int
    size: int
    stream: int
    alloc_event: int
    free_event: int
    free_requested: int | None
    is_implicit_end: bool
    is_missing_block: bool
    is_from_segments: bool
    frames: Frames
    free_frames: Frames | None
    pool: Pool | None
    category: str | None


@dataclass(frozen=True, slots=True)
class DeviceModel:
    """Everything a reader should know about one device of a snapshot."""

    device: int
    events: int
    allocations: list[AllocationModel]
    pools: list[Pool]
    totals: list[int]
    initial_bytes: int
    peak_bytes: int
    peak_event: int
    final_bytes: int
    reserved_initial_bytes: int
    reserved_peak_bytes: int
    reserved_lowest_bytes: int
    oom_events: list[int]
    has_segments: bool
    expected_final_bytes: int
    implicit_frees: int
    unknown_frees: int
    missing_blocks: int

    @property
    def difference_bytes(self) -> int:
        """How far the live bytes at the end are above those of the active blocks."""
        return self.final_bytes - self.expected_final_bytes

    @property
    def reconciles(self) -> bool:
        """Whether the trace and the segments agree at the end."""
        return self.difference_bytes == 0


# Reading


class _InertUnpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> Any:
        raise pickle.UnpicklingError(f"a snapshot has no need of {module_name}.{global_name}")


def load_plain(path: str | Path) -> Any:
    """Read any encoding of a snapshot into its plain dict, executing nothing."""
    return plain_from_bytes(Path(path).read_bytes())


def plain_from_bytes(content: bytes) -> Any:
    """Read a pickle, JSON, a memory_viz page or gzip of any of these, recognised by its bytes."""
    if content.startswith(b"\x1f\x8b"):
        return plain_from_bytes(gzip.decompress(content))
    start = content.lstrip()[:1]
    if start == b"<":
        payload = re.search(rb'"base64"\s*:\s*"([A-Za-z0-9+/=]+)"', content)
        if payload is None:
            raise ValueError("the page holds no snapshot")
        return plain_from_bytes(base64.b64decode(payload[1]))
    is_json = start in (b"{", b"[")
    plain = json.loads(content) if is_json else _InertUnpickler(io.BytesIO(content)).load()
    return {"segments": plain} if isinstance(plain, list) else plain


# Describing


def describe(snapshot: Mapping[str, Any]) -> list[DeviceModel]:
    """Apply the rules of the format to every device that has a trace list or segments."""
    traces: dict[int, list[dict[str, Any]]] = dict(enumerate(snapshot.get("device_traces") or []))
    segments: dict[int, list[dict[str, Any]]] = {device: [] for device in traces}
    for segment in snapshot.get("segments") or []:
        segments.setdefault(segment.get("device", 0), []).append(segment)
    devices = sorted(segments)

    host_events = _host_events(snapshot.get("host_traces") or [])
    host_segments = list(snapshot.get("host_segments") or [])
    if host_events or host_segments:
        traces[HOST_DEVICE], segments[HOST_DEVICE] = host_events, host_segments
        devices.append(HOST_DEVICE)

    # One question for the whole file, asked of every event whatever else it says.
    has_completed = any(
        event.get("action") in ENDING_ACTIONS for trace in traces.values() for event in trace
    )
    return [
        _describe_device(
            device,
            traces.get(device, []),
            segments[device],
            has_completed=has_completed,
            has_segments=("host_segments" if device == HOST_DEVICE else "segments") in snapshot,
        )
        for device in devices
    ]


def _host_events(host_traces: list[Any]) -> list[dict[str, Any]]:
    """Host traces are one list of events, or several whose events follow one another."""
    events: list[dict[str, Any]] = []
    for item in host_traces:
        events.extend(item if isinstance(item, list) else [item])
    return events


@dataclass(slots=True)
class _Allocation:
    address: int
    size: int
    stream: int
    alloc_event: int
    frames: Frames
    first_seen: int
    pool: Pool | None = None
    category: str | None = None
    free_event: int | None = None
    free_requested: int | None = None
    free_frames: Frames | None = None
    is_implicit_end: bool = False
    is_missing_block: bool = False


@dataclass(frozen=True, slots=True)
class _Block:
    address: int
    requested_size: int
    stream: int
    frames: Frames
    pool: Pool


def _describe_device(
    device: int,
    trace: list[dict[str, Any]],
    segments: list[dict[str, Any]],
    *,
    has_completed: bool,
    has_segments: bool,
) -> DeviceModel:
    read_frames = _FrameReader()
    blocks = _active_blocks(segments, read_frames)
    end = len(trace)
    seen: list[_Allocation] = []
    open_at: dict[int, _Allocation] = {}
    implicit_frees = unknown_frees = 0

    for index, event in enumerate(trace):
        if event.get("internal_metadata") == "mallocWithAddress":
            continue
        action = event.get("action")
        if action != "alloc" and action != "free_requested" and action not in ENDING_ACTIONS:
            continue
        address = _unsigned(event.get("addr", 0))
        frames = read_frames(event)
        known = open_at.get(address)

        if action == "alloc":
            if known is not None:
                known.free_event, known.is_implicit_end = index, True
                implicit_frees += 1
            alloc_event = index
        elif known is None:
            unknown_frees += 1
            alloc_event = -1
        if action == "alloc" or known is None:
            known = _Allocation(
                address=address,
                size=event.get("size", 0),
                stream=event.get("stream", 0),
                alloc_event=alloc_event,
                frames=frames,
                first_seen=index,
                pool=_pool(event, "pool_id"),
                category=_category(event),
            )
            seen.append(known)
            open_at[address] = known
        if action == "alloc":
            continue

        if action == "free_requested" and known.free_requested is None:
            known.free_requested = index
            known.free_frames = frames  # a later free_completed may carry an unrelated stack
        if action in ENDING_ACTIONS or not has_completed:
            known.free_event = index
            if known.free_frames is None:
                known.free_frames = frames
            del open_at[address]

    never_freed = [
        _Allocation(
            address=block.address,
            size=block.requested_size,
            stream=block.stream,
            alloc_event=-1,
            frames=block.frames,
            first_seen=-1,
            pool=block.pool,
        )
        for block in blocks
        if block.address not in open_at
    ]
    if has_segments:
        active = {block.address for block in blocks}
        for allocation in open_at.values():
            allocation.is_missing_block = allocation.address not in active

    # Frees carry their own stacks if any free is known to: then the stack of an allocation that
    # only its free reveals is not in the file, unless a block has it.
    has_free_stacks = any(
        a.alloc_event != -1 and a.frames and a.free_frames and a.frames != a.free_frames
        for a in seen
    )
    block_frames = {block.address: block.frames for block in blocks}
    for allocation in seen:
        if allocation.alloc_event == -1:
            if allocation.free_event is None and allocation.address in block_frames:
                allocation.frames = block_frames[allocation.address]
            elif has_free_stacks and allocation.free_event is not None:
                allocation.frames = ()

    pools = _pools(trace, segments)
    # A private pool whose segments were all released cannot be seen: then all is the default one.
    are_recorded = any("pool_id" in event for event in trace)
    is_all_default = pools == [DEFAULT_POOL] and not are_recorded
    for allocation in seen:
        if allocation.pool is None:
            found = DEFAULT_POOL if is_all_default else _pool_at_end(allocation, trace, segments)
            allocation.pool = found

    # An initial allocation with a pending free is stacked by the event that revealed it.
    revealed = [a for a in reversed(seen) if a.alloc_event == -1]
    recorded = [a for a in seen if a.alloc_event != -1]
    allocations = [_finished(a, end) for a in (*never_freed, *revealed, *recorded)]

    initial_bytes = sum(a.size for a in allocations if a.alloc_event == -1)
    changes = [0] * (end + 1)
    for a in allocations:
        if a.alloc_event != -1:
            changes[a.alloc_event] += a.size
        changes[a.free_event] -= a.size
    totals = list(accumulate(changes[:end], initial=initial_bytes))[1:]
    highest = max(totals, default=-1)
    has_event_peak = highest >= initial_bytes

    reserved = _reserved_levels(trace, segments)
    return DeviceModel(
        device=device,
        events=end,
        allocations=allocations,
        pools=pools,
        totals=totals,
        initial_bytes=initial_bytes,
        peak_bytes=highest if has_event_peak else initial_bytes,
        peak_event=totals.index(highest) if has_event_peak else -1,
        final_bytes=totals[-1] if totals else initial_bytes,
        reserved_initial_bytes=reserved[0],
        reserved_peak_bytes=max(reserved),
        reserved_lowest_bytes=min(reserved),
        oom_events=[i for i, event in enumerate(trace) if event.get("action") == "oom"],
        has_segments=has_segments,
        expected_final_bytes=sum(block.requested_size for block in blocks),
        implicit_frees=implicit_frees,
        unknown_frees=unknown_frees,
        missing_blocks=sum(a.is_missing_block for a in allocations),
    )


def _finished(a: _Allocation, end: int) -> AllocationModel:
    return AllocationModel(
        address=a.address,
        size=a.size,
        stream=a.stream,
        alloc_event=a.alloc_event,
        free_event=end if a.free_event is None else a.free_event,
        free_requested=a.free_requested,
        is_implicit_end=a.is_implicit_end,
        is_missing_block=a.is_missing_block,
        is_from_segments=a.first_seen == -1,
        frames=a.frames,
        free_frames=None if a.free_frames == a.frames else a.free_frames,
        pool=a.pool,
        category=a.category,
    )


def _pool(holder: Mapping[str, Any], key: str) -> Pool | None:
    if key not in holder:
        return None
    high, low = holder[key]
    return high, low


def _pools(trace: list[dict[str, Any]], segments: list[dict[str, Any]]) -> list[Pool]:
    """All pools that a device's segments and events name, the default one first."""
    known = {_pool(event, "pool_id") for event in trace} - {None}
    known |= {_pool(segment, "segment_pool_id") or DEFAULT_POOL for segment in segments}
    default = [DEFAULT_POOL] if DEFAULT_POOL in known else []
    return default + sorted(pool for pool in known if pool is not None and pool != DEFAULT_POOL)


def _pool_at_end(
    allocation: _Allocation, trace: list[dict[str, Any]], segments: list[dict[str, Any]]
) -> Pool | None:
    """The pool of the segment at the address, if that is the segment the allocation was in."""
    if allocation.free_event is not None:
        for event in trace[allocation.free_event + 1 :]:
            start = _unsigned(event.get("addr", 0))
            is_there = start <= allocation.address < start + event.get("size", 0)
            if is_there and event.get("action") in GROWING_ACTIONS:
                return None
    # Segments do not overlap; in a file where they do, the last one counts.
    for segment in reversed(segments):
        start = _unsigned(segment.get("address", 0))
        if start <= allocation.address < start + segment.get("total_size", 0):
            return _pool(segment, "segment_pool_id") or DEFAULT_POOL
    return None


def _category(event: Mapping[str, Any]) -> str | None:
    category = event.get("category", "").lower()
    return category if category in CATEGORIES else None


def _active_blocks(segments: list[dict[str, Any]], read_frames: _FrameReader) -> list[_Block]:
    blocks = []
    for segment in segments:
        address = segment.get("address", 0)
        for block in segment.get("blocks") or []:
            address = block.get("address", address)
            if block.get("state") in ACTIVE_STATES:
                history = block.get("history") or [{}]
                requested = block.get("requested_size", history[0].get("real_size"))
                blocks.append(
                    _Block(
                        address=_unsigned(address),
                        requested_size=block.get("size", 0) if requested is None else requested,
                        stream=segment.get("stream", 0),
                        frames=read_frames(block if "frames" in block else history[0]),
                        pool=_pool(segment, "segment_pool_id") or DEFAULT_POOL,
                    )
                )
            address += block.get("size", 0)
    return blocks


def _reserved_levels(trace: list[dict[str, Any]], segments: list[dict[str, Any]]) -> list[int]:
    """Reserved bytes before the first event and after each; negative only if the file lies."""
    signs = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
    changes = [signs.get(event.get("action", ""), 0) * event.get("size", 0) for event in trace]
    final = sum(segment.get("total_size", 0) for segment in segments)
    return list(accumulate(changes, initial=final - sum(changes)))


def _unsigned(address: int) -> int:
    """Addresses written by C++ are signed; the machine's are not."""
    return address & U64


class _FrameReader:
    """Turns the frames of events into tuples, once for each list that events share."""

    def __init__(self) -> None:
        self._known: dict[int, Frames] = {}

    def __call__(self, holder: Mapping[str, Any]) -> Frames:
        frames = holder.get("frames")
        if not frames:
            return ()
        if id(frames) not in self._known:
            self._known[id(frames)] = tuple(
                (f.get("name", ""), f.get("filename", ""), f.get("line", 0)) for f in frames
            )
        return self._known[id(frames)]


# Comparing


_ANSWERS = ("events", "pools", "totals", "initial_bytes", "peak_bytes", "peak_event", "final_bytes")


def expected_answers(model: DeviceModel) -> dict[str, Any]:
    """What the product should say of a device, apart from its allocations."""
    answers = {name: getattr(model, name) for name in _ANSWERS}
    return answers | {"device": model.device, "pools": tuple(model.pools)}


def product_answers(device: Any) -> dict[str, Any]:
    """What the product says of a device, under the keys of `expected_answers`."""
    answers = {name: getattr(device, name) for name in _ANSWERS}
    return answers | {"device": device.index, "totals": device.totals.tolist()}


def product_allocations(snapshot: Any, device: Any) -> list[AllocationModel]:
    """The product's columns of a device as a list of the model's allocations.

    No stack and an empty one are the same answer, so `free_frames` is None for both; compare
    with `comparable` of the model's.
    """
    from snapviewer._core import CATEGORIES as NAMES

    known: dict[int, Frames] = {NO_STACK: ()}
    pools, categories = (None, *device.pools), (None, *NAMES)

    def frames(stack: int) -> Frames:
        if stack not in known:
            known[stack] = tuple((f.name, f.filename, f.line) for f in snapshot.frames(stack))
        return known[stack]

    columns = device.allocations
    names = ("address", "size", "stream", "alloc_event", "free_event", "free_requested", "flags")
    rows = zip(
        *(getattr(columns, name).tolist() for name in names),
        columns.stack.tolist(),
        columns.free_stack.tolist(),
        columns.pool.tolist(),
        columns.category.tolist(),
        strict=True,
    )
    return [
        AllocationModel(
            address=address,
            size=size,
            stream=_unsigned(stream),
            alloc_event=alloc_event,
            free_event=free_event,
            free_requested=None if free_requested == -1 else free_requested,
            is_implicit_end=bool(flags & 1),
            is_missing_block=bool(flags & 2),
            is_from_segments=bool(flags & 4),
            frames=frames(stack),
            free_frames=frames(free_stack) or None,
            pool=pools[pool],
            category=categories[category],
        )
        for (
            address, size, stream, alloc_event, free_event, free_requested, flags,
            stack, free_stack, pool, category,
        ) in rows
    ]  # fmt: skip


def comparable(allocations: Iterable[AllocationModel]) -> list[AllocationModel]:
    """The model's allocations in the form that `product_allocations` gives."""
    return [
        replace(a, stream=_unsigned(a.stream), free_frames=a.free_frames or None)
        for a in allocations
    ]


def first_difference(ours: list[Any], theirs: list[Any]) -> tuple[int, Any, Any] | None:
    """The first place where two lists part, short enough to read; None if they are equal."""
    for index, (our, their) in enumerate(zip_longest(ours, theirs)):
        if our != their:
            return index, our, their
    return None


# The table


def _figures(d: DeviceModel) -> dict[str, int]:
    return {
        "dev": d.device,
        "events": d.events,
        "allocs": len(d.allocations),
        "initial": d.initial_bytes,
        "peak": d.peak_bytes,
        "at": d.peak_event,
        "max total": max(d.totals, default=0),
        "final": d.final_bytes,
        "reserved peak": d.reserved_peak_bytes,
        "off by": d.difference_bytes,
        "implicit": d.implicit_frees,
        "unknown": d.unknown_frees,
        "missing": d.missing_blocks,
        "oom": len(d.oom_events),
    }


def main(directory: str) -> None:
    """Print the figures of every snapshot in a directory."""
    has_heading = False
    for path in sorted(Path(directory).glob("*.pickle")):
        for model in describe(load_plain(path)):
            figures = _figures(model)
            if not has_heading:
                print(" " * 26, *(name.rjust(14) for name in figures))
                has_heading = True
            print(path.stem.ljust(26), *(f"{figure:14,}" for figure in figures.values()))


if __name__ == "__main__":
    main(sys.argv[1])
