"""What `record` and `predict` share: the script, its arguments, when the run ends, the output."""

from __future__ import annotations

import argparse
import sys
from itertools import islice
from pathlib import Path
from typing import Any

from snapviewer._lazy import TYPE_CHECKING

from .errors import CommandError, UsageError
from .options import add_output, add_verbosity, positive, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from snapviewer.capture.options import CaptureOptions


class Parser(argparse.ArgumentParser):
    """Takes the script's arguments apart from ours, which may come before and after the script."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse our options; `command` of the result is `SCRIPT …` or `-m MODULE …`."""
        ours, command = self._split(sys.argv[1:] if args is None else args)
        options = super().parse_args(ours, *filter(None, [namespace]))
        options.command = command
        return options

    def _split(self, arguments: Sequence[str]) -> tuple[list[str], list[str]]:
        ours: list[str] = []
        command: list[str] = []
        rest = iter(arguments)
        for word in rest:
            name, equals, _ = word.partition("=")
            action = self._option_string_actions.get(name)
            if word == "--":
                command += rest
            elif word == "-m" and not command:
                command += ["-m", *list(islice(rest, 1))]
            elif action is None:
                command.append(word)
            else:
                ours.append(word)
                if action.nargs is None and not equals:
                    ours += list(islice(rest, 1))
        return ours, command


def add_script(parser: argparse.ArgumentParser) -> None:
    """Describe how the script is named."""
    parser.allow_abbrev = False
    parser.usage = "%(prog)s [options] (SCRIPT | -m MODULE) [arguments of the script]"
    parser.epilog = (
        "Options of snapviewer may come before or after the script. After -- everything is the "
        "script's: snapviewer record train.py -- --steps 100"
    )


def add_run(parser: argparse.ArgumentParser, *, steps: int | None) -> None:
    """Add when the run ends, and how it is recorded."""
    usual = "no limit" if steps is None else str(steps)
    parser.add_argument(
        "--steps",
        type=positive,
        default=steps,
        metavar="N",
        help=f"end after N optimizer steps (default: {usual})",
    )
    parser.add_argument(
        "--seconds", type=seconds, metavar="SECONDS", help="end after this time of recording"
    )
    parser.add_argument(
        "--max-entries",
        type=positive,
        default=1_000_000,
        metavar="N",
        help="events to keep; older ones are dropped (default: %(default)s)",
    )
    parser.add_argument(
        "--stacks",
        choices=("python", "all"),
        default="python",
        help="stacks to record; all: with C++ frames (default: %(default)s)",
    )
    parser.add_argument(
        "--no-marks",
        action="store_true",
        help="do not record steps, phases and module paths",
    )
    add_output(
        parser,
        "the snapshot to write: .pickle or .pickle.gz (default: named after the script)",
        is_single=True,
    )
    add_verbosity(parser)


def checked_command(options: argparse.Namespace) -> list[str]:
    """Return what to run: `SCRIPT …` or `-m MODULE …`."""
    command: list[str] = options.command
    if not command or command == ["-m"]:
        raise UsageError("name a script, or a module with -m")
    if command[0].startswith("-") and command[0] != "-m":
        raise UsageError(f"no such option: {command[0]}")
    if command[0] != "-m" and not Path(command[0]).is_file():
        raise CommandError(f"no such script: {command[0]}")
    return command


def capture_options(options: argparse.Namespace, command: list[str]) -> CaptureOptions:
    """Return how to record, and check that the output can be written."""
    from snapviewer.capture.options import CaptureOptions

    name = command[1].rpartition(".")[2] if command[0] == "-m" else Path(command[0]).stem
    if len(options.outputs) > 1:
        raise UsageError("a run has one output; other snapshots are named after it")
    output = options.outputs[0] if options.outputs else Path(f"{name}.pickle")
    if output.exists() and not options.force:
        raise CommandError(f"{output} exists; --force replaces it")
    if not output.absolute().parent.is_dir():
        raise CommandError(f"no such directory: {output.parent}")
    return CaptureOptions(
        output=str(output),
        steps=options.steps,
        seconds=options.seconds,
        max_entries=options.max_entries,
        stacks=options.stacks,
        has_marks=not options.no_marks,
        is_gzip=output.name.lower().endswith(".gz"),
    )
