"""The curves of memory, steps and annotations as a trace for Perfetto (and chrome://tracing).

Perfetto has one value at a time on a track. Several events may have the same microsecond, so each
one after the first is a nanosecond later: the order stays, and no peak is lost.

Cost: a few microseconds for each change of a curve.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from snapviewer import Device, Snapshot, SnapshotError
from snapviewer.report.snapshot.info import device_name
from snapviewer.report.writers.protobuf import message, number
from snapviewer.snapshot.annotations import spans_of
from snapviewer.text.sanitize import MAX_NAME_CHARS, json_text, sanitize

_SEQUENCE = 1
_COUNTER, _BEGIN, _END = 4, 1, 2  # types of a track's events
_SIZE_BYTES = 3  # the unit of a counter
_ROOT = 1000  # the number of a device's first track; its others follow

Columns = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Slice:
    """A named span on a track, in nanoseconds."""

    track: str
    name: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """What is exported: times of the events, curves after each, and slices."""

    title: str
    times_ns: npt.NDArray[np.int64]
    curves: dict[str, Columns]
    slices: tuple[Slice, ...]
    has_times: bool


def memory_of(snapshot: Snapshot, device: Device) -> Memory:
    """Collect the curves, the steps and the annotations of a device.

    Without recorded times, an event takes a microsecond.
    """
    clock = device.clock()
    count = int(device.events)
    if clock is None:
        times_us = np.arange(count, dtype=np.int64)
    else:
        times_us = clock.times.astype(np.int64) + clock.start_us
    times_ns = _distinct(times_us)
    try:
        curves: dict[str, Columns] = {
            name: getattr(device.curves, name)
            for name in ("requested", "allocated", "active", "reserved")
        }
    except SnapshotError:  # a bundle without segments
        curves = {"requested": device.totals}
    slices = [
        *_stretches("steps", ((one.name, one.start, one.end) for one in device.steps.steps)),
        *_stretches("phases", device.steps.phases),
    ]
    ends = [*times_ns.tolist(), int(times_ns[-1]) + 1 if count else 0]
    placed = [
        Slice(track, name, ends[min(start, count)], ends[min(end, count)])
        for track, name, start, end in slices
    ]
    start_ns = 0 if clock is None else clock.start_us * 1000
    placed += [
        Slice(
            f"annotations {span.lane + 1}" if span.lane else "annotations",
            span.name,
            start_ns + span.start_us * 1000,
            start_ns + span.end_us * 1000,
        )
        for span in spans_of(snapshot, device, clock)
    ]
    return Memory(device_name(device), times_ns, curves, tuple(placed), clock is not None)


def _stretches(track: str, rows: object) -> Iterator[tuple[str, str, int, int]]:
    for name, start, end in rows:  # type: ignore[attr-defined]
        yield track, name, start, end


def _distinct(times_us: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return nanoseconds, of which those of one microsecond follow each other.

    >>> _distinct(np.array([5, 5, 6])).tolist()
    [5000, 5001, 6000]
    """
    places = np.arange(len(times_us))
    is_first = np.ones(len(times_us), dtype=np.bool_)
    is_first[1:] = times_us[1:] != times_us[:-1]
    first = np.maximum.accumulate(np.where(is_first, places, 0))
    # Of more than a thousand in a microsecond, the last ones are at its end, together.
    return times_us * 1000 + np.minimum(places - first, 999)


def _changes(memory: Memory) -> Iterator[tuple[str, int, int]]:
    """Return each change of each curve: its name, when, and the bytes from then on."""
    for name, curve in memory.curves.items():
        is_new = np.ones(len(curve), dtype=np.bool_)
        is_new[1:] = curve[1:] != curve[:-1]
        for time, size in zip(
            memory.times_ns[is_new].tolist(), curve[is_new].tolist(), strict=True
        ):
            yield name, time, size


def as_perfetto(memory: Memory) -> bytes:
    """Return a trace in Perfetto's own format."""
    tracks = [*memory.curves, *dict.fromkeys(one.track for one in memory.slices)]
    ids = {name: _ROOT + 1 + place for place, name in enumerate(tracks)}
    root = number(1, _ROOT) + message(2, _text(f"memory of {memory.title}"))
    packets = [message(60, root)]
    for name, id_ in ids.items():
        about = number(1, id_) + message(2, _text(name)) + number(5, _ROOT)
        if name in memory.curves:
            about += message(8, number(3, _SIZE_BYTES))
        packets.append(message(60, about))
    for name, time, size in _changes(memory):
        packets.append(_event(time, number(9, _COUNTER) + number(11, ids[name]) + number(30, size)))
    # Ends before beginnings at the same time, and of those the longest first.
    marks = [
        mark
        for one in memory.slices
        for mark in ((one.start_ns, 1, -one.end_ns, one), (one.end_ns, 0, -one.start_ns, one))
        if one.end_ns >= one.start_ns
    ]
    for time, is_start, _, one in sorted(marks, key=lambda mark: mark[:3]):
        event = number(9, _BEGIN if is_start else _END) + number(11, ids[one.track])
        packets.append(_event(time, event + (message(23, _text(one.name)) if is_start else b"")))
    first = number(10, _SEQUENCE)
    return b"".join(message(1, packet + first) for packet in packets)


def _event(time_ns: int, event: bytes) -> bytes:
    return number(8, time_ns) + message(11, event)


def _text(text: str) -> bytes:
    return sanitize(text, MAX_NAME_CHARS).encode()


def as_json(memory: Memory) -> str:
    """Return a trace in the format of chrome://tracing, which Perfetto reads, too."""
    tracks = {
        name: place for place, name in enumerate(dict.fromkeys(s.track for s in memory.slices), 1)
    }
    events: list[dict[str, object]] = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": f"memory of {memory.title}"}}
    ]
    events += [
        {"ph": "M", "pid": 1, "tid": tid, "name": "thread_name", "args": {"name": name}}
        for name, tid in tracks.items()
    ]
    events += [
        {"ph": "C", "pid": 1, "name": name, "ts": time / 1000, "args": {"bytes": size}}
        for name, time, size in _changes(memory)
    ]
    events += [
        {
            "ph": "X",
            "pid": 1,
            "tid": tracks[one.track],
            "name": sanitize(one.name, MAX_NAME_CHARS),
            "ts": one.start_ns / 1000,
            "dur": max(one.end_ns - one.start_ns, 0) / 1000,
        }
        for one in memory.slices
    ]
    return json_text({"traceEvents": events, "displayTimeUnit": "ns"}, indent=None) + "\n"
