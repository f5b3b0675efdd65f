"""`convert`: make a bundle of a snapshot."""

from __future__ import annotations

import argparse
from pathlib import Path

from snapviewer import _core
from snapviewer.snapshot.bundles import is_replaceable
from snapviewer.text.progress import progress_bar

from .errors import UsageError
from .options import add_device, add_file, add_json, add_output, add_verbosity
from .outputs import print_json, print_written, refuse_existing, written


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    about = "a snapshot: pickle, JSON, gzip of these, or a memory_viz page"
    add_file(parser, about, is_optional=True)
    parser.add_argument("-i", "--input", type=Path, metavar="FILE", help="the same as FILE")
    add_output(parser, "a zip if the name ends in .zip, otherwise a directory", is_required=True)
    add_device(parser, "convert this device only")
    add_json(parser)
    add_verbosity(parser)
    # `convert_snap.py` can be run again: it replaces bundles.
    parser.set_defaults(run=_convert, is_repeatable=parser.prog == "convert_snap.py")


def _convert(options: argparse.Namespace) -> None:
    files = [file for file in (options.file, options.input) if file is not None]
    if len(files) != 1:
        raise UsageError(
            "FILE and -i are the same: give one"
            if files
            else "the following arguments are required: FILE"
        )
    replaced = [path for path in options.outputs if options.is_repeatable and is_replaceable(path)]
    kept = [path for path in options.outputs if path not in replaced]
    refuse_existing(options, inputs=files, kept=kept)
    for output in options.outputs:
        force = options.force or output in replaced
        with progress_bar("converting") as progress:
            _core.convert(files[0], output, device=options.device, force=force, progress=progress)
    if options.json:
        print_json({"input": str(files[0]), **written(options)})
    else:
        print_written(options)
