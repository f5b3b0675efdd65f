"""What the steps of a run say: levels or increments, and whether memory grows.

A step's `incremental_memory` is meant to be the level above one base, taken before the first step.
Some recorders write the change since the step before instead. Adding levels up means nothing, and
reading changes as levels hides growth, so we ask the numbers first (`meaning_of`).

Growth is the median of the slopes between all pairs of steps (Theil and Sen): a few odd steps do
not move it. Long runs are put into groups of neighbours first, each with its median, so that the
cost stays linear: at most `_PAIRS` pairs in all. Chance makes slopes, too: growth is called a leak
only if more of the pairs rise than chance would have it (Mann and Kendall).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import isqrt, sqrt
from statistics import median
from typing import Literal, TypeAlias

Meaning: TypeAlias = Literal["levels", "increments"]
Reason: TypeAlias = Literal[
    "asked-for",
    "declared",
    "exceeds-peak",
    "matches-peak",
    "smooth",
    "scattered",
    "by-definition",
    "too-few",
]
Verdict: TypeAlias = Literal[
    "leak",
    "leak-signature",
    "leak-between-runs",
    "warm-up",
    "stable",
    "falling",
    "unsteady",
    "too-few",
]

MIB = 2**20
_PAIRS = 200_000
# Growth that is less than this, or than three times the noise, is none.
_LEAST_GROWTH_BYTES = MIB
# Nor is what moves by less than this share of the measured peak.
_JITTER_SHARE = 0.005
# From so many steps on, growth is a leak rather than the signature of one.
ENOUGH_STEPS = 8
# How many standard deviations rising pairs must be beyond chance: once in 200 runs of pure noise.
_BEYOND_CHANCE = 2.6


@dataclass(frozen=True, slots=True)
class Step:
    """One step that recorded its memory; runs are numbered from 0."""

    run: int
    number: int
    value_bytes: int


@dataclass(frozen=True, slots=True)
class Growth:
    """How the levels of a run move from step to step."""

    verdict: Verdict
    per_step_bytes: float | None
    late_per_step_bytes: float | None
    """The same in the second half of each run: what lasts once a run is warm."""
    noise_bytes: float | None
    """How far a step is from the line, in the middle of all."""
    per_run_bytes: float | None = None
    """By how much the middle of a run is above that of the run before; None with one run."""


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a log, as levels above the base of their run."""

    steps: tuple[Step, ...]
    levels: tuple[int, ...]
    meaning: Meaning
    reason: Reason
    without_value: int
    growth: Growth

    @property
    def runs(self) -> int:
        """How many times the numbers of the steps begin anew."""
        return self.steps[-1].run + 1

    @property
    def values(self) -> list[int]:
        """What the log has, as it has it."""
        return [step.value_bytes for step in self.steps]

    @property
    def longest_run(self) -> int:
        """How many steps the longest run has, also those that were not recorded in between."""
        numbers: dict[int, list[int]] = {}
        for step in self.steps:
            numbers.setdefault(step.run, []).append(step.number)
        return max(max(run) - min(run) + 1 for run in numbers.values())

    @property
    def growth_bytes(self) -> float | None:
        """By how much memory grows a step: over all steps, or lately if it began late."""
        growth = self.growth
        if growth.verdict == "leak" and growth.late_per_step_bytes and growth.per_step_bytes == 0:
            return growth.late_per_step_bytes
        return growth.per_step_bytes

    @property
    def highest_bytes(self) -> int:
        """The highest level that a step reached above its base."""
        return max(self.levels)


def split_runs(numbered: Sequence[tuple[int, int]]) -> tuple[Step, ...]:
    """Put the (number, value) of steps into runs.

    Steps that all have numbers of their own are one run, in whatever order they were written. A
    number that comes again begins another run.

    >>> [step.run for step in split_runs([(0, 5), (1, 6), (0, 5), (1, 7)])]
    [0, 0, 1, 1]
    """
    if len({number for number, _ in numbered}) == len(numbered):
        return tuple(Step(0, number, value) for number, value in sorted(numbered))
    steps: list[Step] = []
    run = 0
    for number, value in numbered:
        if steps and number <= steps[-1].number:
            run += 1
        steps.append(Step(run, number, value))
    return tuple(steps)


def examine(
    steps: Sequence[Step],
    *,
    without_value: int = 0,
    asked: Meaning | None = None,
    declared: Meaning | None = None,
    peak_bytes: int | None = None,
    peak_rise_bytes: int | None = None,
) -> Steps | None:
    """Tell what the steps of a log mean and how memory moves.

    Args:
        steps: Of all runs, in order.
        without_value: How many more steps there were.
        asked: What the user says the values are.
        declared: What the recorder says they are.
        peak_bytes: The highest measured memory.
        peak_rise_bytes: By how much the measured peak rose from before the steps to after them.

    Returns:
        The answer, or None if no step recorded its memory.
    """
    if not steps:
        return None
    meaning, reason = meaning_of(
        steps,
        asked=asked,
        declared=declared,
        peak_bytes=peak_bytes,
        peak_rise_bytes=peak_rise_bytes,
    )
    runs = _runs(steps)
    levels = [
        list(accumulate(step.value_bytes for step in run))
        if meaning == "increments"
        else [step.value_bytes for step in run]
        for run in runs
    ]
    curves = [
        [(step.number, level) for step, level in zip(run, curve, strict=True)]
        for run, curve in zip(runs, levels, strict=True)
    ]
    return Steps(
        steps=tuple(steps),
        levels=tuple(level for run in levels for level in run),
        meaning=meaning,
        reason=reason,
        without_value=without_value,
        growth=growth_of(curves, peak_bytes=peak_bytes),
    )


def meaning_of(
    steps: Sequence[Step],
    *,
    asked: Meaning | None = None,
    declared: Meaning | None = None,
    peak_bytes: int | None = None,
    peak_rise_bytes: int | None = None,
) -> tuple[Meaning, Reason]:
    """Tell whether values are levels or increments, and why.

    In this order: what the user or the recorder says; increments cannot add up to more than the
    measured peak; increments that add up to what the peak rose by are some; a curve whose steps
    are smaller than its height is one of levels, one that jumps about zero is one of increments.
    Values that are never below zero do not jump about it: memory that goes up and down is a level.
    """
    if asked is not None:
        return asked, "asked-for"
    if declared is not None:
        return declared, "declared"
    runs = [[step.value_bytes for step in run] for run in _runs(steps)]
    if len(steps) < 3:
        return "levels", "too-few"
    highest_sum = max(max(accumulate(run)) for run in runs)
    if peak_bytes is not None and highest_sum > peak_bytes:
        return "levels", "exceeds-peak"
    values = [value for run in runs for value in run]
    total = sum(values)
    if (
        peak_rise_bytes is not None
        and len(runs) == 1
        and len(values) >= 4
        and total > 2 * max(values)
        and abs(peak_rise_bytes - total) <= 0.2 * total
    ):
        return "increments", "matches-peak"
    changes = [abs(after - before) for run in runs for before, after in pairwise(run)]
    is_smooth = bool(changes) and median(changes) < median(map(abs, values))
    if is_smooth or not changes:
        return "levels", "smooth" if is_smooth else "by-definition"
    return (
        ("increments", "scattered")
        if min(values) < 0 < max(values)
        else ("levels", "by-definition")
    )


def growth_of(
    runs: Sequence[Sequence[tuple[int, int]]], *, peak_bytes: int | None = None
) -> Growth:
    """Tell how levels move.

    Args:
        runs: The (number, level) of the steps of each run, in order.
        peak_bytes: The highest measured memory; what is tiny beside it is no movement.
    """
    count = sum(map(len, runs))
    if max(map(len, runs), default=0) < 3:
        return Growth("too-few", None, None, None)
    most = max(4, isqrt(2 * _PAIRS // len(runs)))
    grouped = [_grouped(run, most) for run in runs]
    whole = _trend(grouped)
    late = _trend([run[len(run) // 2 :] for run in grouped]) if count >= 6 else None
    jitter = max(_LEAST_GROWTH_BYTES, _JITTER_SHARE * (peak_bytes or 0))
    verdict = _verdict(runs, whole, late, jitter)
    middles = [median(level for _, level in run) for run in runs]
    per_run = median(after - before for before, after in pairwise(middles)) if runs[1:] else None
    if verdict not in ("leak", "leak-signature") and _is_staircase(middles, jitter):
        verdict = "leak-between-runs"
    return Growth(verdict, whole.slope, late.slope if late else None, whole.noise_bytes, per_run)


@dataclass(frozen=True, slots=True)
class _Trend:
    """The line through the points of runs: how steep it is, and whether it is more than noise."""

    slope: float
    noise_bytes: float
    growth_bytes: float
    """From the first to the last step of the longest run; 0 if it may be chance."""
    is_long: bool
    """Whether there are enough points to tell from them alone."""

    @property
    def least_bytes(self) -> float:
        """What growth must be to count."""
        return max(_LEAST_GROWTH_BYTES, 3 * self.noise_bytes)


def _trend(runs: Sequence[Sequence[tuple[float, float]]]) -> _Trend:
    slopes = _slopes(runs)
    slope = median(slopes) if slopes else 0.0
    longest = max(runs, key=len)
    is_long = sum(map(len, runs)) >= ENOUGH_STEPS
    is_sure = not is_long or _is_beyond_chance(slopes, runs)
    growth = slope * (longest[-1][0] - longest[0][0]) if is_sure else 0.0
    return _Trend(slope, _noise(runs, slope), growth, is_long)


def _is_staircase(middles: Sequence[float], jitter: float) -> bool:
    """Tell whether each of three runs or more is clearly above the one before."""
    return len(middles) >= 3 and all(after - before > jitter for before, after in pairwise(middles))


def _verdict(
    runs: Sequence[Sequence[tuple[int, int]]], whole: _Trend, late: _Trend | None, jitter: float
) -> Verdict:
    count = sum(map(len, runs))
    if whole.growth_bytes >= whole.least_bytes:
        # It was the beginning that grew, if what came later is slow, and little.
        if (
            late
            and late.slope < 0.2 * whole.slope
            and late.growth_bytes < max(jitter, late.least_bytes)
        ):
            return "warm-up"
        if count >= ENOUGH_STEPS:
            return "leak"
        if all(after > before for run in runs for (_, before), (_, after) in pairwise(run)):
            return "leak-signature"
        return "unsteady"
    if late and late.is_long and late.growth_bytes >= max(jitter, late.least_bytes):
        return "leak"  # it began late
    if whole.growth_bytes <= -whole.least_bytes:
        return "falling"
    levels = [level for run in runs for _, level in run]
    spread = max(levels) - min(levels)
    calm = max(jitter, 0.02 * abs(median(levels)))
    if spread <= calm:
        return "stable"
    # Nothing moves any more in the second half: what moved was the beginning.
    rest = [level for run in runs for _, level in run[len(run) // 2 :]]
    if max(rest) - min(rest) <= max(calm, 0.1 * spread):
        return "warm-up" if median(run[0][1] for run in runs) < min(rest) else "stable"
    return "unsteady"


def _runs(steps: Sequence[Step]) -> list[list[Step]]:
    runs: list[list[Step]] = []
    for step in steps:
        if not runs or runs[-1][0].run != step.run:
            runs.append([])
        runs[-1].append(step)
    return runs


def _grouped(run: Sequence[tuple[int, int]], most: int) -> list[tuple[float, float]]:
    """Put neighbours together, so that there are no more than so many points."""
    size = -(-len(run) // most)
    groups = [run[start : start + size] for start in range(0, len(run), size)]
    return [
        (median(number for number, _ in group), median(level for _, level in group))
        for group in groups
    ]


def _slopes(runs: Sequence[Sequence[tuple[float, float]]]) -> list[float]:
    """Return the slopes between all pairs of points of the same run."""
    return [
        (level - before_level) / (number - before)
        for run in runs
        for place, (number, level) in enumerate(run)
        for before, before_level in run[:place]
    ]


def _is_beyond_chance(slopes: Sequence[float], runs: Sequence[Sequence[object]]) -> bool:
    """Tell whether so many more pairs rise than fall, or fall than rise, that it is no chance."""
    excess = sum((slope > 0) - (slope < 0) for slope in slopes)
    variance = sum(len(run) * (len(run) - 1) * (2 * len(run) + 5) / 18 for run in runs)
    return abs(excess) > _BEYOND_CHANCE * sqrt(variance)


def _noise(runs: Sequence[Sequence[tuple[float, float]]], slope: float) -> float:
    distances: list[float] = []
    for run in runs:
        rests = [level - slope * number for number, level in run]
        middle = median(rests)
        distances += [abs(rest - middle) for rest in rests]
    return median(distances)
