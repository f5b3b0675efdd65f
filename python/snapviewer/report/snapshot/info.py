"""A summary of a snapshot, as text and as JSON."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from snapviewer import Device, Snapshot
from snapviewer.report.snapshot.predicted import prediction_note, prediction_of
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize
from snapviewer.text.units import count_of, format_bytes

from .replay import oom_sentences, replay_check, replay_json

_USUAL_MAX_ENTRIES = (10_000, 100_000, 1_000_000)
_MAX_OOMS = 5
_MAX_NOTES = 20


def to_json(snapshot: Snapshot, file: str) -> dict[str, Any]:
    """Return the document that `info --json` prints."""
    return {
        "file": file,
        "format": snapshot.format,
        "predicted": prediction_of(snapshot),
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
        "no_stack_bytes": _peak_bytes_without_stack(device),
        "oom_events": device.oom_events,
        "oom_at": list(device.oom_at),
        "is_probably_cut_off": dropped_note(device) is not None,
        "reconciles": device.reconciles,
        "replay": replay_json(device),
        "curves_peak": device.curves.peaks,
        "warnings": list(device.warnings),
    }


def as_text(snapshot: Snapshot, file: str) -> str:
    """Return the summary of the devices that hold anything, and what is wrong."""
    lines = [f"{sanitize(file)}  ({snapshot.format})", *filter(None, [prediction_note(snapshot)])]
    shown = [device for device in snapshot.devices if device.events or len(device.allocations)]
    for device in shown:
        lines += ["", *_device_lines(device)]
    if empty := len(snapshot.devices) - len(shown):
        lines += ["", f"{count_of(empty, 'more device')} without memory"]
    lines += note_lines(snapshot.warnings)
    return "\n".join(lines) + "\n"


def device_name(device: Device) -> str:
    """Return what a device is called."""
    return "pinned host memory" if device.index < 0 else f"device {device.index}"


def peak_moment(device: Device) -> str:
    """Return when the peak was, in words."""
    event = device.peak_event
    return "before the first event" if event < 0 else f"at event {event:,}"


def moment_of(device: Device, event: int) -> str:
    """Return which event a state belongs to, in words."""
    if not device.events:
        return "state only, no trace"
    when = "before the first event" if event < 0 else f"after event {event:,}"
    return f"at the peak, {when}" if event == device.peak_event else when


def trace_check(device: Device) -> str:
    """Return whether the trace leads to the memory in the snapshot, in words."""
    if device.reconciles:
        return "trace matches memory" if device.events else "state only, no trace"
    difference = abs(device.final_bytes - device.expected_final_bytes)
    off = f" by {format_bytes(difference)}" if difference else ""
    return f"trace differs from memory{off}"


def _device_lines(device: Device) -> list[str]:
    events, allocations = int(device.events), len(device.allocations)
    counts = f"{count_of(events, 'event')}, {count_of(allocations, 'allocation')}"
    lines = [f"{device_name(device)}: {counts}"]
    if events:
        lines += [
            f"  at start  {format_bytes(device.initial_bytes):>10}",
            f"  peak      {format_bytes(device.peak_bytes):>10}   {peak_moment(device)}",
            f"  at end    {format_bytes(device.final_bytes):>10}",
        ]
    else:
        lines.append(f"  alive     {format_bytes(device.final_bytes):>10}   state only, no trace")
    peaks = device.curves.peaks
    used = f"{format_bytes(peaks['allocated'])} allocated, {format_bytes(peaks['active'])} active"
    when = f"   at its peak; {used} at theirs" if events else f"   {used}"
    lines.append(f"  reserved  {format_bytes(device.reserved_peak_bytes):>10}{when}")
    if unknown := _peak_bytes_without_stack(device):
        lines.append(
            f"  no stack  {format_bytes(unknown):>10}   of {'the peak' if events else 'it'}"
        )
    if device.oom_at:
        shown = ", ".join(f"{event:,}" for event in device.oom_at[:5])
        more = "" if device.oom_events <= 5 else f", … ({device.oom_events:,} in total)"
        lines.append(f"  out of memory at event {shown}{more}")
        sentences = list(oom_sentences(device).items())[:_MAX_OOMS]
        lines += [
            f"    {sentence}" if len(sentences) == 1 else f"    event {event:,}: {sentence}"
            for event, sentence in sentences
        ]
    if device.reconciles and events:
        lines.append(f"  {trace_check(device)}")
    if not device.allocator.exact:
        lines.append(f"  {replay_check(device)}")
    notes = [*device.warnings, *filter(None, [dropped_note(device)])]
    return [*lines, *note_lines(notes, indent="  ")]


def note_lines(notes: Sequence[str], *, indent: str = "") -> list[str]:
    """Return a line for each note that is shown."""
    return [f"{indent}note: {note}" for note in shown_notes(notes)]


def shown_notes(notes: Sequence[str]) -> list[str]:
    """Return the first notes, sanitized because they may quote the file, and how many follow."""
    shown = [readable_note(sanitize(note, MAX_NAME_CHARS)) for note in notes[:_MAX_NOTES]]
    if more := len(notes) - len(shown):
        shown.append(f"{count_of(more, 'more note')}, listed by `snapviewer info --json`")
    return shown


def dropped_note(device: Device) -> str | None:
    """Return a note if older events were probably dropped.

    Files do not contain the length of the recorder's ring buffer. A trace that is exactly as long
    as people set it, and that begins with memory in use, was probably cut off by it.
    """
    events = int(device.events)
    if events not in _USUAL_MAX_ENTRIES or not device.initial_bytes:
        return None
    return (
        f"the trace has exactly {events:,} events: older ones were probably dropped (max_entries)"
    )


def _peak_bytes_without_stack(device: Device) -> int:
    """Return the bytes alive at the peak whose stacks were not recorded."""
    # All of these are alive at the peak. The core adds them up: arrays would load NumPy.
    return device.timeline(where=f"stack=none alive={device.peak_event}").peak_bytes


def readable_note(sentence: str) -> str:
    """Add units to large numbers of bytes in a sentence.

    >>> readable_note("402719744 bytes more, 12 frees")
    '402,719,744 bytes (384 MiB) more, 12 frees'
    """

    def both(match: re.Match[str]) -> str:
        count = int(match[1])
        return f"{count:,} bytes ({format_bytes(count)})"

    return re.sub(r"(\d{4,}) bytes", both, sentence)
