"""The report on one log, as a document."""

from __future__ import annotations

from snapviewer import __version__
from snapviewer.events.analysis import Analysis
from snapviewer.report.blocks import Block, Document, Language

from .appendix import appendix
from .baseline import against_baseline
from .benchmark import benchmark
from .conclusion import conclusion
from .overview import overview, title_of
from .patterns import patterns
from .strategies import strategies
from .usage import usage
from .words import Words, words_for

# Of the reports, and of what `--json` prints. It grows when something changes its place or meaning.
REPORT_FORMAT = 1


def colophon(say: Words) -> str:
    """Say who wrote a report."""
    return say(
        f"由 snapviewer {__version__} 生成，报告格式 {REPORT_FORMAT}。",
        f"Written by snapviewer {__version__}, report format {REPORT_FORMAT}.",
    )


def report_on(
    analysis: Analysis, *, language: Language = "zh", baseline: Analysis | None = None
) -> Document:
    """Return the report on one log, compared with a baseline if there is one."""
    say = words_for([analysis], language)
    blocks: list[Block] = [
        *overview(analysis, say, baseline),
        *usage(analysis, say),
        *patterns(analysis, say),
        *strategies(analysis, say),
        *benchmark(analysis, say),
    ]
    if baseline is not None:
        blocks += against_baseline(baseline, analysis, say)
    blocks += [*conclusion(analysis, say, baseline), *appendix(analysis, say)]
    return Document(title_of(analysis, say), language, tuple(blocks), colophon(say))
