"""The chapter on memory usage: loaded components, peaks, steps, and the parts of the peak."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from snapviewer.events.advice import MIN_SHARE
from snapviewer.events.analysis import Analysis
from snapviewer.events.gather import Component, Failure, Stage
from snapviewer.events.names import OTHER_COMPONENTS, use_of
from snapviewer.events.peaks import Part
from snapviewer.report import blocks
from snapviewer.report.blocks import code, strong, text

from .steps import steps_section
from .words import Words, columns, row

_MAX_STAGES = 40
_MAX_BARS = 40


def usage(analysis: Analysis, say: Words) -> Iterator[blocks.Block]:
    """Yield the chapter."""
    sections = (
        (3, "1. 模型加载阶段显存消耗", "1. Loaded components", _loading),
        (3, "2. 关键阶段显存峰值", "2. Peaks by phase", _phases),
        (3, "3. 生成步骤显存变化", "3. Memory over the steps", steps_section),
        (3, "4. 显存使用模式分析", "4. Usage patterns", None),
        (4, "4.1 模型组件分析", "4.1 Components", _components),
        (4, "4.2 推理阶段分析", "4.2 Inference", _inference),
        (4, "4.3 峰值对账", "4.3 Parts of the peak", _peak_parts),
    )
    yield say.heading(2, "显存使用分析", "Memory usage")
    for level, zh, en, section in sections:
        yield say.heading(level, zh, en)
        yield from section(analysis, say) if section else ()


def _size_table(
    titles: tuple[str, str],
    sizes: Sequence[tuple[str, int | None]],
    total: tuple[blocks.Text, int | None],
    say: Words,
) -> blocks.Table:
    """Return a table of names, sizes and shares of a total, which is the last row."""
    total_name, whole = total
    share = "100.0 %" if whole else say.missing if whole is None else "–"
    rows = [row(name, say.number(size), say.share_of(size, whole)) for name, size in sizes]
    rows.append(row(total_name, strong(say.number(whole)), strong(share)))
    titled = columns(titles[0], f"#{titles[1]} ({say.unit})", f"#{say('占比', 'Share')}")
    return blocks.Table(titled, tuple(rows), has_total=True)


def _size_chart(
    title: str, bars: Sequence[tuple[str, int, str, blocks.Tone]], say: Words
) -> blocks.BarChart:
    """Return a chart of labels, sizes, notes and tones."""
    shown = [blocks.Bar(label, say.scaled(size), note, tone) for label, size, note, tone in bars]
    return blocks.BarChart(title, say.unit, tuple(shown[:_MAX_BARS]))


def _loading(analysis: Analysis, say: Words) -> Iterator[blocks.Block]:
    total = analysis.components_bytes
    if not analysis.components:
        yield say.paragraph("没有记录任何模型组件。", "No component was recorded.")
        return
    named = [(say.component(item.name), item.size_bytes) for item in analysis.components]
    titles = (say("组件", "Component"), say("显存消耗", "Memory"))
    yield _size_table(titles, named, (text(strong(say("总计", "Total"))), total), say)
    repeated = say.listed(
        [
            f"{say.component(item.name)} ×{item.times}"
            for item in analysis.components
            if item.times > 1 and item.name != OTHER_COMPONENTS
        ]
    )
    if repeated:
        yield say.paragraph(
            f"多次加载的组件按其最大值计算：{repeated}。",
            f"Loaded several times, and counted once with the largest size: {repeated}.",
        )
    bars: list[tuple[str, int, str, blocks.Tone]] = [
        (name, size, f"{say.size(size)} · {say.share_of(size, total)}", "plain")
        for name, size in named
        if size is not None and size > 0
    ]
    if bars:
        yield _size_chart(say("各组件显存", "Memory by component"), bars, say)


def _phases(analysis: Analysis, say: Words) -> Iterator[blocks.Block]:
    descriptions = {
        "init": say("加载之前", "before loading"),
        "model_loaded": say("所有模型组件加载完毕", "all components are loaded"),
        "forward_pass": say("推理计算阶段", "inference begins"),
        "generation": say("生成开始之后实测的最高值", "highest since generation began"),
        "after_decode": say("解码完成", "decoding is done"),
        "inference_end": say("推理结束时的最高水位", "high-water mark at the end of inference"),
        "total_generation": say("整个生成过程", "whole generation"),
    }
    yield blocks.Table(
        columns(
            say("阶段", "Phase"),
            f"#{say('峰值显存', 'Peak')} ({say.unit})",
            say("说明", "Description"),
        ),
        tuple(
            row(
                say.phase(phase.name),
                say.number(phase.peak_bytes),
                descriptions[phase.name] + (f" (×{phase.times})" if phase.times > 1 else ""),
            )
            for phase in analysis.phases
        ),
    )
    highest = analysis.peak.size_bytes if analysis.peak else None
    bars: list[tuple[str, int, str, blocks.Tone]] = [
        (say.phase(phase.name), peak, say.size(peak), "warning" if peak == highest else "plain")
        for phase in analysis.phases
        if (peak := phase.peak_bytes) is not None
    ]
    if bars:
        yield _size_chart(say("各阶段峰值", "Peaks by phase"), bars, say)


def _components(analysis: Analysis, say: Words) -> Iterator[blocks.Block]:
    recorded = [item for item in analysis.components if item.size_bytes is not None]
    for item in sorted(recorded, key=lambda item: -(item.size_bytes or 0)):
        yield blocks.Paragraph(
            text(strong(f"{say.component(item.name)} ({say.size(item.size_bytes)})"))
        )
        yield blocks.Listing(tuple(_about(item, analysis, say)))
    missing = [say.component(item.name) for item in analysis.components if item.size_bytes is None]
    if missing:
        names = say.listed(missing)
        zh, en = f"未记录：{names}。", f"Not recorded: {names}."
        if analysis.parts is not None and analysis.parts.unaccounted_bytes > 0:
            zh += "它们的显存（若有）计入未说明部分。"
            en += " Their memory, if any, counts as unaccounted for."
        yield say.paragraph(zh, en)


def _about(item: Component, analysis: Analysis, say: Words) -> Iterator[blocks.Text]:
    size, total = item.size_bytes or 0, analysis.components_bytes or 0
    if total > 0:
        share = say.share(size / total)
        shares = say(f"占全部组件的 {share}", f"{share} of all components")
        if analysis.peak and analysis.peak.size_bytes:
            share = say.share(size / analysis.peak.size_bytes)
            shares += say(f"，占实测峰值的 {share}", f", {share} of the measured peak")
        yield text(shares)
    if item.load_s is not None:
        yield text(say("加载耗时 ", "loaded in "), say.seconds(item.load_s))
    uses = {
        "encoder": say(
            "只在生成开始之前工作：编码完成后即可移出显存，之后的步骤不需要它",
            "used only before the first step, and not needed in memory after that",
        ),
        "decoder": say(
            "只在生成结束时工作：解码前再加载即可，步骤期间不需要占用显存",
            "used only after the last step, and not needed in memory before that",
        ),
        "core": say("每个步骤都要用到，必须留在显存中", "used in every step"),
    }
    yield text(uses[use_of(item.name)])


def _inference(analysis: Analysis, say: Words) -> Iterator[blocks.Block]:
    parts = analysis.parts
    items = []
    if parts and parts.loaded:
        added = say.size(parts.generation_bytes)
        between = f"{say.size(parts.loaded.size_bytes)} → {say.size(parts.peak.size_bytes)}"
        items.append(
            say.text(
                f"从加载完成到最高点，峰值增加 {added}（{between}）",
                f"the peak rises by {added} after the model is loaded ({between})",
            )
        )
    if analysis.steps:
        highest = say.size(analysis.steps.highest_bytes)
        items.append(
            say.text(
                f"步骤的最高水平比基准高 {highest}",
                f"the highest step is {highest} above the base",
            )
        )
    device, own = analysis.device_peak_bytes, analysis.pytorch_peak_bytes
    if device is not None and own is not None:
        outside = say.size(max(0, device - own))
        items.append(
            say.text(
                f"CUDA 运行时峰值 {say.size(device)}，PyTorch 峰值 {say.size(own)}："
                f"PyTorch 之外占用 {outside}",
                f"peak on the device {say.size(device)}, of PyTorch {say.size(own)}: "
                f"{outside} outside PyTorch",
            )
        )
    items += [failure_text(failure, say) for failure in analysis.failures[:5]]
    if items:
        yield blocks.Listing(tuple(items))
    elif not analysis.stages:
        yield say.paragraph("没有记录推理阶段的显存。", "No memory of inference was recorded.")
    if analysis.stages:
        yield _stage_table(analysis.stages[:_MAX_STAGES], say)
        yield from say.more(len(analysis.stages) - _MAX_STAGES)


def _stage_table(stages: Sequence[Stage], say: Words) -> blocks.Table:
    """Return a table without the columns that have no values."""
    titles = [say("阶段", "Stage"), f"#{say('次数', 'Count')}", f"#{say('耗时', 'Time')}"]
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
    return blocks.Table(columns(*titles), tuple(rows))


def failure_text(failure: Failure, say: Words) -> blocks.Text:
    """Return how a run failed."""
    about = f" ({failure.about})" if failure.about else ""
    if failure.is_recovered:
        zh, en = (
            "较早的一次运行失败，之后的运行正常结束：",
            "An earlier run failed, a later one ended well: ",
        )
    else:
        zh, en = "运行以失败结束：", "The run failed: "
    return text(say(zh, en), code(failure.event), about)


def _part_name(part: Part, say: Words) -> str:
    if part.kind == "component":
        return say.component(part.subject)
    if part.kind == "kv-cache":
        owner = f"{say.component(part.subject)} " if part.subject else ""
        return f"{owner}{say('KV 缓存', 'KV cache')}"
    if part.kind == "unaccounted" and part.size_bytes < 0:
        return say("重叠：组件之和超过实测值", "overlap: the parts exceed what was measured")
    names = {
        "initial": say("初始化之前已占用", "in use before loading"),
        "unaccounted": say("未说明", "unaccounted for"),
        "steps": say("步骤（最高水平）", "steps (highest level)"),
        "generation": say("生成阶段其他（激活、临时）", "other, while generating"),
    }
    return names[part.kind]


def _peak_parts(analysis: Analysis, say: Words) -> Iterator[blocks.Block]:
    parts = analysis.parts
    if parts is None:
        yield say.unrecorded(
            "peak_memory", "没有记录任何峰值（{}），无法对账。", "No peak was recorded ({})."
        )
        return
    whole = parts.peak.size_bytes
    named = [(_part_name(part, say), part.size_bytes) for part in parts.parts]
    titles = (say("组成", "Part"), say("显存", "Memory"))
    total = text(strong(say("实测峰值", "Measured peak")), " ", code(parts.peak.event))
    yield _size_table(titles, named, (total, whole), say)
    if parts.unaccounted_bytes >= 0:  # bars that overlap would not add up
        bars: list[tuple[str, int, str, blocks.Tone]] = [
            (
                _part_name(part, say),
                part.size_bytes,
                f"{say.size(part.size_bytes)} · {say.share_of(part.size_bytes, whole)}",
                "warning" if part.kind == "unaccounted" else "plain",
            )
            for part in parts.parts
            if part.size_bytes > 0
        ]
        yield _size_chart(say("峰值的组成", "Parts of the peak"), bars, say)
    share = analysis.rating.accounted_share
    tone: blocks.Tone = "plain" if share is None else "good" if share >= 0.95 else "warning"
    yield blocks.Paragraph(unaccounted_text(analysis, say), tone)


def is_much_unaccounted(analysis: Analysis) -> bool:
    """Return whether what no event explains, or what parts overlap, is worth mentioning."""
    parts = analysis.parts
    if parts is None or analysis.components_bytes is None:
        return False
    return abs(parts.unaccounted_bytes) >= MIN_SHARE * max(1, parts.compared_bytes)


def unaccounted_text(analysis: Analysis, say: Words) -> blocks.Text:
    """Return how much of the peak no event explains, and what it may be."""
    parts = analysis.parts
    if parts is None:
        return ()
    size, compared = parts.unaccounted_bytes, say.size(parts.compared_bytes)
    where = code((parts.loaded or parts.peak).event)
    if size < 0:
        excess = strong(say.size(-size))
        zh: list[str | blocks.Span] = [
            "各部分之和比 ",
            where,
            f" 的实测值（{compared}）多出 ",
            excess,
            "：它们没有同时在显存中（例如被卸载），或被重复记录。",
        ]
        en: list[str | blocks.Span] = [
            "The parts exceed the ",
            compared,
            " measured at ",
            where,
            " by ",
            excess,
            ": they were not in memory at the same time (offloaded, for example), or were "
            "recorded twice.",
        ]
        return text(*(zh if say.language == "zh" else en))
    if analysis.components_bytes is None:
        return say.text(
            "没有记录任何组件，因此峰值无法拆分。",
            "No component was recorded, so the peak cannot be split into parts.",
        )
    at = say(f" 时实测 {compared}，", f" measured {compared}")
    if not is_much_unaccounted(analysis):
        rest = say.size(size)
        return text(
            where,
            at,
            say(
                f"除 {rest} 外都有事件说明，账目相符。" if size else "全部有事件说明，账目相符。",
                f", all but {rest} of it accounted for." if size else ", all of it accounted for.",
            ),
        )
    return text(
        where,
        at,
        say("其中 ", ", of which "),
        strong(f"{say.size(size)} ({say.share(size / parts.compared_bytes)})"),
        say(
            " 没有任何事件说明。可能的来源：加载时的临时副本（如类型转换）、没有记录的组件、"
            "缓存分配器保留的显存。",
            " is unaccounted for: temporary copies while loading (a dtype conversion, for "
            "example), components without an event, or memory that the allocator caches.",
        ),
    )
