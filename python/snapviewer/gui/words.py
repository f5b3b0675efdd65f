"""What the window says of moments and lives, in a few words. Without Tk."""

from __future__ import annotations

from datetime import datetime

from snapviewer import Device, Timeline
from snapviewer.text.units import count_of, format_bytes, format_duration

from .document import Trace
from .values import Pointer


def device_text(device: Device) -> str:
    """Name a device as the selector does."""
    name = "pinned host memory" if device.index < 0 else f"GPU {device.index}"
    return name if len(device.allocations) else f"{name} (empty)"


def clock_text(unix_us: int) -> str:
    """Say a time of the day, here."""
    try:
        return f"{datetime.fromtimestamp(unix_us / 1e6):%H:%M:%S.%f}"[:-3]
    except (ValueError, OverflowError, OSError):  # a time that no calendar has
        return f"{unix_us:,} µs"


def when_text(trace: Trace, event: int) -> str:
    """Say when an event happened: its number, the time of the day, the time since the first.

    Before the first event, or without any, that is all there is to say.
    """
    if event < 0:
        return "before the first event" if trace.events else "one moment: there are no events"
    text = f"event {event:,} of {trace.events:,}"
    unix_us = trace.unix_us_of(event)
    if unix_us is None or trace.clock is None:
        return text
    since = format_duration(trace.clock.at(event))
    return f"{text}  ·  {clock_text(unix_us)}  ·  {since} after the first"


def alive_text(trace: Trace, allocation: int) -> str:
    """Say how long an allocation lives, as far as the trace tells."""
    a = trace.device.allocations
    first, last = int(a.alloc_event[allocation]), int(a.free_event[allocation])
    if trace.events == 0:
        return "alive"
    if first < 0 and last >= trace.events:
        return "alive all the time"
    if first < 0:
        return f"alive before the trace, until event {last:,}"
    if last >= trace.events:
        return f"alive from event {first:,} to the end"
    text = count_of(last - first, "event")
    if trace.clock is None:
        return text
    return f"{format_duration(trace.clock.at(last) - trace.clock.at(first))}, {text}"


def total_at(trace: Trace, timeline: Timeline, event: int) -> int:
    """Return how many bytes are shown after an event; -1 is before the first."""
    if 0 <= event < trace.events:
        return int(timeline.totals[event])
    ids, _ = timeline.stack(-1)
    return int(trace.device.allocations.size[ids].sum())


def moment_text(trace: Trace, timeline: Timeline, pointer: Pointer) -> str:
    """Say how much is alive at a point, and how high that point is."""
    total = total_at(trace, timeline, pointer.event)
    return f"{format_bytes(total)} alive  ·  this is at {format_bytes(pointer.byte)}"
