"""How well a run uses its memory: shares by stated formulas, each with a grade."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from .peaks import Parts, Peak
from .steps import Steps, Verdict

Grade: TypeAlias = Literal["A", "B", "C", "D"]
_GRADES: tuple[Grade, ...] = ("D", "C", "B", "A")

# The lowest share for each grade.
THRESHOLDS: tuple[tuple[float, Grade], ...] = ((0.9, "A"), (0.75, "B"), (0.5, "C"))

GROWTH_GRADES: Mapping[Verdict, Grade] = {
    "stable": "A",
    "falling": "A",
    "warm-up": "B",
    "unsteady": "C",
    "leak-signature": "D",
    "leak": "D",
    "leak-between-runs": "D",
}
LEAKS: tuple[Verdict, ...] = ("leak", "leak-signature", "leak-between-runs")


@dataclass(frozen=True, slots=True)
class Rating:
    """Shares between 0 and 1, or None where what they need was not recorded."""

    utilisation: float | None
    """Components / (components + sum of step values): the formula of older reports."""
    weights_share: float | None
    """Components / measured peak."""
    accounted_share: float | None
    """1 - unaccounted / peak of the loaded model; None where parts overlap."""
    stability: float | None
    """Mean / maximum of the steps' levels."""
    growth: Verdict | None
    overall: Grade | None
    """The mean of the grades; at most C with a leak; None with fewer than two grades."""

    @property
    def grades(self) -> dict[str, Grade]:
        """The grades of the figures that were recorded."""
        shares = {
            "weights_share": self.weights_share,
            "accounted_share": self.accounted_share,
            "stability": self.stability,
        }
        grades = {name: grade_of(share) for name, share in shares.items() if share is not None}
        if self.growth is not None and self.growth in GROWTH_GRADES:
            grades["growth"] = GROWTH_GRADES[self.growth]
        return grades


def grade_of(share: float) -> Grade:
    """Return the grade of a share.

    >>> grade_of(0.95), grade_of(0.756), grade_of(0.1)
    ('A', 'B', 'D')
    """
    return next((grade for lowest, grade in THRESHOLDS if share >= lowest), "D")


def rate(
    components: Mapping[str, int], peak: Peak | None, parts: Parts | None, steps: Steps | None
) -> Rating:
    """Rate a run."""
    weights = sum(components.values())
    rating = Rating(
        utilisation=_share(weights, weights + sum(steps.values)) if steps and weights else None,
        weights_share=_share(weights, peak.size_bytes) if peak and components else None,
        accounted_share=_accounted(parts) if parts and components else None,
        stability=_stability(steps) if steps else None,
        growth=steps.growth.verdict if steps else None,
        overall=None,
    )
    return _with_overall(rating)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole > 0 and 0 <= part <= whole else None


def _accounted(parts: Parts) -> float | None:
    if parts.compared_bytes <= 0 or parts.unaccounted_bytes < 0:
        return None
    return 1 - parts.unaccounted_bytes / parts.compared_bytes


def _stability(steps: Steps) -> float | None:
    highest = max(steps.levels)
    mean = sum(steps.levels) / len(steps.levels)
    return mean / highest if highest > 0 and mean >= 0 else None


def _with_overall(rating: Rating) -> Rating:
    points = [_GRADES.index(grade) for grade in rating.grades.values()]
    if len(points) < 2:
        return rating
    grade = _GRADES[round(sum(points) / len(points) + 1e-9)]
    if rating.growth in LEAKS and grade in ("A", "B"):
        grade = "C"
    return replace(rating, overall=grade)
