"""The steps of a run: whether their values are levels or increments, and whether memory grows.

A step's `incremental_memory` is meant to be the level above one base, taken before the first step.
Some recorders write the change since the step before instead. The sum of levels means nothing, and
changes read as levels hide growth, so the numbers decide (`meaning_of`).

Growth is the median of the slopes between all pairs of steps (Theil and Sen), which a few outliers
do not move. Long runs are first grouped into medians of neighbours, so that the cost stays linear:
at most `_MAX_PAIRS` pairs in all. Noise has slopes, too, so growth counts only if it is
significant: by the number of rising pairs (Mann and Kendall), or with few steps, where that says
little, by how close they are to a line (Student's t).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import fmean as mean
from statistics import median
from typing import Literal, NamedTuple, TypeAlias

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
_MAX_PAIRS = 200_000
# Growth below this, or below three times the noise, does not count.
_MIN_GROWTH_BYTES = MIB
# Nor does movement below this share of the measured peak.
_JITTER_SHARE = 0.005
# From this many steps on, growth is a leak; with fewer it only looks like one.
ENOUGH_STEPS = 8
# Pure noise passes once in 200 runs: the deviations from the expected number of rising pairs, and
# Student's t by the degrees of freedom, which are 5 or fewer with fewer than 8 steps.
_MIN_DEVIATIONS = 2.6
_MIN_T = (math.inf, 63.66, 9.925, 5.841, 4.604, 4.032)


class Step(NamedTuple):
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
    """The same in the second half of each run, after it has warmed up."""
    noise_bytes: float | None
    """The median distance of a step from the line."""
    per_run_bytes: float | None = None
    """By how much the median of a run is above that of the run before; None with one run."""


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
        """The number of runs."""
        return self.steps[-1].run + 1

    @property
    def values(self) -> list[int]:
        """The values as they are in the log."""
        return [step.value_bytes for step in self.steps]

    @property
    def longest_run(self) -> int:
        """The number of steps of the longest run, including those missing in the log."""
        numbers: dict[int, list[int]] = {}
        for step in self.steps:
            numbers.setdefault(step.run, []).append(step.number)
        return max(max(run) - min(run) + 1 for run in numbers.values())

    @property
    def growth_bytes(self) -> float | None:
        """The growth per step: over all steps, or in the second half if it began late."""
        growth = self.growth
        if growth.verdict == "leak" and growth.late_per_step_bytes and growth.per_step_bytes == 0:
            return growth.late_per_step_bytes
        return growth.per_step_bytes

    @property
    def highest_bytes(self) -> int:
        """The highest level of a step above its base."""
        return max(self.levels)


def split_runs(numbered: Sequence[tuple[int, int]]) -> tuple[Step, ...]:
    """Split the (number, value) of steps into runs.

    Steps whose numbers are all different are one run, in any order. Otherwise a number that is not
    above the one before begins another run.

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
    """Analyze the steps of a log.

    Args:
        steps: Of all runs, in order.
        without_value: The number of steps that recorded no memory.
        asked: What the values are according to the user.
        declared: What they are according to the recorder.
        peak_bytes: The highest measured memory.
        peak_rise_bytes: By how much the measured peak rose from before the steps to after them.

    Returns:
        The result, or None if no step recorded its memory.
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
    """Decide whether values are levels or increments, and why.

    In this order: what the user or the recorder says; the sum of increments cannot exceed the
    measured peak; values whose sum is the rise of the peak are increments; values that change less
    than they are large are levels; values on both sides of zero are increments, others levels.
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
    """Decide how levels move.

    Args:
        runs: The (number, level) of the steps of each run, in order.
        peak_bytes: The highest measured memory; movement that is tiny beside it does not count.
    """
    count = sum(map(len, runs))
    if max(map(len, runs), default=0) < 3:
        return Growth("too-few", None, None, None)
    max_points = max(4, math.isqrt(2 * _MAX_PAIRS // len(runs)))
    grouped = [_grouped(run, max_points) for run in runs]
    whole = _trend(grouped)
    late = _trend([run[len(run) // 2 :] for run in grouped]) if count >= 6 else None
    jitter = max(_MIN_GROWTH_BYTES, _JITTER_SHARE * (peak_bytes or 0))
    verdict = _verdict(runs, whole, late, jitter)
    medians = [median(level for _, level in run) for run in runs]
    per_run = median(after - before for before, after in pairwise(medians)) if runs[1:] else None
    is_enough = len(runs) >= 3 and count >= ENOUGH_STEPS
    if verdict not in ("leak", "leak-signature") and is_enough:
        # Each run must be above the one before by more than the noise within them; without the
        # middle points, which would make the noise of short runs too small.
        noise = median(n for run in grouped for n in _distances(run, whole.slope)[1:])
        min_rise = max(jitter, 3 * noise)
        if all(after - before > min_rise for before, after in pairwise(medians)):
            verdict = "leak-between-runs"
    return Growth(verdict, whole.slope, late.slope if late else None, whole.noise_bytes, per_run)


@dataclass(frozen=True, slots=True)
class _Trend:
    """The line through the points of runs."""

    slope: float
    noise_bytes: float
    growth_bytes: float
    """From the first to the last step of the longest run; 0 if many points make it noise."""
    is_long: bool
    """Whether there are enough points to call growth a leak."""

    @property
    def min_bytes(self) -> float:
        """The growth from which on it counts."""
        return max(_MIN_GROWTH_BYTES, 3 * self.noise_bytes)


def _trend(runs: Sequence[Sequence[tuple[float, float]]]) -> _Trend:
    slopes = _slopes(runs)
    slope = median(slopes) if slopes else 0.0
    longest = max(runs, key=len)
    is_long = sum(map(len, runs)) >= ENOUGH_STEPS
    is_noise = is_long and not _rises_or_falls(slopes, runs)
    growth = 0.0 if is_noise else slope * (longest[-1][0] - longest[0][0])
    noise = median(distance for run in runs for distance in _distances(run, slope))
    return _Trend(slope, noise, growth, is_long)


def _verdict(
    runs: Sequence[Sequence[tuple[int, int]]], whole: _Trend, late: _Trend | None, jitter: float
) -> Verdict:
    count = sum(map(len, runs))
    if whole.growth_bytes >= whole.min_bytes:
        # Only the beginning grew, if later growth is slow and small.
        if (
            late
            and late.slope < 0.2 * whole.slope
            and late.growth_bytes < max(jitter, late.min_bytes)
        ):
            return "warm-up"
        if count >= ENOUGH_STEPS:
            return "leak"
        rises = all(after > before for run in runs for (_, before), (_, after) in pairwise(run))
        return "leak-signature" if rises and _is_a_line(runs) else "unsteady"
    if late and late.is_long and late.growth_bytes >= max(jitter, late.min_bytes):
        return "leak"  # it began late
    if whole.growth_bytes <= -whole.min_bytes:
        return "falling"
    levels = [level for run in runs for _, level in run]
    spread = max(levels) - min(levels)
    calm = max(jitter, 0.02 * abs(median(levels)))
    if spread <= calm:
        return "stable"
    # Only the beginning moved, if the second half does not.
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


def _grouped(run: Sequence[tuple[int, int]], max_points: int) -> list[tuple[float, float]]:
    """Replace groups of neighbours by their medians, so that there are few points."""
    size = -(-len(run) // max_points)
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


def _rises_or_falls(slopes: Sequence[float], runs: Sequence[Sequence[object]]) -> bool:
    """Return whether more pairs rise than fall, or fall than rise, than by chance."""
    excess = sum((slope > 0) - (slope < 0) for slope in slopes)
    variance = sum(len(run) * (len(run) - 1) * (2 * len(run) + 5) / 18 for run in runs)
    return abs(excess) > _MIN_DEVIATIONS * math.sqrt(variance)


def _is_a_line(runs: Sequence[Sequence[tuple[float, float]]]) -> bool:
    """Return whether few points are closer to a sloping line, with runs apart, than by chance."""
    xx = xy = yy = 0.0
    for run in runs:
        x_mean, y_mean = mean(x for x, _ in run), mean(y for _, y in run)
        xx += sum((x - x_mean) ** 2 for x, _ in run)
        xy += sum((x - x_mean) * (y - y_mean) for x, y in run)
        yy += sum((y - y_mean) ** 2 for _, y in run)
    # One run has three steps or more: there is a degree of freedom, and `xx` is not 0.
    freedom = sum(map(len, runs)) - len(runs) - 1
    residue = max(0.0, yy - xy**2 / xx)
    return xy**2 * freedom > _MIN_T[freedom] ** 2 * residue * xx


def _distances(run: Sequence[tuple[float, float]], slope: float) -> list[float]:
    """Return how far points are from the line of this slope through their middle, sorted."""
    rests = [level - slope * number for number, level in run]
    middle = median(rests)
    return sorted(abs(rest - middle) for rest in rests)
