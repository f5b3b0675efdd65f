"""The chapter on memory usage: what was loaded, the peaks of the phases, the steps."""

from __future__ import annotations

from collections.abc import Iterator

from snapviewer.events.analysis import Analysis
from snapviewer.events.names import OTHER_COMPONENTS
from snapviewer.events.rating import LEAKS
from snapviewer.report.blocks import (
    Bar,
    BarChart,
    Block,
    Heading,
    LineChart,
    Listing,
    Paragraph,
    Series,
    Table,
    code,
    strong,
    text,
)

from .growth import growth_paragraph, meaning_sentence
from .points import thinned
from .words import GIB, MIB, Words, columns, row


def usage(analysis: Analysis, say: Words) -> Iterator[Block]:
    """Yield the chapter."""
    yield Heading(2, say("显存使用分析", "Memory usage"))
    yield from _loading(analysis, say)
    yield from _phases(analysis, say)
    yield from _steps(analysis, say)


def _loading(analysis: Analysis, say: Words) -> Iterator[Block]:
    yield Heading(3, say("1. 模型加载阶段显存消耗", "1. Memory of the loaded model"))
    total = analysis.components_bytes
    if not analysis.components:
        yield Paragraph(text(say("没有记录任何模型组件。", "No component was recorded.")))
        return
    rows = [
        row(
            say.component(item.name),
            say.number(item.size_bytes),
            share_of(item.size_bytes, total, say),
        )
        for item in analysis.components
    ]
    rows.append(
        row(
            strong(say("总计", "Total")),
            strong(say.number(total)),
            strong("100.0 %" if total else say.missing if total is None else "–"),
        )
    )
    yield Table(
        columns(
            say("组件", "Component"), f"#{say('显存消耗', 'Memory')} ({say.unit})", share_title(say)
        ),
        tuple(rows),
        has_total=True,
    )
    repeated = [
        item for item in analysis.components if item.times > 1 and item.name != OTHER_COMPONENTS
    ]
    if repeated:
        names = say.listed([f"{say.component(item.name)} ×{item.times}" for item in repeated])
        yield Paragraph(
            text(
                say(
                    f"多次加载的组件按其最大值计算：{names}。",
                    f"Loaded several times, and counted once with the largest value: {names}.",
                )
            )
        )
    bars = [
        Bar(
            say.component(item.name),
            say.scaled(item.size_bytes),
            f"{say.size(item.size_bytes)} · {share_of(item.size_bytes, total, say)}",
        )
        for item in analysis.components
        if item.size_bytes is not None and item.size_bytes > 0
    ]
    if bars:
        yield BarChart(say("各组件显存", "Memory of the components"), say.unit, tuple(bars))


def share_title(say: Words) -> str:
    """Return the title of a column of shares."""
    return f"#{say('占比', 'Share')}"


def share_of(part: int | None, whole: int | None, say: Words) -> str:
    """Say a part of a whole."""
    if part is None:
        return say.missing
    if not whole or not 0 <= part <= whole:
        return "–"
    return say.share(part / whole)


def _phases(analysis: Analysis, say: Words) -> Iterator[Block]:
    yield Heading(3, say("2. 关键阶段显存峰值", "2. Peaks of the key phases"))
    known = {
        "init": say("加载之前", "before anything was loaded"),
        "model_loaded": say("所有模型组件加载完毕", "all components are loaded"),
        "forward_pass": say("推理计算阶段", "inference begins to compute"),
        "generation": say(
            "生成开始之后实测的最高值", "the highest measured since generation began"
        ),
        "after_decode": say("解码完成", "decoding is done"),
        "inference_end": say("推理结束时的最高水位", "the high-water mark when inference ended"),
        "total_generation": say("整个生成过程", "all of the generation"),
    }
    rows = []
    for phase in analysis.phases:
        more = f" (×{phase.times})" if phase.times > 1 else ""
        rows.append(
            row(say.phase(phase.name), say.number(phase.peak_bytes), f"{known[phase.name]}{more}")
        )
    yield Table(
        columns(
            say("阶段", "Phase"),
            f"#{say('峰值显存', 'Peak')} ({say.unit})",
            say("说明", "What it is"),
        ),
        tuple(rows),
    )
    peak = analysis.peak
    bars = tuple(
        Bar(
            say.phase(phase.name),
            say.scaled(phase.peak_bytes),
            say.size(phase.peak_bytes),
            "warning" if peak and phase.peak_bytes == peak.size_bytes else "plain",
        )
        for phase in analysis.phases
        if phase.peak_bytes is not None
    )
    if bars:
        yield BarChart(say("各阶段峰值", "Peaks of the phases"), say.unit, bars)


def _steps(analysis: Analysis, say: Words) -> Iterator[Block]:
    yield Heading(3, say("3. 生成步骤显存变化", "3. Memory over the generation steps"))
    steps = analysis.steps
    if steps is None:
        yield Paragraph(
            text(
                say("没有记录任何步骤的显存（", "No step recorded its memory ("),
                code("step_N"),
                say("）。", ")."),
            )
        )
        return
    values = steps.values
    mean = sum(values) / len(values)
    is_levels = steps.meaning == "levels"
    number = say.count(len(values), "步", "step")
    if steps.runs > 1:
        number += say(f"，{steps.runs:,} 轮", f" in {steps.runs:,} runs")
    items = [
        say.labelled(say("步数", "Steps"), number),
        say.labelled(say("数值含义", "What the values are"), meaning_sentence(steps, say)),
        say.labelled(say("平均", "Average"), f"{mean / MIB:.1f} MB"),
        say.labelled(
            say("范围", "Range"), f"{min(values) / MIB:.1f} MB – {max(values) / MIB:.1f} MB"
        ),
        say.labelled(
            say("总和", "Sum"),
            f"{sum(values) / GIB:.3f} GB",
            say(
                "（水平值之和不是显存用量，仅供与旧报告对照）",
                " (a sum of levels is no memory; for comparison with older reports)",
            )
            if is_levels
            else "",
        ),
        say.labelled(
            say("每步增长", "Growth a step"),
            "–" if steps.growth.per_step_bytes is None else say.rate(steps.growth.per_step_bytes),
            say(
                "（稳健斜率：所有步骤对之间斜率的中位数）",
                " (a robust slope: the median of the slopes between all pairs)",
            ),
        ),
    ]
    if steps.without_value:
        items.append(
            say.labelled(say("没有数值的步骤", "Steps without a value"), f"{steps.without_value:,}")
        )
    yield Listing(tuple(items))
    yield growth_paragraph(analysis, say)
    yield from _step_chart(analysis, say)


def _step_chart(analysis: Analysis, say: Words) -> Iterator[Block]:
    steps = analysis.steps
    if steps is None or len(steps.levels) < 2:
        return
    series = []
    unit, size = ("GB", GIB) if max(map(abs, steps.levels)) >= 4 * GIB else ("MB", MIB)
    runs: dict[int, list[tuple[float, float]]] = {}
    for step, level in zip(steps.steps, steps.levels, strict=True):
        runs.setdefault(step.run, []).append((step.number, level / size))
    shown = list(runs.items())
    if len(shown) > 8:  # more lines than anybody can tell apart
        shown = [*shown[:4], *shown[-4:]]
    for run, points in shown:
        name = (
            say("水平", "level") if steps.runs == 1 else say(f"第 {run + 1} 轮", f"run {run + 1}")
        )
        series.append(Series(name, thinned(points)))
    slope = steps.growth.per_step_bytes
    if slope is not None and steps.runs == 1 and steps.growth.verdict in (*LEAKS, "falling"):
        points = runs[0]
        middle = sorted(level - slope / size * number for number, level in points)[len(points) // 2]
        ends = (points[0][0], points[-1][0])
        line = tuple((number, middle + slope / size * number) for number in ends)
        series.append(
            Series(
                say(f"趋势：每步 {say.rate(slope)}", f"trend: {say.rate(slope)} a step"), line, True
            )
        )
    yield LineChart(
        say("生成步骤的显存水平", "Memory level of the steps"),
        say("步骤", "step"),
        unit,
        tuple(series),
    )
