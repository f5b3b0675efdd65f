"""Levels or increments, and whether memory grows: known curves, and properties of all curves."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate, pairwise
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapviewer.events.steps import Growth, Step, Steps, Verdict, examine, growth_of, split_runs
from support.events_sample import GIB, MIB
from support.patience import PATIENT

BASE = 1000 * MIB


def one_run(values: Sequence[int], *, stride: int = 1) -> tuple[Step, ...]:
    return split_runs([(stride * place, value) for place, value in enumerate(values)])


def examined(values: Sequence[int], **known: int | None) -> Steps:
    found = examine(one_run(values), **known)  # type: ignore[arg-type]
    assert found is not None
    return found


def growth(levels: Sequence[int], *, stride: int = 1) -> Growth:
    return growth_of([[(stride * place, level) for place, level in enumerate(levels)]])


def ramp(count: int, per_step: int = 16 * MIB) -> list[int]:
    return [BASE + per_step * place for place in range(count)]


def noise(count: int, size: int, seed: int = 1) -> list[int]:
    order = random.Random(seed)
    return [BASE + round(order.gauss(0, size)) for _ in range(count)]


def with_outliers(levels: Sequence[int], *places: int) -> list[int]:
    return [level + GIB * (place in places) for place, level in enumerate(levels)]


CURVES: dict[str, tuple[list[int], Verdict]] = {
    "constant": ([BASE] * 20, "stable"),
    "all zero": ([0] * 20, "stable"),
    "a ramp": (ramp(20), "leak"),
    "a ramp of a few steps": (ramp(5), "leak-signature"),
    "a ramp with outliers": (with_outliers(ramp(20), 3, 11, 12), "leak"),
    "a ramp with noise": (
        [16 * MIB * n + level for n, level in enumerate(noise(40, 20 * MIB))],
        "leak",
    ),
    "growth on every fifth step": ([BASE + 64 * MIB * (n // 5) for n in range(40)], "leak"),
    "flat with outliers": (with_outliers([BASE] * 20, 2, 9, 17), "unsteady"),
    "flat with outliers at its end": (with_outliers([BASE] * 20, 17, 18, 19), "unsteady"),
    "one low step, then flat": ([BASE // 2, *[BASE] * 19], "warm-up"),
    "a warm-up, then flat": ([*ramp(8), *[ramp(8)[-1]] * 12], "warm-up"),
    "a sawtooth": ([BASE + 50 * MIB * (n % 4) for n in range(40)], "unsteady"),
    "a sawtooth from zero": ([50 * MIB * (n % 2) for n in range(40)], "unsteady"),
    "falling": (ramp(20)[::-1], "falling"),
    "noise": (noise(100, 50 * MIB), "unsteady"),
    "a little noise": (noise(100, MIB // 8), "stable"),
    "growth of 2 MiB in all": ([BASE + 20_000 * n for n in range(100)], "leak"),
    "8 steps with a dip": ([*ramp(4), ramp(4)[-1] - MIB, *ramp(8)[5:]], "leak"),
    "7 steps with a dip": ([*ramp(4), ramp(4)[-1] - MIB, *ramp(7)[5:]], "unsteady"),
    "growth of less than a MiB in all": ([BASE + 1000 * n for n in range(100)], "stable"),
    "1 step": ([BASE], "too-few"),
    "2 steps": (ramp(2), "too-few"),
    "3 steps": (ramp(3), "leak-signature"),
    "3 steps, up and down": ([BASE, BASE + 20 * MIB, BASE + 10 * MIB], "unsteady"),
}


@pytest.mark.parametrize(("levels", "verdict"), CURVES.values(), ids=CURVES)
def test_a_curve_is_called_what_it_is(levels: list[int], verdict: Verdict) -> None:
    steps = examined(levels)

    assert steps.growth.verdict == verdict
    assert steps.meaning == "levels"
    assert steps.levels == tuple(levels)


def test_the_slope_of_a_ramp_is_exact_with_noise_and_outliers_or_without() -> None:
    assert growth(ramp(20)).per_step_bytes == 16 * MIB
    assert growth(with_outliers(ramp(20), 3, 11)).per_step_bytes == 16 * MIB
    assert growth(ramp(3)).per_step_bytes == 16 * MIB


def test_the_slope_is_by_the_numbers_of_the_steps_and_not_by_how_many_were_recorded() -> None:
    assert growth(ramp(10), stride=10).per_step_bytes == 1.6 * MIB
    assert growth(ramp(10), stride=10).verdict == "leak"


def test_steps_out_of_order_are_one_run_in_their_order() -> None:
    numbered = list(enumerate(ramp(20)))
    random.Random(4).shuffle(numbered)

    steps = examine(split_runs(numbered))

    assert steps == examined(ramp(20))
    assert steps is not None
    assert steps.runs == 1


def test_a_number_that_comes_again_begins_another_run() -> None:
    numbered = [*enumerate(ramp(5))] * 3

    steps = examine(split_runs(numbered))

    assert steps is not None
    assert steps.runs == 3
    assert steps.growth.per_step_bytes == 16 * MIB, "no pair of steps is from two runs"
    assert steps.growth.verdict == "leak"


def test_a_number_that_comes_twice_in_a_row_begins_another_run_too() -> None:
    runs = [step.run for step in split_runs([(0, 1), (1, 2), (1, 3), (2, 4), (1, 5)])]

    assert runs == [0, 0, 1, 1, 2]


def test_runs_of_two_steps_are_too_few_however_many_there_are() -> None:
    steps = examine(split_runs([*enumerate(ramp(2))] * 50))

    assert steps is not None
    assert steps.growth == Growth("too-few", None, None, None)


def test_no_steps_are_no_answer() -> None:
    assert examine(()) is None


LEAKS = ("leak", "leak-signature", "leak-between-runs")


@pytest.mark.parametrize(
    "runs", [[3], [4], [5], [8], [20], [3, 3], [3, 3, 3], [4, 4, 4], [9, 9, 9]]
)
def test_noise_is_called_a_leak_less_than_once_in_fifty_logs(runs: list[int]) -> None:
    logs = [
        [list(enumerate(noise(count, 50 * MIB, 10 * seed + run))) for run, count in enumerate(runs)]
        for seed in range(500)
    ]

    verdicts = [growth_of(log).verdict for log in logs]

    assert sum(verdict in LEAKS for verdict in verdicts) < 10


def test_four_steps_look_like_a_leak_if_they_grow_by_much_more_than_the_noise() -> None:
    def verdicts(noise_bytes: int) -> list[Verdict]:
        return [
            growth(
                [16 * MIB * n + level for n, level in enumerate(noise(4, noise_bytes, seed))]
            ).verdict
            for seed in range(100)
        ]

    assert verdicts(MIB).count("leak-signature") > 90
    assert verdicts(16 * MIB).count("leak-signature") < 20


@pytest.mark.parametrize("per_step", [0, 4096, -4096])
def test_a_hundred_thousand_steps_are_a_curve_like_any_other(per_step: int) -> None:
    levels = [level + per_step * n for n, level in enumerate(noise(100_000, 10 * MIB))]

    found = growth(levels)

    assert found.per_step_bytes == pytest.approx(per_step, abs=4)
    assert found.verdict in {0: ("unsteady",), 4096: ("leak",), -4096: ("falling",)}[per_step]


# Levels or increments


def test_what_the_user_says_goes_before_what_the_recorder_says_and_both_before_the_numbers() -> (
    None
):
    steps = one_run(ramp(5))

    asked = examine(steps, asked="increments", declared="levels")
    declared = examine(steps, declared="increments")

    assert asked is not None
    assert (asked.meaning, asked.reason) == ("increments", "asked-for")
    assert declared is not None
    assert (declared.meaning, declared.reason) == ("increments", "declared")


def test_values_that_would_add_up_to_more_than_the_peak_are_levels() -> None:
    steps = examined([600 * MIB] * 50, peak_bytes=22 * GIB, peak_rise_bytes=2 * GIB)

    assert (steps.meaning, steps.reason) == ("levels", "exceeds-peak")


def test_values_that_add_up_to_what_the_peak_rose_by_are_increments() -> None:
    steps = examined([16 * MIB] * 10, peak_bytes=20 * GIB, peak_rise_bytes=170 * MIB)

    assert (steps.meaning, steps.reason) == ("increments", "matches-peak")
    assert steps.highest_bytes == 160 * MIB
    assert steps.growth.verdict == "leak"


def test_values_that_jump_about_zero_are_increments() -> None:
    steps = examined([30 * MIB, -30 * MIB, 31 * MIB, -31 * MIB, 29 * MIB, -29 * MIB])

    assert (steps.meaning, steps.reason) == ("increments", "scattered")
    assert steps.growth.verdict == "unsteady"


def test_two_steps_are_too_few_to_judge_and_are_what_recorders_mean() -> None:
    steps = examined([5, -5])

    assert (steps.meaning, steps.reason) == ("levels", "too-few")


@pytest.mark.parametrize(
    ("runs", "peak", "rise", "expected"),
    [
        ([[5, -5, 5]], None, None, ("increments", "scattered")),
        ([[5, 5, 5]], 15, None, ("levels", "smooth")),
        ([[5, 5, 5]], 14, None, ("levels", "exceeds-peak")),
        ([[5, 5, 5, 5]], None, 20, ("increments", "matches-peak")),
        ([[5, 5, 5, 5]], None, 24, ("increments", "matches-peak")),
        ([[5, 5, 5, 5]], None, 25, ("levels", "smooth")),
        ([[5, 5, 5]], None, 15, ("levels", "smooth")),
        ([[5, 5], [5, 5]], None, 20, ("levels", "smooth")),
        ([[6, 2, 2, 2]], None, 12, ("levels", "smooth")),
        ([[5, 4, 3, 2]], None, 14, ("increments", "matches-peak")),
        ([[7], [7], [7]], None, None, ("levels", "by-definition")),
        ([[2, 4, 2, 0, 2]], None, None, ("levels", "by-definition")),
        ([[9, 0, 9, 0]], None, None, ("levels", "by-definition")),
        ([[-9, 0, -9, 0]], None, None, ("levels", "by-definition")),
    ],
)
def test_values_mean_what_the_order_of_the_rules_says(
    runs: list[list[int]], peak: int | None, rise: int | None, expected: tuple[str, str]
) -> None:
    steps = split_runs([pair for run in runs for pair in enumerate(run)])

    found = examine(steps, peak_bytes=peak, peak_rise_bytes=rise)

    assert found is not None
    assert (found.meaning, found.reason) == expected
    assert found.without_value == 0


def test_two_short_runs_that_rise_alike_are_a_sign_of_a_leak_and_one_that_bends_is_none() -> None:
    line = [(place, BASE + 16 * MIB * place) for place in range(3)]
    bend = [(place, BASE + MIB * height) for place, height in enumerate((0, 1, 90))]

    assert growth_of([line, line]).verdict == "leak-signature"
    assert growth_of([bend, bend]).verdict == "unsteady"


# What is true of all curves


LEVELS = st.lists(st.integers(-(2**45), 2**45), min_size=3, max_size=30)
SMALL_RUNS = st.lists(
    st.lists(st.integers(-1000, 1000).map(lambda mib: mib * MIB), min_size=3, max_size=25),
    min_size=1,
    max_size=3,
)


@PATIENT
@given(SMALL_RUNS)
def test_the_slope_is_the_median_over_all_pairs(runs: list[list[int]]) -> None:
    slopes = [
        (run[after] - run[before]) / (after - before)
        for run in runs
        for after in range(len(run))
        for before in range(after)
    ]

    found = growth_of([list(enumerate(run)) for run in runs])

    assert found.per_step_bytes == median(slopes)


@PATIENT
@given(LEVELS, st.integers(-(2**40), 2**40))
def test_a_higher_base_is_no_growth(levels: list[int], base: int) -> None:
    found, moved = growth(levels), growth([level + base for level in levels])

    assert moved.per_step_bytes == found.per_step_bytes
    assert moved.late_per_step_bytes == found.late_per_step_bytes


@PATIENT
@given(LEVELS, st.sampled_from([-4, -1, 2, 8]))
def test_growth_scales_with_the_levels(levels: list[int], factor: int) -> None:
    found, scaled = growth(levels), growth([factor * level for level in levels])

    assert found.per_step_bytes is not None
    assert scaled.per_step_bytes == factor * found.per_step_bytes


@PATIENT
@given(
    st.integers(10, 60),
    st.data(),
)
def test_a_few_outliers_do_not_make_a_leak_of_a_flat_run(count: int, data: st.DataObject) -> None:
    levels = [BASE] * count
    few = st.lists(st.integers(0, count - 1), max_size=count // 5, unique=True)
    for place in data.draw(few):
        levels[place] += data.draw(st.integers(-BASE, 40 * GIB))

    found = growth(levels)

    assert found.verdict not in ("leak", "leak-signature")
    assert found.per_step_bytes == 0


@PATIENT
@given(SMALL_RUNS)
def test_increments_and_their_running_sums_are_the_same_levels(runs: list[list[int]]) -> None:
    sums = [list(accumulate(run)) for run in runs]

    as_increments = examine(_numbered(runs), asked="increments")
    as_levels = examine(_numbered(sums), asked="levels")

    assert as_increments is not None
    assert as_levels is not None
    assert as_increments.levels == as_levels.levels
    assert as_increments.growth == as_levels.growth


@PATIENT
@given(LEVELS)
def test_the_verdict_agrees_with_the_curve(levels: list[int]) -> None:
    verdict = growth(levels).verdict

    if verdict == "leak-signature":
        assert all(after > before for before, after in pairwise(levels))
    if verdict in ("leak", "leak-signature", "warm-up"):
        assert max(levels) > min(levels)
    if max(levels) - min(levels) < MIB:
        assert verdict == "stable"


def _numbered(runs: list[list[int]]) -> tuple[Step, ...]:
    return tuple(
        Step(number, place, value)
        for number, run in enumerate(runs)
        for place, value in enumerate(run)
    )


@pytest.mark.parametrize(
    ("lengths", "is_leak"),
    [((3, 3, 2), True), ((3, 2, 2), False), ((4, 4), False), ((4, 4, 4, 4), True)],
)
def test_growth_between_runs_needs_three_runs_and_eight_steps(
    lengths: tuple[int, ...], is_leak: bool
) -> None:
    runs = [
        [(number, BASE + 500 * MIB * place) for number in range(length)]
        for place, length in enumerate(lengths)
    ]

    found = growth_of(runs)

    assert (found.verdict == "leak-between-runs") == is_leak
    assert found.per_run_bytes == 500 * MIB
    assert found.noise_bytes == 0


def test_the_second_half_has_its_own_slope_from_six_steps_on() -> None:
    assert growth(ramp(5)).late_per_step_bytes is None
    assert growth(ramp(6)).late_per_step_bytes == 16 * MIB
    assert growth(ramp(20)).late_per_step_bytes == 16 * MIB
    assert growth(ramp(20)).per_run_bytes is None


def test_steps_without_a_run_are_too_few() -> None:
    assert growth_of([]).verdict == "too-few"


def test_a_first_step_above_the_rest_is_no_warm_up() -> None:
    assert growth([2 * BASE, *([BASE] * 19)]).verdict == "stable"
    assert growth([0, *([BASE] * 19)]).verdict == "warm-up"


def test_growth_that_begins_late_is_a_leak() -> None:
    late = [BASE] * 20 + [BASE + 16 * MIB * place for place in range(1, 13)]

    assert growth(late).verdict == "leak"


def test_growth_within_runs_is_named_before_growth_between_them() -> None:
    runs = [
        [(number, BASE + 500 * MIB * place + 16 * MIB * number) for number in range(10)]
        for place in range(3)
    ]

    assert growth_of(runs).verdict == "leak"
