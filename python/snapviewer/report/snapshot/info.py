"""What is in a snapshot, as text and as the document that others build on."""

from __future__ import annotations

import re
from typing import Any

from snapviewer import Device, Snapshot
from snapviewer.text.units import count_of, format_bytes


def to_json(snapshot: Snapshot, file: str) -> dict[str, Any]:
    """Return the document that `info --json` prints."""
    return {
        "file": file,
        "format": snapshot.format,
        "devices": [_device(device) for device in snapshot.devices],
        "warnings": list(snapshot.warnings),
    }


def _device(device: Device) -> dict[str, Any]:
    return {
        "device": device.index,
        "events": int(device.events),
        "allocations": len(device.allocations),
        "initial_bytes": device.initial_bytes,
        "peak_bytes": device.peak_bytes,
        "peak_event": device.peak_event,
        "final_bytes": device.final_bytes,
        "expected_final_bytes": device.expected_final_bytes,
        "reserved_peak_bytes": device.reserved_peak_bytes,
        "oom_events": device.oom_events,
        "oom_at": list(device.oom_at),
        "reconciles": device.reconciles,
        "warnings": list(device.warnings),
    }


def as_text(snapshot: Snapshot, file: str) -> str:
    """Return a summary for people: the devices that have anything, and what is off."""
    lines = [f"{file}  ({snapshot.format})"]
    shown = [device for device in snapshot.devices if device.events or len(device.allocations)]
    for device in shown:
        lines += ["", *_device_lines(device)]
    if empty := len(snapshot.devices) - len(shown):
        lines += ["", f"{empty} more device{'s' if empty > 1 else ''} without any memory"]
    lines += [f"note: {warning}" for warning in snapshot.warnings]
    return "\n".join(lines) + "\n"


def peak_moment(device: Device) -> str:
    """Return when the peak was, in words."""
    event = device.peak_event
    return "before the first event" if event < 0 else f"at event {event:,}"


def _device_lines(device: Device) -> list[str]:
    name = "pinned host memory" if device.index < 0 else f"device {device.index}"
    events, allocations = int(device.events), len(device.allocations)
    lines = [f"{name}: {count_of(events, 'event')}, {count_of(allocations, 'allocation')}"]
    if events:
        lines += [
            f"  at start  {format_bytes(device.initial_bytes):>10}",
            f"  peak      {format_bytes(device.peak_bytes):>10}   {peak_moment(device)}",
            f"  at end    {format_bytes(device.final_bytes):>10}",
        ]
    else:
        lines.append(f"  alive     {format_bytes(device.final_bytes):>10}   at one moment")
    lines.append(f"  reserved  {format_bytes(device.reserved_peak_bytes):>10}   at most")
    if unknown := _peak_bytes_without_stack(device):
        lines.append(f"  no stack  {format_bytes(unknown):>10}   of what is alive at the peak")
    if device.oom_at:
        shown = ", ".join(f"{event:,}" for event in device.oom_at[:5])
        more = "" if device.oom_events <= 5 else f", … ({device.oom_events:,} in all)"
        lines.append(f"  out of memory at event {shown}{more}")
    if device.reconciles and events:
        lines.append("  trace and segments agree to the byte")
    lines += [f"  note: {_readable(warning)}" for warning in device.warnings]
    return lines


def _peak_bytes_without_stack(device: Device) -> int:
    """Return the bytes alive at the peak whose stacks were not recorded."""
    # All of these are alive at the peak. The core adds them up: arrays would load NumPy.
    return device.timeline(where=f"stack=0 alive={device.peak_event}").peak_bytes


def _readable(sentence: str) -> str:
    """Say large numbers of bytes in a sentence in units, too.

    >>> _readable("402719744 bytes more, 12 frees")
    '402,719,744 bytes (384 MiB) more, 12 frees'
    """

    def both(match: re.Match[str]) -> str:
        count = int(match[1])
        return f"{count:,} bytes ({format_bytes(count)})"

    return re.sub(r"(\d{4,}) bytes", both, sentence)
