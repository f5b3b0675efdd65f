"""The live allocations at an event by line of code, as text and as JSON."""

from __future__ import annotations

from typing import Any

from snapviewer import Device
from snapviewer.report.snapshot.info import device_name
from snapviewer.snapshot.alive import Alive, Group
from snapviewer.text.units import count_of, format_bytes, format_share


def to_json(device: Device, alive: Alive, *, file: str, top: int) -> dict[str, Any]:
    """Return the document that `report --json` prints; `others` sums up what it leaves out."""
    shown, others = _split(alive, top)
    return {
        "file": file,
        "device": device.index,
        "event": alive.event,
        "is_peak": alive.event == device.peak_event,
        "bytes": alive.total_bytes,
        "allocations": alive.count,
        "lines": [
            {
                "line": group.line,
                "bytes": group.size_bytes,
                "allocations": group.count,
                "largest": group.largest,
                "stacks": list(group.stacks),
            }
            for group in shown
        ],
        "others": {"bytes": others[0], "allocations": others[1]},
        "reconciles": device.reconciles,
        "warnings": list(device.warnings),
    }


def as_text(device: Device, alive: Alive, *, file: str, top: int) -> str:
    """Return a table of the lines that hold the most bytes."""
    when = "at the peak" if alive.event == device.peak_event else "alive"
    if alive.event >= 0:
        when += f", after event {alive.event:,}"
    held = f"{format_bytes(alive.total_bytes)} in {count_of(alive.count, 'allocation')}"
    lines = [file, "", f"{device_name(device)}: {held} {when}", ""]
    shown, others = _split(alive, top)
    rows = [(group.size_bytes, group.count, group.line) for group in shown]
    if others[1]:
        rows.append((*others, "… the rest"))
    total = max(alive.total_bytes, 1)
    lines += [
        f"  {format_share(size, total):>7}  {format_bytes(size):>10}  {count:>9,} ×  {line}"
        for size, count, line in rows
    ]
    lines += [f"note: {warning}" for warning in device.warnings]
    return "\n".join(lines) + "\n"


def _split(alive: Alive, top: int) -> tuple[tuple[Group, ...], tuple[int, int]]:
    """Return the heaviest groups, and the bytes and number of all other allocations."""
    shown = alive.groups[:top]
    size = alive.total_bytes - sum(group.size_bytes for group in shown)
    return shown, (size, alive.count - sum(group.count for group in shown))
