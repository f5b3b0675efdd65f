"""The figures of a run that two runs are compared by, and the checks that a build can fail on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from .analysis import Analysis

Unit: TypeAlias = Literal["bytes", "bytes a step", "seconds"]


@dataclass(frozen=True, slots=True)
class Key:
    """What a figure is of: `subject` is a component's, phase's or stage's name."""

    kind: Literal[
        "peak",
        "components",
        "component",
        "phase",
        "unaccounted",
        "generation",
        "highest-step",
        "growth",
        "stage",
    ]
    subject: str = ""

    @property
    def unit(self) -> Unit:
        """What its numbers are."""
        if self.kind == "growth":
            return "bytes a step"
        return "seconds" if self.kind == "stage" else "bytes"


def figures_of(analysis: Analysis) -> dict[Key, float | None]:
    """Return the figures of a run, in the order in which they are shown."""
    parts, steps = analysis.parts, analysis.steps
    figures: dict[Key, float | None] = {
        Key("peak"): analysis.peak.size_bytes if analysis.peak else None,
        Key("components"): analysis.components_bytes,
    }
    for component in analysis.components:
        figures[Key("component", component.name)] = component.size_bytes
    for phase in analysis.phases:
        figures[Key("phase", phase.name)] = phase.peak_bytes
    figures[Key("unaccounted")] = parts.unaccounted_bytes if parts else None
    figures[Key("generation")] = parts.generation_bytes if parts else None
    figures[Key("highest-step")] = steps.highest_bytes if steps else None
    figures[Key("growth")] = steps.growth.per_step_bytes if steps else None
    for stage in analysis.stages:
        figures[Key("stage", stage.name)] = stage.duration_s
    return figures


def common_keys(all_figures: Sequence[dict[Key, float | None]]) -> list[Key]:
    """Return what at least one run recorded, each once, in a sensible order."""
    found = dict.fromkeys(key for figures in all_figures for key in figures)
    kinds = list(dict.fromkeys(key.kind for key in found))
    recorded = [
        key for key in found if any(figures.get(key) is not None for figures in all_figures)
    ]
    return sorted(recorded, key=lambda key: kinds.index(key.kind))


@dataclass(frozen=True, slots=True)
class Check:
    """A limit, and whether a run kept to it; a run without a measured peak does not."""

    kind: Literal["over", "regression"]
    path: str
    peak_bytes: int | None
    limit_bytes: int | None
    """None if the baseline has no measured peak."""
    allowed_percent: float = 0.0
    baseline: str = ""

    @property
    def without_peak(self) -> str:
        """The log that has no measured peak, if one of them has none."""
        if self.peak_bytes is None:
            return self.path
        return self.baseline if self.limit_bytes is None else ""

    @property
    def is_passed(self) -> bool:
        """Whether the peak is known and not above the limit."""
        if self.peak_bytes is None or self.limit_bytes is None:
            return False
        return self.peak_bytes <= self.limit_bytes


def check_over(analysis: Analysis, limit_bytes: int) -> Check:
    """Check that the peak of a run is not above a limit."""
    return Check("over", analysis.path, _peak_of(analysis), limit_bytes)


def check_regression(baseline: Analysis, analysis: Analysis, percent: float) -> Check:
    """Check that the peak of a run is not above the baseline's by more than a part of it."""
    before = _peak_of(baseline)
    # As people write it: 100 and 15 % are 115, though 100 * 1.15 is a little less.
    limit = None if before is None else int(before * (1 + Fraction(repr(percent)) / 100))
    return Check("regression", analysis.path, _peak_of(analysis), limit, percent, baseline.path)


def _peak_of(analysis: Analysis) -> int | None:
    return analysis.peak.size_bytes if analysis.peak else None
