"""Short texts about devices, events and allocations, and about the completeness of a trace.

Without Tk.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from snapviewer import Device, Snapshot, Timeline
from snapviewer.report.snapshot.info import shown_notes, trace_check
from snapviewer.report.snapshot.predicted import prediction_note
from snapviewer.text.units import count_of, format_bytes, format_duration

from .document import Trace
from .values import Pointer

BEFORE_TRACE = "before the first event"
SEPARATOR = "  ·  "


def device_label(device: Device) -> str:
    """Return the name of a device in menus and lists."""
    name = "pinned host memory" if device.index < 0 else f"GPU {device.index}"
    return name if len(device.allocations) else f"{name} (empty)"


def time_of_day(unix_us: int) -> str:
    """Format a time in the local time zone."""
    try:
        return f"{datetime.fromtimestamp(unix_us / 1e6):%H:%M:%S.%f}"[:-3]
    except (ValueError, OverflowError, OSError):  # beyond the calendar
        return f"{unix_us:,} µs"


def event_label(trace: Trace, event: int) -> str:
    """Return an event's number, its time of day, and the time since the first event."""
    if event < 0:
        return BEFORE_TRACE if trace.events else "no events recorded"
    text = f"event {event:,} of {trace.events:,}"
    unix_us = trace.unix_us_of(event)
    if unix_us is None or trace.clock is None:
        return text
    since = format_duration(trace.clock.at(event))
    return SEPARATOR.join((text, time_of_day(unix_us), f"{since} after the first"))


def lifetime_label(trace: Trace, allocation: int) -> str:
    """Return how long an allocation lives, as far as the trace records it."""
    a = trace.device.allocations
    first, last = int(a.alloc_event[allocation]), int(a.free_event[allocation])
    if trace.events == 0:
        return "alive"
    if first < 0 and last >= trace.events:
        return "alive throughout the trace"
    if first < 0:
        return f"alive from before the trace to event {last:,}"
    if last >= trace.events:
        return f"alive from event {first:,} to the end"
    text = count_of(last - first, "event")
    if trace.clock is None:
        return text
    return f"{format_duration(trace.clock.at(last) - trace.clock.at(first))}, {text}"


def total_at(trace: Trace, timeline: Timeline, event: int) -> int:
    """Return the bytes shown after an event; -1 is before the first."""
    if 0 <= event < trace.events:
        return int(timeline.totals[event])
    ids, _ = timeline.stack(-1)
    return int(trace.device.allocations.size[ids].sum())


def point_label(trace: Trace, timeline: Timeline, pointer: Pointer) -> str:
    """Return how much is live at a point, and how high the point is in the stack."""
    total = total_at(trace, timeline, pointer.event)
    return f"{format_bytes(total)} live  ·  pointer at {format_bytes(pointer.byte)}"


@dataclass(frozen=True, slots=True)
class Completeness:
    """Whether a trace and the memory it leads to match: a badge, and sentences that explain it."""

    grade: Literal["good", "notes", "bad"]
    badge: str
    sentences: tuple[str, ...]


def completeness_of(snapshot: Snapshot, device: Device) -> Completeness:
    """Compare what a trace leads to with the memory at its end."""
    all_notes = (*device.warnings, *snapshot.warnings)
    notes = tuple(_sentence(note) for note in shown_notes(all_notes))
    badge = trace_check(device)
    if prediction := prediction_note(snapshot):
        badge = f"predicted  ·  {badge}"
        notes = (_sentence(prediction), *notes)
    if not device.reconciles:
        text = (
            "Replaying the trace does not give the memory that was allocated when the snapshot "
            "was taken: some events are missing from it."
        )
        return Completeness("bad", f"⚠ {badge}", (text, *notes))
    if device.events:
        text = (
            "Replaying the trace gives exactly the memory that was allocated when the snapshot "
            "was taken."
        )
    else:
        text = "The snapshot has no trace: the picture shows the memory when it was taken."
    if notes:
        return Completeness(
            "notes", f"✓ {badge}  ·  {count_of(len(all_notes), 'note')}", (text, *notes)
        )
    return Completeness("good", f"✓ {badge}", (text,))


def _sentence(note: str) -> str:
    """Write a note as a sentence.

    >>> _sentence("12 frees have no allocation")
    '12 frees have no allocation.'
    """
    note = note.strip()
    return f"{note[:1].upper()}{note[1:]}{'' if note.endswith('.') else '.'}"
