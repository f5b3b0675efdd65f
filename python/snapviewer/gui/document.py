"""An opened file, and what the window asks of it again and again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal

import numpy as np

from snapviewer import Clock, Device, Snapshot, Timeline, _core
from snapviewer.annotations import Span, spans_of
from snapviewer.frames import line_of

from .jobs import Job

Axis = Literal["event", "time", "busy time"]
AXES: tuple[Axis, ...] = ("event", "time", "busy time")


class Trace:
    """One device: its marks, its clocks, and where events are on an axis."""

    def __init__(self, snapshot: Snapshot, device: Device) -> None:
        self.device = device
        self.events = int(device.events)
        self.oom_events = np.unique(np.array(device.oom_at, dtype=np.int64))
        self.snapshot_events = device.events_of("snapshot")
        self.spans: tuple[Span, ...] = spans_of(snapshot, device, self.clock)

    @cached_property
    def clock(self) -> Clock | None:
        """Wall-clock time; None if the file has no times."""
        return self.device.clock()

    @cached_property
    def busy_clock(self) -> Clock | None:
        """The same with long idle times cut short."""
        return self.device.clock(compress=True)

    def axes(self) -> tuple[Axis, ...]:
        """Return what x can be."""
        return AXES if self.clock is not None else ("event",)

    def clock_of(self, axis: Axis) -> Clock | None:
        """Return the clock of an axis; None if it has events."""
        return {"event": None, "time": self.clock, "busy time": self.busy_clock}[axis]

    def end_of(self, axis: Axis) -> float:
        """Return where an axis ends."""
        clock = self.clock_of(axis)
        # One more microsecond, so that what happened in the last one is seen.
        return float(max(self.events, 1)) if clock is None else float(clock.length_us + 1)

    def x_of(self, axis: Axis, event: int) -> float:
        """Return where an event is on an axis; outside of the trace, the nearest end."""
        event = min(max(event, 0), self.events)
        clock = self.clock_of(axis)
        if clock is None:
            return float(event)
        return float(clock.at(event)) if event < self.events else self.end_of(axis)

    def event_at(self, axis: Axis, x: float) -> int:
        """Return the last event that has happened at a place of an axis; -1 if there are none."""
        clock = self.clock_of(axis)
        if clock is None:
            event = int(x)
        else:
            event = int(np.searchsorted(clock.times, max(x, 0.0), side="right")) - 1
        return min(max(event, 0), self.events - 1)

    def unix_us_of(self, event: int) -> int | None:
        """Return when an event happened, in Unix microseconds; None if the file has no times."""
        if self.clock is None or not 0 <= event < self.events:
            return None
        return self.clock.start_us + self.clock.at(event)


@dataclass(eq=False)
class Document:
    """An opened file.

    `bundle` answers queries: the file itself if it is a bundle, otherwise what was converted aside.
    """

    path: Path
    snapshot: Snapshot
    traces: tuple[Trace, ...]
    bundle: Snapshot | None = None
    line_of: Callable[[int], str] = field(init=False)

    def __post_init__(self) -> None:
        # Frames of a bundle are looked up in its database; a pointer asks for them at each step.
        self.line_of = lru_cache(4096)(lambda stack: line_of(self.snapshot, stack))

    @property
    def name(self) -> str:
        return self.path.resolve().name or str(self.path)


@dataclass(frozen=True, slots=True)
class Opened:
    """A file, which of its devices to show first, and that one's timeline."""

    document: Document
    which: int
    timeline: Timeline | None


def open_document(path: Path, job: Job, *, color: str, theme: str) -> Opened:
    """Read a file and make everything that its first picture needs.

    Raises:
        SnapshotError: It is not a snapshot that can be read; the message says why.
        OSError: It cannot be read.
    """
    is_bundle = _core.is_bundle(path)
    snapshot = _core.load(path, progress=job.progress, cancel=job.cancel)
    traces = tuple(Trace(snapshot, device) for device in snapshot.devices)
    document = Document(path, snapshot, traces, snapshot if is_bundle else None)
    if not traces:
        return Opened(document, 0, None)
    which = max(range(len(traces)), key=lambda one: traces[one].device.peak_bytes)
    timeline = traces[which].device.timeline()
    # Colours are made with the first picture; here they keep nobody waiting.
    timeline.image(events=(0, 1), bytes=(0, 1), size=(1, 1), color=color, theme=theme)
    return Opened(document, which, timeline)
