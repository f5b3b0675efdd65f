"""The last chapter: findings, priorities, and which GPU to use."""

from __future__ import annotations

from collections.abc import Iterator

from snapviewer.events.analysis import Analysis
from snapviewer.events.cards import CARDS, HEADROOM, Card, Fit, Need, fit_of, need_of, smallest
from snapviewer.report import blocks
from snapviewer.report.blocks import code, strong, text

from .advice import priorities
from .comparison import against
from .steps import growth_text
from .usage import failure_text, is_much_unaccounted, unaccounted_text
from .words import GIB, Words, columns, row

_MAX_IN_SUMMARY = 3


def conclusion(
    analysis: Analysis, say: Words, baseline: Analysis | None = None
) -> Iterator[blocks.Block]:
    """Yield the chapter."""
    yield say.heading(2, "结论与建议", "Conclusions")
    yield say.heading(3, "主要发现", "Findings")
    yield blocks.Listing(tuple(findings(analysis, say, baseline)), is_ordered=True)
    yield say.heading(3, "优先级建议", "Priorities")
    if analysis.advice:
        yield blocks.Listing(tuple(priorities(analysis, say)), is_ordered=True)
    elif analysis.peak and (analysis.steps or analysis.components_bytes is not None):
        yield say.paragraph("这些数值没有指出值得做的事。", "No recommendations.")
    else:
        yield say.paragraph(
            "没有可依据的数值：请记录组件加载、峰值和步骤事件后再分析。",
            "No recommendations without numbers: record components, peaks and steps.",
        )
    yield say.heading(3, "部署建议", "Deployment")
    yield from _deployment(analysis, say)


def summary(
    analysis: Analysis, say: Words, baseline: Analysis | None = None
) -> Iterator[blocks.Block]:
    """Yield a screenful: the findings, the first recommendations, and which GPU to use."""
    yield blocks.Listing(tuple(findings(analysis, say, baseline)))
    if analysis.advice:
        yield say.heading(2, "优先级建议", "Recommendations")
        yield blocks.Listing(tuple(priorities(analysis, say))[:_MAX_IN_SUMMARY], is_ordered=True)
    if analysis.need:
        yield blocks.Paragraph(_recommended(analysis.need, say))
    elif analysis.environment.source == "process":
        yield _of_a_process(say)


def findings(
    analysis: Analysis, say: Words, baseline: Analysis | None = None
) -> Iterator[blocks.Text]:
    """Yield the findings, the most important first."""
    if analysis.failures:
        yield failure_text(analysis.failures[0], say)
    if baseline is not None:
        yield text(against(baseline, analysis, say))
    peak = analysis.peak
    if peak is None:
        yield text(
            say("没有记录加载之后的峰值显存。", "No peak was recorded after loading.")
            if analysis.components_bytes
            else say("没有记录峰值显存。", "No peak was recorded.")
        )
    else:
        yield text(
            say("实测峰值为 ", "The measured peak is "),
            strong(say.size(peak.size_bytes)),
            say("（首次记录于 ", " (first at "),
            code(peak.event),
            say("）。", ")."),
        )
    if analysis.steps:
        yield growth_text(analysis, say)
    if is_much_unaccounted(analysis):
        yield unaccounted_text(analysis, say)
    total = analysis.components_bytes
    sizes = [(item.size_bytes, item.name) for item in analysis.components if item.size_bytes]
    if total and len(sizes) > 1:
        size, name = max(sizes, key=lambda item: item[0])
        share = say.share(size / total)
        yield text(
            strong(say.component(name)),
            say(
                f"是最大的组件：{say.size(size)}，占全部组件的 {share}。",
                f" is the largest component: {say.size(size)}, {share} of all components.",
            ),
        )
    if analysis.lost_count:
        lost = say.count(analysis.lost_count, "个事件", "event")
        yield say.text(
            f"记录器有 {lost}没能写入（磁盘已满？）。",
            f"The recorder could not write {lost} (a full disk?).",
        )
    yield from _oddities(analysis, say)


def _oddities(analysis: Analysis, say: Words) -> Iterator[blocks.Text]:
    if analysis.odd_count and all(odd.kind == "torn-line" for odd in analysis.oddities):
        why = "" if analysis.is_ended else say("：运行可能被终止", ": the run was probably killed")
        yield say.text(f"日志有没有写完的行{why}。", f"The log has an incomplete line{why}.")
    elif analysis.odd_count:
        entries = say.count(analysis.odd_count, "处内容", "invalid entry", "invalid entries")
        yield say.text(
            f"日志中有 {entries}不合格式，见附录。", f"The log has {entries}: see the appendix."
        )
    if analysis.other_count:
        kinds = say.count(
            analysis.other_count, "种未知事件", "kind of unknown event", "kinds of unknown events"
        )
        names = [other.name for other in analysis.others[:_MAX_IN_SUMMARY]]
        named = say.listed(names) + (", …" if analysis.other_count > len(names) else "")
        yield say.text(
            f"日志中有 {kinds}，见附录。" if say.compat else f"日志中有 {kinds}：{named}。",
            f"The log has {kinds}: {'see the appendix' if say.compat else named}.",
        )


def _deployment(analysis: Analysis, say: Words) -> Iterator[blocks.Block]:
    need = analysis.need
    if need is None or analysis.peak is None:
        yield from _without_need(analysis, say)
        return
    headroom = f"{100 * HEADROOM:.0f} %"
    context = f"0.50 {'GB' if say.compat else 'GiB'}"
    how = (
        say(f"CUDA 上下文按 {context} 估计", f"{context} assumed for CUDA's context")
        if need.is_context_assumed
        else say(
            f"卡上实测占用 {say.size(need.used_bytes)}",
            f"{say.size(need.used_bytes)} measured in use on the GPU",
        )
    )
    peak = say.size(analysis.peak.size_bytes)
    yield blocks.Paragraph(
        text(
            say("需要 ", "Needed: "),
            strong(say.size(need.needed_bytes)),
            say(
                f"：实测峰值 {peak}，{how}，另加 {headroom} 余量。",
                f", for the measured peak of {peak}, {how}, and {headroom} headroom.",
            ),
        )
    )
    items = [_recommended(need, say)]
    tight = [card.name for card in CARDS if fit_of(card, need) == "tight"]
    if tight:
        label = say("勉强可用（余量不足）", "Fits without headroom")
        items.append(say.labelled(label, say.listed(tight)))
    yield blocks.Listing(tuple(items))
    fits: dict[Fit, str] = {
        "fits": say("够用", "yes"),
        "tight": say("勉强，没有余量", "yes, without headroom"),
        "too-small": say("不够", "no"),
    }
    memory = (
        say("可用显存 (GB)", "Memory (GB)") if say.compat else say("可用显存 (GiB)", "Memory (GiB)")
    )
    yield blocks.Table(
        columns("GPU", f"#{memory}", say("是否够用", "Fits")),
        tuple(
            row(card.name, f"{card.memory_bytes / GIB:.1f}", fits[fit_of(card, need)])
            for card in _around(smallest(need))
        ),
    )


def _recommended(need: Need, say: Words) -> blocks.Text:
    server = smallest(need, (card for card in CARDS if card.is_datacenter))
    cards = [card.name for card in dict.fromkeys((smallest(need), server)) if card is not None]
    return say.labelled(
        say("推荐 GPU", "Recommended GPU"),
        say(" 或 ", " or ").join(cards)
        or say("没有单张卡足够，需要多卡切分", "no single GPU is enough; shard over several"),
    )


def _without_need(analysis: Analysis, say: Words) -> Iterator[blocks.Block]:
    if analysis.environment.source == "process":
        yield _of_a_process(say)
        return
    yield say.paragraph(
        "没有记录峰值，无法推荐 GPU；请记录 peak_memory。",
        "No peak was recorded, so no GPU can be recommended; record peak_memory.",
    )
    weights = analysis.components_bytes
    least = smallest(need_of(weights)) if weights else None
    if least:
        size = say.size(weights)
        yield say.paragraph(
            f"仅各组件就有 {size}，至少需要 {least.name}。",
            f"The components alone take {size}: at least the {least.name} is needed.",
        )


def _of_a_process(say: Words) -> blocks.Block:
    return say.paragraph(
        "日志记录的是进程内存，不是 GPU 上的，不能据此选择 GPU。",
        "The log has the memory of a process, not of a GPU, so no GPU can be recommended.",
    )


def _around(best: Card | None) -> list[Card]:
    """Return the GPUs around the recommended one, small to large."""
    cards = sorted(CARDS, key=lambda card: card.memory_mib)
    place = cards.index(best) if best in cards else len(cards)
    return cards[max(0, place - 4) : place + 4]
