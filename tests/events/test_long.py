"""The report on a long log stays short."""

from __future__ import annotations

from pathlib import Path

import pytest

from snapviewer.events import analyze, as_html, as_markdown, read_log, report_on
from support import events_sample
from support.events_sample import GIB, MIB, SAMPLE, Entry, steps

MANY = 3_000
MAX_BYTES = 60_000


def test_a_hundred_thousand_events_make_a_report_of_a_few_pages(tmp_path: Path) -> None:
    levels = [600 * MIB + 16_384 * n for n in range(100_000)]
    path = events_sample.write_log(tmp_path / "log.json", [*SAMPLE[:7], *steps(levels), SAMPLE[-1]])

    analysis = analyze(read_log(path))
    reports = [report_on(analysis, language=language) for language in ("zh", "en")]

    assert analysis.event_count == 100_008
    assert analysis.steps is not None
    assert analysis.steps.growth.per_step_bytes == 16_384
    assert analysis.steps.growth.verdict == "leak"
    assert all(len(as_markdown(report).encode()) < MAX_BYTES for report in reports)
    assert all(len(as_html(report).encode()) < 4 * MAX_BYTES for report in reports)


KINDS: dict[str, list[Entry]] = {
    "components": [
        {"event": f"part{n}_loaded", "incremental_memory": n * MIB} for n in range(MANY)
    ],
    "caches": [{"event": f"{n}_kv_cache", "incremental_memory": MIB} for n in range(MANY)],
    "stages": [{"event": f"stage{n}_end", "duration": n, "peak_memory": n} for n in range(MANY)],
    "unknown events": [{"event": f"mark {n}", "peak_memory": n} for n in range(MANY)],
    "facts": [{"event": "init", f"fact {n}": n} for n in range(MANY)],
    "failures": [{"event": "oom"}] * MANY,
    "models": [{"event": "loaded", "model_name": f"model {n}"} for n in range(MANY)],
    "runs": [*steps([5 * MIB, 6 * MIB, 7 * MIB])] * (MANY // 3),
    "steps without a value": [{"event": f"step_{n}"} for n in range(MANY)],
}


@pytest.mark.parametrize("entries", KINDS.values(), ids=KINDS)
def test_much_of_anything_makes_a_report_of_a_few_pages(entries: list[Entry]) -> None:
    report = events_sample.markdown_of([*SAMPLE, *entries])

    assert len(report.encode()) < MAX_BYTES
    assert "24.1 GiB" in report


def test_components_beyond_what_can_be_read_are_put_together_and_none_is_lost() -> None:
    analysis = events_sample.analysis_of(
        [*KINDS["components"], {"event": "model_loaded", "peak_memory": GIB}]
    )

    sizes = [item.size_bytes or 0 for item in analysis.components]
    assert len(analysis.components) == 40
    assert analysis.components[-1].name == "other_components"
    assert sum(sizes) == sum(range(MANY)) * MIB
    assert max(sizes[:-1]) == (MANY - 1) * MIB
    assert analysis.parts is not None
    assert sum(part.size_bytes for part in analysis.parts.parts) == GIB
