"""The chapter of figures: efficiency by stated formulas, the rating, and the baseline if any."""

from __future__ import annotations

from collections.abc import Iterator

from snapviewer.events.analysis import Analysis
from snapviewer.events.rating import Grade
from snapviewer.report.blocks import Block, Heading, Paragraph, Table, Tone, strong, text

from .words import GIB, Words, columns, row

_TONES: dict[Grade | None, Tone] = {"A": "good", "B": "good", "C": "warning", "D": "bad"}


def grade_name(grade: Grade | None, say: Words) -> str:
    """Say a grade in words."""
    names: dict[Grade | None, str] = {
        "A": say("A 优秀", "A, excellent"),
        "B": say("B 良好", "B, good"),
        "C": say("C 一般", "C, fair"),
        "D": say("D 较差", "D, poor"),
    }
    return names.get(grade, say("未评级", "not rated"))


def benchmark(analysis: Analysis, say: Words) -> Iterator[Block]:
    """Yield the chapter, without a comparison."""
    rating, grades = analysis.rating, analysis.rating.grades
    yield Heading(2, say("基准对比", "Benchmark"))
    yield Heading(3, say("显存效率指标", "Memory efficiency"))
    weights = analysis.components_bytes
    steps = analysis.steps
    total = sum(steps.values) if steps else None
    growth = steps.growth.per_step_bytes if steps else None
    plain = "–"
    rows = [
        row(
            say("模型显存", "Memory of the model"),
            say.size(weights),
            say("各组件之和", "sum of the components"),
            plain,
        ),
        row(
            say("步骤显存之和", "Sum of the steps"),
            say.missing if total is None else f"{total / GIB:.3f} GB",
            say("各步骤数值之和", "sum of their values"),
            plain,
        ),
        row(
            say("显存利用率", "Memory utilisation"),
            _share(rating.utilisation, say, is_recorded=bool(weights and steps)),
            say(
                "组件 / (组件 + 步骤之和)，旧报告的公式",
                "components / (components + sum of steps), as in older reports",
            ),
            plain,
        ),
        row(
            say("权重占峰值", "Weights in the peak"),
            _share(rating.weights_share, say, is_recorded=bool(analysis.peak and weights)),
            say("组件 / 实测峰值", "components / measured peak"),
            _graded("weights_share", grades, say),
        ),
        row(
            say("已说明比例", "Accounted for"),
            _share(rating.accounted_share, say, is_recorded=bool(analysis.parts and weights)),
            say("1 − 未说明 / 加载完成时的峰值", "1 − unaccounted / peak of the loaded model"),
            _graded("accounted_share", grades, say),
        ),
        row(
            say("峰值稳定性", "Peak stability"),
            _share(rating.stability, say, is_recorded=bool(steps)),
            say("步骤平均水平 / 最高水平", "mean / highest level of the steps"),
            _graded("stability", grades, say),
        ),
        row(
            say("每步增长", "Growth a step"),
            say.rate(growth) if growth is not None or not steps else "–",
            say("所有步骤对之间斜率的中位数", "median slope between all pairs of steps"),
            _graded("growth", grades, say),
        ),
    ]
    yield Table(
        columns(
            say("指标", "Figure"),
            f"#{say('数值', 'Value')}",
            say("公式", "Formula"),
            say("评估", "Grade"),
        ),
        tuple(rows),
    )
    yield Heading(3, say("性能评级", "Rating"))
    yield Paragraph(
        text(
            say("总评：", "Overall: "),
            strong(grade_name(rating.overall, say)),
            say("。", ". "),
            say(
                "总评是各项评估的平均；比例达到 90 % 为 A，75 % 为 B，50 % 为 C，其余为 D；"
                "步骤稳定为 A，预热为 B，起伏为 C，泄漏为 D；有泄漏时总评不高于 C；"
                "少于两项时不评级。",
                "It is the mean of the grades. A share of 90 % is an A, 75 % a B, 50 % a C, less a "
                "D; stable steps are an A, warming up a B, unsteady ones a C, a leak a D. With a "
                "leak the whole is no better than C; fewer than two grades make none.",
            ),
        ),
        _TONES.get(rating.overall, "plain"),
    )


def _graded(name: str, grades: dict[str, Grade], say: Words) -> str:
    return grade_name(grades[name], say) if name in grades else "–"


def _share(share: float | None, say: Words, *, is_recorded: bool) -> str:
    """Say a share; what was recorded may still have none, such as of a peak of 0."""
    return "–" if share is None and is_recorded else say.share(share)
