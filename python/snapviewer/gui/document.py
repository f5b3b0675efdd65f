"""An opened file: its devices, clocks and axes, and the first picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from snapviewer import Clock, Device, Image, Snapshot, Timeline, _core
from snapviewer.report.picture.options import core_color
from snapviewer.snapshot.annotations import Span, spans_of
from snapviewer.snapshot.frames import line_of
from snapviewer.snapshot.profile import ProfilerTrace
from snapviewer.text.sanitize import sanitize

from .jobs import Job
from .viewport import Viewport, World

Axis = Literal["event", "time", "busy time"]
# Beyond that, positions on an axis are lost in rounding; the engine refuses them.
_MAX_US = 8 * 10**15
AXES: tuple[Axis, ...] = ("event", "time", "busy time")
_SAMPLES = 8  # of an allocation's lifetime, at which its offset is looked up


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """What is read after the first picture of a device: clocks, snapshot events and annotations.

    `clock` is None if the file has no times; `busy_clock` shortens long idle times.
    """

    clock: Clock | None = None
    busy_clock: Clock | None = None
    snapshot_events: npt.NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(0, dtype=np.int64)
    )
    spans: tuple[Span, ...] = ()


def times_of(snapshot: Snapshot, device: Device) -> Times:
    """Read a device's times and annotations: tens of milliseconds for a million events."""
    clock = device.clock()
    return Times(
        clock,
        device.clock(compress=True),
        device.events_of("snapshot"),
        spans_of(snapshot, device, clock),
    )


class Trace:
    """One device, and where its events are on each axis.

    `times` is None until it has been read.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.events = int(device.events)
        self.oom_events = np.unique(np.array(device.oom_at, dtype=np.int64))
        self.times: Times | None = None
        self.profiled: tuple[Span, ...] = ()
        """What a profiler recorded beside it, in lanes of their own."""

    @property
    def clock(self) -> Clock | None:
        return None if self.times is None else self.times.clock

    @property
    def snapshot_events(self) -> npt.NDArray[np.int64]:
        return np.zeros(0, dtype=np.int64) if self.times is None else self.times.snapshot_events

    @property
    def spans(self) -> tuple[Span, ...]:
        return () if self.times is None else self.times.spans

    def axes(self) -> tuple[Axis, ...]:
        """Return the axes that this device can be shown on."""
        has_times = self.clock is not None and self.clock.length_us < _MAX_US
        return AXES if has_times else ("event",)

    def clock_of(self, axis: Axis) -> Clock | None:
        """Return the clock of an axis; None for the axis of events."""
        if self.times is None or axis == "event":
            return None
        return self.times.clock if axis == "time" else self.times.busy_clock

    def end_of(self, axis: Axis) -> float:
        """Return where an axis ends."""
        clock = self.clock_of(axis)
        # One more microsecond, so that the last one is in view.
        return float(max(self.events, 1)) if clock is None else float(clock.length_us + 1)

    def x_of(self, axis: Axis, event: int) -> float:
        """Return the position of an event on an axis; outside of the trace, the nearest end."""
        event = min(max(event, 0), self.events)
        clock = self.clock_of(axis)
        if clock is None:
            return float(event)
        return float(clock.at(event)) if event < self.events else self.end_of(axis)

    def event_at(self, axis: Axis, x: float) -> int:
        """Return the last event up to a position of an axis; -1 if there are no events."""
        clock = self.clock_of(axis)
        if clock is None:
            event = int(x)
        else:
            event = int(np.searchsorted(clock.times, np.uint64(max(x, 0.0)), side="right")) - 1
        return min(max(event, 0), self.events - 1)

    def unix_us_of(self, event: int) -> int | None:
        """Return the time of an event in Unix microseconds; None if the file has no times."""
        if self.clock is None or not 0 <= event < self.events:
            return None
        return self.clock.start_us + self.clock.at(event)

    def rectangle_of(self, timeline: Timeline, axis: Axis, allocation: int) -> Viewport | None:
        """Return the area that an allocation covers on the plot; None if it is not shown.

        It moves up and down as allocations below it come and go; its height is sampled.
        """
        a = self.device.allocations
        first, last = int(a.alloc_event[allocation]), int(a.free_event[allocation])
        samples = np.unique(np.linspace(first, max(last - 1, first), _SAMPLES).astype(np.int64))
        offsets: list[int] = []
        for event in samples.tolist():
            offset = timeline.offset(allocation, min(event, self.events - 1))
            offsets += [] if offset is None else [offset]
        if not offsets:
            return None
        left, right = self.x_of(axis, first), self.x_of(axis, last)
        top = max(offsets) + int(a.size[allocation])
        return Viewport(left, max(right, left + 1), min(offsets), top)


@dataclass(eq=False)
class Document:
    """An opened file.

    `bundle` answers queries: the file itself if it is a bundle, otherwise its conversion. `profile`
    is what a profiler recorded in the same run.
    """

    path: Path
    snapshot: Snapshot
    traces: tuple[Trace, ...]
    bundle: Snapshot | None = None
    profile: ProfilerTrace | None = None
    line_of: Callable[[int], str] = field(init=False)

    def __post_init__(self) -> None:
        # A bundle's frames are in its database, and every move of the pointer needs some.
        self.line_of = lru_cache(4096)(lambda stack: line_of(self.snapshot, stack))

    @property
    def name(self) -> str:
        return sanitize(self.path.resolve().name or str(self.path))


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of the timeline that was drawn ahead, and its parameters."""

    view: Viewport
    size: tuple[int, int]
    color: str
    theme: str
    image: Image


@dataclass(frozen=True, slots=True)
class Opened:
    """A file, which of its devices to show first, that one's timeline, and a picture of it."""

    document: Document
    which: int
    timeline: Timeline | None
    picture: Picture | None = None


def open_document(
    path: Path, job: Job, *, axis: Axis, color: str, theme: str, size: tuple[int, int]
) -> Opened:
    """Read a file and prepare what its first picture needs, and no more.

    Args:
        path: The file.
        job: Receives the progress.
        axis: The x axis in use.
        color: What to colour by.
        theme: "light" or "dark".
        size: The size of the picture in pixels.

    Raises:
        SnapshotError: The file is not a readable snapshot; the message says why.
        OSError: The file cannot be read.
    """
    is_bundle = _core.is_bundle(path)
    snapshot = _core.load(path, progress=job.progress, cancel=job.cancel)
    traces = tuple(Trace(device) for device in snapshot.devices)
    document = Document(path, snapshot, traces, snapshot if is_bundle else None)
    if not traces:
        return Opened(document, 0, None)
    which = max(range(len(traces)), key=lambda one: traces[one].device.peak_bytes)
    device = traces[which].device
    timeline = device.timeline()
    if axis != "event":
        traces[which].times = times_of(snapshot, device)
    # The first picture also computes the colours: on this thread, nobody waits for that.
    view = World(traces[which].end_of("event"), timeline.peak_bytes).whole()
    image = timeline.image(
        events=view.x_span, bytes=view.byte_span, size=size, color=core_color(color), theme=theme
    )
    return Opened(document, which, timeline, Picture(view, size, color, theme, image))
