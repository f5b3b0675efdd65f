"""Groups, steps, leaks and limits as JSON and as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from snapviewer._core import GROUPINGS, Cut, Device, Groups, Leaks, Steps
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize
from snapviewer.text.units import count_of, format_bytes, format_share

_MAX_GROUPS = 1000
"""Further groups are one, so that all still add up."""

_MAX_STEPS = 8
_MAX_LEAKS = 5


def explained_json(
    device: Device, event: int, by: str, *, under: int | None = None, where: str | None = None
) -> dict[str, Any]:
    """Return what `report --json` has besides lines: groups, peaks, steps, leaks."""
    shown = [name for name in GROUPINGS if name != "stack" or by == "stack"]
    every = {name: device.alive(event, name, where=where, top=_MAX_GROUPS) for name in shown}
    return {
        "total_bytes": every[by].total_bytes,
        "grouped_by": by,
        "groups": groups_json(every[by]),
        "by": {name: groups_json(groups) for name, groups in every.items()},
        "missing": {name: groups.missing for name, groups in every.items() if groups.missing},
        "peaks": [{"event": peak.event, "bytes": peak.bytes} for peak in device.peaks[:10]],
        "under": None if under is None else cut_json(device.cut(under, by)),
        **steps_json(device.steps),
        **leaks_json(device.leaks),
    }


def groups_json(groups: Groups) -> list[dict[str, Any]]:
    """Return all groups, the most bytes first; they add up to the total."""
    rows = [
        {
            "key": _clean(groups.by, group.key),
            "bytes": group.bytes,
            "count": group.count,
            "largest": group.largest,
            "oldest": group.oldest,
        }
        for group in groups.groups
    ]
    if groups.other_count:
        others = count_of(groups.group_count - len(groups), "more group")
        rows.append({"key": others, "bytes": groups.other_bytes, "count": groups.other_count})
    return rows


def _clean(by: str, key: str) -> str:
    if by == "stack":
        return "\n".join(sanitize(line) for line in key.split("\n"))
    return sanitize(key, MAX_NAME_CHARS)


def cut_json(cut: Cut) -> dict[str, Any]:
    """Return what must go to get below a limit."""
    return {
        "limit_bytes": cut.limit_bytes,
        "left_bytes": cut.left_bytes,
        "left_event": cut.left_event,
        "groups": [
            {"key": sanitize(one.key, MAX_NAME_CHARS), "bytes": one.bytes, "event": event}
            for event, one in cut.groups
        ],
    }


def steps_json(steps: Steps) -> dict[str, Any]:
    """Return the steps and where they come from."""
    return {
        "steps": [
            {
                "name": sanitize(step.name, MAX_NAME_CHARS),
                "start": step.start,
                "end": step.end,
                "is_whole": step.is_whole,
                "peak_bytes": step.peak_bytes,
                "peak_event": step.peak_event,
                "net_bytes": step.net_bytes,
                "allocated_bytes": step.allocated_bytes,
                "allocations": step.allocated_count,
                "freed_bytes": step.freed_bytes,
                "frees": step.freed_count,
                "largest": step.largest,
                "new": [
                    {"key": sanitize(line, MAX_NAME_CHARS), "bytes": more}
                    for line, more in step.new
                ],
            }
            for step in steps.steps
        ],
        "steps_from": steps.source or None,
        "steps_missing": steps.missing,
    }


def leaks_json(leaks: Leaks) -> dict[str, Any]:
    """Return what grows from step to step."""
    return {
        "leaks": [
            {
                "key": sanitize(leak.key, MAX_NAME_CHARS),
                "bytes_per_step": round(leak.bytes_per_step),
                "first_step": leak.first_step,
                "confidence": round(leak.confidence, 3),
                "grown_bytes": leak.grown_bytes,
                "allocations": len(leak.allocations),
                "shared_frames": [sanitize(line) for line in leak.shared_frames[:20]],
            }
            for leak in leaks.leaks
        ],
        "leaks_are_a_guess": leaks.is_guess,
        "leaks_missing": leaks.missing,
    }


def group_rows(groups: Groups) -> list[tuple[int, int, str]]:
    """Return the bytes, number and name of each group; what was left out is the last."""
    rows = [(one.bytes, one.count, _name(groups.by, one.key)) for one in groups.groups]
    if groups.other_count:
        rows.append((groups.other_bytes, groups.other_count, "… the rest"))
    return rows


def _name(by: str, key: str) -> str:
    if by == "category":
        return key.replace("_", " ")
    if by != "stack":
        return sanitize(key, MAX_NAME_CHARS)
    lines = key.split("\n")
    if len(lines) == 1:
        return sanitize(key, MAX_NAME_CHARS)
    return f"{sanitize(lines[0], MAX_NAME_CHARS)} and {count_of(len(lines) - 1, 'more frame')}"


def cut_lines(cut: Cut, by: str) -> list[str]:
    """Return what must go to get below a limit, as lines."""
    limit = format_bytes(cut.limit_bytes)
    if not cut.groups:
        return [f"Never above {limit}: the peak is {format_bytes(cut.left_bytes)}."]
    total = sum(one.bytes for _, one in cut.groups)
    lines = [f"To stay under {limit}, these must go, for example ({format_bytes(total)} by {by}):"]
    lines += [
        f"  {format_bytes(one.bytes):>10}  {sanitize(one.key.split(chr(10))[0], MAX_NAME_CHARS)}"
        f"  (at event {event:,})"
        for event, one in cut.groups
    ]
    return [*lines, f"  Then the peak is {format_bytes(cut.left_bytes)}."]


def step_lines(device: Device) -> list[str]:
    """Return a table of the steps, or why there are none."""
    steps = device.steps
    if not steps.steps:
        return [f"Steps: {steps.missing}."] if steps.missing else []
    note = f"; {steps.missing}" if steps.missing else ""
    lines = [f"{count_of(len(steps), 'step')}, from {steps.source}{note}:"]
    for step in _ends(steps.steps):
        if step is None:
            lines.append("  …")
            continue
        change = ("+" if step.net_bytes >= 0 else "-") + format_bytes(abs(step.net_bytes))
        new = f"; more: {sanitize(step.new[0][0], 60)}" if step.new and step.net_bytes > 0 else ""
        lines.append(
            f"  {sanitize(step.name, 40):<20}  peak {format_bytes(step.peak_bytes):>10}  "
            f"net {change:>11}  {step.allocated_count:>7,} allocations{new}"
        )
    return lines


def _ends(steps: Sequence[Any]) -> list[Any]:
    """Return the first and the last steps, with None for those between."""
    if len(steps) <= _MAX_STEPS:
        return list(steps)
    half = _MAX_STEPS // 2
    return [*steps[:half], None, *steps[-half:]]


def leak_lines(device: Device, capacity_bytes: int | None = None) -> list[str]:
    """Return what grows, and when it runs out, as lines."""
    leaks = device.leaks
    if not leaks.leaks:
        if leaks.missing:
            return [f"Whether memory grows is not known: {leaks.missing}."] if device.events else []
        return [f"No growth over {count_of(leaks.steps, 'step')}."]
    is_guess = " (a guess: no steps were recorded)" if leaks.is_guess else ""
    per = "part of the trace" if leaks.is_guess else "step"
    lines = [f"Grows from step to step{is_guess}:"]
    for leak in leaks.leaks[:_MAX_LEAKS]:
        rate, sure = format_bytes(round(leak.bytes_per_step)), format_share(leak.confidence, 1)
        lines.append(
            f"  +{rate} per {per}, from step {leak.first_step} on, {sure} sure:  "
            f"{sanitize(leak.key, MAX_NAME_CHARS)}"
        )
    total = sum(leak.bytes_per_step for leak in leaks.leaks)
    if capacity_bytes is not None and capacity_bytes > device.peak_bytes and total > 0:
        left = int((capacity_bytes - device.peak_bytes) / total)
        lines.append(f"  At this rate memory runs out in {count_of(left, 'step')}.")
    return lines
