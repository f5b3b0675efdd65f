"""`record`: run a script, and write snapshots of its GPU memory."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from .capture import Parser, add_run, add_script, capture_options, checked_command
from .errors import CommandError
from .options import add_json, positive
from .outputs import print_json

__all__ = ["Parser", "add_options"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_script(parser)
    add_run(parser, steps=None)
    parser.add_argument(
        "--every", type=positive, metavar="N", help="also write a snapshot every N optimizer steps"
    )
    add_json(parser)
    parser.set_defaults(run=_record)


def _record(options: argparse.Namespace) -> None:
    from snapviewer.capture.launch import run_script

    command = checked_command(options)
    capture = replace(capture_options(options, command), every=options.every)
    ran = run_script(command, capture, stdout=sys.stderr if options.json else None)
    if options.json:
        print_json({"exit_code": ran.code, "snapshots": list(ran.snapshots)})
    elif not options.quiet:
        for snapshot in ran.snapshots:
            print(
                f"{snapshot['file']}: step {snapshot['step']}, {snapshot['cause']}", file=sys.stderr
            )
    if ran.code:
        wrote = "" if ran.snapshots else ", and wrote no snapshot"
        raise CommandError(f"the script ended with exit code {ran.code}{wrote}")
    if not ran.snapshots:
        raise CommandError("no snapshot was written: the script did not use CUDA")
