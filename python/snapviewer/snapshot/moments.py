"""Which device and which event people mean: by number, or by name."""

from __future__ import annotations

import re

from snapviewer._lazy import TYPE_CHECKING
from snapviewer.text.sanitize import sanitize

if TYPE_CHECKING:
    from snapviewer._core import Device, Snapshot, Step

_MAX_NAMED = 5
_MAX_NAME_CHARS = 40


def device_of(snapshot: Snapshot, index: int | None) -> Device:
    """Return a device by its number; None for the one with the largest peak.

    Raises:
        ValueError: There is no such device.
    """
    devices = snapshot.devices
    if not devices:
        raise ValueError("there is no device in this file")
    if index is None:
        return max(devices, key=lambda device: device.peak_bytes)
    found = [device for device in devices if device.index == index]
    if not found:
        there = ", ".join(str(device.index) for device in devices)
        raise ValueError(f"there is no device {index} in this file; there is {there}")
    return found[0]


def event_of(device: Device, event: int | str) -> int:
    """Return an event by its number, or as "peak", "oom" or "end"; -1 is before the first.

    Raises:
        ValueError: There is no such event.
    """
    count = int(device.events)
    if event == "peak":
        return device.peak_event
    if event == "end":
        return count - 1
    if event == "oom":
        if not device.oom_at and not device.allocator.placements:
            return count - 1  # a state without a trace: it may be of the moment that memory ran out
        if not device.oom_at:
            raise ValueError(f"device {device.index} did not run out of memory")
        return device.oom_at[0]
    if isinstance(event, str):
        raise ValueError(f"an event is a number, peak, oom or end, not {event!r}")
    if not -1 <= event < count:
        last = f"events are 0 to {count - 1:,}" if count else "the file has no trace"
        raise ValueError(f"there is no event {event:,}; {last}")
    return event


def step_of(device: Device, name: str) -> Step:
    """Return a step by its name, or by the number that its name ends with.

    Raises:
        ValueError: There is no such step.
    """
    steps = device.steps.steps
    if not steps:
        raise ValueError(f"there are no steps: {device.steps.missing or 'none were recorded'}")
    for step in steps:
        if step.name == name:
            return step
    for step in steps:
        number = re.search(r"[0-9]+$", step.name)
        if number and name.isdecimal() and number[0].lstrip("0") == name.lstrip("0"):
            return step
    there = ", ".join(sanitize(step.name, _MAX_NAME_CHARS) for step in steps[:_MAX_NAMED])
    more = ", …" if len(steps) > _MAX_NAMED else ""
    raise ValueError(f"there is no step {name}; there is {there}{more}")
