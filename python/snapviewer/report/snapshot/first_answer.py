"""What matters about a device, in one line: the peak, what is reserved, what grows.

Each part is a sentence of its own, and a link to where the window shows more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from snapviewer import Device, SnapshotError
from snapviewer.report.snapshot.replay import oom_sentences
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize
from snapviewer.text.units import count_of, format_bytes

Link = Literal["peak", "category", "reserved", "growth", "oom"]

_BEFORE_MORE: dict[Link, str] = {
    "oom": ": ",
    "peak": ", ",
    "reserved": " ",
}  # where a report has room for more
_SHOWN_CATEGORIES = 3
_LEAST_SHARE = 0.02  # of the peak; a smaller category is not worth a word
_PHASES = {
    "forward": "in the forward pass",
    "backward": "in the backward pass",
    "optimizer": "in the optimizer",
    "construct": "while the model is made",
}
_PLURALS = {
    "parameter": "parameters",
    "optimizer_state": "optimizer state",
    "input": "inputs",
    "temporary": "temporaries",
    "activation": "activations",
    "gradient": "gradients",
    "autograd_detail": "autograd",
    "workspace": "workspaces",
}


@dataclass(frozen=True, slots=True)
class Part:
    """A sentence, what it is about, and what has no room in a line."""

    text: str
    link: Link
    is_warning: bool = False
    more: str = ""


def first_answer(device: Device) -> tuple[Part, ...]:
    """Return the parts of the line, the most important first."""
    if not len(device.allocations):
        return ()
    parts = [*_oom(device), _peak(device), _categories(device), _reserved(device), _growth(device)]
    return tuple(part for part in parts if part is not None)


def first_answer_lines(device: Device) -> list[str]:
    """Return the same as lines of a report, indented below the device."""
    lines = []
    for part in first_answer(device):
        more = f"{_BEFORE_MORE[part.link]}{part.more}" if part.link in _BEFORE_MORE else ""
        lines.append(f"  {part.text[0].upper()}{part.text[1:]}{more if part.more else ''}")
    return lines


def category_name(name: str) -> str:
    """Return what a category is called in a sentence.

    >>> category_name("optimizer_state"), category_name("gradient"), category_name("unknown")
    ('optimizer state', 'gradients', 'unknown')
    """
    return _PLURALS.get(name, name.replace("_", " "))


def _oom(device: Device) -> list[Part]:
    if not device.oom_at:
        return []
    event = device.oom_at[0]
    try:
        why = oom_sentences(device).get(event)
    except SnapshotError:  # a bundle without segments
        why = None
    verdict, _, more = (why or "").partition(": ")
    reason = f" ({verdict})" if more else ""
    text = f"Out of memory at event {event:,}{reason}"
    return [Part(text, "oom", is_warning=True, more=more)]


def _peak(device: Device) -> Part:
    event, peak = device.peak_event, format_bytes(device.peak_bytes)
    if not device.events:
        return Part(f"{peak} in use", "peak")
    if event < 0:
        return Part(f"Peak {peak} before the first event", "peak")
    phase = next((name for name, start, end in device.steps.phases if start <= event < end), "")
    where = _PHASES.get(phase)
    return Part(
        f"Peak {peak} {where}" if where else f"Peak {peak}", "peak", more=f"at event {event:,}"
    )


def _categories(device: Device) -> Part | None:
    groups = device.alive(device.peak_event, "category")
    least = groups.total_bytes * _LEAST_SHARE
    shown = [one for one in groups.groups if one.bytes >= least and one.key != "unknown"]
    if not shown:
        return None
    # One more is named if it would be all of the rest.
    most = _SHOWN_CATEGORIES + (len(shown) == _SHOWN_CATEGORIES + 1)
    texts = [f"{format_bytes(one.bytes)} {category_name(one.key)}" for one in shown[:most]]
    rest = groups.total_bytes - sum(one.bytes for one in shown[:most])
    if rest >= least:
        texts.append(f"{format_bytes(rest)} other")
    return Part(", ".join(texts), "category")


def _reserved(device: Device) -> Part | None:
    try:
        curves = device.curves
        reserved = curves.peaks["reserved"]
        state = device.allocator.state(device.peak_event)
    except SnapshotError:  # a bundle without segments
        reserved, state = device.reserved_peak_bytes, None
    if not reserved:
        return None
    text, more = f"{format_bytes(reserved)} reserved", ""
    if state is not None:
        free = sum(one.free_bytes for one in state.domains)
        releasable = sum(one.releasable_bytes for one in state.domains)
        if free >= reserved * _LEAST_SHARE:
            text += f", {format_bytes(free)} unused"
            sizes = {"releasable": releasable, "in pieces between blocks": free - releasable}
            parts = [f"{format_bytes(size)} {what}" for what, size in sizes.items() if size]
            when = "at the peak: " if device.events else "then: "
            more = f"{when}{', '.join(parts)}"
    return Part(text, "reserved", more=more)


def _growth(device: Device) -> Part | None:
    leaks = device.leaks
    if not leaks.leaks:
        if leaks.missing or not leaks.steps:
            return None
        return Part(f"no growth over {count_of(leaks.steps, 'step')}", "growth")
    first = leaks.leaks[0]
    rate = format_bytes(round(sum(leak.bytes_per_step for leak in leaks.leaks)))
    line = sanitize(first.key, MAX_NAME_CHARS)
    guess = " (a guess)" if leaks.is_guess else ""
    return Part(f"grows by {rate} a step{guess}: {line}", "growth", is_warning=True)
