"""The part of a timeline that a picture shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from snapviewer import Device, SnapshotError
from snapviewer._core import Clock, Image, Timeline
from snapviewer.report.ticks import Piece, Ticks, WidthOf, number_ticks, time_ticks
from snapviewer.snapshot.clock import shown_us
from snapviewer.text.units import format_duration

from .options import PictureOptions


@dataclass(frozen=True, slots=True)
class PictureView:
    """A part of a timeline.

    `low` and `high` are events, or with a clock microseconds on it; `first` and `last` the events
    in between, `last` excluded; `peak_event` the one of them with the largest total, -1 if that is
    before the first.
    """

    timeline: Timeline
    clock: Clock | None
    low: float
    high: float
    first: int
    last: int
    peak_event: int
    peak_bytes: int

    def image(self, byte_span: tuple[int, int], size: tuple[int, int], **how: Any) -> Image:
        """Draw this part."""
        span = (self.low, self.high)
        if self.clock is None:
            return self.timeline.image(events=span, bytes=byte_span, size=size, **how)
        return self.timeline.image(time=span, clock=self.clock, bytes=byte_span, size=size, **how)

    def share_of(self, event: int) -> float:
        """Return how far along the axis an event is: 0 at its left end, 1 at its right."""
        place = event if self.clock is None else self.clock.at(event)
        return (place - self.low) / (self.high - self.low)

    def ticks(self, length_px: int, width_of: WidthOf) -> Ticks:
        """Mark the axis of events or time."""
        if self.clock is None:
            return number_ticks(self.low, self.high, length_px, width_of)
        pieces = pieces_of(self.clock)
        return time_ticks(self.low, self.high, length_px, width_of, pieces=pieces)

    def breaks(self) -> list[float]:
        """Return how far along the axis the shortened idle times are."""
        if self.clock is None:
            return []
        middles = ((start + end) / 2 for _, start, end, _ in self.clock.gaps)
        return [
            (middle - self.low) / (self.high - self.low)
            for middle in middles
            if self.low <= middle <= self.high
        ]


def view_of(device: Device, timeline: Timeline, options: PictureOptions) -> PictureView:
    """Return the part of a timeline that options choose.

    Raises:
        SnapshotError: It is empty; the message says why.
    """
    events = int(device.events)
    if events == 0 and options.span is not None:
        raise SnapshotError("the device has no events, so it has no range to show")
    if options.axis == "event":
        clock = None
        low, high = _cut(options.span, max(events, 1), f"the trace has {events:,} events")
        first, last = int(low), max(int(low) + 1, int(high))
    else:
        clock, low, high = _time_span(device, options)
        first, last = clock.events(low, high)
    if events == 0:
        return PictureView(timeline, clock, low, high, 0, 0, -1, timeline.peak_bytes)
    if first == 0 and timeline.peak_event < 0:
        # More was alive before the first event than ever after.
        return PictureView(timeline, clock, low, high, first, last, -1, timeline.peak_bytes)
    return PictureView(timeline, clock, low, high, first, last, *timeline.peak_in(first, last))


def _time_span(device: Device, options: PictureOptions) -> tuple[Clock, float, float]:
    clock = device.clock(compress=options.shorten_idle)
    if clock is None:
        raise SnapshotError("this device has no times; use the axis of events")
    span = options.span
    if span is not None:
        low, high = shown_us(clock, span)
        span = (float(low), float(high))
    # One more microsecond, so that the last event is visible.
    whole = f"the trace is {format_duration(clock.real(clock.length_us))} long"
    return (clock, *_cut(span, clock.length_us + 1, whole))


def _cut(span: tuple[float, float] | None, end: int, whole: str) -> tuple[float, float]:
    low, high = span or (0, end)
    if low >= end:
        raise SnapshotError(f"the range is empty: {whole}")
    return max(low, 0), min(high, end)


def pieces_of(clock: Clock) -> list[Piece]:
    """Return the parts of a clock's time between the shortened ones."""
    pieces = []
    start = real = 0.0
    for _, gap_start, gap_end, gap_us in clock.gaps:
        pieces.append(Piece(start, gap_start, real))
        real += gap_start - start + gap_us
        start = gap_end
    return [*pieces, Piece(start, clock.length_us + 1, real)]
