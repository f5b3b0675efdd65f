"""The patterns of memory use: each component, the stages of inference, what the peak is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from snapviewer.events.analysis import Analysis
from snapviewer.events.gather import Component, Failure, Stage
from snapviewer.events.names import use_of
from snapviewer.events.peaks import Part, Parts
from snapviewer.report.blocks import (
    Bar,
    BarChart,
    Block,
    Heading,
    Listing,
    Paragraph,
    Table,
    Text,
    Tone,
    code,
    strong,
    text,
)

from .usage import share_of, share_title
from .words import Words, columns, row

_MOST_STAGES = 40


def patterns(analysis: Analysis, say: Words) -> Iterator[Block]:
    """Yield the section."""
    yield Heading(3, say("4. 显存使用模式分析", "4. Patterns of memory use"))
    yield from _components(analysis, say)
    yield from _inference(analysis, say)
    yield from _reconciliation(analysis, say)


def _components(analysis: Analysis, say: Words) -> Iterator[Block]:
    yield Heading(4, say("4.1 模型组件分析", "4.1 Model components"))
    recorded = [item for item in analysis.components if item.size_bytes is not None]
    for item in sorted(recorded, key=lambda item: -(item.size_bytes or 0)):
        yield Paragraph(text(strong(f"{say.component(item.name)} ({say.size(item.size_bytes)})")))
        yield Listing(tuple(_about(item, analysis, say)))
    missing = [say.component(item.name) for item in analysis.components if item.size_bytes is None]
    if missing:
        is_hidden = analysis.parts is not None and analysis.parts.unaccounted_bytes > 0
        yield Paragraph(
            text(
                say(f"未记录：{say.listed(missing)}。", f"Not recorded: {say.listed(missing)}."),
                say(
                    "它们的显存（若有）计入未说明部分。",
                    " What they take, if anything, is part of what is unaccounted for.",
                )
                if is_hidden
                else "",
            )
        )


def _about(item: Component, analysis: Analysis, say: Words) -> Iterator[Text]:
    size, total = item.size_bytes or 0, analysis.components_bytes or 0
    if total > 0:
        shares = say(
            f"占全部组件的 {say.share(size / total)}",
            f"{say.share(size / total)} of all components",
        )
        if analysis.peak and analysis.peak.size_bytes:
            part = say.share(size / analysis.peak.size_bytes)
            shares += say(f"，占实测峰值的 {part}", f", {part} of the measured peak")
        yield text(shares)
    if item.load_s is not None:
        yield text(say("加载耗时 ", "loaded in "), say.seconds(item.load_s))
    use = use_of(item.name)
    if use == "encoder":
        yield text(
            say(
                "只在生成开始之前工作：编码完成后即可移出显存，之后的步骤不需要它",
                "works before the first step only: once it has encoded, the steps do without it",
            )
        )
    elif use == "decoder":
        yield text(
            say(
                "只在生成结束时工作：解码前再加载即可，步骤期间不需要占用显存",
                "works after the last step only: it can be loaded when it is time to decode",
            )
        )
    else:
        yield text(
            say("每个步骤都要用到，必须留在显存中", "works in every step, so it has to stay")
        )


def _inference(analysis: Analysis, say: Words) -> Iterator[Block]:
    yield Heading(4, say("4.2 推理阶段分析", "4.2 Inference stages"))
    parts = analysis.parts
    items = []
    if parts and parts.loaded:
        added = parts.generation_bytes
        items.append(
            text(
                say(
                    f"从加载完成到最高点，峰值增加 {say.size(added)}"
                    f"（{say.size(parts.loaded.size_bytes)} → {say.size(parts.peak.size_bytes)}）",
                    f"from the loaded model to the highest point the peak rises by "
                    f"{say.size(added)} ({say.size(parts.loaded.size_bytes)} → "
                    f"{say.size(parts.peak.size_bytes)})",
                )
            )
        )
    if analysis.steps:
        items.append(
            text(
                say("步骤的最高水平比基准高 ", "the highest step is above its base by "),
                say.size(analysis.steps.highest_bytes),
            )
        )
    device, own = analysis.device_peak_bytes, analysis.pytorch_peak_bytes
    if device is not None and own is not None:
        items.append(
            text(
                say(
                    f"CUDA 运行时峰值 {say.size(device)}，PyTorch 峰值 {say.size(own)}："
                    f"PyTorch 之外占用 {say.size(max(0, device - own))}",
                    f"peak of the CUDA runtime {say.size(device)}, of PyTorch {say.size(own)}: "
                    f"{say.size(max(0, device - own))} outside of PyTorch",
                )
            )
        )
    for failure in analysis.failures[:5]:
        items.append(failure_text(failure, say))
    if items:
        yield Listing(tuple(items))
    elif not analysis.stages:
        yield Paragraph(
            text(say("没有记录推理阶段的显存。", "No memory of inference was recorded."))
        )
    if analysis.stages:
        yield _stage_table(analysis.stages[:_MOST_STAGES], say)
        rest = len(analysis.stages) - _MOST_STAGES
        if rest > 0:
            yield Paragraph(text(say(f"……另有 {rest:,} 个阶段。", f"… and {rest:,} more.")))


def _stage_table(stages: Sequence[Stage], say: Words) -> Table:
    """Return a table without the columns that nothing was recorded for."""
    titles = [say("阶段", "Stage"), f"#{say('次数', 'Times')}", f"#{say('耗时', 'Time')}"]
    has_added = any(stage.incremental_bytes is not None for stage in stages)
    has_peak = any(stage.peak_bytes is not None for stage in stages)
    titles += [f"#{say('增量', 'Added')}"] if has_added else []
    titles += [f"#{say('峰值', 'Peak')}"] if has_peak else []
    rows = []
    for stage in stages:
        cells = [say.stage(stage.name), f"{stage.times:,}", say.seconds(stage.duration_s)]
        cells += [say.size(stage.incremental_bytes)] if has_added else []
        cells += [say.size(stage.peak_bytes)] if has_peak else []
        rows.append(row(*cells))
    return Table(columns(*titles), tuple(rows))


def failure_text(failure: Failure, say: Words) -> Text:
    """Say how a run failed."""
    about = f" ({failure.about})" if failure.about else ""
    if failure.is_recovered:
        said = say(
            "较早的一次运行失败，之后的运行正常结束：", "A run failed before one ended well: "
        )
    else:
        said = say("运行以失败结束：", "The run failed: ")
    return text(said, code(failure.event), about)


def part_name(part: Part, say: Words) -> str:
    """Name a part of the peak."""
    if part.kind == "component":
        return say.component(part.subject)
    if part.kind == "kv-cache":
        owner = f"{say.component(part.subject)} " if part.subject else ""
        return f"{owner}{say('KV 缓存', 'KV cache')}"
    if part.kind == "unaccounted" and part.size_bytes < 0:
        return say("重叠：组件之和超过实测值", "overlap: the parts are more than was measured")
    names = {
        "initial": say("初始化之前已占用", "there before anything was loaded"),
        "unaccounted": say("未说明", "unaccounted for"),
        "steps": say("步骤（最高水平）", "steps (highest level)"),
        "generation": say("生成阶段其他（激活、临时）", "other, while generating"),
    }
    return names[part.kind]


def _reconciliation(analysis: Analysis, say: Words) -> Iterator[Block]:
    yield Heading(4, say("4.3 峰值对账", "4.3 What the peak is made of"))
    parts = analysis.parts
    if parts is None:
        yield Paragraph(
            text(
                say("没有记录任何峰值（", "No peak was recorded ("),
                code("peak_memory"),
                say("），无法对账。", "), so there is nothing to reconcile with."),
            )
        )
        return
    whole = parts.peak.size_bytes
    rows = [
        row(
            part_name(part, say),
            say.number(part.size_bytes),
            share_of(part.size_bytes, whole, say),
        )
        for part in parts.parts
    ]
    title = say("实测峰值", "Measured peak")
    rows.append(
        row(
            text(strong(title), " ", code(parts.peak.event)),
            strong(say.number(whole)),
            strong("100.0 %" if whole else "–"),
        )
    )
    yield Table(
        columns(say("组成", "Part"), f"#{say('显存', 'Memory')} ({say.unit})", share_title(say)),
        tuple(rows),
        has_total=True,
    )
    if parts.unaccounted_bytes >= 0:  # bars that overlap would not add up
        yield _parts_chart(parts, say)
    yield Paragraph(unaccounted_sentence(analysis, say), unaccounted_tone(analysis))


def _parts_chart(parts: Parts, say: Words) -> BarChart:
    whole = parts.peak.size_bytes
    return BarChart(
        say("峰值的组成", "Parts of the peak"),
        say.unit,
        tuple(
            Bar(
                part_name(part, say),
                say.scaled(part.size_bytes),
                f"{say.size(part.size_bytes)} · {share_of(part.size_bytes, whole, say)}",
                "warning" if part.kind == "unaccounted" else "plain",
            )
            for part in parts.parts[:40]
            if part.size_bytes > 0
        ),
    )


def unaccounted_tone(analysis: Analysis) -> Tone:
    """Tell how bad it is that something is unaccounted for."""
    share = analysis.rating.accounted_share
    return "plain" if share is None else "good" if share >= 0.95 else "warning"


def unaccounted_sentence(analysis: Analysis, say: Words) -> Text:
    """Say what of the peak no event explains, and what it may be."""
    parts = analysis.parts
    if parts is None:
        return text()
    size, compared = parts.unaccounted_bytes, parts.compared_bytes
    where = parts.loaded.event if parts.loaded else parts.peak.event
    if size < 0 and say.language == "zh":
        return text(
            "各部分之和比 ",
            code(where),
            f" 的实测值（{say.size(compared)}）多出 ",
            strong(say.size(-size)),
            "：它们没有同时在显存中（例如被卸载），或被重复记录。",
        )
    if size < 0:
        return text(
            "The parts add up to ",
            strong(say.size(-size)),
            " more than ",
            code(where),
            f" measured ({say.size(compared)}): they were not there at the same time (offloaded, "
            "say), or something was recorded twice.",
        )
    if analysis.components_bytes is None:
        return text(
            say(
                "没有记录任何组件，因此峰值无法拆分。",
                "No component was recorded, so the peak cannot be taken apart.",
            )
        )
    if not size:
        return text(
            code(where),
            say(
                f" 时实测 {say.size(compared)}，全部有事件说明，账目相符。",
                f" measured {say.size(compared)}, all of which is accounted for.",
            ),
        )
    return text(
        code(where),
        say(f" 时实测 {say.size(compared)}，其中 ", f" measured {say.size(compared)}, of which "),
        strong(f"{say.size(size)} ({say.share(size / compared)})"),
        say(
            " 没有任何事件说明。可能的来源：加载时的临时副本（如类型转换）、没有记录的组件、"
            "缓存分配器保留的显存。",
            " are unaccounted for. It may be temporary copies while loading (a conversion of "
            "types, say), components without an event, or memory that the allocator keeps.",
        ),
    )
