"""The last chapter: what was found, what to do first, and which card to use."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from snapviewer.events.advice import Saving
from snapviewer.events.analysis import Analysis
from snapviewer.events.cards import CARDS, HEADROOM, Card, Fit, fit_of, need_of, smallest
from snapviewer.report.blocks import (
    Block,
    Heading,
    Listing,
    Paragraph,
    Table,
    Text,
    code,
    strong,
    text,
)

from .baseline import against
from .growth import growth_text
from .patterns import failure_text, unaccounted_sentence
from .strategies import advice_title, saving
from .words import GIB, Words, columns, row

_MOST_PRIORITIES = 10
# The least shares of the peak that make a priority high, or medium.
_HIGH, _MEDIUM = 0.2, 0.05


def conclusion(analysis: Analysis, say: Words, baseline: Analysis | None = None) -> Iterator[Block]:
    """Yield the chapter."""
    yield Heading(2, say("结论与建议", "Conclusions"))
    yield Heading(3, say("主要发现", "Main findings"))
    yield Listing(tuple(findings(analysis, say, baseline)), is_ordered=True)
    yield Heading(3, say("优先级建议", "Priorities"))
    yield from _priorities(analysis, say)
    yield Heading(3, say("部署建议", "Deployment"))
    yield from _deployment(analysis, say)


def findings(analysis: Analysis, say: Words, baseline: Analysis | None = None) -> Iterator[Text]:
    """Yield what a reader should know first, in the order of importance."""
    peak = analysis.peak
    if baseline is not None:
        yield text(against(baseline, analysis, say))
    if peak is None:
        yield text(
            say("没有记录加载之后的峰值显存。", "No peak was recorded once something was loaded.")
            if analysis.components_bytes
            else say("没有记录峰值显存。", "No peak was recorded.")
        )
    else:
        yield text(
            say("实测峰值为 ", "The measured peak is "),
            strong(say.size(peak.size_bytes)),
            say("（首次记录于 ", " (first seen at "),
            code(peak.event),
            say("）。", ")."),
        )
    if analysis.failures:
        yield failure_text(analysis.failures[0], say)
    if analysis.steps:
        yield growth_text(analysis, say)
    if analysis.parts and analysis.components_bytes is not None:
        yield unaccounted_sentence(analysis, say)
    total = analysis.components_bytes
    sized = [item for item in analysis.components if item.size_bytes]
    if total and total > 0 and sized:
        largest = max(sized, key=lambda item: item.size_bytes or 0)
        yield text(
            strong(say.component(largest.name)),
            say(
                f"是最大的组件：{say.size(largest.size_bytes)}，"
                f"占全部组件的 {say.share((largest.size_bytes or 0) / total)}。",
                f" is the largest component: {say.size(largest.size_bytes)}, "
                f"{say.share((largest.size_bytes or 0) / total)} of all of them.",
            ),
        )
    if analysis.lost_count:
        lost = say.count(analysis.lost_count, "个事件", "event")
        yield text(
            say(
                f"记录器有 {lost}没能写入（磁盘已满？）。",
                f"The recorder could not write {lost} (a full disk?).",
            )
        )
    if analysis.odd_count and all(odd.kind == "torn-line" for odd in analysis.oddities):
        why = "" if analysis.is_ended else say("：运行可能被终止", ": the run was probably killed")
        yield text(
            say(f"日志有没有写完的行{why}。", f"A line of the log was not written to its end{why}.")
        )
    elif analysis.odd_count:
        oddities = say.count(analysis.odd_count, "处内容", "entry", "entries")
        yield text(
            say(
                f"日志中有 {oddities}不合格式，见附录。",
                f"The log has {oddities} with something that the format does not have: see the "
                "appendix.",
            )
        )
    if analysis.other_count:
        kinds = say.count(
            analysis.other_count, "种未知事件", "kind of unknown event", "kinds of unknown events"
        )
        yield text(say(f"日志中有 {kinds}，见附录。", f"The log has {kinds}: see the appendix."))


def _priorities(analysis: Analysis, say: Words) -> Iterator[Block]:
    shown = analysis.advice[:_MOST_PRIORITIES]
    if not shown:
        yield Paragraph(
            text(
                say(
                    "这些数值没有指出值得做的事。",
                    "These numbers point to nothing that is worth doing.",
                )
                if analysis.peak and (analysis.steps or analysis.components_bytes is not None)
                else say(
                    "没有可依据的数值：请记录组件加载、峰值和步骤事件后再分析。",
                    "There are no numbers to go by: record the loading of components, peaks and "
                    "steps, and analyze again.",
                )
            )
        )
        return
    items = []
    for item in shown:
        is_leak = item.kind == "fix-leak"  # it has no end
        level = _priority(analysis, sys.maxsize if is_leak else item.saved_bytes, say)
        points = f"{advice_title(item, say)} ({saving(item, analysis, say)})"
        # What a leak comes to later is not in the measured peak.
        then = "" if is_leak else _projected(analysis, item, say)
        items.append(say.labelled(level, points, then))
    yield Listing(tuple(items), is_ordered=True)


def _priority(analysis: Analysis, saved_bytes: int, say: Words) -> str:
    whole = analysis.peak.size_bytes if analysis.peak else analysis.components_bytes or 0
    if saved_bytes >= _HIGH * whole:
        return say("高优先级", "High priority")
    if saved_bytes >= _MEDIUM * whole:
        return say("中优先级", "Medium priority")
    return say("低优先级", "Low priority")


def _projected(analysis: Analysis, item: Saving, say: Words) -> str:
    """Say what the peak would be, and the smallest card for it."""
    need = analysis.need
    if analysis.peak is None or need is None:
        return ""
    rest = max(0, analysis.peak.size_bytes - item.saved_bytes)
    on_device = None if need.is_context_assumed else max(0, need.used_bytes - item.saved_bytes)
    card = smallest(need_of(rest, on_device))
    if card is None or card == smallest(need):
        return say(f"，峰值降至 {say.size(rest)}", f": the peak becomes {say.size(rest)}")
    if item.kind == "shard":
        return say(
            f"，每张卡的峰值降至 {say.size(rest)}，可用两张 {card.name}",
            f": the peak of each becomes {say.size(rest)}, which fits on two {card.name}",
        )
    return say(
        f"，峰值降至 {say.size(rest)}，可用 {card.name}",
        f": the peak becomes {say.size(rest)}, which fits on the {card.name}",
    )


def _deployment(analysis: Analysis, say: Words) -> Iterator[Block]:
    need = analysis.need
    if need is None or analysis.peak is None:
        reason = (
            say(
                "日志记录的是进程内存，不是 GPU 上的，不能据此选择 GPU。",
                "The log has the memory of the process, not of a GPU: no card can be chosen by it.",
            )
            if analysis.environment.source == "process"
            else say(
                "没有记录峰值，无法推荐 GPU；请记录 peak_memory。",
                "No peak was recorded, so no card can be recommended; record peak_memory.",
            )
        )
        yield Paragraph(text(reason))
        weights = analysis.components_bytes
        least = smallest(need_of(weights)) if weights else None
        if least and weights and analysis.environment.source == "device":
            yield Paragraph(
                text(
                    say(
                        f"仅各组件就有 {say.size(weights)}，至少需要 {least.name}。",
                        f"The components alone are {say.size(weights)}: it takes a {least.name} at "
                        "least.",
                    )
                )
            )
        return
    headroom = f"{100 * HEADROOM:.0f} %"
    how = (
        say("CUDA 上下文按 0.50 GB 估计", "0.50 GB assumed for CUDA's context")
        if need.is_context_assumed
        else say(
            f"卡上实测占用 {say.size(need.used_bytes)}",
            f"{say.size(need.used_bytes)} in use on the card as measured",
        )
    )
    yield Paragraph(
        text(
            say("需要 ", "Needed: "),
            strong(say.size(need.needed_bytes)),
            say(
                f"：实测峰值 {say.size(analysis.peak.size_bytes)}，{how}，另加 {headroom} 余量。",
                f", which is the measured peak of {say.size(analysis.peak.size_bytes)} ({how}) and "
                f"{headroom} headroom.",
            ),
        )
    )
    best = smallest(need)
    server = smallest(need, (card for card in CARDS if card.is_datacenter))
    names = [card.name for card in dict.fromkeys((best, server)) if card is not None]
    items = [
        say.labelled(say("推荐 GPU", "Recommended GPU"), say(" 或 ", " or ").join(names))
        if names
        else say.labelled(
            say("推荐 GPU", "Recommended GPU"),
            say("没有单张卡足够，需要多卡切分", "no single card is enough; shard over several"),
        )
    ]
    tight = [card.name for card in CARDS if fit_of(card, need) == "tight"]
    if tight:
        items.append(
            say.labelled(
                say("勉强可用（余量不足）", "Just fits, without headroom"), say.listed(tight)
            )
        )
    yield Listing(tuple(items))
    yield Table(
        columns("GPU", f"#{say('可用显存 (GB)', 'Memory (GB)')}", say("是否够用", "Does it fit?")),
        tuple(
            row(card.name, f"{card.memory_bytes / GIB:.1f}", _fit_name(fit_of(card, need), say))
            for card in _around(best)
        ),
    )


def _around(best: Card | None) -> list[Card]:
    """Return the cards around the recommended one, small to large."""
    cards = sorted(CARDS, key=lambda card: card.memory_mib)
    place = cards.index(best) if best in cards else len(cards)
    return cards[max(0, place - 4) : place + 4]


def _fit_name(fit: Fit, say: Words) -> str:
    names: dict[Fit, str] = {
        "fits": say("够用", "yes"),
        "tight": say("勉强，没有余量", "just, without headroom"),
        "too-small": say("不够", "no"),
    }
    return names[fit]
