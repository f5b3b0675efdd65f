"""`info`: what is in a snapshot."""

from __future__ import annotations

import argparse
from pathlib import Path

from snapviewer import _core
from snapviewer.report.snapshot import info as info_report
from snapviewer.text.progress import progress_bar

from .arguments import print_json


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument("file", type=Path, help="a snapshot, or a bundle's zip or directory")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=_info)


def _info(options: argparse.Namespace) -> None:
    with progress_bar("reading") as progress:
        snapshot = _core.load(options.file, progress=progress)
    if options.json:
        print_json(info_report.to_json(snapshot, str(options.file)))
    else:
        print(info_report.as_text(snapshot, str(options.file)), end="")
