"""An opened file, and what the window asks of it again and again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from snapviewer import Clock, Device, Image, Snapshot, Timeline, _core
from snapviewer.snapshot.annotations import Span, spans_of
from snapviewer.snapshot.frames import line_of

from .jobs import Job
from .views import View, World

Axis = Literal["event", "time", "busy time"]
# Beyond that, places on an axis are lost in rounding; the engine refuses them.
_LONGEST_US = 8 * 10**15
AXES: tuple[Axis, ...] = ("event", "time", "busy time")


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """What is known of a device a moment after its first picture: its clocks, and its marks.

    `clock` is None if the file has no times; `busy_clock` has long idle times cut short.
    """

    clock: Clock | None = None
    busy_clock: Clock | None = None
    snapshot_events: npt.NDArray[np.int64] = field(
        default_factory=lambda: np.zeros(0, dtype=np.int64)
    )
    spans: tuple[Span, ...] = ()


def times_of(snapshot: Snapshot, device: Device) -> Times:
    """Find out when things happened: tens of milliseconds for a million events."""
    clock = device.clock()
    return Times(
        clock,
        device.clock(compress=True),
        device.events_of("snapshot"),
        spans_of(snapshot, device, clock),
    )


class Trace:
    """One device: its marks, its clocks, and where events are on an axis.

    `times` is None until it was found out.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.events = int(device.events)
        self.oom_events = np.unique(np.array(device.oom_at, dtype=np.int64))
        self.times: Times | None = None

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
        """Return what x can be."""
        has_times = self.clock is not None and self.clock.length_us < _LONGEST_US
        return AXES if has_times else ("event",)

    def clock_of(self, axis: Axis) -> Clock | None:
        """Return the clock of an axis; None if it has events."""
        if self.times is None or axis == "event":
            return None
        return self.times.clock if axis == "time" else self.times.busy_clock

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
            event = int(np.searchsorted(clock.times, np.uint64(max(x, 0.0)), side="right")) - 1
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
class Picture:
    """A picture that was drawn ahead, and of what."""

    view: View
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
    """Read a file and make everything that its first picture needs, and no more.

    Args:
        path: The file.
        job: Is told how far it is.
        axis: What x is now.
        color: What colours tell.
        theme: "light" or "dark".
        size: How large the picture will be, in pixels.

    Raises:
        SnapshotError: It is not a snapshot that can be read; the message says why.
        OSError: It cannot be read.
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
    # With the first picture, colours are made, too: here that keeps nobody waiting.
    view = World(traces[which].end_of("event"), timeline.peak_bytes).whole()
    image = timeline.image(
        events=view.x_span, bytes=view.byte_span, size=size, color=color, theme=theme
    )
    return Opened(document, which, timeline, Picture(view, size, color, theme, image))
