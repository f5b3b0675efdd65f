"""The chapter of figures: efficiency by stated formulas, and the rating."""

from __future__ import annotations

from collections.abc import Iterator

from snapviewer.events.analysis import Analysis
from snapviewer.events.rating import Grade
from snapviewer.report import blocks
from snapviewer.report.blocks import strong, text

from .words import GIB, Words, columns, row

_TONES: dict[Grade | None, blocks.Tone] = {"A": "good", "B": "good", "C": "warning", "D": "bad"}


def benchmark(analysis: Analysis, say: Words) -> Iterator[blocks.Block]:
    """Yield the chapter, without a comparison."""
    yield say.heading(2, "基准对比", "Benchmark")
    yield say.heading(3, "显存效率指标", "Memory efficiency")
    titles = (say("指标", "Figure"), f"#{say('数值', 'Value')}")
    yield blocks.Table(
        columns(*titles, say("公式", "Formula"), say("评估", "Grade")),
        tuple(row(*cells) for cells in _rows(analysis, say)),
    )
    overall = analysis.rating.overall
    yield say.heading(3, "性能评级", "Rating")
    yield blocks.Paragraph(
        text(
            say("总评：", "Overall: "),
            strong(_grade(overall, say) or say("未评级", "not rated")),
            say("。", ". "),
            say(
                "总评是各项评估的平均；比例达到 90 % 为 A，75 % 为 B，50 % 为 C，其余为 D；"
                "步骤稳定为 A，预热为 B，起伏为 C，泄漏为 D；有泄漏时总评不高于 C；"
                "少于两项时不评级。",
                "This is the mean of the grades. A share of 90 % is an A, 75 % a B, 50 % a C, less "
                "a D; stable steps are an A, a warm-up a B, unsteady steps a C, a leak a D. With a "
                "leak the overall grade is at most C; with fewer than two grades there is none.",
            ),
        ),
        _TONES.get(overall, "plain"),
    )


def _rows(analysis: Analysis, say: Words) -> Iterator[tuple[str, str, str, str]]:
    rating, steps, weights = analysis.rating, analysis.steps, analysis.components_bytes

    def graded(name: str) -> str:
        return _grade(rating.grades.get(name), say) or "–"

    def share(value: float | None, *, is_recorded: bool) -> str:
        # What was recorded may have no share, for example of a peak of 0.
        return "–" if value is None and is_recorded else say.share(value)

    yield (
        say("模型显存", "Model memory"),
        say.size(weights),
        say("各组件之和", "sum of the components"),
        "–",
    )
    if say.compat:  # of older reports; the sum of levels is not an amount of memory
        yield (
            say("步骤显存之和", "Sum of the steps"),
            f"{sum(steps.values) / GIB:.3f} GB" if steps else say.missing,
            say("各步骤数值之和", "sum of their values"),
            "–",
        )
        yield (
            say("显存利用率", "Memory utilisation"),
            share(rating.utilisation, is_recorded=bool(weights and steps)),
            say(
                "组件 / (组件 + 步骤之和)，旧报告的公式",
                "components / (components + sum of steps), as in older reports",
            ),
            "–",
        )
    yield (
        say("权重占峰值", "Weights in the peak"),
        share(rating.weights_share, is_recorded=bool(analysis.peak and weights)),
        say("组件 / 实测峰值", "components / measured peak"),
        graded("weights_share"),
    )
    yield (
        say("已说明比例", "Accounted for"),
        share(rating.accounted_share, is_recorded=bool(analysis.parts and weights)),
        say("1 − 未说明 / 加载完成时的峰值", "1 − unaccounted / peak of the loaded model"),
        graded("accounted_share"),
    )
    yield (
        say("峰值稳定性", "Peak stability"),
        share(rating.stability, is_recorded=bool(steps)),
        say("步骤平均水平 / 最高水平", "mean / highest level of the steps"),
        graded("stability"),
    )
    growth = steps.growth.per_step_bytes if steps else None
    yield (
        say("每步增长", "Growth per step"),
        say.rate(growth) if growth is not None or not steps else "–",
        say("所有步骤对之间斜率的中位数", "median slope between all pairs of steps"),
        graded("growth"),
    )


def _grade(grade: Grade | None, say: Words) -> str:
    names: dict[Grade | None, str] = {
        "A": say("A 优秀", "A, excellent"),
        "B": say("B 良好", "B, good"),
        "C": say("C 一般", "C, fair"),
        "D": say("D 较差", "D, poor"),
    }
    return names.get(grade, "")
