"""What would have been reserved: a table of cases, and how far to trust it."""

from __future__ import annotations

from typing import Any

from snapviewer import Device, WhatIf
from snapviewer.snapshot.whatif import Case, Comparison
from snapviewer.text.sanitize import sanitize
from snapviewer.text.table import format_table
from snapviewer.text.units import count_of, format_bytes

from .info import device_name, readable_note

UNKNOWN = (
    "Not simulated: what the program would do after a request that fails or no longer fails, when "
    "other streams would finish, memory outside of PyTorch, and time."
)
_COLUMNS = ("settings", "reserved", "change", "retries", "out of memory", "")


def to_json(device: Device, comparison: Comparison) -> dict[str, Any]:
    """Return the document that `whatif --json` prints."""
    changes, answers = comparison.changes, [case.answer for case in comparison.cases]
    worst = next((one for one in answers if one.trust == "refused"), None)
    worst = worst or next((one for one in answers if one.trust == "interval"), answers[0])
    return {
        "device": device.index,
        "trust": worst.trust,
        "why": worst.why,
        "recorded": {
            **{f"peak_{name}_bytes": size for name, size in comparison.recorded.items()},
            "retries": comparison.recorded_retries,
            "oom_event": comparison.recorded_oom,
        },
        "capacity_bytes": changes.capacity_bytes,
        "gpu": changes.gpu,
        "cases": [_case_json(case, comparison) for case in comparison.cases],
    }


def _case_json(case: Case, comparison: Comparison) -> dict[str, Any]:
    changes, answer = comparison.changes, case.answer
    return {
        "conf": case.conf,
        "without": list(changes.without),
        "scale": [list(one) for one in changes.scale],
        "free_early": [list(one) for one in changes.free_early],
        "trust": answer.trust,
        "why": answer.why,
        "peak_requested_bytes": answer.peak_requested_bytes,
        "peak_active_bytes": answer.peak_active_bytes,
        "peak_reserved_bytes": answer.peak_reserved_bytes,
        "peak_event": answer.peak_event,
        "low_bytes": answer.low_bytes,
        "high_bytes": answer.high_bytes,
        "retries": len(answer.retries),
        "oom_event": answer.oom_event,
        "rescued_event": answer.rescued_event,
        "fits": fits(answer),
    }


def fits(answer: WhatIf) -> bool | None:
    """Return whether memory suffices; None if that is not known."""
    return None if answer.trust == "refused" else answer.oom_event is None


def as_text(device: Device, comparison: Comparison, *, file: str) -> str:
    """Return a table of the cases, the smallest peak first, and what to know about it."""
    recorded = comparison.recorded
    lines = [f"{file}, {device_name(device)}", ""]
    retries = count_of(comparison.recorded_retries, "retry").replace("retrys", "retries")
    lines.append(
        f"  recorded: {format_bytes(recorded['reserved'])} reserved, "
        f"{format_bytes(recorded['requested'])} requested, {retries}"
        + _oom(comparison.recorded_oom, ", out of memory at event ")
    )
    lines += [f"  {line}" for line in _asked(comparison)]
    known = [case for case in comparison.cases if case.answer.trust != "refused"]
    known.sort(key=lambda case: _rank(case.answer))
    if known:
        rows = [_COLUMNS, *(_row(case, comparison) for case in known)]
        lines += ["", *format_table(rows, right=(1, 2, 3))]
    lines += ["", *dict.fromkeys(_notes(comparison, known))]
    return "\n".join(lines).rstrip() + "\n"


def _rank(answer: WhatIf) -> tuple[bool, int, int]:
    """What fits comes first, by its peak; what does not, by how far it gets."""
    if answer.oom_event is not None:
        return True, -answer.oom_event, 0
    return False, answer.high_bytes or 0, len(answer.retries)


def _asked(comparison: Comparison) -> list[str]:
    """Return what is different from the recording, a line each."""
    changes = comparison.changes
    matches = comparison.cases[0].answer.matches
    asked = [
        *(f"without {sanitize(text)}" for text in changes.without),
        *(f"{sanitize(text)} scaled by {factor:g}" for text, factor in changes.scale),
        *(f"{sanitize(text)} freed by event {at:,}" for text, at in changes.free_early),
    ]
    lines = [
        f"{what}: {count_of(count, 'allocation')}"
        for what, count in zip(asked, matches, strict=True)
    ]
    if changes.capacity_bytes is not None:
        of = f" of {changes.gpu}" if changes.gpu else ""
        lines.append(f"with {format_bytes(changes.capacity_bytes)}{of}")
    return lines


def _row(case: Case, comparison: Comparison) -> tuple[str, ...]:
    answer = case.answer
    change = (answer.peak_reserved_bytes or 0) - comparison.recorded["reserved"]
    sign = "+" if change > 0 else "−" if change < 0 else "±"
    has_ended = answer.oom_event is not None
    return (
        setting_name(case.conf),
        peak_range(answer),
        "" if has_ended else f"{sign}{format_bytes(abs(change))}",
        f"{len(answer.retries):,}",
        _when(answer),
        _missing(answer) if has_ended else "",
    )


def _when(answer: WhatIf) -> str:
    if answer.oom_event is not None:
        return f"at event {answer.oom_event:,}"
    return "no" if answer.rescued_event is None else "no longer"


def _missing(answer: WhatIf) -> str:
    needed, available = answer.oom_needed_bytes or 0, answer.oom_available_bytes or 0
    return f"{format_bytes(needed)} needed, {format_bytes(available)} left"


def peak_range(answer: WhatIf) -> str:
    """Return the peak of reserved memory, or between which sizes it is."""
    ends = (format_bytes(answer.low_bytes or 0), format_bytes(answer.high_bytes or 0))
    return " – ".join(dict.fromkeys(ends))


def setting_name(conf: str | None) -> str:
    """Return how a case's settings are called."""
    if conf is None:
        return "as recorded"
    return conf or "PyTorch's defaults"


def _notes(comparison: Comparison, known: list[Case]) -> list[str]:
    notes = []
    for case in comparison.cases:
        answer, name = case.answer, setting_name(case.conf)
        if answer.trust == "refused":
            notes.append(f"  Cannot simulate: {answer.why}.")
        elif answer.trust == "interval":
            notes.append(f"  A range, because {readable_note(answer.why)}.")
        if answer.rescued_event is not None:
            notes.append(
                f"  {name}: the request that failed at event {answer.rescued_event:,} succeeds; "
                "the recording ends the simulation there."
            )
    capacity = comparison.changes.capacity_bytes
    if capacity is not None and known:
        fitting = [setting_name(case.conf) for case in known if fits(case.answer)]
        notes.insert(0, f"  It fits with {_either(fitting)}." if fitting else "  It does not fit.")
        peak = min(case.answer.peak_requested_bytes or 0 for case in known)
        if peak > capacity:
            notes.append(
                f"  No setting helps: {format_bytes(peak)} are requested at once, "
                f"{format_bytes(peak - capacity)} more than there is."
            )
    if known:
        notes.append(f"  {UNKNOWN}")
    return notes


def _either(names: list[str]) -> str:
    """Join names.

    >>> _either(["a", "b", "c"])
    'a, b or c'
    """
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _oom(event: int | None, words: str) -> str:
    return "" if event is None else f"{words}{event:,}"
