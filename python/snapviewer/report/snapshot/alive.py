"""The live allocations at an event, in groups, as text and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from snapviewer import Device
from snapviewer.report.snapshot.explained import (
    cut_lines,
    explained_json,
    group_rows,
    leak_lines,
    step_lines,
)
from snapviewer.report.snapshot.first_answer import first_answer_lines
from snapviewer.report.snapshot.info import device_name, note_lines
from snapviewer.report.snapshot.replay import oom_sentences, ooms_json, state_sentence
from snapviewer.snapshot.alive import Alive, Group
from snapviewer.text.sanitize import replace_unprintable, sanitize
from snapviewer.text.units import count_of, format_bytes, format_share


@dataclass(frozen=True, slots=True)
class Matching:
    """A filter, and the bytes that were alive at the event without it."""

    filter: str
    all_bytes: int


def to_json(
    device: Device,
    alive: Alive,
    *,
    file: str,
    top: int,
    matching: Matching | None = None,
    prediction: str | None = None,
    is_oom: bool = False,
    by: str = "line",
    under: int | None = None,
) -> dict[str, Any]:
    """Return the document that `report --json` prints; `others` sums up what it leaves out.

    With `is_oom` it is about a request that failed, also if the file has no trace.
    """
    shown, others = _split(alive, top)
    return {
        "file": file,
        "device": device.index,
        "event": alive.event,
        "prediction": prediction,
        "is_peak": alive.event == device.peak_event,
        "filter": matching.filter if matching else None,
        "all_bytes": matching.all_bytes if matching else alive.total_bytes,
        "bytes": alive.total_bytes,
        "amounts": device.curves.at(alive.event),
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
        **explained_json(device, alive.event, by, under=under, where=_where(matching)),
        "ooms": ooms_json(device),
        "oom_state": state_sentence(device) if is_oom and not device.oom_at else None,
        "reconciles": device.reconciles,
        "warnings": list(device.warnings),
    }


def as_text(
    device: Device,
    alive: Alive,
    *,
    file: str,
    top: int,
    matching: Matching | None = None,
    prediction: str | None = None,
    is_oom: bool = False,
    by: str = "line",
    under: int | None = None,
    capacity: int | None = None,
) -> str:
    """Return a table of the groups that hold the most bytes, the steps, and what grows."""
    held = f"{device_name(device)}: {_held(alive, matching)} {_moment(device, alive)}"
    first = first_answer_lines(device) if matching is None else []
    lines = [sanitize(file), *filter(None, [prediction]), *([""] if first else []), *first]
    lines += ["", held]
    why = oom_sentences(device).get(alive.event)
    if why is None and is_oom:
        why = state_sentence(device)
    if why is not None:
        lines.append(f"  out of memory: {why}")
    lines.append(f"  {_amounts(device, alive)}")
    groups = device.alive(alive.event, by, where=_where(matching), top=top)
    rows = group_rows(groups)
    total = max(alive.total_bytes, 1)
    lines += [""] if rows else []
    lines += [
        f"  {format_share(size, total):>7}  {format_bytes(size):>10}  {count:>9,} ×  {line}"
        for size, count, line in rows
    ]
    lines += [f"  ({groups.missing})"] if groups.missing and rows else []
    if under is not None:
        lines += ["", *cut_lines(device.cut(under, by), by)]
    for section in (step_lines(device), leak_lines(device, capacity)):
        lines += ["", *section] if section else []
    lines += note_lines(device.warnings)
    return "\n".join(lines) + "\n"


def _amounts(device: Device, alive: Alive) -> str:
    """Return how much was allocated, active and reserved."""
    amounts = device.curves.at(alive.event)
    names = ("allocated", "active", "reserved")
    return ", ".join(f"{format_bytes(amounts[name])} {name}" for name in names)


def _where(matching: Matching | None) -> str | None:
    return matching.filter if matching else None


def _held(alive: Alive, matching: Matching | None) -> str:
    held, count = format_bytes(alive.total_bytes), count_of(alive.count, "allocation")
    if matching is None:
        return f"{held} in {count}"
    whole, text = format_bytes(matching.all_bytes), replace_unprintable(matching.filter)
    if not alive.count:
        return f"no allocation matches `{text}`: 0 B of {whole}"
    return f"{held} of {whole} match `{text}`, in {count}"


def _moment(device: Device, alive: Alive) -> str:
    if not device.events:
        return "alive"
    event = alive.event
    when = "before the first event" if event < 0 else f"after event {event:,}"
    return f"at the peak, {when}" if event == device.peak_event else f"alive, {when}"


def _split(alive: Alive, top: int) -> tuple[tuple[Group, ...], tuple[int, int]]:
    """Return the heaviest groups, and the bytes and number of all other allocations."""
    shown = alive.groups[:top]
    size = alive.total_bytes - sum(group.size_bytes for group in shown)
    return shown, (size, alive.count - sum(group.count for group in shown))
