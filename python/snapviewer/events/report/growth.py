"""What the steps say, in sentences: levels or increments, and whether memory leaks."""

from __future__ import annotations

from snapviewer.events.advice import PROJECTED_STEPS
from snapviewer.events.analysis import Analysis
from snapviewer.events.cards import smallest
from snapviewer.events.document import Paragraph, Text, Tone, strong, text
from snapviewer.events.rating import LEAKS
from snapviewer.events.steps import ENOUGH_STEPS, Reason, Steps, Verdict

from .words import Words


def meaning_sentence(steps: Steps, say: Words) -> str:
    """Say what the values are, and why we think so."""
    what = (
        say("水平（高于同一基准的显存）", "levels (memory above one base)")
        if steps.meaning == "levels"
        else say("增量（每步的变化）", "increments (the change in each step)")
    )
    reasons: dict[Reason, str] = {
        "asked-for": say("按选项指定", "as the option says"),
        "declared": say("记录器如此声明", "as the recorder says"),
        "exceeds-peak": say(
            "若为增量，其和将超过实测峰值", "as increments they would add up to more than the peak"
        ),
        "matches-peak": say(
            "其和与实测峰值的上升相符", "their sum is what the measured peak rose by"
        ),
        "smooth": say(
            "相邻步骤之差小于数值本身", "they change less from step to step than they are large"
        ),
        "scattered": say("数值围绕零跳动", "they jump about zero"),
        "too-few": say("步骤太少，按记录器的定义", "too few to tell, so as recorders define them"),
    }
    return say(f"{what}；{reasons[steps.reason]}", f"{what}; {reasons[steps.reason]}")


def growth_paragraph(analysis: Analysis, say: Words) -> Paragraph:
    """Return the verdict on how memory moves, set apart as it deserves."""
    tones: dict[Verdict, Tone] = {
        "leak": "bad",
        "leak-signature": "bad",
        "unsteady": "warning",
        "stable": "good",
        "falling": "good",
        "warm-up": "good",
    }
    verdict = analysis.steps.growth.verdict if analysis.steps else "too-few"
    return Paragraph(growth_text(analysis, say), tones.get(verdict, "plain"))


def growth_text(analysis: Analysis, say: Words) -> Text:
    """Say how memory moves from step to step."""
    steps = analysis.steps
    if steps is None:
        return text(say("没有记录步骤。", "No steps were recorded."))
    growth = steps.growth
    per_step = say.rate(growth.per_step_bytes)
    if growth.verdict in LEAKS:
        called = (
            say("显存泄漏", "a memory leak")
            if growth.verdict == "leak"
            else say("显存泄漏的特征", "the signature of a memory leak")
        )
        return text(
            say("显存每步增长 ", "Memory grows "),
            strong(per_step),
            say("，这是", " a step: this is "),
            strong(called),
            say("。", ". "),
            _projection(analysis, say),
            say(
                f"只记录了 {len(steps.levels)} 步，请记录 {ENOUGH_STEPS} 步以上来确认。",
                f" Only {len(steps.levels)} steps were recorded; record {ENOUGH_STEPS} or more to "
                "be sure.",
            )
            if growth.verdict == "leak-signature"
            else "",
        )
    sentences: dict[Verdict, str] = {
        "stable": say(
            f"各步骤的显存稳定（每步变化 {per_step}），没有泄漏的迹象。",
            f"Memory is stable over the steps ({per_step} a step): no sign of a leak.",
        ),
        "falling": say(
            f"显存随步骤下降（每步 {per_step}），没有泄漏的迹象。",
            f"Memory falls from step to step ({per_step}): no sign of a leak.",
        ),
        "warm-up": say(
            "显存在最初的步骤上升，之后保持不变：这是预热，不是泄漏。",
            "Memory rises in the first steps and then stays: this is warming up, not a leak.",
        ),
        "unsteady": say(
            f"显存起伏不定（每步 {per_step}），但没有持续增长。",
            f"Memory goes up and down ({per_step} a step), but does not keep growing.",
        ),
        "too-few": say(
            "步骤太少（需要至少 3 步），无法判断是否泄漏。",
            "Too few steps (it takes 3) to tell whether memory leaks.",
        ),
    }
    return text(sentences[growth.verdict])


def _projection(analysis: Analysis, say: Words) -> str:
    """Say what a leak comes to: after many steps, and when a card is full."""
    steps = analysis.steps
    per_step = steps.growth.per_step_bytes if steps else None
    if not per_step:
        return ""
    total = say.size(per_step * PROJECTED_STEPS)
    said = say(
        f"照此速度，{PROJECTED_STEPS} 步会多占 {total}",
        f"At this rate {PROJECTED_STEPS} steps take {total} more",
    )
    card = smallest(analysis.need) if analysis.need else None
    if card and analysis.need:
        left = int((card.memory_bytes - analysis.need.used_bytes) / per_step)
        said += say(
            f"，{card.name} 在约 {left:,} 步后耗尽",
            f", and the {card.name} is full after about {left:,}",
        )
    return said + say("。", ".")
