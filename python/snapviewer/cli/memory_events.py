"""`snapviewer events` and `analyze_memory.py`: options, and what is done with them."""

from __future__ import annotations

import argparse
import errno
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from snapviewer.compat.events import analyze_log_file, has_sections, with_sections
from snapviewer.events.analysis import Analysis, analyze
from snapviewer.events.figures import Check, check_over, check_regression
from snapviewer.events.log import Log, read_log
from snapviewer.events.reader import LogError
from snapviewer.files.atomic_write import atomic_write
from snapviewer.report.blocks import Document, Language
from snapviewer.report.events.comparison import comparison_of
from snapviewer.report.events.conclusion import findings
from snapviewer.report.events.json import check_to_json, comparison_to_json, to_json
from snapviewer.report.events.report import report_on
from snapviewer.report.events.words import REPORT_FORMAT, Words
from snapviewer.report.writers.html import as_html
from snapviewer.report.writers.markdown import as_markdown
from snapviewer.report.writers.pdf import PdfUnavailable, as_pdf
from snapviewer.text.progress import progress_bar
from snapviewer.text.sanitize import json_text, replace_unprintable
from snapviewer.text.units import parse_bytes

from . import description_of

DEFAULT_OUTPUT = "memory_analysis_report.md"

_SUFFIXES = {".html": "html", ".htm": "html", ".pdf": "pdf"}


class EventsError(Exception):
    """Why no report was written, or which check failed, in a sentence."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.description = description_of("events")
    parser.epilog = "Exit code 1: a log cannot be read, or a check failed. 1 GB is 1024³ bytes."
    parser.add_argument("logs", nargs="*", metavar="LOG", help="memory_events.json (or JSON Lines)")
    parser.add_argument(
        "--log", nargs="+", action="extend", default=[], metavar="LOG", help="the same"
    )
    parser.add_argument(
        "-o",
        "--output",
        action="append",
        metavar="FILE",
        help=f"the report: .md, .html or .pdf, - for standard output, {os.devnull} for none "
        f"({DEFAULT_OUTPUT}); "
        "may be given several times",
    )
    parser.add_argument(
        "--format", choices=("md", "html", "pdf"), help="of the report (by the output's name)"
    )
    parser.add_argument("--lang", choices=("zh", "en"), default="zh", help="language (%(default)s)")
    parser.add_argument("--baseline", metavar="LOG", help="compare with this log")
    parser.add_argument(
        "--steps",
        choices=("levels", "increments"),
        help="what the values of steps are (the numbers decide)",
    )
    parser.add_argument(
        "--fail-over",
        type=_size,
        metavar="SIZE",
        help="exit 1 if a peak (of PyTorch's memory) is above, say, 24GB",
    )
    parser.add_argument(
        "--fail-regression",
        type=_percent,
        metavar="PERCENT",
        help="exit 1 if a peak is above that of the baseline (or first log) by more, say, than 2%%",
    )
    parser.add_argument("--json", action="store_true", help="print the analysis as JSON")
    parser.add_argument("--debug", action="store_true", help="tell what was read")
    parser.set_defaults(run=run, usage_error=parser.error)


def _size(text: str) -> int:
    try:
        number = parse_bytes(text)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError("must be a size, such as 24GB") from None
    if not 0 <= number < 2**63:
        raise argparse.ArgumentTypeError("must be 0 or more" if number < 0 else "is too large")
    return number


def _percent(text: str) -> float:
    try:
        number = float(text.strip().removesuffix("%"))
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1e6:
        raise argparse.ArgumentTypeError("must be a percentage, such as 2%")
    return number


def run(options: argparse.Namespace) -> None:
    """Do what the options say.

    Raises:
        EventsError: A log cannot be read, a report cannot be made, or a check failed.
        OSError: A report cannot be written.
    """
    logs = [*options.log, *options.logs]
    if not logs:
        options.usage_error("the following arguments are required: --log")
    is_compared = options.baseline is not None or len(logs) > 1
    if options.fail_regression is not None and not is_compared:
        options.usage_error("--fail-regression needs a --baseline, or several logs")
    if options.json and "-" in (options.output or []):
        options.usage_error("--json and -o - are both for standard output: choose one")
    language: Language = options.lang
    try:
        _run(options, logs, Words(language, compat=True))
    except (LogError, PdfUnavailable) as error:
        raise EventsError(error.sentence(language)) from None


def _run(options: argparse.Namespace, logs: Sequence[str], say: Words) -> None:
    outputs = options.output
    if not outputs:
        usual = Path(DEFAULT_OUTPUT).with_suffix(f".{options.format or 'md'}")
        outputs = [] if options.json else [str(usual)]
    for output in outputs:
        _refuse(output, [*logs, *([options.baseline] if options.baseline else [])], say)
    with progress_bar(say("读取", "reading")) as progress:
        analyses = []
        for path in logs:
            log = read_log(path, progress=progress)
            analyses.append(analyze(log, steps_are=options.steps))
            if options.debug:
                _tell_debug(log, sys.stderr if options.json or "-" in outputs else sys.stdout)
        baseline = None
        if options.baseline is not None:
            baseline = analyze(read_log(options.baseline), steps_are=options.steps)
    checks = _checks(options, analyses, baseline)
    document = _document(analyses, baseline, say)
    rendered = [(output, _rendered(document, output, options.format, say)) for output in outputs]
    for output, content in rendered:
        if output not in ("-", os.devnull):
            # Through a link, not in its place.
            with atomic_write(os.path.realpath(output)) as file:
                file.write(content)
    if options.json:
        sys.stdout.write(f"{json_text(_record(analyses, baseline, checks, say))}\n")
    elif "-" in outputs:
        for output, content in rendered:
            if output == "-":
                sys.stdout.flush()
                sys.stdout.buffer.write(content)
    else:
        _tell(analyses, baseline, outputs, say)
    failed = [check for check in checks if not check.is_passed]
    if failed:
        raise EventsError(say("；", "; ").join(_check_sentence(check, say) for check in failed))


def _refuse(output: str, logs: Sequence[str], say: Words) -> None:
    """Refuse to write over what is no report: a log, a device, a directory."""
    if output in ("-", os.devnull) or not os.path.lexists(output):
        return
    if os.path.exists(output) and not os.path.isfile(output):
        reason = say("输出不是普通文件", "the output is not a regular file")
        raise OSError(errno.EINVAL, reason, output)
    if any(os.path.exists(log) and os.path.samefile(log, output) for log in logs):
        reason = say("输出会覆盖日志，请换一个名字", "the output is a log; choose another name")
        raise OSError(errno.EEXIST, reason, output)


def _document(analyses: Sequence[Analysis], baseline: Analysis | None, say: Words) -> Document:
    if len(analyses) > 1:
        all_of_them = [baseline, *analyses] if baseline else analyses
        return comparison_of(all_of_them, language=say.language, compat=True)
    document = report_on(analyses[0], language=say.language, baseline=baseline, compat=True)
    if has_sections():
        return with_sections(document, analyze_log_file(analyses[0].path))
    return document


def _rendered(document: Document, output: str, chosen: str | None, say: Words) -> bytes:
    kind = chosen or _SUFFIXES.get(Path(output).suffix.lower(), "md")
    if kind == "pdf":
        with progress_bar(say("生成 PDF", "making the PDF")) as progress:
            progress(0, 1)
            return as_pdf(document)
    words = as_html(document) if kind == "html" else as_markdown(document)
    return words.encode("utf-8", errors="replace")


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


def _check_sentence(check: Check, say: Words) -> str:
    if check.peak_bytes is None or check.limit_bytes is None:
        return say(
            f"没有记录峰值，无法检查：{check.without_peak}",
            f"no peak was recorded to check: {check.without_peak}",
        )
    peak, limit = say.size(check.peak_bytes), say.size(check.limit_bytes)
    if peak == limit:  # they differ where the digits end
        peak, limit = f"{check.peak_bytes:,} B", f"{check.limit_bytes:,} B"
    if check.kind == "over":
        return say(
            f"峰值 {peak} 超过上限 {limit}：{check.path}",
            f"the peak of {peak} is over {limit}: {check.path}",
        )
    allowed = f"{check.allowed_percent:g} %"
    return say(
        f"峰值 {peak} 超过基线加 {allowed}（{limit}）：{check.path}",
        f"the peak of {peak} is over the baseline and {allowed} ({limit}): {check.path}",
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
    if len(analyses) == 1:
        document = to_json(analyses[0], language=say.language, compat=True)
        if baseline:
            document["baseline"] = to_json(baseline, language=say.language, compat=True)
        return document | more
    logs = [to_json(analysis, language=say.language, compat=True) for analysis in compared]
    return {"report_format": REPORT_FORMAT, "logs": logs} | more


def _tell(
    analyses: Sequence[Analysis], baseline: Analysis | None, outputs: Sequence[str], say: Words
) -> None:
    """Print what matters most, and where the rest is."""
    lines = []
    for analysis in analyses:
        if len(analyses) > 1:
            lines.append(f"{analysis.path}:")
        lines += [
            f"- {''.join(span.text for span in item)}" for item in findings(analysis, say, baseline)
        ]
    lines += [say(f"报告已保存至: {output}", f"report written: {output}") for output in outputs]
    sys.stdout.write("".join(f"{printable(line)}\n" for line in lines))


def printable(line: str) -> str:
    """Leave out what a terminal would obey; bytes of names that are no text stay to be told."""
    return replace_unprintable(line, keep_undecoded=True)


def _tell_debug(log: Log, stream: IO[str]) -> None:
    peaks = dict.fromkeys(event.name for event in log.events if event.peak_bytes)
    increments = dict.fromkeys(event.name for event in log.events if event.incremental_bytes)
    for line in (
        f"解析到的事件数量: {len(log.events)}",
        f"峰值显存事件: {list(peaks)}",
        f"增量显存事件: {list(increments)}",
    ):
        stream.write(f"{printable(line)}\n")
