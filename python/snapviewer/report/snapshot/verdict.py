"""The answer of `predict`, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from snapviewer.capture.gpus import Gpu
from snapviewer.capture.verdict import Case, not_modelled
from snapviewer.snapshot.alive import Group
from snapviewer.text.sanitize import replace_unprintable
from snapviewer.text.units import count_of, format_bytes


@dataclass(frozen=True, slots=True)
class Cases:
    """A script under different settings."""

    usual: Case
    expandable: Case
    with_workspaces: Case | None  # None if cuDNN was not asked for any
    workspace_bytes: int


def to_json(cases: Cases, gpu: Gpu, *, line: str | None, groups: Sequence[Group]) -> dict[str, Any]:
    """Return the document that `predict --json` prints."""
    case = cases.usual
    return {
        "snapshot": case.snapshot,
        "gpu": gpu.key,
        "fits": case.fits,
        "peak_allocated_bytes": case.peak_allocated_bytes,
        "peak_reserved_bytes": case.peak_reserved_bytes,
        "capacity_bytes": gpu.usable_bytes,
        "oom": {**case.oom, "line": line} if case.oom else None,
        "expandable_segments": _peaks(cases.expandable),
        "cudnn_workspaces": cases.with_workspaces
        and {"bytes_per_call": cases.workspace_bytes, **_peaks(cases.with_workspaces)},
        "groups": [
            {"key": group.line, "bytes": group.size_bytes, "count": group.count} for group in groups
        ],
        "reads": case.facts["reads"],
        "not_modelled": not_modelled(case),
    }


def _peaks(case: Case) -> dict[str, Any]:
    return {
        "fits": case.fits,
        "peak_allocated_bytes": case.peak_allocated_bytes,
        "peak_reserved_bytes": case.peak_reserved_bytes,
    }


def as_text(cases: Cases, gpu: Gpu, *, line: str | None, groups: Sequence[Group]) -> str:
    """Return the verdict: whether it fits, the peaks, what is left, and the largest groups."""
    case = cases.usual
    lines = [f"Predicted on {gpu.name}, {format_bytes(gpu.usable_bytes)} usable", ""]
    lines.append(_case_line("default", case, gpu))
    lines.append(_case_line("expandable segments", cases.expandable, gpu))
    if cases.with_workspaces:
        lines.append(_case_line("cuDNN workspaces", cases.with_workspaces, gpu))
        upper = format_bytes(cases.workspace_bytes)
        lines += ["", f"cuDNN's workspaces depend on the GPU: 0 B above, {upper} per call in the"]
        lines += ["last line, and possibly more; --workspace SIZE sets it."]
    if case.oom:
        asked = format_bytes(case.oom["requested_bytes"])
        lines += ["", f"Runs out of memory in step {case.oom['step'] + 1}, allocating {asked}"]
        lines += [f"  at {line}"] if line else []
    if not case.facts["step"] and not case.oom:
        lines += ["", "The script made no optimizer step: this is all of its run."]
    lines += ["", "Largest at that moment:" if case.oom else "Largest at the peak:"]
    lines += [
        f"  {format_bytes(group.size_bytes):>10}  {group.count:>7,} ×  {group.line}"
        for group in groups
    ]
    lines += _warnings(case)
    lines += ["", "Not modelled:", *(f"  {text}" for text in not_modelled(case))]
    lines += ["", f"{case.snapshot}: open it with `snapviewer {case.snapshot}`"]
    return "\n".join(lines) + "\n"


def case_text(case: Case, gpu: Gpu) -> str:
    """Return whether a run fits, and its peak, on one line."""
    if not case.fits:
        return f"does not fit: more than {format_bytes(gpu.usable_bytes)}"
    left = max(0, gpu.usable_bytes - case.peak_reserved_bytes)
    return (
        f"fits: peak {format_bytes(case.peak_allocated_bytes)} allocated, "
        f"{format_bytes(case.peak_reserved_bytes)} reserved, {format_bytes(left)} left"
    )


def _case_line(name: str, case: Case, gpu: Gpu) -> str:
    return f"  {name:<20} {case_text(case, gpu)}"


def _warnings(case: Case) -> list[str]:
    decided = [read for read in case.facts["reads"] if read["kind"] != "value"]
    if not decided:
        return []
    lines = ["", "Values from the device decided these; there are none, so they were zero:"]
    for read in decided[:8]:
        frame = read["stack"][0]
        where = f"{frame['filename']}:{frame['line']}"
        times = count_of(read["count"], "time")
        text = f"  a {read['kind']}, {times}: {read['expression']}  ({where})"
        lines.append(replace_unprintable(text))
    lines += [f"  … and {len(decided) - 8} more"] if len(decided) > 8 else []
    return [*lines, "  --value 'EXPRESSION=NUMBER' sets what they return."]
