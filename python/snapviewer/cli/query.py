"""`query`: SQL."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from snapviewer import _core
from snapviewer.files.cache import cached_bundle
from snapviewer.report.snapshot import query as query_report
from snapviewer.text.progress import progress_bar

from .arguments import positive, print_json, seconds

_TABLES = (
    "allocs, allocations, at_peak, events, frames, stacks, callstacks, identities, segments, "
    "blocks, history, devices, annotations, settings, source_code, metadata"
)
_EXAMPLE = (
    "select sum(size) as bytes, count(*) as n, stack from at_peak group by device, stack "
    "order by bytes desc limit 5"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.description = (
        f"{parser.description} Tables: {_TABLES}. ARCHITECTURE tells their columns."
    )
    parser.epilog = f"What holds the memory at the peak: {_EXAMPLE}"
    parser.add_argument("file", type=Path, help="a bundle, or a snapshot (converted and cached)")
    parser.add_argument("sql", help="one SELECT statement")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--max-rows", type=positive, default=1000, metavar="N", help="default 1000")
    parser.add_argument(
        "--max-seconds", type=seconds, default=30.0, metavar="S", help="give up after this (30)"
    )
    parser.set_defaults(run=_query)


def _query(options: argparse.Namespace) -> None:
    path = options.file
    if not _core.is_bundle(path):
        with progress_bar("converting") as progress:
            path = cached_bundle(path, progress=progress)
    columns, rows, is_truncated = _core.query(
        path, options.sql, max_rows=options.max_rows, max_seconds=options.max_seconds
    )
    if options.json:
        print_json(query_report.to_json(columns, rows, is_truncated=is_truncated))
    else:
        is_terminal = sys.stdout.isatty()
        print(query_report.as_text(columns, rows, is_terminal=is_terminal), end="")
        if is_truncated:
            print(
                f"snapviewer: more than {options.max_rows} rows; --max-rows shows more",
                file=sys.stderr,
            )
