"""`info`: a summary of a snapshot."""

from __future__ import annotations

import argparse

from snapviewer.report.snapshot import info as info_report

from .options import add_file, add_results, load_snapshot
from .outputs import FORMATS, answer, check_outputs


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_file(parser)
    add_results(parser, "write the summary")
    parser.set_defaults(run=_info)


def _info(options: argparse.Namespace) -> None:
    check_outputs(options, inputs=[options.file], suffixes=FORMATS)
    snapshot = load_snapshot(options.file)
    file = str(options.file)
    answer(
        options,
        text=lambda: info_report.as_text(snapshot, file),
        document=lambda: info_report.to_json(snapshot, file),
    )
