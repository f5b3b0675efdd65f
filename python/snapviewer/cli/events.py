"""`events`: a report on logs of memory events; and `analyze_memory.py`, its promised form.

Both need only the standard library; a PDF needs the extra `pdf`. The promised form is Chinese
unless `--lang` is given, replaces its report, has a default name for it and for the model, and
prints sizes in GB.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from snapviewer.compat.events import analyze_log_file, has_sections, with_sections
from snapviewer.events.analysis import Analysis, analyze
from snapviewer.events.figures import Check, check_over, check_regression
from snapviewer.events.log import Log, read_log
from snapviewer.events.reader import LogError
from snapviewer.report.blocks import Document, Language
from snapviewer.report.events.comparison import comparison_of, comparison_summary
from snapviewer.report.events.conclusion import findings, summary
from snapviewer.report.events.json import check_to_json, comparison_to_json, to_json
from snapviewer.report.events.report import report_on
from snapviewer.report.events.words import REPORT_FORMAT, Words, words_for
from snapviewer.report.writers.html import as_html
from snapviewer.report.writers.markdown import as_markdown
from snapviewer.report.writers.pdf import PdfUnavailable, as_pdf
from snapviewer.report.writers.text import text_lines
from snapviewer.text.progress import progress_bar
from snapviewer.text.sanitize import replace_unprintable

from .errors import CheckFailed, CommandError, UsageError
from .options import add_json, add_output, add_verbosity, byte_count, percent
from .outputs import answer, check_outputs, output_width, print_json, write_file

DEFAULT_OUTPUT = "memory_analysis_report.md"

_WRITERS: dict[str, Callable[[Document], str | bytes]] = {
    ".md": as_markdown,
    ".html": as_html,
    ".pdf": as_pdf,
}
_LANGUAGES: tuple[Language, ...] = ("en", "zh")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.epilog = "Exit code 3: a peak is above a limit (--fail-over, --fail-regression)."
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="log of memory events: JSON array or JSON Lines"
    )
    add_output(parser, "write the report: .md, .html, .pdf, .txt or .json")
    add_json(parser)
    language = _locale_language()
    parser.add_argument(
        "--lang", choices=_LANGUAGES, default=language, help="language (default: of the locale)"
    )
    _add_common_options(parser)
    add_verbosity(parser)
    parser.set_defaults(run=_events)


def _add_common_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--baseline", metavar="OTHER", help="show what changed from OTHER to FILE")
    parser.add_argument(
        "--steps",
        choices=("levels", "increments"),
        help="what the values of steps are (default: detected)",
    )
    parser.add_argument(
        "--fail-over",
        type=byte_count,
        metavar="SIZE",
        help="fail if a peak of PyTorch's memory is above this size, such as 24GiB",
    )
    parser.add_argument(
        "--fail-regression",
        type=percent,
        metavar="PERCENT",
        help="fail if a peak is above that of the baseline, or else of the first log, by more than "
        "this, such as 2%%",
    )


def analyze_memory(program: str) -> argparse.ArgumentParser:
    """Return the parser of `analyze_memory.py`."""
    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("logs", nargs="*", metavar="LOG", help="log: JSON array or JSON Lines")
    parser.add_argument("--log", nargs="+", action="extend", default=[], metavar="LOG", help="same")
    parser.add_argument(
        "-o",
        "--output",
        action="append",
        metavar="FILE",
        help=f"report: .md, .html or .pdf; - prints it, {os.devnull} writes none "
        f"(default: {DEFAULT_OUTPUT}); may be repeated",
    )
    parser.add_argument(
        "--format", choices=("md", "html", "pdf"), help="format (default: by the suffix)"
    )
    parser.add_argument("--lang", choices=_LANGUAGES, default="zh", help="language (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--debug", action="store_true", help="print the events that were read")
    _add_common_options(parser)
    parser.set_defaults(run=_analyze_memory)
    return parser


def _locale_language() -> Language:
    names = (os.environ.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    return "zh" if next(filter(None, names), "").lower().startswith("zh") else "en"


def _events(options: argparse.Namespace) -> None:
    inputs = _inputs(options, options.files)
    check_outputs(options, inputs=inputs, suffixes=(*_WRITERS, ".txt", ".json"))
    language: Language = options.lang
    with _failing_in(language):
        analyses, baseline, _ = _read(options, inputs)
        checks = _checks(options, analyses, baseline)
        compared = [baseline, *analyses] if baseline else analyses
        document = _document(analyses, baseline, Words(language))

        def screenful() -> str:
            say = words_for(compared, language)
            blocks = (
                comparison_summary(compared, say)
                if len(analyses) > 1
                else summary(analyses[0], say, baseline)
            )
            return "".join(f"{line}\n" for line in text_lines(blocks, output_width(options)))

        def full_text() -> str:
            lines = (document.title, "", *text_lines(document.blocks), "", document.colophon)
            return "".join(f"{line}\n" for line in lines)

        answer(
            options,
            text=screenful,
            document=lambda: _record(analyses, baseline, checks, Words(language)),
            others={".txt": full_text}
            | {suffix: partial(write, document) for suffix, write in _WRITERS.items()},
        )
    _raise_if_failed(checks, Words(language))


def _analyze_memory(options: argparse.Namespace) -> None:
    logs = [*options.log, *options.logs]
    if not logs:
        raise UsageError("the following arguments are required: --log")
    outputs = options.output or []
    if not outputs and not options.json:
        outputs = [str(Path(DEFAULT_OUTPUT).with_suffix(f".{options.format or 'md'}"))]
    if options.json and "-" in outputs:
        raise UsageError("--json and -o - are both for standard output: choose one")
    say = Words(options.lang, compat=True)
    paths = [Path(output) for output in outputs if output not in ("-", os.devnull)]
    inputs = _inputs(options, logs)
    check_outputs(argparse.Namespace(outputs=paths, force=True), inputs=inputs)
    with _failing_in(options.lang):
        analyses, baseline, read = _read(options, inputs)
        checks = _checks(options, analyses, baseline)
        document = _document(analyses, baseline, say)
        written = [(output, _rendered(document, output, options.format)) for output in outputs]
    for output, content in written:
        if output not in ("-", os.devnull):
            write_file(Path(os.path.realpath(output)), content)  # through a link, not in its place
    if options.debug:
        _print_debug(
            read[: len(logs)], sys.stderr if options.json or "-" in outputs else sys.stdout
        )
    if options.json:
        print_json(_record(analyses, baseline, checks, say))
    elif "-" in outputs:
        sys.stdout.flush()
        sys.stdout.buffer.write(b"".join(content for output, content in written if output == "-"))
    else:
        _print_findings(analyses, baseline, outputs, say)
    _raise_if_failed(checks, say)


@contextmanager
def _failing_in(language: Language) -> Iterator[None]:
    """Turn errors of logs and PDFs into errors of the command, in this language."""
    try:
        yield
    except (LogError, PdfUnavailable) as error:
        raise CommandError(error.sentence(language)) from None


def _inputs(options: argparse.Namespace, logs: Sequence[str]) -> list[str]:
    """Return the files to read: the logs, and the baseline last.

    Raises:
        UsageError: `--fail-regression` has nothing to compare with.
    """
    if options.fail_regression is not None and options.baseline is None and len(logs) < 2:
        raise UsageError("--fail-regression needs a --baseline, or several logs")
    return [*logs, *([] if options.baseline is None else [options.baseline])]


def _read(
    options: argparse.Namespace, inputs: Sequence[str]
) -> tuple[list[Analysis], Analysis | None, list[Log]]:
    """Return the analyses of the logs and of the baseline, and what was read."""
    with progress_bar("reading") as progress:
        read = [read_log(path, progress=progress) for path in inputs]
    analyses = [analyze(log, steps_are=options.steps) for log in read]
    baseline = None if options.baseline is None else analyses.pop()
    return analyses, baseline, read


def _document(analyses: Sequence[Analysis], baseline: Analysis | None, say: Words) -> Document:
    if len(analyses) > 1:
        compared = [baseline, *analyses] if baseline else analyses
        return comparison_of(compared, language=say.language, compat=say.compat)
    document = report_on(analyses[0], language=say.language, baseline=baseline, compat=say.compat)
    if has_sections():
        return with_sections(document, analyze_log_file(analyses[0].path))
    return document


def _rendered(document: Document, output: str, chosen: str | None) -> bytes:
    suffix = f".{chosen}" if chosen else Path(output).suffix.lower()
    content = _WRITERS.get({".htm": ".html"}.get(suffix, suffix), as_markdown)(document)
    return content if isinstance(content, bytes) else content.encode("utf-8", errors="replace")


def _checks(
    options: argparse.Namespace, analyses: Sequence[Analysis], baseline: Analysis | None
) -> list[Check]:
    checks = []
    if options.fail_over is not None:
        checks += [check_over(analysis, options.fail_over) for analysis in analyses]
    if options.fail_regression is not None:
        first, others = (baseline, analyses) if baseline else (analyses[0], analyses[1:])
        checks += [
            check_regression(first, analysis, options.fail_regression) for analysis in others
        ]
    return checks


def _raise_if_failed(checks: Sequence[Check], say: Words) -> None:
    failed = [_check_sentence(check, say) for check in checks if not check.is_passed]
    if failed:
        raise CheckFailed(say("；", "; ").join(failed))


def _check_sentence(check: Check, say: Words) -> str:
    if check.peak_bytes is None or check.limit_bytes is None:
        return say(
            f"没有记录峰值，无法检查：{check.without_peak}",
            f"no peak was recorded that could be checked: {check.without_peak}",
        )
    peak, limit = say.size(check.peak_bytes), say.size(check.limit_bytes)
    if peak == limit:  # they differ in digits that are not shown
        peak, limit = f"{check.peak_bytes:,} B", f"{check.limit_bytes:,} B"
    if check.kind == "over":
        return say(
            f"峰值 {peak} 超过上限 {limit}：{check.path}",
            f"the peak of {peak} is over {limit}: {check.path}",
        )
    allowed = f"{check.allowed_percent:g} %"
    return say(
        f"峰值 {peak} 超过基线加 {allowed}（{limit}）：{check.path}",
        f"the peak of {peak} is over the baseline plus {allowed} ({limit}): {check.path}",
    )


def _record(
    analyses: Sequence[Analysis], baseline: Analysis | None, checks: Sequence[Check], say: Words
) -> dict[str, Any]:
    compared = [baseline, *analyses] if baseline else analyses
    more: dict[str, Any] = {}
    if len(compared) > 1:
        more["comparison"] = comparison_to_json(compared)
    if checks:
        more["checks"] = [check_to_json(check) for check in checks]
    documents = [
        to_json(analysis, language=say.language, compat=say.compat) for analysis in compared
    ]
    if len(analyses) > 1:
        return {"report_format": REPORT_FORMAT, "logs": documents} | more
    return documents[-1] | ({"baseline": documents[0]} if baseline else {}) | more


def _print_findings(
    analyses: Sequence[Analysis], baseline: Analysis | None, outputs: Sequence[str], say: Words
) -> None:
    lines = []
    for analysis in analyses:
        lines += [f"{analysis.path}:"] if len(analyses) > 1 else []
        for finding in findings(analysis, say, baseline):
            lines.append(f"- {''.join(span.text for span in finding)}")
    lines += [say(f"报告已保存至: {output}", f"report written: {output}") for output in outputs]
    for line in lines:
        print(replace_unprintable(line, keep_undecoded=True))


def _print_debug(logs: Sequence[Log], stream: IO[str]) -> None:
    for log in logs:
        peaks = dict.fromkeys(event.name for event in log.events if event.peak_bytes)
        increments = dict.fromkeys(event.name for event in log.events if event.incremental_bytes)
        print(f"解析到的事件数量: {len(log.events)}", file=stream)
        print(f"峰值显存事件: {list(peaks)}", file=stream)
        print(f"增量显存事件: {list(increments)}", file=stream)
