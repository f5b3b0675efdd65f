"""What is in a snapshot, as text and as the document that others build on."""

from __future__ import annotations

from typing import Any

from snapviewer import Device, Snapshot
from snapviewer.units import format_bytes


def as_dict(snapshot: Snapshot, file: str) -> dict[str, Any]:
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
        "oom_events": len(device.oom_events),
        "oom_at": list(device.oom_events),
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


def _device_lines(device: Device) -> list[str]:
    name = "pinned host memory" if device.index < 0 else f"device {device.index}"
    peak = f"{format_bytes(device.peak_bytes):>10}"
    if device.events:
        peak += f"   at event {device.peak_event:,} of {device.events:,}"
    lines = [
        f"{name}: {device.events:,} events, {len(device.allocations):,} allocations",
        f"  peak      {peak}",
        f"  at first  {format_bytes(device.initial_bytes):>10}",
        f"  at last   {format_bytes(device.final_bytes):>10}",
        f"  reserved  {format_bytes(device.reserved_peak_bytes):>10}   at most",
    ]
    if device.oom_events:
        events = ", ".join(f"{event:,}" for event in device.oom_events[:5])
        more = "" if len(device.oom_events) <= 5 else f", … ({len(device.oom_events):,} in all)"
        lines.append(f"  out of memory at event {events}{more}")
    if device.reconciles:
        lines.append("  trace and segments agree to the byte")
    lines += [f"  note: {warning}" for warning in device.warnings]
    return lines
