"""Runs against each other: the figures of several logs side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from snapviewer.events.analysis import Analysis
from snapviewer.events.cards import smallest
from snapviewer.events.figures import FigureKey, common_keys, figures_of
from snapviewer.events.rating import LEAKS
from snapviewer.report.blocks import (
    Bar,
    BarChart,
    Block,
    Document,
    Heading,
    Language,
    LineChart,
    Listing,
    Paragraph,
    Series,
    Table,
    Text,
    code,
    strong,
    text,
)

from .growth import growth_text
from .points import thinned
from .words import MIB, Words, columns, row, words_for

# More columns than these are not read side by side.
_MOST_COLUMNS = 6
_MOST_ROWS = 60


def against_baseline(baseline: Analysis, analysis: Analysis, say: Words) -> Iterator[Block]:
    """Yield how a run compares with a baseline."""
    yield Heading(3, say("与基线对比", "Against the baseline"))
    yield Paragraph(
        text(
            say("基线：", "Baseline: "),
            code(baseline.path),
            say("。", ". "),
            against(baseline, analysis, say),
        )
    )
    before, after = figures_of(baseline), figures_of(analysis)
    keys = common_keys([before, after])
    yield Table(
        columns(
            say("指标", "Figure"),
            f"#{say('基线', 'Baseline')}",
            f"#{say('本次', 'This run')}",
            f"#{say('变化', 'Change')}",
        ),
        tuple(
            row(
                say.figure(key),
                say.value(key, before.get(key)),
                say.value(key, after.get(key)),
                _change(key, before.get(key), after.get(key), say),
            )
            for key in keys[:_MOST_ROWS]
        ),
    )
    yield from _left_off(len(keys) - _MOST_ROWS, say)


def _left_off(count: int, say: Words) -> Iterator[Block]:
    if count > 0:
        yield Paragraph(text(say(f"……另有 {count:,} 项。", f"… and {count:,} more.")))


def against(baseline: Analysis, analysis: Analysis, say: Words) -> str:
    """Say in a sentence how the peak of a run compares with that of a baseline."""
    if baseline.peak is None or analysis.peak is None:
        return say(
            "其中之一没有记录峰值，无法比较。",
            "One of the two has no peak, so they cannot be compared.",
        )
    before, after = baseline.peak.size_bytes, analysis.peak.size_bytes
    if before == after:
        return say("峰值与基线相同。", "The peak is that of the baseline.")
    share = _share(after - before, before) if before else ""
    changed = say.change(after - before)
    return say(
        f"与基线相比，峰值变化 {changed}{share}。",
        f"Against the baseline the peak changed by {changed}{share}.",
    )


def _change(key: FigureKey, before: float | None, after: float | None, say: Words) -> str:
    if before is None or after is None:
        return "–"
    difference = after - before
    if difference == 0:
        return "±0"
    sign = "+" if difference > 0 else "−"
    share = _share(difference, before) if before else ""
    return f"{sign}{say.value(key, abs(difference))}{share}"


def _share(difference: float, before: float) -> str:
    """Say a difference as a share of what was there before, with the minus of all other numbers."""
    if abs(difference) >= 10 * abs(before):  # from nearly nothing: millions of per cent say nothing
        return ""
    return f" ({100 * difference / abs(before):+.1f} %)".replace("-", "−")


def names_of(analyses: Sequence[Analysis]) -> list[str]:
    """Return short names of logs: what of their paths tells them apart."""
    paths = [analysis.path.replace("\\", "/").split("/") for analysis in analyses]
    for count in range(1, max(map(len, paths)) + 1):
        names = ["/".join(parts[-count:]) for parts in paths]
        if len(set(names)) == len(names):
            return names
    return [f"{place}. {'/'.join(parts)}" for place, parts in enumerate(paths, start=1)]


def comparison_of(analyses: Sequence[Analysis], *, language: Language, colophon: str) -> Document:
    """Return one report on several logs; the first is what the others are compared with."""
    say = words_for(analyses, language)
    title = say("显存消耗对比报告", "Comparison of memory")
    return Document(title, language, tuple(_comparison(analyses, say)), colophon)


def _comparison(analyses: Sequence[Analysis], say: Words) -> Iterator[Block]:
    names = names_of(analyses)
    yield Heading(2, say("概述", "Overview"))
    if len({analysis.environment.source for analysis in analyses}) > 1:
        yield Paragraph(
            text(
                say(
                    "注意：有的日志是显存，有的是进程内存，两者不能直接比较。",
                    "Note: some logs are of a GPU's memory, some of a process's: these are not the "
                    "same thing.",
                )
            ),
            "warning",
        )
    yield Paragraph(
        text(
            say(
                f"{len(analyses)} 个日志，与第一个 ",
                f"{len(analyses)} logs, compared with the first, ",
            ),
            code(names[0]),
            say(" 比较。", "."),
        )
    )
    yield Listing(
        tuple(
            say.labelled(name, *_summary(analyses[0], analysis, say))
            for name, analysis in zip(names, analyses, strict=True)
        )
    )
    peaks = [
        Bar(name, say.scaled(analysis.peak.size_bytes), say.size(analysis.peak.size_bytes))
        for name, analysis in zip(names, analyses, strict=True)
        if analysis.peak
    ]
    if peaks:
        yield BarChart(say("实测峰值", "Measured peaks"), say.unit, tuple(peaks[:40]))
    yield Heading(2, say("指标对比", "Figures"))
    all_figures = [figures_of(analysis) for analysis in analyses]
    keys = common_keys(all_figures)
    for start in range(0, len(analyses), _MOST_COLUMNS):
        here = slice(start, start + _MOST_COLUMNS)
        yield Table(
            columns(say("指标", "Figure"), *(f"#{name}" for name in names[here])),
            tuple(
                row(say.figure(key), *_cells(key, all_figures[0], all_figures[here], start, say))
                for key in keys[:_MOST_ROWS]
            ),
        )
    yield from _left_off(len(keys) - _MOST_ROWS, say)
    yield Heading(2, say("生成步骤", "Steps"))
    yield from _curves(names, analyses, say)
    yield Listing(
        tuple(
            say.labelled(name, *growth_text(analysis, say))
            for name, analysis in zip(names, analyses, strict=True)
        )
    )


def _summary(first: Analysis, analysis: Analysis, say: Words) -> Iterator[str]:
    if analysis.peak is None:
        yield say("没有记录峰值", "no peak was recorded")
        return
    yield say("峰值 ", "peak ") + say.size(analysis.peak.size_bytes)
    if analysis is not first and first.peak and first.peak.size_bytes:
        before = first.peak.size_bytes
        yield _share(analysis.peak.size_bytes - before, before)
    steps = analysis.steps
    if steps and steps.growth.verdict in LEAKS:
        yield say("，显存泄漏", ", leaks memory")
    card = smallest(analysis.need) if analysis.need else None
    if card:
        yield say(f"，最小可用 {card.name}", f", fits on the {card.name}")


def _cells(
    key: FigureKey,
    first: dict[FigureKey, float | None],
    others: Sequence[dict[FigureKey, float | None]],
    start: int,
    say: Words,
) -> Iterator[Text]:
    for place, figures in enumerate(others, start=start):
        number, before = figures.get(key), first.get(key)
        shown = say.value(key, number)
        if place and number is not None and before:
            shown += _share(number - before, before)
        yield text(strong(shown) if key.kind == "peak" else shown)


def _curves(names: Sequence[str], analyses: Sequence[Analysis], say: Words) -> Iterator[Block]:
    series = []
    for name, analysis in zip(names, analyses, strict=True):
        steps = analysis.steps
        if steps is None or len(steps.levels) < 2:
            continue
        first = [
            (float(step.number), level / MIB)
            for step, level in zip(steps.steps, steps.levels, strict=True)
            if step.run == 0
        ]
        series.append(Series(name, thinned(first)))
    if series:
        yield LineChart(
            say(
                "生成步骤的显存水平（各日志的第一轮）",
                "Memory level of the steps (of each log's first run)",
            )
            if any(analysis.steps and analysis.steps.runs > 1 for analysis in analyses)
            else say("生成步骤的显存水平", "Memory level of the steps"),
            say("步骤", "step"),
            "MB",
            tuple(series[:8]),
        )
