"""`pth`: the contents of checkpoints, to the byte."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from threading import Event

from snapviewer import _core
from snapviewer.checkpoint.paths import FailedFile, expand_names, is_wildcard
from snapviewer.checkpoint.statistics import BINS, TensorStats, measure
from snapviewer.checkpoint.summary import SORTS, RowChoice, summary_of
from snapviewer.report.checkpoint import json as json_report
from snapviewer.report.checkpoint import text as text_report
from snapviewer.text.progress import progress_bar

from .errors import CommandError, UsageError
from .options import (
    add_compare,
    add_depth,
    add_results,
    add_sort,
    add_top,
    positive,
)
from .outputs import FORMATS, answer, check_outputs, output_width


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.epilog = "Checkpoints are read without torch, and no code in them is run."
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help=".pth, .pt, .pt2, .safetensors, an index of shards, a directory, or a quoted wildcard",
    )
    add_sort(parser, SORTS, about="order of the rows (default: file, or size if some are left out)")
    add_depth(parser, "group tensors by the first N parts of their names")
    add_top(parser, "tensors to list (default: 40; all with --json)")
    parser.add_argument("--stats", action="store_true", help="measure the elements of all tensors")
    parser.add_argument(
        "--bins",
        type=_bins,
        metavar="N",
        help=f"with --stats: bins of the histograms (default: {BINS})",
    )
    add_compare(parser, "--diff")
    parser.add_argument("--jobs", type=positive, metavar="N", help="files to read at a time")
    add_results(parser, "write the list")
    parser.set_defaults(run=_pth)


def _bins(text: str) -> int:
    number = positive(text)
    if number > 65536:
        raise argparse.ArgumentTypeError("must be 65536 or less")
    return number


def _pth(options: argparse.Namespace) -> None:
    if options.bins is not None and not options.stats:
        raise UsageError("argument --bins: needs --stats")
    check_outputs(options, inputs=options.files, suffixes=FORMATS)
    files, failed = expand_names(options.files)
    is_one = len(options.files) == 1 and len(files) + len(failed) == 1
    other = options.compare or options.baseline
    if other is not None:
        others, missing = expand_names([other])
        if not is_one or len(others) + len(missing) != 1:
            raise UsageError("compare one FILE with one OTHER")
        _require(failed + missing)
        pair = (files[0], others[0]) if options.compare else (others[0], files[0])
        _diff(options, *pair)
    elif is_one and not is_wildcard(options.files[0]):
        _require(failed)
        _one(options, files[0])
    else:
        from .pth_many import run_many

        run_many(files, failed, lambda file, cancel: _analyzed(file, options, cancel), options)


def _require(failed: Sequence[FailedFile]) -> None:
    for item in failed:
        raise CommandError(f"{item.reason}: {item.file}")


def _analyzed(
    file: str, options: argparse.Namespace, cancel: Event
) -> tuple[_core.Checkpoint, TensorStats | None]:
    """Read one of many files, and measure it if that was asked for."""
    checkpoint = _core.read_checkpoint(file, cancel=cancel)
    if not options.stats:
        return checkpoint, None
    return checkpoint, measure(checkpoint, bins=options.bins or BINS, cancel=cancel)


def _one(options: argparse.Namespace, file: str) -> None:
    with progress_bar("reading") as progress:
        summary = summary_of(_core.read_checkpoint(file, progress=progress), file)
    measured = None
    if options.stats:
        with progress_bar("measuring") as progress:
            measured = measure(summary.checkpoint, bins=options.bins or BINS, progress=progress)
    choice = RowChoice(options.sort, options.top, options.depth)
    width = output_width(options)
    answer(
        options,
        text=lambda: text_report.as_text(summary, choice, measured=measured, width=width),
        document=lambda: json_report.to_json(summary, choice, measured=measured),
    )


def _diff(options: argparse.Namespace, file: str, other: str) -> None:
    from snapviewer.checkpoint.difference import diff_of
    from snapviewer.report.checkpoint import difference as difference_report

    before, after = _core.read_checkpoint(file), _core.read_checkpoint(other)
    with progress_bar("comparing") as progress:
        diff = diff_of(before, after, progress=progress)
    names = {"before": file, "after": other}
    top, width = 40 if options.top is None else options.top, output_width(options)
    answer(
        options,
        text=lambda: difference_report.as_text(diff, top=top, width=width, **names),
        document=lambda: difference_report.to_json(diff, **names),
    )
