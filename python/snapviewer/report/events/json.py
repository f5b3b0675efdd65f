"""The JSON document of an analysis, which `--json` prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from snapviewer.events.analysis import Analysis
from snapviewer.events.cards import CARDS, fit_of, smallest
from snapviewer.events.figures import Check, common_keys, figures_of
from snapviewer.report import blocks

from .advice import advice_title
from .conclusion import findings
from .words import REPORT_FORMAT, Words

_MAX_FAILURES = 100


def to_json(
    analysis: Analysis, *, language: blocks.Language = "zh", compat: bool = False
) -> dict[str, Any]:
    """Return everything that a report shows; sizes are bytes, what was not recorded is None."""
    say = Words(language, compat)
    environment = analysis.environment
    return {
        "report_format": REPORT_FORMAT,
        "file": analysis.path,
        "title": say.title(analysis),
        "events": {
            "count": analysis.event_count,
            "with_peak": analysis.peak_event_count,
            "with_increment": analysis.incremental_event_count,
            "unknown": [
                {
                    "event": other.name,
                    "times": other.times,
                    "peak_bytes": other.peak_bytes,
                    "incremental_bytes": other.incremental_bytes,
                }
                for other in analysis.others
            ],
            "failures": [
                {
                    "event": failure.event,
                    "about": failure.about,
                    "recovered": failure.is_recovered,
                }
                for failure in analysis.failures[:_MAX_FAILURES]
            ],
            "lost": analysis.lost_count,
            "ended": analysis.is_ended,
        },
        "environment": {
            "memory_source": environment.source,
            "model_names": list(environment.model_names),
            "first_time_s": environment.first_s,
            "last_time_s": environment.last_s,
            "facts": dict(environment.facts),
        },
        "components": [
            {
                "name": item.name,
                "label": say.component(item.name),
                "bytes": item.size_bytes,
                "share": _share(item.size_bytes, analysis.components_bytes),
                "times": item.times,
                "load_s": item.load_s,
            }
            for item in analysis.components
        ],
        "components_bytes": analysis.components_bytes,
        "phases": [asdict(phase) for phase in analysis.phases],
        "stages": [asdict(stage) for stage in analysis.stages],
        "steps": _steps(analysis),
        "peak": _peak(analysis),
        "rating": {**asdict(analysis.rating), "grades": analysis.rating.grades},
        "advice": [
            {
                **item._asdict(),
                "subject": item.subject or None,
                "title": advice_title(item, analysis, say),
            }
            for item in analysis.advice
        ],
        "gpu": _gpu(analysis),
        "findings": ["".join(span.text for span in item) for item in findings(analysis, say)],
        "oddities": {
            "count": analysis.odd_count,
            "first": [
                {
                    "kind": odd.kind,
                    "entry": odd.place,
                    "field": odd.field or None,
                    "shown": odd.shown,
                }
                for odd in analysis.oddities
            ],
        },
    }


def _share(part: int | None, whole: int | None) -> float | None:
    return part / whole if part is not None and whole else None


def _steps(analysis: Analysis) -> dict[str, Any] | None:
    steps = analysis.steps
    if steps is None:
        return None
    values = steps.values
    return {
        "count": len(values),
        "runs": steps.runs,
        "without_value": steps.without_value,
        "values_are": steps.meaning,
        "because": steps.reason,
        "mean_bytes": sum(values) / len(values),
        "lowest_bytes": min(values),
        "highest_bytes": max(values),
        "sum_bytes": sum(values),
        "highest_level_bytes": steps.highest_bytes,
        "growth": asdict(steps.growth),
    }


def _peak(analysis: Analysis) -> dict[str, Any] | None:
    parts = analysis.parts
    if parts is None:
        return None
    return {
        "bytes": parts.peak.size_bytes,
        "event": parts.peak.event,
        "device_bytes": analysis.device_peak_bytes,
        "pytorch_bytes": analysis.pytorch_peak_bytes,
        "loaded_bytes": parts.loaded.size_bytes if parts.loaded else None,
        "loaded_event": parts.loaded.event if parts.loaded else None,
        "unaccounted_bytes": parts.unaccounted_bytes,
        "generation_bytes": parts.generation_bytes,
        "parts": [
            {"kind": part.kind, "subject": part.subject or None, "bytes": part.size_bytes}
            for part in parts.parts
        ],
    }


def _gpu(analysis: Analysis) -> dict[str, Any] | None:
    need = analysis.need
    if need is None:
        return None
    best = smallest(need)
    return {
        "used_bytes": need.used_bytes,
        "context": "assumed" if need.is_context_assumed else "measured",
        "needed_bytes": need.needed_bytes,
        "recommended": best.name if best else None,
        "cards": [
            {"name": card.name, "memory_bytes": card.memory_bytes, "fit": fit_of(card, need)}
            for card in CARDS
        ],
    }


def comparison_to_json(analyses: Sequence[Analysis]) -> list[dict[str, Any]]:
    """Return the figures of several runs, with their changes from the first."""
    all_figures = [figures_of(analysis) for analysis in analyses]
    rows = []
    for key in common_keys(all_figures):
        values = [figures.get(key) for figures in all_figures]
        first = values[0]
        rows.append(
            {
                "figure": key.kind,
                "subject": key.subject or None,
                "unit": key.unit,
                "values": values,
                "changes": [
                    None if value is None or not first else (value - first) / abs(first)
                    for value in values
                ],
            }
        )
    return rows


def check_to_json(check: Check) -> dict[str, Any]:
    """Return a check and its result."""
    return {
        "check": check.kind,
        "file": check.path,
        "peak_bytes": check.peak_bytes,
        "limit_bytes": check.limit_bytes,
        "passed": check.is_passed,
    }
