"""What users found wrong with the report, and what it says instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from snapviewer.events import to_json
from support.events_sample import SAMPLE, analysis_of, markdown_of, steps, without

GIB, MIB = 2**30, 2**20


def loaded(**sizes: float) -> list[dict[str, object]]:
    """Components by their sizes in GiB."""
    return [
        {"event": f"{name}_loaded", "incremental_memory": int(size * GIB)}
        for name, size in sizes.items()
    ]


def peaks(loaded_gb: float, end_gb: float) -> list[dict[str, object]]:
    return [
        {"event": "model_loaded", "peak_memory": int(loaded_gb * GIB)},
        {"event": "inference_end", "peak_memory": int(end_gb * GIB)},
    ]


def test_releasing_an_encoder_does_not_save_more_than_it_takes_alone() -> None:
    analysis = analysis_of([*loaded(t5=11, dit=3), *peaks(16, 17)])

    release = next(item for item in analysis.advice if item.kind == "release-encoder")

    assert release.saved_bytes == 6 * GIB, "the encoder itself still needs its 11 GB"


def test_components_that_were_not_there_together_are_not_to_be_released() -> None:
    analysis = analysis_of([*loaded(t5=10.6, vae=0.5, dit=5.3), *peaks(10.9, 11.4)])

    kinds = {item.kind for item in analysis.advice}

    assert not kinds & {"release-encoder", "load-late", "shard", "four-bit"}
    assert analysis.rating.accounted_share is None, "being offloaded is no fault"
    assert all(item.saved_bytes <= 11.4 * GIB for item in analysis.advice)


def test_parts_that_overlap_are_explained_in_plain_words() -> None:
    report = markdown_of([*loaded(t5=10, dit=5), *peaks(10, 11)], "zh")

    assert "各部分之和比 `model_loaded` 的实测值（10.0 GiB）多出 **5.00 GiB**" in report


@pytest.mark.parametrize(
    ("names", "title"),
    [
        (["Qwen2.5-7B"], "# Qwen2.5-7B GPU memory report"),
        (["T5", "VAE"], "# GPU memory report"),
        (["vae"], "# GPU memory report"),
        ([], "# GPU memory report"),
    ],
)
def test_only_a_model_that_the_log_names_is_in_the_title(names: list[str], title: str) -> None:
    logged = [
        *({"event": "init", "model_name": name} for name in names),
        *loaded(llm=14),
        *peaks(14, 15),
    ]

    own, promised = (markdown_of(logged, "en", compat=compat) for compat in (False, True))

    assert own.startswith(f"{title}\n")
    assert "Wan2.1" not in own
    assert ("# Wan2.1-Enhanced GPU memory report\n" in promised) == ("Qwen" not in title)


def test_a_log_of_other_components_does_not_miss_those_of_video_models() -> None:
    names = [item.name for item in analysis_of([*loaded(llm=14), *peaks(14, 15)]).components]

    assert names == ["llm"]


def test_growth_beside_a_cache_may_be_by_design() -> None:
    cache = {"event": "kv_cache", "incremental_memory": GIB}
    grown = steps([MIB * number for number in range(20)])

    report = markdown_of([*loaded(llm=14), *peaks(14, 17)[:1], cache, *grown], "en")

    assert "unless a cache grows by design" in report


def test_fixing_a_leak_comes_first_in_words_whatever_it_saves() -> None:
    report = markdown_of([*SAMPLE[:4], *steps([16 * MIB * n for n in range(8)])], "en")

    assert "1. **High priority**: Fix the memory leak (800 MiB after 50 steps)\n" in report


@pytest.mark.parametrize("count", [3, 4, 7])
def test_few_steps_are_not_called_a_leak(count: int) -> None:
    # However much it grows.
    report = markdown_of([*SAMPLE[:4], *steps([4 * GIB * n for n in range(count)])], "en")

    assert "this may be a memory leak" in report
    assert "Fix the memory leak" not in report
    priorities = [line for line in report.splitlines() if "priority**" in line]
    assert "**Low priority**: Check for a memory leak (" in priorities[-1]
    assert "first record 8 or more" in report


@pytest.mark.parametrize("levels", [(0, 30, 20, 60), (0, 10, 50, 55), (5, 0, 40, 30)])
def test_few_noisy_steps_are_no_leak(levels: tuple[int, ...]) -> None:
    report = markdown_of([*SAMPLE[:4], *steps([level * MIB for level in levels])], "en")

    assert "may be a memory leak" not in report
    assert "the memory leak" not in report


def test_values_that_could_be_changes_get_both_meanings() -> None:
    report = markdown_of(steps([4 * MIB] * 20), "en")

    assert "memory grows by about 4.00 MiB per step: use --steps increments" in report
    assert "no sign of a leak" in report


def test_runs_that_are_each_above_the_one_before_are_a_leak() -> None:
    runs = [step for level in (300, 800, 1300) for step in steps([level * MIB] * 5)]

    analysis = analysis_of(runs)

    assert analysis.steps is not None
    assert analysis.steps.growth.verdict == "leak-between-runs"
    assert analysis.steps.growth.per_run_bytes == 500 * MIB
    assert "500 MiB" in markdown_of(runs, "zh")


def test_a_phase_that_comes_again_has_the_peak_of_its_first_time() -> None:
    def prompt(peak_gb: float) -> list[dict[str, object]]:
        forward = {"event": "forward_pass", "peak_memory": int(peak_gb * GIB)}
        return [forward, {"event": "generate_start"}, *steps([MIB] * 4)]

    analysis = analysis_of([*prompt(38.5), *prompt(42)])

    phases = {phase.name: phase.peak_bytes for phase in analysis.phases}
    assert phases["forward_pass"] == int(38.5 * GIB)


def test_what_jitters_by_little_beside_the_peak_is_stable() -> None:
    jitter = [35 * MIB + (number % 3) * MIB for number in range(40)]
    peak = {"event": "inference_end", "peak_memory": 692 * MIB}

    analysis = analysis_of([*steps(jitter), peak])

    assert analysis.rating.growth == "stable"


def test_memory_that_fell_once_and_stays_is_stable() -> None:
    assert analysis_of(steps([900 * MIB, *[300 * MIB] * 39])).rating.growth == "stable"


def test_how_a_run_failed_is_reported_with_its_reason() -> None:
    failed = {"event": "oom", "error_type": "OutOfMemoryError", "message": "tried 2 GiB"}

    report = markdown_of([*SAMPLE[:-1], failed], "en")

    assert "The run failed: `oom` (OutOfMemoryError: tried 2 GiB)" in report


def test_of_a_process_no_chinese_report_speaks_of_a_card() -> None:
    init = {"event": "init", "memory_source": "process", "peak_memory": GIB}

    report = markdown_of([init, *steps([MIB * 8 * number for number in range(20)])], "zh")

    assert "显存" not in report
    assert "内存泄漏" in report


def test_a_healthy_log_is_not_asked_to_record_more() -> None:
    init = {"event": "init", "memory_source": "process", "peak_memory": GIB}

    end = {"event": "inference_end", "peak_memory": GIB}

    report = markdown_of([init, *steps([MIB] * 20), end], "en")

    assert "### Priorities\n\nNo recommendations.\n" in report


def test_stages_have_no_columns_of_what_nobody_recorded() -> None:
    stage = [
        {"event": "vae_decode_start", "timestamp": 1},
        {"event": "vae_decode_end", "timestamp": 3},
    ]

    report = markdown_of([*SAMPLE, *stage], "en")

    assert "| Stage        | Count |   Time |\n" in report


def test_a_section_is_added_once_however_often_it_is_asked_for(tmp_path: Path) -> None:
    from snapviewer.events import (
        add_custom_analysis,
        analyze_log_file,
        generate_report,
        register_section,
        unregister_section,
    )
    from support.events_sample import write_log

    log = tmp_path / "log.json"
    write_log(log, without())
    data = analyze_log_file(log)

    @register_section
    def power(_: object) -> str:
        return "## Power\n\n- 350 W"

    try:
        report = add_custom_analysis(generate_report(data, log), data)
    finally:
        unregister_section(power)

    assert report.count("## Power") == 1


def test_what_init_says_is_no_peak_of_a_run_that_was_killed_while_loading() -> None:
    killed = [{"event": "init", "peak_memory": 0}, *loaded(t5=10.6, dit=5.3)]

    analysis = analysis_of(killed)
    report = markdown_of(killed, "en")

    assert analysis.peak is None
    assert analysis.need is None
    assert "No peak was recorded after loading." in report
    assert "The components alone take 15.9 GiB: at least the A10 / A10G (24GB) is needed." in report


@pytest.mark.parametrize(
    "levels",
    [
        [300] * 75 + [300 + 100 * number for number in range(25)],
        [300] * 15 + [300 + 200 * number for number in range(5)],
        [200 * number for number in range(60)] + [12000 + 18 * number for number in range(60)],
    ],
)
def test_a_leak_that_began_late_or_goes_on_slowly_is_one(levels: list[int]) -> None:
    analysis = analysis_of(steps([level * MIB for level in levels]))

    assert analysis.rating.growth == "leak"


def test_components_below_zero_have_no_share_and_no_part_of_the_peak() -> None:
    logged = [*loaded(t5=-5, vae=2), *peaks(4, 5)]

    analysis = analysis_of(logged)
    report = markdown_of(logged, "en")

    assert analysis.components_bytes == 2 * GIB
    assert analysis.parts is not None
    assert analysis.parts.unaccounted_bytes == 2 * GIB
    assert "| T5 encoder |        −5.00 |            – |" in report


def test_a_failure_before_a_good_end_is_not_the_end() -> None:
    report = markdown_of([{"event": "error"}, *SAMPLE], "en")

    assert "An earlier run failed, a later one ended well: `error`" in report
    assert "The run failed" not in report


def test_events_that_the_recorder_lost_are_reported() -> None:
    end = {"event": "inference_end", "peak_memory": GIB, "lost_events": 3}

    assert "could not write 3 events (a full disk?)" in markdown_of([*SAMPLE[:-1], end], "en")


def test_a_few_kilobytes_that_no_event_explains_are_not_a_finding() -> None:
    logged = [*loaded(llm=14, vae=1), {"event": "model_loaded", "peak_memory": 15 * GIB + 4096}]

    findings = to_json(analysis_of(logged), language="en")["findings"]
    report = markdown_of(logged, "en")

    assert findings == [
        "The measured peak is 15.0 GiB (first at model_loaded).",
        "llm is the largest component: 14.0 GiB, 93.3 % of all components.",
    ]
    assert "`model_loaded` measured 15.0 GiB, all but 4.00 KiB of it accounted for." in report


def test_that_the_only_component_is_the_largest_is_not_a_finding() -> None:
    findings = to_json(analysis_of([*loaded(llm=14), *peaks(14, 15)]), language="en")["findings"]

    assert len(findings) == 1


def test_runs_that_release_what_they_took_are_said_to() -> None:
    runs = [step for _ in range(5) for step in steps([100 * MIB * number for number in range(6)])]

    assert "memory grows only within a run" in markdown_of(runs, "en")


def test_a_peak_of_nothing_recommends_no_card() -> None:
    assert analysis_of([{"event": "inference_end", "peak_memory": 0}]).need is None
