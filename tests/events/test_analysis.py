"""The analysis of a log: parts add up, what is missing is missing, advice follows from numbers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapviewer.events import Log, analyze, to_json
from snapviewer.events.cards import CARDS, Card, Need, fit_of, need_of, smallest
from snapviewer.events.log import log_of
from snapviewer.events.peaks import Part, Peak
from snapviewer.events.rating import grade_of
from support.events_sample import (
    GIB,
    MIB,
    SAMPLE,
    Entry,
    analysis_of,
    markdown_of,
    rich_log,
    steps,
    without,
)
from support.patience import EXAMPLES, PATIENT

MISSING = {"zh": "未记录", "en": "not recorded"}


def parts_of(entries: list[Entry]) -> tuple[Part, ...]:
    parts = analysis_of(entries).parts
    assert parts is not None
    assert sum(part.size_bytes for part in parts.parts) == parts.peak.size_bytes
    return parts.parts


NAMES = st.sampled_from(
    [
        *(entry["event"] for entry in [*SAMPLE, *rich_log()]),
        *("step_7", "unet_loaded", "t5_kv_cache", "checkpoint", "oom", "loaded", "init"),
    ]
)
SIZES = st.integers(0, 2**40)
ENTRIES = st.fixed_dictionaries(
    {"event": NAMES},
    optional={
        "peak_memory": SIZES,
        "incremental_memory": st.integers(-(2**40), 2**40),
        "model_name": st.sampled_from(["t5", "other"]),
        "duration": st.floats(0, 100),
        "timestamp": st.floats(0, 1e9),
        "cuda_runtime_peak": st.integers(0, 2**20),
        "pytorch_runtime_peak": st.integers(0, 2**20),
    },
)
LOGS = st.lists(ENTRIES, min_size=1, max_size=30)


@PATIENT
@given(LOGS)
def test_the_parts_add_up_to_the_measured_peak_whatever_the_log_says(logged: list[Entry]) -> None:
    analysis = analysis_of(logged)

    # What init says is from before the run.
    run = [entry for entry in logged if entry["event"] != "init"] or logged
    peaks = [entry["peak_memory"] for entry in run if "peak_memory" in entry]
    if peaks:
        assert analysis.peak is not None
        assert analysis.peak.size_bytes == max(peaks)
    if analysis.peak is not None:
        assert analysis.parts is not None
        parts = analysis.parts.parts
        assert sum(part.size_bytes for part in parts) == analysis.peak.size_bytes
        assert [part.kind for part in parts].count("unaccounted") == 1
        later = ("steps", "generation")
        assert all(part.size_bytes > 0 for part in parts if part.kind in later)


@settings(PATIENT, max_examples=EXAMPLES // 3)
@given(LOGS)
def test_every_log_is_reported_in_both_languages(logged: list[Entry]) -> None:
    reports = markdown_of(logged, "zh"), markdown_of(logged, "en")

    assert all("nan" not in report and "inf " not in report for report in reports)
    assert reports[0].count("\n#") == reports[1].count("\n#")


@settings(PATIENT, max_examples=EXAMPLES // 3)
@given(LOGS)
def test_advice_is_ordered_by_what_it_saves_and_none_saves_more_than_the_peak(
    logged: list[Entry],
) -> None:
    analysis = analysis_of(logged)

    saved = [item.saved_bytes for item in analysis.advice]
    assert all(before >= after for before, after in pairwise(saved))
    if analysis.peak is not None:
        rest = [item.saved_bytes for item in analysis.advice if item.kind != "fix-leak"]
        assert all(size <= analysis.peak.size_bytes for size in rest)


# What is missing


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize(
    ("event", "line"),
    [
        ("init", ("初始化", "Initialization")),
        ("t5_loaded", ("T5 编码器", "T5 encoder")),
        ("vae_loaded", ("VAE 模型", "VAE")),
        ("dit_loaded", ("DiT 模型", "DiT")),
        ("model_loaded", ("模型加载完成", "Model loaded")),
        ("forward_pass", ("前向传播", "Forward pass")),
    ],
)
def test_an_event_that_is_missing_is_said_to_be_and_never_0(
    event: str, line: tuple[str, str], language: Any
) -> None:
    report = markdown_of(without(event), language)

    label = line[language == "en"]
    rows = [row.split("|") for row in report.splitlines() if row.startswith(f"| {label} ")]
    assert rows, label
    assert rows[0][2].strip() == MISSING[language]


def test_components_that_are_missing_are_none_and_do_not_change_the_sum() -> None:
    analysis = analysis_of(without("t5_loaded"))

    sizes = {item.name: item.size_bytes for item in analysis.components}
    assert sizes == {"vae": 509557760, "dit": 5704053248, "t5": None}
    assert analysis.components_bytes == 509557760 + 5704053248
    assert to_json(analysis)["components"][-1]["bytes"] is None


def test_a_component_without_a_value_is_not_recorded_and_one_of_0_is_0() -> None:
    logged = [{"event": "t5_loaded"}, {"event": "vae_loaded", "incremental_memory": 0}]

    sizes = {item.name: item.size_bytes for item in analysis_of(logged).components}

    assert sizes == {"t5": None, "vae": 0, "dit": None}


def test_without_steps_nothing_is_said_of_growth() -> None:
    analysis = analysis_of(without("step_0", "step_1", "step_2"))

    assert analysis.steps is None
    assert analysis.rating.growth is None
    assert analysis.rating.stability is None
    assert analysis.rating.utilisation is None


def test_without_any_peak_there_is_no_card_no_parts_and_no_limit_that_is_kept() -> None:
    logged = [entry for entry in SAMPLE if "peak_memory" not in entry]

    analysis = analysis_of(logged)

    assert analysis.peak is None
    assert analysis.parts is None
    assert analysis.need is None
    assert "无法推荐 GPU" in markdown_of(logged)


def test_a_log_without_events_is_refused() -> None:
    with pytest.raises(ValueError, match="without events"):
        analyze(Log("empty.json", (), (), 0))


# What the peak is made of


def test_the_parts_of_the_sample_are_known_to_the_byte() -> None:
    components = 11362869248 + 509557760 + 5704053248

    parts = [(part.kind, part.size_bytes) for part in parts_of(list(SAMPLE))]

    assert parts[3:] == [
        ("unaccounted", 24824987648 - components),
        ("steps", 68668416),
        ("generation", 25893642240 - 24824987648 - 68668416),
    ]


def test_parts_that_are_more_than_was_measured_are_an_overlap() -> None:
    logged = [
        {"event": "t5_loaded", "incremental_memory": 10 * GIB},
        {"event": "dit_loaded", "incremental_memory": 10 * GIB},
        {"event": "model_loaded", "peak_memory": 12 * GIB},
    ]

    assert parts_of(logged)[-1] == Part("unaccounted", "", -8 * GIB)
    assert "重叠" in markdown_of(logged)
    assert "by **8.00 GiB**: they were not in memory at the same time" in markdown_of(logged, "en")
    assert analysis_of(logged).rating.weights_share is None


def test_without_model_loaded_the_parts_are_compared_with_a_peak_at_which_they_were_there() -> None:
    before_generating = parts_of(without("model_loaded"))
    at_the_end = parts_of(without("model_loaded", "forward_pass"))

    assert before_generating == parts_of(list(SAMPLE)), "forward_pass measured the same"
    assert [part.kind for part in at_the_end[3:]] == ["unaccounted", "steps"]
    assert at_the_end[3].size_bytes > 0


def test_a_cache_that_was_made_after_loading_is_no_part_of_the_loaded_model() -> None:
    loaded = [
        {"event": "dit_loaded", "incremental_memory": 8 * GIB},
        {"event": "model_loaded", "peak_memory": 8 * GIB},
    ]
    cache = {"event": "kv_cache", "incremental_memory": GIB}
    end = {"event": "inference_end", "peak_memory": 10 * GIB}

    late, early = parts_of([*loaded, cache, end]), parts_of([cache, *loaded, end])

    assert [(part.kind, part.size_bytes // GIB) for part in late] == [
        ("component", 8),
        ("unaccounted", 0),
        ("kv-cache", 1),
        ("generation", 1),
    ]
    assert ("unaccounted", -1) in [(part.kind, part.size_bytes // GIB) for part in early]


def test_a_cache_without_a_loaded_model_is_a_part_of_the_peak_and_half_of_it_can_be_saved() -> None:
    logged = [
        {"event": "dit_kv_cache", "incremental_memory": GIB},
        {"event": "dit_kv_cache", "incremental_memory": 2 * GIB},
        {"event": "inference_end", "peak_memory": 10 * GIB},
    ]

    assert parts_of(logged) == (
        Part("kv-cache", "dit", 2 * GIB),
        Part("unaccounted", "", 8 * GIB),
    )
    saved = {item.kind: item.saved_bytes for item in analysis_of(logged).advice}
    assert saved["kv-cache"] == GIB


def test_the_peak_of_init_is_not_that_of_a_loaded_model() -> None:
    logged = [
        {"event": "init", "peak_memory": GIB},
        {"event": "mark", "peak_memory": 6 * GIB},
        {"event": "inference_end", "peak_memory": 8 * GIB},
    ]
    component = {"event": "dit_loaded", "incremental_memory": 4 * GIB}

    loaded = [
        analysis.parts.loaded and analysis.parts.loaded.event
        for entries in (
            logged,
            [logged[0], logged[2]],
            [logged[0], component, *logged[1:]],
            [*logged[:2], component, logged[2]],
        )
        if (analysis := analysis_of(entries)).parts
    ]

    assert loaded == ["mark", None, "mark", None]


def test_the_peak_is_named_by_the_first_event_that_has_it() -> None:
    logged = [{"event": name, "peak_memory": GIB} for name in ("model_loaded", "forward_pass")]

    peak = analysis_of(logged).peak

    assert peak is not None
    assert peak.event == "model_loaded"


def test_a_clock_that_was_set_back_makes_no_negative_time() -> None:
    logged = [{"event": "t5_load_start", "timestamp": 9}, {"event": "t5_load_end", "timestamp": 5}]

    assert [stage.duration_s for stage in analysis_of(logged).stages] == [0]


def test_a_log_of_our_own_recorder_misses_no_component_of_others() -> None:
    init = {"event": "init", "peak_memory": GIB, "recorder": "snapviewer 1.0"}

    analysis = analysis_of([init, {"event": "unet_loaded", "incremental_memory": GIB}])

    assert [item.name for item in analysis.components] == ["unet"]
    assert "Wan2.1" not in markdown_of([init])


def test_what_was_loaded_twice_counts_once_with_its_largest_size() -> None:
    again = {"event": "t5_loaded", "incremental_memory": GIB}

    analysis = analysis_of([*SAMPLE, again])

    assert analysis.components[0].size_bytes == 11362869248
    assert analysis.components[0].times == 2
    assert "T5 编码器 ×2" in markdown_of([*SAMPLE, again])


def test_the_newer_schema_is_understood() -> None:
    analysis = analysis_of(rich_log())

    durations = {stage.name: stage.duration_s for stage in analysis.stages}
    assert durations["t5_load"] == 12.5
    assert durations["dit_forward"] == 22
    assert durations["total_generation"] == 80.5
    assert analysis.others == ()
    assert analysis.device_peak_bytes == 23 * GIB
    assert {item.name for item in analysis.components} == {"t5", "clip", "vae", "dit"}
    assert analysis.phases[1].peak_bytes == 20 * GIB, "'Model Loaded' is model_loaded"
    assert analysis.environment.model_names == ("umt5-xxl", "wan-14b")


def test_what_pytorch_measured_is_the_peak_if_nothing_else_is() -> None:
    analysis = analysis_of([{"event": "inference_end", "pytorch_runtime_peak": 2048.0}])

    assert analysis.peak is not None
    assert analysis.peak.size_bytes == 2 * GIB


@pytest.mark.parametrize("meaning", ["levels", "increments"])
def test_a_recorder_may_say_what_its_steps_are(meaning: str) -> None:
    init = {"event": "init", "steps_are": meaning}

    found = analysis_of([init, *steps([MIB] * 5), {"event": "step_5"}]).steps

    assert found is not None
    assert (found.meaning, found.reason) == (meaning, "declared")
    assert found.without_value == 1


def test_unknown_events_are_kept_each_name_once() -> None:
    unknown = [{"event": "my checkpoint", "peak_memory": n} for n in (5, 9, 7)]

    analysis = analysis_of([*SAMPLE, *unknown])

    assert [(other.name, other.times, other.peak_bytes) for other in analysis.others] == [
        ("my checkpoint", 3, 9)
    ]
    assert "`my checkpoint`" in markdown_of([*SAMPLE, *unknown])


def test_a_failure_comes_first() -> None:
    logged = [*SAMPLE[:-1], {"event": "oom"}]

    assert [failure.event for failure in analysis_of(logged).failures] == ["oom"]
    assert markdown_of(logged).index("运行以失败结束") < markdown_of(logged).index("最大的组件")


def test_of_the_memory_of_a_process_only_a_leak_is_advised_on() -> None:
    init = {"event": "init", "peak_memory": GIB, "memory_source": "process"}
    leak = steps([100 * MIB * n for n in range(10)])

    analysis = analysis_of([init, *SAMPLE[1:4], *leak])
    report = markdown_of([init, *SAMPLE[1:4], *leak], "en")

    assert [item.kind for item in analysis.advice] == ["fix-leak"]
    assert analysis.need is None
    assert "# Process memory report\n" in report
    assert "so no GPU can be recommended" in report


# Cards


def test_cards_are_known_each_once_and_their_names_say_about_what_they_have() -> None:
    assert len({card.name for card in CARDS}) == len(CARDS)
    for card in CARDS:
        sold = int(card.name.rpartition("(")[2].removesuffix("GB)")) * 1024
        assert 0.93 * sold <= card.memory_mib <= 1.03 * sold, card.name


def test_a_run_of_24_12_gb_does_not_fit_any_card_of_24_gb() -> None:
    need = analysis_of(SAMPLE).need

    assert need is not None
    assert all(fit_of(card, need) == "too-small" for card in CARDS if card.memory_mib <= 24576)
    assert smallest(need) == next(card for card in CARDS if card.name == "RTX 5090 (32GB)")


def test_what_is_needed_is_the_peak_with_the_context_and_a_tenth() -> None:
    assert need_of(10 * GIB) == Need(10 * GIB + 512 * MIB, True, round(10.5 * 1.1 * GIB))
    assert need_of(10 * GIB, 11 * GIB) == Need(11 * GIB, False, round(11 * 1.1 * GIB))
    assert need_of(10 * GIB, 9 * GIB) == need_of(10 * GIB), "a peak of the card cannot be less"


def test_a_card_fits_up_to_its_last_byte() -> None:
    card = Card("test", 1024, False)

    fits = [
        fit_of(card, Need(used, True, needed))
        for used, needed in ((1, GIB), (1, GIB + 1), (GIB, GIB + 1), (GIB + 1, GIB + 2))
    ]

    assert fits == ["fits", "tight", "tight", "too-small"]


def test_no_card_is_enough_for_everything() -> None:
    logged = [{"event": "model_loaded", "peak_memory": 2**45}]

    assert smallest(need_of(2**45)) is None
    assert "no single GPU is enough" in markdown_of(logged, "en")


# Rating and advice


def test_the_figures_of_the_rating_are_their_formulas() -> None:
    rating = analysis_of(SAMPLE).rating
    components = 11362869248 + 509557760 + 5704053248
    values = [35122176, 51903488, 68668416]

    assert rating.utilisation == components / (components + sum(values))
    assert rating.weights_share == components / 25893642240
    assert rating.accounted_share == pytest.approx(components / 24824987648)
    assert rating.stability == sum(values) / 3 / max(values)
    assert rating.grades == {
        "weights_share": "C",
        "accounted_share": "C",
        "stability": "B",
        "growth": "D",
    }
    assert rating.overall == "C", "the mean of 1, 1, 2 and 0"


def test_a_grade_begins_at_its_threshold() -> None:
    shares = (1.0, 0.9, 0.8999, 0.75, 0.7499, 0.5, 0.4999, 0.0)

    assert "".join(map(grade_of, shares)) == "AABBCCDD"


def test_with_a_leak_no_run_is_better_than_c() -> None:
    logged = [
        {"event": "dit_loaded", "incremental_memory": 8 * GIB},
        {"event": "model_loaded", "peak_memory": 8 * GIB},
        *steps([GIB // 2 + MIB * n for n in range(20)]),
    ]

    rating = analysis_of(logged).rating

    assert [rating.grades[name] for name in ("weights_share", "accounted_share")] == ["A", "A"]
    assert (rating.growth, rating.overall) == ("leak", "C")


def test_one_figure_alone_makes_no_rating() -> None:
    rating = analysis_of(steps([GIB])).rating

    assert (rating.grades, rating.overall) == ({"stability": "A"}, None)


def test_two_figures_make_a_rating_and_half_a_grade_counts_as_a_whole_one() -> None:
    logged = [
        {"event": "dit_loaded", "incremental_memory": 8 * GIB},
        {"event": "model_loaded", "peak_memory": 8 * GIB},
    ]
    worse = [*logged, {"event": "inference_end", "peak_memory": 10 * GIB}]

    assert analysis_of(logged).rating.overall == "A"
    rating = analysis_of(worse).rating
    assert rating.grades == {"weights_share": "B", "accounted_share": "A"}
    assert rating.overall == "A"


@pytest.mark.parametrize(
    ("levels", "stability"),
    [([1], 1.0), ([-1, 1], 0.0), ([-10, 1], None), ([0, 0], None), ([-4, -2], None)],
)
def test_stability_needs_levels_above_zero(levels: list[int], stability: float | None) -> None:
    assert analysis_of(steps(levels)).rating.stability == stability


def test_shares_of_the_smallest_and_of_nothing_are_shares() -> None:
    byte = [
        {"event": "dit_loaded", "incremental_memory": 1},
        {"event": "model_loaded", "peak_memory": 1},
    ]
    nothing = [{**byte[0], "incremental_memory": 0}, byte[1]]

    rating = analysis_of(byte).rating
    assert (rating.weights_share, rating.accounted_share) == (1.0, 1.0)
    assert analysis_of(nothing).rating.weights_share == 0.0
    assert analysis_of(nothing).parts is not None


def test_a_device_that_used_as_much_as_pytorch_has_no_context_to_assume() -> None:
    assert need_of(GIB, GIB) == Need(GIB, False, round(1.1 * GIB))


def test_every_count_and_peak_of_a_log_is_found() -> None:
    entries = rich_log()
    entries[0] = {**entries[0], "peak_memory": GIB // 8}
    odd = {
        "event": "loaded",
        "model_name": "Wan CLIP",
        "incremental_memory": GIB,
        "peak_memory": "x",
    }

    found = analysis_of([*entries[:8], odd, *entries[8:]])

    assert (found.event_count, found.peak_event_count, found.incremental_event_count) == (31, 5, 18)
    assert (found.peak, found.pytorch_peak_bytes) == (Peak("vae_decode_end", 22 * GIB), 22 * GIB)
    assert found.device_peak_bytes == 23 * GIB
    assert found.need == need_of(22 * GIB, 23 * GIB)
    assert (found.is_ended, found.has_kv_cache, found.odd_count) == (True, True, 1)
    assert "wan_clip" in [item.name for item in found.components]
    assert found.parts is not None
    assert found.parts.parts[0] == Part("initial", "", GIB // 8)
    assert [(phase.name, phase.peak_bytes) for phase in found.phases] == [
        ("init", GIB // 8),
        ("model_loaded", 20 * GIB),
        ("forward_pass", None),
        ("generation", 22 * GIB),
        ("inference_end", 22 * GIB),
    ]
    plain = analysis_of(SAMPLE)
    assert (plain.is_ended, plain.has_kv_cache, plain.odd_count) == (True, False, 0)
    assert analysis_of(SAMPLE[:-1]).is_ended is False


def test_values_that_add_up_to_the_rise_of_the_peak_are_increments_unless_asked_for() -> None:
    logged = [
        {"event": "model_loaded", "peak_memory": 4 * GIB},
        *steps([GIB // 4] * 4),
        {"event": "inference_end", "peak_memory": 5 * GIB},
    ]

    found = analysis_of(logged).steps
    asked = analyze(log_of(logged, "memory_events.json"), steps_are="levels").steps

    assert found is not None
    assert (found.meaning, found.reason) == ("increments", "matches-peak")
    assert asked is not None
    assert (asked.meaning, asked.reason) == ("levels", "asked-for")


@pytest.mark.parametrize(("language", "why"), [("zh", "依据："), ("en", "why: ")])
def test_every_piece_of_advice_has_a_reason(language: Any, why: str) -> None:
    for logged in (list(SAMPLE), rich_log()):
        analysis = analysis_of(logged)

        assert len(analysis.advice) >= 10
        assert markdown_of(logged, language).count(f"- {why}") == len(analysis.advice)


def test_advice_is_as_large_as_what_it_is_about() -> None:
    analysis = analysis_of(SAMPLE)

    saved = {(item.kind, item.subject): item.saved_bytes for item in analysis.advice}
    assert saved["release-encoder", "t5"] == 11362869248
    assert saved["int8", "dit"] == 5704053248 // 2
    assert saved["four-bit", "t5"] == 11362869248 * 3 // 4
    assert saved["activations", ""] == 25893642240 - 24824987648
    assert saved["fix-leak", ""] == 50 * 16773120
    assert ("int8", "vae") not in saved, "it would save less than a hundredth of the peak"


def test_fixing_a_leak_is_not_said_to_lower_the_measured_peak() -> None:
    leak = [*without("step_0", "step_1", "step_2"), *steps([16 * MIB * n for n in range(8)])]
    lines = [line for line in markdown_of(leak).splitlines() if "优先级**" in line]

    assert any("修复显存泄漏" in line for line in lines)
    assert all(("峰值降至" in line) != ("修复显存泄漏" in line) for line in lines)
