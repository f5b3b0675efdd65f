"""Runs compared: a run with its baseline, and several logs side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from snapviewer.events.analysis import Analysis
from snapviewer.events.cards import smallest
from snapviewer.events.figures import FigureKey, common_keys, figures_of
from snapviewer.events.rating import LEAKS
from snapviewer.report import blocks
from snapviewer.report.blocks import code, strong, text

from .steps import comparison_chart, growth_text
from .words import Words, columns, row, words_for

_MAX_COLUMNS = 6
_MAX_ROWS = 60
_MAX_BARS = 40


def against_baseline(baseline: Analysis, analysis: Analysis, say: Words) -> Iterator[blocks.Block]:
    """Yield how a run compares with a baseline."""
    yield say.heading(3, "与基线对比", "Compared with the baseline")
    yield blocks.Paragraph(
        text(
            *say.around(code(baseline.path), "基线：{}。", "Baseline: {}. "),
            against(baseline, analysis, say),
        )
    )
    before, after = figures_of(baseline), figures_of(analysis)
    keys = common_keys([before, after])
    yield blocks.Table(
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
            for key in keys[:_MAX_ROWS]
        ),
    )
    yield from say.more(len(keys) - _MAX_ROWS)


def against(baseline: Analysis, analysis: Analysis, say: Words) -> str:
    """Return how the peak of a run compares with that of a baseline."""
    if baseline.peak is None or analysis.peak is None:
        return say(
            "其中之一没有记录峰值，无法比较。",
            "One of the two logs has no peak, so they cannot be compared.",
        )
    before, after = baseline.peak.size_bytes, analysis.peak.size_bytes
    if before == after:
        return say("峰值与基线相同。", "The peak is the same as in the baseline.")
    changed = f"{say.change(after - before)}{_share(after - before, before)}"
    return say(
        f"与基线相比，峰值变化 {changed}。",
        f"Compared with the baseline, the peak changed by {changed}.",
    )


def _change(key: FigureKey, before: float | None, after: float | None, say: Words) -> str:
    if before is None or after is None:
        return "–"
    difference = after - before
    if difference == 0:
        return "±0"
    sign = "+" if difference > 0 else "−"
    return f"{sign}{say.value(key, abs(difference))}{_share(difference, before)}"


def _share(difference: float, before: float) -> str:
    """Return a difference as a share of what was before, if that is not next to nothing."""
    if not before or abs(difference) >= 10 * abs(before):
        return ""
    return f" ({100 * difference / abs(before):+.1f} %)".replace("-", "−")


def _names(analyses: Sequence[Analysis]) -> list[str]:
    """Return the shortest ends of paths that differ."""
    paths = [analysis.path.replace("\\", "/").split("/") for analysis in analyses]
    for count in range(1, max(map(len, paths)) + 1):
        names = ["/".join(parts[-count:]) for parts in paths]
        if len(set(names)) == len(names):
            return names
    return [f"{place}. {'/'.join(parts)}" for place, parts in enumerate(paths, start=1)]


def comparison_of(
    analyses: Sequence[Analysis], *, language: blocks.Language = "zh", compat: bool = False
) -> blocks.Document:
    """Return one report on several logs, which are compared with the first."""
    say = words_for(analyses, language, compat=compat)
    title = say("显存消耗对比报告", "Memory comparison")
    return blocks.Document(title, language, tuple(_comparison(analyses, say)), say.colophon)


def _comparison(analyses: Sequence[Analysis], say: Words) -> Iterator[blocks.Block]:
    names = _names(analyses)
    named = list(zip(names, analyses, strict=True))
    yield say.heading(2, "概述", "Overview")
    yield from comparison_summary(analyses, say)
    peaks = [
        blocks.Bar(name, say.scaled(analysis.peak.size_bytes), say.size(analysis.peak.size_bytes))
        for name, analysis in named
        if analysis.peak
    ]
    if peaks:
        yield blocks.BarChart(say("实测峰值", "Measured peaks"), say.unit, tuple(peaks[:_MAX_BARS]))
    yield say.heading(2, "指标对比", "Figures")
    all_figures = [figures_of(analysis) for analysis in analyses]
    keys = common_keys(all_figures)
    for start in range(0, len(analyses), _MAX_COLUMNS):
        here = slice(start, start + _MAX_COLUMNS)
        yield blocks.Table(
            columns(say("指标", "Figure"), *(f"#{name}" for name in names[here])),
            tuple(
                row(say.figure(key), *_cells(key, all_figures[0], all_figures[here], start, say))
                for key in keys[:_MAX_ROWS]
            ),
        )
    yield from say.more(len(keys) - _MAX_ROWS)
    yield say.heading(2, "生成步骤", "Steps")
    yield from comparison_chart(names, analyses, say)
    yield blocks.Listing(
        tuple(say.labelled(name, *growth_text(analysis, say)) for name, analysis in named)
    )


def comparison_summary(analyses: Sequence[Analysis], say: Words) -> Iterator[blocks.Block]:
    """Yield a screenful: the peak of each log, compared with the first."""
    names = _names(analyses)
    if len({analysis.environment.source for analysis in analyses}) > 1:
        yield say.paragraph(
            "注意：有的日志是显存，有的是进程内存，两者不能直接比较。",
            "Note: some logs are of GPU memory, some of process memory, which cannot be compared.",
            "warning",
        )
    yield blocks.Paragraph(
        say.around(
            code(names[0]),
            f"{len(analyses)} 个日志，与第一个 {{}} 比较。",
            f"{len(analyses)} logs, compared with the first, {{}}.",
        )
    )
    yield blocks.Listing(
        tuple(
            say.labelled(name, *_summary(analyses[0], analysis, say))
            for name, analysis in zip(names, analyses, strict=True)
        )
    )


def _summary(first: Analysis, analysis: Analysis, say: Words) -> Iterator[str]:
    if analysis.peak is None:
        yield say("没有记录峰值", "no peak was recorded")
        return
    yield say("峰值 ", "peak ") + say.size(analysis.peak.size_bytes)
    if analysis is not first and first.peak:
        before = first.peak.size_bytes
        yield _share(analysis.peak.size_bytes - before, before)
    verdict = analysis.steps.growth.verdict if analysis.steps else None
    if verdict == "leak-signature":
        yield say("，可能有显存泄漏", ", may leak memory")
    elif verdict in LEAKS:
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
) -> Iterator[blocks.Text]:
    for place, figures in enumerate(others, start=start):
        number, before = figures.get(key), first.get(key)
        shown = say.value(key, number)
        if place and number is not None and before:
            shown += _share(number - before, before)
        yield text(strong(shown) if key.kind == "peak" else shown)
