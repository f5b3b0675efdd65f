"""What the steps say, in sentences: levels or increments, and whether memory leaks."""

from __future__ import annotations

from snapviewer.events.advice import projected_steps
from snapviewer.events.analysis import Analysis
from snapviewer.events.cards import smallest
from snapviewer.events.rating import LEAKS
from snapviewer.events.steps import ENOUGH_STEPS, Reason, Steps, Verdict
from snapviewer.report.blocks import Paragraph, Text, Tone, strong, text

from .words import MIB, Words


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
        "by-definition": say(
            "数值本身看不出，按记录器的定义", "the numbers do not tell, so as recorders define them"
        ),
        "too-few": say("步骤太少，按记录器的定义", "too few to tell, so as recorders define them"),
    }
    said = say(f"{what}；{reasons[steps.reason]}", f"{what}; {reasons[steps.reason]}")
    mean = sum(steps.values) / len(steps.values)
    is_guess = steps.reason in ("smooth", "by-definition", "too-few")
    if is_guess and steps.growth.verdict not in LEAKS and mean >= MIB:
        said += say(
            f"。若其实是每步的变化，则每步增长约 {say.rate(mean)}：请用 --steps increments",
            f". If they are changes after all, memory grows about {say.rate(mean)} a step: "
            "use --steps increments",
        )
    return said


def growth_paragraph(analysis: Analysis, say: Words) -> Paragraph:
    """Return the verdict on how memory moves, set apart as it deserves."""
    tones: dict[Verdict, Tone] = {
        "leak": "bad",
        "leak-signature": "bad",
        "leak-between-runs": "bad",
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
    per_step = say.rate(steps.growth_bytes)
    if growth.verdict == "leak-between-runs":
        return text(
            say("每一轮都比前一轮高约 ", "Each run is about "),
            strong(say.rate(growth.per_run_bytes)),
            say("，这是", " above the run before: this is "),
            strong(say("显存泄漏", "a memory leak")),
            say("：每轮结束后有显存没有释放。", ": something is not released when a run ends."),
        )
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
            _unless(analysis, say),
            say("。", ". "),
            _projection(analysis, say),
            _lately(steps, say),
            _released(steps, say),
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
            "显存上升后保持不变：这是预热，不是泄漏。",
            "Memory rises and then stays: this is warming up, not a leak.",
        ),
        "unsteady": _unsteady(steps, say),
        "too-few": say(
            "每轮步骤太少（需要至少 3 步），无法判断是否泄漏。",
            "Too few steps in a run (it takes 3) to tell whether memory leaks.",
        ),
    }
    return text(sentences[growth.verdict])


def _unless(analysis: Analysis, say: Words) -> str:
    """Say what else growth may be, where the log has such a thing."""
    if not analysis.has_kv_cache:
        return ""
    return say(
        "，除非是按设计增长的缓存（日志中有 KV 缓存）",
        ", unless it is a cache that grows by design (the log has a KV cache)",
    )


def _lately(steps: Steps, say: Words) -> str:
    """Say if growth is quicker by now."""
    growth = steps.growth
    late, slope = growth.late_per_step_bytes, growth.per_step_bytes
    if late is None or slope is None or 0.7 * slope <= late <= 1.3 * slope:
        return ""
    return say(
        f"后半程每步增长 {say.rate(late)}。", f" In the second half it is {say.rate(late)} a step."
    )


def _released(steps: Steps, say: Words) -> str:
    """Say if every run begins as low as the one before."""
    per_run = steps.growth.per_run_bytes
    if per_run is None or abs(per_run) >= MIB or steps.runs < 3:
        return ""
    return say(
        "每轮结束后显存会释放，增长只在一轮之内。",
        " It is released when a run ends: memory grows within a run only.",
    )


def _unsteady(steps: Steps, say: Words) -> str:
    per_step = steps.growth.per_step_bytes or 0.0
    if per_step * steps.longest_run < MIB:
        return say(
            "显存起伏不定，但没有持续增长。", "Memory goes up and down, but does not keep growing."
        )
    return say(
        f"显存起伏不定，其中每步约有 {say.rate(per_step)} 的增长，"
        "但不足以断定是泄漏：请记录更多步骤。",
        f"Memory goes up and down, with about {say.rate(per_step)} a step of growth in it; that is "
        "not enough to call it a leak: record more steps.",
    )


def _projection(analysis: Analysis, say: Words) -> str:
    """Say what a leak comes to: after many steps, and when a card is full."""
    steps = analysis.steps
    per_step = steps.growth_bytes if steps else None
    if steps is None or not per_step:
        return ""
    count = projected_steps(steps)
    total = say.size(per_step * count)
    said = say(
        f"照此速度，{count:,} 步会多占 {total}",
        f"At this rate {count:,} steps take {total} more",
    )
    card = smallest(analysis.need) if analysis.need else None
    if card and analysis.need:
        left = int((card.memory_bytes - analysis.need.used_bytes) / per_step)
        said += say(
            f"，{card.name} 在约 {left:,} 步后耗尽",
            f", and the {card.name} is full after about {left:,} steps",
        )
    return said + say("。", ".")
