"""`convert`: a snapshot becomes a bundle."""

from __future__ import annotations

import argparse
from pathlib import Path

from snapviewer import _core
from snapviewer.text.progress import progress_bar

from .arguments import device_index, print_json, size_of


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    parser.add_argument(
        "-i",
        "--input",
        type=Path,
        required=True,
        metavar="SNAPSHOT",
        help="a pickle, JSON, gzip of these, or a memory_viz page",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        required=True,
        metavar="BUNDLE",
        help="a zip if the name ends in .zip, otherwise a directory",
    )
    parser.add_argument("-d", "--device", type=device_index, metavar="N", help="only this device")
    parser.add_argument("--force", action="store_true", help="replace an output that exists")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=_convert)


def _convert(options: argparse.Namespace) -> None:
    with progress_bar("converting") as progress:
        _core.convert(
            options.input,
            options.output,
            device=options.device,
            force=options.force,
            progress=progress,
        )
    size = size_of(options.output)
    if options.json:
        print_json({"input": str(options.input), "output": str(options.output), "bytes": size})
    else:
        print(f"{options.output}: {size:,} bytes")
