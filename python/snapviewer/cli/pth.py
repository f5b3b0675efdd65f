"""`pth`: what is in checkpoints, to the byte."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from threading import Event

from snapviewer import SnapshotError, _core
from snapviewer.checkpoint.paths import FailedFile, expanded, is_wildcard
from snapviewer.checkpoint.statistics import Measured, measure
from snapviewer.checkpoint.summary import SORTS, summary_of
from snapviewer.report.checkpoint import json as json_report
from snapviewer.report.checkpoint import text as text_report
from snapviewer.text.progress import progress_bar

from .arguments import positive, print_json, whole


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.epilog = "Checkpoints are read without torch, and nothing in them is run."
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help=".pth, .pt, .pt2, .safetensors, an index of shards, a directory, or a quoted wildcard",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(
        "--sort", choices=SORTS, help="by what (file; size if not all tensors are shown)"
    )
    parser.add_argument(
        "--depth", type=positive, metavar="N", help="add up by so many parts of the names"
    )
    parser.add_argument(
        "--top", type=_top, metavar="N", help="how many tensors (40; with --json all; 0 is all)"
    )
    parser.add_argument("--stats", action="store_true", help="measure the tensors' elements")
    parser.add_argument(
        "--bins", type=_bins, default=64, metavar="N", help="of histograms (%(default)s)"
    )
    parser.add_argument("--diff", metavar="OTHER", help="tell what changed from FILE to OTHER")
    parser.add_argument("--jobs", type=positive, metavar="N", help="how many files at once")
    parser.set_defaults(run=_pth, usage_error=parser.error)


def _top(text: str) -> int:
    number = whole(text)
    if number < 0:
        raise argparse.ArgumentTypeError("must be 0 or more")
    return number or sys.maxsize


def _bins(text: str) -> int:
    number = positive(text)
    if number > 65536:
        raise argparse.ArgumentTypeError("must be 65536 or less")
    return number


def _pth(options: argparse.Namespace) -> None:
    files, failed = expanded(options.files)
    is_one = len(options.files) == 1 and len(files) + len(failed) == 1
    if options.diff is not None:
        others, missing = expanded([options.diff])
        if not is_one or len(others) + len(missing) != 1:
            options.usage_error("--diff compares one FILE with OTHER")
        _require(failed + missing)
        _diff(options, files[0], others[0])
    elif is_one and not is_wildcard(options.files[0]):
        _require(failed)
        _one(options, files[0])
    else:
        from .pth_many import run_many

        run_many(
            files,
            failed,
            lambda file, cancel: _analyzed(file, options, cancel),
            options,
            width=_width(),
        )


def _require(failed: Sequence[FailedFile]) -> None:
    for item in failed:
        raise SnapshotError(f"{item.reason}: {item.file}")


def _analyzed(
    file: str, options: argparse.Namespace, cancel: Event
) -> tuple[_core.Checkpoint, Measured | None]:
    """Read one of many files, and measure it if that was asked for."""
    checkpoint = _core.read_checkpoint(file, cancel=cancel)
    if not options.stats:
        return checkpoint, None
    return checkpoint, measure(checkpoint, bins=options.bins, cancel=cancel)


def _one(options: argparse.Namespace, file: str) -> None:
    with progress_bar("reading") as progress:
        summary = summary_of(_core.read_checkpoint(file, progress=progress), file)
    measured = None
    if options.stats:
        with progress_bar("measuring") as progress:
            measured = measure(summary.checkpoint, bins=options.bins, progress=progress)
    choice = {"sort": options.sort, "top": options.top, "depth": options.depth}
    if options.json:
        print_json(json_report.to_json(summary, measured=measured, **choice))
    else:
        text = text_report.as_text(summary, measured=measured, width=_width(), **choice)
        print(text, end="")


def _diff(options: argparse.Namespace, file: str, other: str) -> None:
    from snapviewer.checkpoint.difference import diff_of
    from snapviewer.report.checkpoint import difference as difference_report

    before, after = _core.read_checkpoint(file), _core.read_checkpoint(other)
    with progress_bar("comparing") as progress:
        diff = diff_of(before, after, progress=progress)
    names = {"before": file, "after": other}
    if options.json:
        print_json(difference_report.to_json(diff, **names))
    else:
        top = 40 if options.top is None else options.top
        print(difference_report.as_text(diff, top=top, width=_width(), **names), end="")


def _width() -> int | None:
    """Return how wide a terminal is; what goes elsewhere has no width."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
