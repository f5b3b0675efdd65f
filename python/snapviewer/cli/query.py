"""`query`: SQL."""

from __future__ import annotations

import argparse
import sys

from snapviewer import _core
from snapviewer.files.cache import cached_bundle
from snapviewer.report.snapshot import query as query_report
from snapviewer.snapshot.schema import described_tables
from snapviewer.text.progress import progress_bar

from .options import add_file, add_results, positive, seconds
from .outputs import FORMATS, answer, check_outputs

_EXAMPLE = (
    "select sum(size) as bytes, count(*) as n, stack from at_peak group by device, stack "
    "order by bytes desc limit 5"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.description = f"{parser.description} Tables: {', '.join(described_tables())}."
    parser.epilog = f"What holds the memory at the peak: {_EXAMPLE}"
    add_file(parser, "a bundle, or a snapshot (which is converted and cached)")
    parser.add_argument("sql", metavar="SQL", help="one SELECT statement")
    parser.add_argument(
        "--max-rows",
        type=positive,
        default=1000,
        metavar="N",
        help="rows to return at most (default: %(default)s)",
    )
    parser.add_argument(
        "--max-seconds",
        type=seconds,
        default=30.0,
        metavar="S",
        help="time limit (default: %(default)g)",
    )
    add_results(parser, "write the rows")
    parser.set_defaults(run=_query)


def _query(options: argparse.Namespace) -> None:
    check_outputs(options, inputs=[options.file], suffixes=FORMATS)
    path = options.file
    if not _core.is_bundle(path):
        with progress_bar("converting") as progress:
            path = cached_bundle(path, progress=progress)
    columns, rows, is_truncated = _core.query(
        path, options.sql, max_rows=options.max_rows, max_seconds=options.max_seconds
    )
    is_terminal = sys.stdout.isatty() and not options.outputs
    answer(
        options,
        text=lambda: query_report.as_text(columns, rows, is_terminal=is_terminal),
        document=lambda: query_report.to_json(columns, rows, is_truncated=is_truncated),
    )
    if is_truncated and not (options.json or options.quiet):
        print(
            f"snapviewer: more than {options.max_rows} rows; --max-rows shows more",
            file=sys.stderr,
        )
