"""The figures by which runs are compared, and the checks of the `--fail-…` options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from snapviewer.text.units import increased

from .analysis import Analysis

Unit: TypeAlias = Literal["bytes", "bytes a step", "seconds"]


@dataclass(frozen=True, slots=True)
class FigureKey:
    """What a figure is about; `subject` is the name of the component, phase or stage."""

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
        """The unit of its values."""
        if self.kind == "growth":
            return "bytes a step"
        return "seconds" if self.kind == "stage" else "bytes"


def figures_of(analysis: Analysis) -> dict[FigureKey, float | None]:
    """Return the figures of a run, in the order of a report."""
    parts, steps = analysis.parts, analysis.steps
    figures: dict[FigureKey, float | None] = {
        FigureKey("peak"): analysis.peak.size_bytes if analysis.peak else None,
        FigureKey("components"): analysis.components_bytes,
    }
    for component in analysis.components:
        figures[FigureKey("component", component.name)] = component.size_bytes
    for phase in analysis.phases:
        figures[FigureKey("phase", phase.name)] = phase.peak_bytes
    figures[FigureKey("unaccounted")] = parts.unaccounted_bytes if parts else None
    figures[FigureKey("generation")] = parts.generation_bytes if parts else None
    figures[FigureKey("highest-step")] = steps.highest_bytes if steps else None
    figures[FigureKey("growth")] = steps.growth.per_step_bytes if steps else None
    for stage in analysis.stages:
        figures[FigureKey("stage", stage.name)] = stage.duration_s
    return figures


def common_keys(all_figures: Sequence[dict[FigureKey, float | None]]) -> list[FigureKey]:
    """Return the figures that at least one run recorded, ordered by kind."""
    found = dict.fromkeys(key for figures in all_figures for key in figures)
    kinds = list(dict.fromkeys(key.kind for key in found))
    recorded = [
        key for key in found if any(figures.get(key) is not None for figures in all_figures)
    ]
    return sorted(recorded, key=lambda key: kinds.index(key.kind))


@dataclass(frozen=True, slots=True)
class Check:
    """A limit, and the peak of a run; a run without a measured peak fails."""

    kind: Literal["over", "regression"]
    path: str
    peak_bytes: int | None
    limit_bytes: int | None
    """None if the baseline has no measured peak."""
    allowed_percent: float = 0.0
    baseline: str = ""

    @property
    def without_peak(self) -> str:
        """The log without a measured peak, if there is one."""
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
    limit = None if before is None else increased(before, percent)
    return Check("regression", analysis.path, _peak_of(analysis), limit, percent, baseline.path)


def _peak_of(analysis: Analysis) -> int | None:
    return analysis.peak.size_bytes if analysis.peak else None
