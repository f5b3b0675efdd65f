"""What holds the memory at a moment, by line of code, as text and as a document."""

from __future__ import annotations

from typing import Any

from snapviewer import Device
from snapviewer.snapshot.alive import Alive, Group
from snapviewer.text.units import count_of, format_bytes, format_share


def to_json(device: Device, moment: Alive, *, file: str, top: int) -> dict[str, Any]:
    """Return the document that `report --json` prints; what it leaves out is in `others`."""
    shown, others = _split(moment, top)
    return {
        "file": file,
        "device": device.index,
        "event": moment.event,
        "is_peak": moment.event == device.peak_event,
        "bytes": moment.total_bytes,
        "allocations": moment.count,
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


def as_text(device: Device, moment: Alive, *, file: str, top: int) -> str:
    """Return a table for people, the most bytes first."""
    name = "pinned host memory" if device.index < 0 else f"device {device.index}"
    when = "at the peak" if moment.event == device.peak_event else "alive"
    if moment.event >= 0:
        when += f", after event {moment.event:,}"
    held = f"{format_bytes(moment.total_bytes)} in {count_of(moment.count, 'allocation')}"
    lines = [file, "", f"{name}: {held} {when}", ""]
    shown, others = _split(moment, top)
    rows = [(group.size_bytes, group.count, group.line) for group in shown]
    if others[1]:
        rows.append((*others, "… the rest"))
    total = max(moment.total_bytes, 1)
    lines += [
        f"  {format_share(size, total):>7}  {format_bytes(size):>10}  {count:>9,} ×  {line}"
        for size, count, line in rows
    ]
    lines += [f"note: {warning}" for warning in device.warnings]
    return "\n".join(lines) + "\n"


def _split(moment: Alive, top: int) -> tuple[tuple[Group, ...], tuple[int, int]]:
    """Return the heaviest groups, and the bytes and number of all that is in none of them."""
    shown = moment.groups[:top]
    size = moment.total_bytes - sum(group.size_bytes for group in shown)
    return shown, (size, moment.count - sum(group.count for group in shown))
