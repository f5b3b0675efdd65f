"""The section on steps: what their values are, whether memory leaks, and the curve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from snapviewer.events.advice import projected_steps
from snapviewer.events.analysis import Analysis
from snapviewer.events.cards import smallest
from snapviewer.events.rating import LEAKS
from snapviewer.events.steps import ENOUGH_STEPS, Reason, Steps, Verdict
from snapviewer.report import blocks
from snapviewer.report.blocks import strong, text

from .words import GIB, MIB, Words

Point = tuple[float, float]

_MAX_POINTS = 400
_MAX_LINES = 8  # of a chart


def steps_section(analysis: Analysis, say: Words) -> Iterator[blocks.Block]:
    """Yield the section."""
    steps = analysis.steps
    if steps is None:
        zh, en = "没有记录任何步骤的显存（{}）。", "No step recorded its memory ({})."
        yield say.unrecorded("step_N", zh, en)
        return
    values = steps.values
    number = say(f"{len(values):,} 步", f"{len(values):,}")
    if steps.runs > 1:
        number += say(f"，{steps.runs:,} 轮", f" in {steps.runs:,} runs")
    mean, lowest, highest = (
        f"{value / MIB:.1f} MB" if say.compat else say.size(value)
        for value in (sum(values) / len(values), min(values), max(values))
    )
    items = [
        say.labelled(say("步数", "Steps"), number),
        say.labelled(say("数值含义", "Values"), _meaning(steps, say)),
        say.labelled(say("平均", "Mean"), mean),
        say.labelled(say("范围", "Range"), f"{lowest} – {highest}"),
    ]
    if say.compat:
        items.append(
            say.labelled(
                say("总和", "Sum"),
                f"{sum(values) / GIB:.3f} GB",
                say(
                    "（水平值之和不是显存用量，仅供与旧报告对照）",
                    " (the sum of levels is not an amount of memory; only to compare with older "
                    "reports)",
                )
                if steps.meaning == "levels"
                else "",
            )
        )
    items.append(
        say.labelled(
            say("每步增长", "Growth per step"),
            "–" if steps.growth.per_step_bytes is None else say.rate(steps.growth.per_step_bytes),
            say(
                "（稳健斜率：所有步骤对之间斜率的中位数）",
                " (median slope between all pairs of steps)",
            ),
        )
    )
    if steps.without_value:
        missing = f"{steps.without_value:,}"
        items.append(say.labelled(say("没有数值的步骤", "Steps without a value"), missing))
    yield blocks.Listing(tuple(items))
    tone = _TONES.get(steps.growth.verdict, "plain")
    if steps.growth.verdict == "leak-signature" and say.compat:
        tone = "bad"
    yield blocks.Paragraph(growth_text(analysis, say), tone)
    yield from _chart(steps, say)


_TONES: dict[Verdict, blocks.Tone] = {
    "leak": "bad",
    "leak-signature": "warning",
    "leak-between-runs": "bad",
    "unsteady": "warning",
    "stable": "good",
    "falling": "good",
    "warm-up": "good",
}


def _meaning(steps: Steps, say: Words) -> str:
    """Return what the values are, and how that was decided."""
    what = (
        say("水平（高于同一基准的显存）", "levels (memory above one base)")
        if steps.meaning == "levels"
        else say("增量（每步的变化）", "increments (changes from step to step)")
    )
    reasons: dict[Reason, str] = {
        "asked-for": say("按选项指定", "set by the option"),
        "declared": say("记录器如此声明", "according to the recorder"),
        "exceeds-peak": say(
            "若为增量，其和将超过实测峰值", "the sum of increments would exceed the measured peak"
        ),
        "matches-peak": say(
            "其和与实测峰值的上升相符", "their sum is the rise of the measured peak"
        ),
        "smooth": say(
            "相邻步骤之差小于数值本身", "neighbouring steps differ by less than their values"
        ),
        "scattered": say("数值围绕零跳动", "they are on both sides of zero"),
        "by-definition": say(
            "数值本身看不出，按记录器的定义", "the usual meaning; the numbers do not show it"
        ),
        "too-few": say("步骤太少，按记录器的定义", "the usual meaning; too few steps to tell"),
    }
    meaning = say(f"{what}；{reasons[steps.reason]}", f"{what}; {reasons[steps.reason]}")
    mean = sum(steps.values) / len(steps.values)
    is_guess = steps.reason in ("smooth", "by-definition", "too-few")
    if is_guess and steps.growth.verdict not in LEAKS and mean >= MIB:
        meaning += say(
            f"。若其实是每步的变化，则每步增长约 {say.rate(mean)}：请用 --steps increments",
            f". If they are changes, memory grows by about {say.rate(mean)} per step: "
            "use --steps increments",
        )
    return meaning


def growth_text(analysis: Analysis, say: Words) -> blocks.Text:
    """Return how memory moves from step to step."""
    steps = analysis.steps
    if steps is None:
        return say.text("没有记录步骤。", "No steps were recorded.")
    growth = steps.growth
    per_step = say.rate(steps.growth_bytes)
    if growth.verdict == "leak-between-runs":
        return text(
            say("每一轮都比前一轮高约 ", "Each run is about "),
            strong(say.rate(growth.per_run_bytes)),
            say("，这是", " above the run before: "),
            strong(say("显存泄漏", "a memory leak")),
            say("：每轮结束后有显存没有释放。", ". Something is not released when a run ends."),
        )
    if growth.verdict in LEAKS:
        called = (
            say("显存泄漏", "a memory leak")
            if growth.verdict == "leak"
            else say(
                "显存泄漏的特征" if say.compat else "可能的显存泄漏", "this may be a memory leak"
            )
        )
        return text(
            say("显存每步增长 ", "Memory grows by "),
            strong(per_step),
            say("，这是", " per step: "),
            strong(called),
            _unless(analysis, say),
            say("。", ". "),
            _projection(analysis, say),
            _second_half(steps, say),
            _released(steps, say),
            say(
                f"只记录了 {len(steps.levels)} 步，请记录 {ENOUGH_STEPS} 步以上来确认。",
                f" Only {len(steps.levels)} steps were recorded: record {ENOUGH_STEPS} or more to "
                "confirm.",
            )
            if growth.verdict == "leak-signature"
            else "",
        )
    sentences: dict[Verdict, str] = {
        "stable": say(
            f"各步骤的显存稳定（每步变化 {per_step}），没有泄漏的迹象。",
            f"Memory is stable over the steps ({per_step} per step): no sign of a leak.",
        ),
        "falling": say(
            f"显存随步骤下降（每步 {per_step}），没有泄漏的迹象。",
            f"Memory falls from step to step ({per_step} per step): no sign of a leak.",
        ),
        "warm-up": say(
            "显存上升后保持不变：这是预热，不是泄漏。",
            "Memory rises and then stays the same: a warm-up, not a leak.",
        ),
        "unsteady": _unsteady(steps, say),
        "too-few": say(
            "每轮步骤太少（需要至少 3 步），无法判断是否泄漏。",
            "Too few steps to tell whether memory leaks: a run needs at least 3.",
        ),
    }
    return text(sentences[growth.verdict])


def _unless(analysis: Analysis, say: Words) -> str:
    """Return what else the growth may be, if the log has such a thing."""
    if not analysis.has_kv_cache:
        return ""
    return say(
        "，除非是按设计增长的缓存（日志中有 KV 缓存）",
        ", unless a cache grows by design (the log has a KV cache)",
    )


def _second_half(steps: Steps, say: Words) -> str:
    """Return the growth of the second half, if it differs."""
    growth = steps.growth
    late, slope = growth.late_per_step_bytes, growth.per_step_bytes
    if late is None or slope is None or 0.7 * slope <= late <= 1.3 * slope:
        return ""
    rate = say.rate(late)
    return say(f"后半程每步增长 {rate}。", f" In the second half it grows by {rate} per step.")


def _released(steps: Steps, say: Words) -> str:
    """Return whether every run begins as low as the one before."""
    per_run = steps.growth.per_run_bytes
    if per_run is None or abs(per_run) >= MIB or steps.runs < 3:
        return ""
    return say(
        "每轮结束后显存会释放，增长只在一轮之内。",
        " It is released when a run ends: memory grows only within a run.",
    )


def _unsteady(steps: Steps, say: Words) -> str:
    per_step = steps.growth.per_step_bytes or 0.0
    if per_step * steps.longest_run < MIB:
        return say("显存起伏不定，但没有持续增长。", "Memory varies, but does not keep growing.")
    return say(
        f"显存起伏不定，其中每步约有 {say.rate(per_step)} 的增长，"
        "但不足以断定是泄漏：请记录更多步骤。",
        f"Memory varies, with a trend of about {say.rate(per_step)} per step that is within the "
        "noise: record more steps to tell whether it leaks.",
    )


def _projection(analysis: Analysis, say: Words) -> str:
    """Return what a leak comes to after many steps, and when a GPU is full."""
    steps = analysis.steps
    per_step = steps.growth_bytes if steps else None
    if steps is None or not per_step:
        return ""
    count = projected_steps(steps)
    total = say.size(per_step * count)
    projection = say(
        f"照此速度，{count:,} 步会多占 {total}", f"At this rate {count:,} steps take {total} more"
    )
    card = smallest(analysis.need) if analysis.need else None
    if card and analysis.need:
        left = int((card.memory_bytes - analysis.need.used_bytes) / per_step)
        projection += say(
            f"，{card.name} 在约 {left:,} 步后耗尽",
            f", and the {card.name} is full after about {left:,} steps",
        )
    return projection + say("。", ".")


def _chart(steps: Steps, say: Words) -> Iterator[blocks.Block]:
    if len(steps.levels) < 2:
        return
    is_large = max(map(abs, steps.levels)) >= 4 * GIB
    unit = f"{'G' if is_large else 'M'}{'B' if say.compat else 'iB'}"
    size = GIB if is_large else MIB
    runs: dict[int, list[Point]] = {}
    for step, level in zip(steps.steps, steps.levels, strict=True):
        runs.setdefault(step.run, []).append((step.number, level / size))
    shown = list(runs.items())
    if len(shown) > _MAX_LINES:
        shown = [*shown[: _MAX_LINES // 2], *shown[-_MAX_LINES // 2 :]]
    series = [
        blocks.Series(
            say("水平", "level") if steps.runs == 1 else say(f"第 {run + 1} 轮", f"run {run + 1}"),
            _thinned(points),
        )
        for run, points in shown
    ]
    slope = steps.growth.per_step_bytes
    if slope is not None and steps.runs == 1 and steps.growth.verdict in (*LEAKS, "falling"):
        points = runs[0]
        middle = sorted(level - slope / size * number for number, level in points)[len(points) // 2]
        ends = (points[0][0], points[-1][0])
        line = tuple((number, middle + slope / size * number) for number in ends)
        rate = say.rate(slope)
        series.append(
            blocks.Series(say(f"趋势：每步 {rate}", f"trend: {rate} per step"), line, True)
        )
    yield blocks.LineChart(
        say("生成步骤的显存水平", "Memory by step"), say("步骤", "step"), unit, tuple(series)
    )


def comparison_chart(
    names: Sequence[str], analyses: Sequence[Analysis], say: Words
) -> Iterator[blocks.Block]:
    """Yield a chart of the steps of several logs, of their first runs only."""
    series = [
        blocks.Series(
            name,
            _thinned(
                [
                    (step.number, level / MIB)
                    for step, level in zip(steps.steps, steps.levels, strict=True)
                    if step.run == 0
                ]
            ),
        )
        for name, analysis in zip(names, analyses, strict=True)
        if (steps := analysis.steps) and len(steps.levels) > 1
    ]
    if not series:
        return
    title = say("生成步骤的显存水平", "Memory by step")
    if any(analysis.steps and analysis.steps.runs > 1 for analysis in analyses):
        title += say("（各日志的第一轮）", " (the first run of each log)")
    unit = "MB" if say.compat else "MiB"
    yield blocks.LineChart(title, say("步骤", "step"), unit, tuple(series[:_MAX_LINES]))


def _thinned(points: Sequence[Point], max_points: int = _MAX_POINTS) -> tuple[Point, ...]:
    """Keep the first and last point, and the lowest and highest of each stretch in between.

    >>> _thinned([(x, float(x % 7)) for x in range(1000)], 10)[-1]
    (999, 5.0)
    """
    if len(points) <= max_points:
        return tuple(points)
    inner = points[1:-1]
    size = -(-len(inner) // max(1, (max_points - 2) // 2))
    kept = [points[0]]
    for start in range(0, len(inner), size):
        stretch = inner[start : start + size]
        ends = {min(stretch, key=lambda point: point[1]), max(stretch, key=lambda point: point[1])}
        kept += sorted(ends)
    return (*kept, points[-1])
