"""What would have been reserved: a table of cases, and how far to trust it."""

from __future__ import annotations

from typing import Any

from snapviewer import Device, WhatIf
from snapviewer.snapshot.whatif import Case, Comparison
from snapviewer.text.sanitize import sanitize
from snapviewer.text.table import format_table
from snapviewer.text.units import count_of, format_bytes, format_share

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
        "oom_events": list(answer.oom_events),
        "rescued_event": answer.rescued_event,
        "fits": fits(answer),
    }


def fits(answer: WhatIf) -> bool | None:
    """Return whether memory suffices; None if that is not known."""
    if answer.trust == "refused":
        return None
    if answer.oom_event is not None:
        return False
    capacity = answer.capacity_bytes
    is_unsure = capacity is not None and (answer.high_bytes or 0) > capacity
    return None if is_unsure or answer.rescued_event is not None else True


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
    lines += ["", *dict.fromkeys(_notes(comparison, known, int(device.events)))]
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
    has_ended = answer.oom_event is not None
    return (
        setting_name(case.conf),
        peak_range(answer),
        "" if has_ended else _change(answer, comparison.recorded["reserved"]),
        f"{len(answer.retries):,}",
        _when(answer),
        _missing(answer) if has_ended else "",
    )


def _change(answer: WhatIf, recorded: int) -> str:
    """Return the difference to the recording, of both ends of a range."""
    ends = (answer.low_bytes or 0, answer.high_bytes or 0)
    return " … ".join(dict.fromkeys(_signed(end - recorded) for end in ends))


def _signed(change: int) -> str:
    sign = "+" if change > 0 else "−" if change < 0 else "±"
    return f"{sign}{format_bytes(abs(change))}"


def _when(answer: WhatIf) -> str:
    if answer.oom_events:
        return f"at event {', '.join(f'{event:,}' for event in answer.oom_events[:3])}"
    if fits(answer) is None:
        return "no longer" if answer.rescued_event is not None else "perhaps"
    return "no"


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


def _rescued(known: list[Case], events: int) -> list[str]:
    """Return where simulations end because a request no longer fails."""
    names: dict[int, list[str]] = {}
    for case in known:
        if (event := case.answer.rescued_event) is not None:
            names.setdefault(event, []).append(setting_name(case.conf))
    return [
        f"  The request that failed at event {event:,} succeeds with {_either(confs)}. What the "
        "program would do next is not in the recording, so the simulation ends there, after "
        f"{format_share(event, max(events, 1))} of the trace."
        for event, confs in names.items()
    ]


def _notes(comparison: Comparison, known: list[Case], events: int) -> list[str]:
    notes = []
    for case in comparison.cases:
        answer = case.answer
        if answer.trust == "refused":
            notes.append(f"  Cannot simulate: {answer.why}.")
        elif answer.trust == "interval":
            notes.append(f"  A range, because {readable_note(answer.why)}.")
    notes += _rescued(known, events)
    capacity = comparison.changes.capacity_bytes
    if capacity is not None and known:
        notes.insert(0, f"  {_verdict(known)}")
        peak = min(case.answer.peak_requested_bytes or 0 for case in known)
        if peak > capacity:
            notes.append(
                f"  No setting helps: {format_bytes(peak)} are requested at once, "
                f"{format_bytes(peak - capacity)} more than there is."
            )
    if known:
        notes.append(f"  {UNKNOWN}")
    return notes


def _verdict(known: list[Case]) -> str:
    """Return with which settings memory suffices."""
    sure = [case for case in known if fits(case.answer)]
    unsure = [case for case in known if fits(case.answer) is None]
    if len(sure) == len(known):
        return "It fits."
    if sure:
        return f"It fits with {_either([setting_name(case.conf) for case in sure])}."
    if unsure:
        names = (
            ""
            if len(unsure) == len(known)
            else f" with {_either([setting_name(case.conf) for case in unsure])}"
        )
        return f"It may fit{names}: see below."
    return "It does not fit."


def _either(names: list[str]) -> str:
    """Join names.

    >>> _either(["a", "b", "c"])
    'a, b or c'
    """
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _oom(event: int | None, words: str) -> str:
    return "" if event is None else f"{words}{event:,}"
