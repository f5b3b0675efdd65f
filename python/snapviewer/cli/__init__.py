"""The command line: one module a command, and the one place that prints errors.

Exit code 0 is success, 1 a failed operation with one sentence on stderr, 2 wrong usage, 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import NoReturn

from snapviewer import SnapshotError, __version__
from snapviewer.text.streams import close_output, ready_streams

from .arguments import sentence_of
from .sentences import sentence

Run = Callable[[argparse.Namespace], None]

# The module of each command, which is imported when the command is used: together they take a
# third of a second. It tells what it does in `ABOUT`, and adds its options with `add_options`.
_COMMANDS = {
    "open": "window",
    "convert": "convert",
    "info": "info",
    "report": "report",
    "render": "render",
    "query": "query",
    "pth": "pth",
    "events": "events",
    "model": "model",
    "explore": "explore",
    "demo": "demo",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(
        prog="snapviewer",
        description="Look into PyTorch CUDA memory snapshots, checkpoints and memory events.",
    )
    parser.add_argument("--version", action="version", version=f"snapviewer {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    is_chosen = bool(arguments) and arguments[0] in _COMMANDS
    for name in [arguments[0]] if is_chosen else _COMMANDS:
        command = _command(_COMMANDS[name])
        about = command.ABOUT
        command.add_options(commands.add_parser(name, help=about, description=sentence_of(about)))
    return _run(parser, arguments)


def _command(module: str) -> ModuleType:
    return import_module(f"snapviewer.cli.{module}")


def convert_main(arguments: Sequence[str] | None = None) -> int:
    """Run `convert` alone, as `python convert_snap.py` does."""
    return _run_alone("convert_snap.py", "convert", arguments)


def gui_main(arguments: Sequence[str] | None = None) -> int:
    """Run `open` alone, as `python gui.py` does."""
    return _run_alone("gui.py", "window", arguments)


def parser_main(arguments: Sequence[str] | None = None) -> int:
    """Run `model` alone, as `pytorch_parser` does: it always writes its report."""
    command = _command("model")
    parser = _MarkedParser(prog="pytorch_parser", description=sentence_of(command.ABOUT))
    command.add_parser_options(parser)
    return _run(parser, arguments, mark="[ERROR] ")


class _MarkedParser(argparse.ArgumentParser):
    """Says wrong usage as `pytorch_parser` says all errors: marked, and with exit code 1."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(1, f"[ERROR] {message}\n")


def _run_alone(name: str, module: str, arguments: Sequence[str] | None) -> int:
    command = _command(module)
    parser = argparse.ArgumentParser(prog=name, description=sentence_of(command.ABOUT))
    command.add_options(parser)
    return _run(parser, arguments)


def _run(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None, mark: str = "snapviewer: "
) -> int:
    ready_streams()
    options = parser.parse_args(arguments)
    run: Run = options.run
    try:
        run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _fail("interrupted", 130, mark)
    except BrokenPipeError:
        close_output()
        return 0
    except (SnapshotError, OSError, MemoryError) as error:
        return _fail(sentence(error), 1, mark)
    return 0


def _fail(sentence: str, code: int, mark: str) -> int:
    print(f"{mark}{sentence}", file=sys.stderr)
    return code
