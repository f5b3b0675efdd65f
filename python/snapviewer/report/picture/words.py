"""The texts of a picture."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timezone

from snapviewer import Device
from snapviewer._core import Timeline
from snapviewer.report.snapshot.info import peak_moment, trace_check
from snapviewer.text.units import count_of, format_bytes, format_duration

from .options import PictureOptions
from .view import PictureView

_ORDERS = {"stack": "call stack", "pool": "memory pool"}
NO_MATCH = "no allocation matches the filter"
_TIME_WORDS = {
    "h:min:s": "hours:minutes:seconds",
    "min:s": "minutes:seconds",
    "s": "seconds",
    "ms": "milliseconds",
    "µs": "microseconds",
}


def header_facts(
    device: Device, view: PictureView, matching: Timeline, options: PictureOptions
) -> list[str]:
    """Return the facts below the title, the most important first.

    Args:
        device: What is drawn.
        view: Which part of it.
        matching: The timeline of what the filters leave.
        options: The options of the picture.
    """
    events, allocations = int(device.events), len(device.allocations)
    if events:
        facts = [f"peak {format_bytes(device.peak_bytes)} {peak_moment(device)}"]
    else:
        facts = [f"{format_bytes(device.peak_bytes)} alive"]
    if options.where is not None:
        verb = "match" if options.dim else "shown"
        # First: a picture of a part must not look complete where there is no room for more facts.
        facts.insert(0, f"filter: {options.where}")
        facts.append(
            f"{matching.shown:,} of {count_of(allocations, 'allocation')} {verb}, "
            f"{format_bytes(matching.peak_bytes)} at their peak"
        )
    else:
        facts.append(count_of(allocations, "allocation"))
    if options.span is None:
        facts += [count_of(events, "event")] if events else []
    else:
        facts.append(f"events {view.first:,} to {view.last - 1:,} of {events:,}")
    if device.oom_events:
        facts.append(_ooms(device, view, is_part=options.span is not None))
    if options.order != "allocation":
        facts.append(f"stacked by {_ORDERS.get(options.order, options.order)}")
    return [*facts, trace_check(device)]


def _ooms(device: Device, view: PictureView, *, is_part: bool) -> str:
    if not is_part:
        return f"out of memory {_times(device.oom_events)}"
    here = sum(view.first <= event < view.last for event in device.oom_at)
    return f"out of memory {_times(here)} here, {_times(device.oom_events)} in total"


def _times(count: int) -> str:
    return "never" if count == 0 else "once" if count == 1 else f"{count:,} times"


def peak_text(view: PictureView, device: Device) -> str:
    """Return the label of the line at the highest point."""
    if view.last == 0:
        return f"{format_bytes(view.peak_bytes)} alive"
    is_whole = view.peak_event == view.timeline.peak_event
    is_all = is_whole and view.peak_event == device.peak_event
    words = (
        "peak" if is_all else "peak of the shown allocations" if is_whole else "peak in this range"
    )
    at = f"event {view.peak_event:,}"
    if view.peak_event < 0:
        return f"{words} {format_bytes(view.peak_bytes)} before the first event"
    if view.clock is not None:
        at = f"{format_duration(view.clock.real(view.clock.at(view.peak_event)))}, {at}"
    return f"{words} {format_bytes(view.peak_bytes)} at {at}"


def axis_text(view: PictureView, unit: str) -> str:
    """Return the title of the axis of events or time."""
    if view.clock is None:
        return "event" if view.last else "state only, no trace"
    text = f"{_TIME_WORDS[unit]} since the first event"
    with suppress(ValueError, OverflowError, OSError):  # a time that no calendar has
        start = datetime.fromtimestamp(view.clock.start_us / 1e6, tz=timezone.utc)
        text += f", {start:%Y-%m-%d %H:%M:%S} UTC"
    if not view.clock.gaps:
        return text
    left_out_us = sum(real - (end - start) for _, start, end, real in view.clock.gaps)
    return (
        f"{text}  ·  // {count_of(len(view.clock.gaps), 'long idle gap')} shortened "
        f"by {format_duration(left_out_us)}"
    )


def nothing_text(view: PictureView, device: Device) -> str | None:
    """Return why a plot is empty, if it is."""
    if view.peak_bytes > 0:
        return None
    if len(device.allocations) == 0:
        return "this device holds no memory"
    if view.timeline.shown == 0:
        return NO_MATCH
    return "no live allocations in this range"
