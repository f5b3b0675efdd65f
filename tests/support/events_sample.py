"""Sample logs of memory events, and functions that make more."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from snapviewer.events import Analysis, analyze, as_markdown, report_on
from snapviewer.events.log import log_of
from snapviewer.events.steps import Meaning
from snapviewer.report.blocks import Language

MIB, GIB = 2**20, 2**30

Entry = dict[str, Any]

# The eleven events that the format was first described with.
SAMPLE: tuple[Entry, ...] = (
    {"event": "init", "peak_memory": 0},
    {"event": "t5_loaded", "incremental_memory": 11362869248},
    {"event": "vae_loaded", "incremental_memory": 509557760},
    {"event": "dit_loaded", "incremental_memory": 5704053248},
    {"event": "model_loaded", "peak_memory": 24824987648},
    {"event": "forward_pass", "peak_memory": 24824987648},
    {"event": "before_generate", "incremental_memory": 0},
    {"event": "step_0", "incremental_memory": 35122176},
    {"event": "step_1", "incremental_memory": 51903488},
    {"event": "step_2", "incremental_memory": 68668416},
    {"event": "inference_end", "peak_memory": 25893642240},
)

_BEGAN = 1_751_963_745.0


def rich_log() -> list[Entry]:
    """A log of the newer schema: times, durations, models, the runtime's peaks in MB, stages."""
    entries: list[Entry] = [
        {"event": "init", "peak_memory": 0},
        {"event": "t5_load_start"},
        {"event": "t5_load_end", "duration": 12.5},
        {"event": "t5_loaded", "model_name": "umt5-xxl", "incremental_memory": 10 * GIB},
        {"event": "clip_loaded", "incremental_memory": GIB},
        {"event": "vae_loaded", "incremental_memory": GIB // 2},
        {"event": "dit_loaded", "model_name": "wan-14b", "incremental_memory": 8 * GIB},
        {"event": "Model Loaded", "peak_memory": 20 * GIB, "duration": 40.0},
        {"event": "kv_cache", "incremental_memory": GIB // 4},
        {"event": "generate_start"},
        {"event": "t5_encode_start"},
        {"event": "t5_encode_end", "incremental_memory": 200 * MIB},
        {"event": "dit_forward_start"},
        *({"event": f"step_{n}", "incremental_memory": 600 * MIB} for n in range(10)),
        {"event": "dit_forward_end", "peak_memory": 21 * GIB},
        {"event": "vae_decode_start"},
        {"event": "vae_decode_end", "peak_memory": 22 * GIB},
        {"event": "after_decode", "incremental_memory": -300 * MIB},
        {"event": "generate_end", "duration": 80.0},
        {"event": "inference_end", "peak_memory": 22 * GIB},
        {
            "event": "Total Generation",
            "duration": 80.5,
            "cuda_runtime_peak": 23 * 1024.0,
            "pytorch_runtime_peak": 22 * 1024.0,
        },
    ]
    return [{**entry, "timestamp": _BEGAN + 2 * place} for place, entry in enumerate(entries)]


def steps(values: Iterable[int], *, first: int = 0, stride: int = 1) -> list[Entry]:
    """The events of one run's steps."""
    return [
        {"event": f"step_{first + stride * place}", "incremental_memory": value}
        for place, value in enumerate(values)
    ]


def without(*names: str) -> list[Entry]:
    """The sample without the events of these names."""
    return [entry for entry in SAMPLE if entry["event"] not in names]


def write_log(path: Path, entries: Iterable[Entry] = SAMPLE) -> Path:
    """Write a log as a JSON array."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(list(entries)), encoding="utf-8")
    return path


def analysis_of(entries: Iterable[object], *, steps_are: Meaning | None = None) -> Analysis:
    """The analysis of these entries."""
    return analyze(log_of(entries, "memory_events.json"), steps_are=steps_are)


def markdown_of(
    entries: Sequence[object], language: Language = "zh", *, compat: bool = False
) -> str:
    """The report on these entries."""
    return as_markdown(report_on(analysis_of(entries), language=language, compat=compat))
