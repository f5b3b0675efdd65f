"""`diff`: what changes from one snapshot to another, and whether a peak is above a limit."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from snapviewer.report.snapshot import difference as difference_report
from snapviewer.report.writers.html import as_html
from snapviewer.report.writers.markdown import as_markdown
from snapviewer.snapshot.difference import GROUPINGS, diff, paired
from snapviewer.snapshot.gate import Failure, over, regressions

from .errors import CommandError, UsageError
from .gate import EPILOG, add_fail_over, gated_devices, raise_if_failed
from .options import (
    SNAPSHOT,
    add_device,
    add_event,
    add_json,
    add_output,
    add_top,
    add_verbosity,
    load_snapshot,
    percent,
)
from .outputs import FORMATS, answer, check_outputs


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.epilog = EPILOG
    parser.add_argument("a", type=Path, metavar="A", help=f"the older one: {SNAPSHOT}")
    parser.add_argument("b", type=Path, metavar="B", help="the newer one")
    add_device(parser, "device to compare (default: the largest peak of A)")
    add_event(parser)
    parser.add_argument(
        "--step",
        metavar="N|NAME",
        help="compare the peaks of this step: its name in `report`, or the number at its end",
    )
    parser.add_argument(
        "--by",
        choices=tuple(GROUPINGS),
        default="line",
        help="what to match (default: line); a site is a file and function without the line, for "
        "files that were edited",
    )
    add_top(parser, f"groups to list (default: {difference_report.USUAL_TOP}; in JSON, all)")
    add_fail_over(parser, " in B")
    parser.add_argument(
        "--fail-regression",
        type=percent,
        metavar="PERCENT",
        help="fail if a device's peak of live bytes in B is above that in A by more than this, "
        "such as 2%%",
    )
    add_json(parser)
    add_output(parser, "write the difference: .md (for a comment on GitHub), .html, .txt or .json")
    add_verbosity(parser)
    parser.set_defaults(run=_diff)


def _diff(options: argparse.Namespace) -> None:
    if options.step is not None and options.event != "peak":
        raise UsageError("--step compares the peaks of a step: leave --event out")
    check_outputs(options, inputs=[options.a, options.b], suffixes=(".md", ".html", *FORMATS))
    a, b = load_snapshot(options.a), load_snapshot(options.b)
    how = {"by": options.by, "event": options.event, "step": options.step}
    try:
        pair = paired(a, b, options.device)
        found = diff(a, b, device=options.device, **how)
    except ValueError as error:
        raise CommandError(str(error)) from None
    failed: tuple[Failure, ...] = ()
    if options.fail_over is not None:
        failed += over(gated_devices(b, options.device), options.fail_over)
    if options.fail_regression is not None:
        before = {one.index: one for one in gated_devices(a, options.device)}
        after = gated_devices(b, options.device)
        both = [(before[one.index], one) for one in after if one.index in before]
        failed += regressions(both or [pair], options.fail_regression)
    report = difference_report.Report(
        found, failed, a=str(options.a), b=str(options.b), top=options.top
    )
    answer(
        options,
        # Why it failed is printed on stderr.
        text=lambda: difference_report.as_text(replace(report, failed=())),
        document=lambda: difference_report.to_json(report),
        others={
            ".txt": lambda: difference_report.as_text(report),
            ".md": lambda: as_markdown(difference_report.as_document(report)),
            ".html": lambda: as_html(difference_report.as_document(report)),
        },
    )
    raise_if_failed(failed)
