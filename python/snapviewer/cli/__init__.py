"""The command line: the table of commands, and how a command is run.

The module of a command is imported when the command is chosen: all of them together take a third
of a second. Until then, neither the native core nor NumPy is loaded.

Exit codes: 0 success; 1 failure, with one sentence on stderr; 2 wrong usage; 3 a failed check;
130 Ctrl-C.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from snapviewer import __version__
from snapviewer._lazy import TYPE_CHECKING
from snapviewer.text.streams import close_output, make_streams_harmless

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from types import ModuleType

# What `--help` lists: for each command its module here, and what it does.
GROUPS = {
    "Look": {
        "open": ("window", "Explore a snapshot in a window"),
        "render": ("render", "Draw the memory over time as a PNG"),
    },
    "Explain": {
        "info": ("info", "Summarize a snapshot: devices, peaks, whether it is consistent"),
        "report": ("report", "List the lines of code that hold the memory at the peak"),
        "tree": ("tree", "Show through which callers the memory is held, as a call tree"),
        "segments": ("segments", "Show reserved memory at the peak: in use, free, in pieces"),
        "whatif": ("whatif", "Simulate other allocator settings, another GPU, other requests"),
        "diff": ("diff", "Show what changes from one snapshot to another; fail above a limit"),
        "query": ("query", "Query a snapshot in SQL"),
    },
    "Capture": {
        "record": ("record", "Run a script and record a snapshot of its GPU memory"),
        "predict": ("predict", "Predict a script's GPU memory on a machine without a GPU"),
        "demo": ("demo", "Write a realistic snapshot to try things on"),
    },
    "Files": {
        "convert": ("convert", "Convert a snapshot to a bundle that opens instantly"),
    },
    "Models": {
        "pth": ("pth", "List the tensors of checkpoints, their sizes, and wasted bytes"),
        "model": ("model", "Describe a model: architecture, parameters, FLOPs, recommendations"),
        "explore": ("explore", "Browse the modules of a checkpoint in the terminal"),
        "events": ("events", "Report on logs of memory events: components, peaks, steps, leaks"),
    },
}
_COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}

_USAGE = """\
usage: snapviewer [FILE]
       snapviewer COMMAND FILE... [options]
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments:
        return run(_welcome)
    first = arguments[0]
    if first in ("-h", "--help"):
        return run(lambda: print(help_text(), end=""))
    if first == "--version":
        return run(lambda: print(f"snapviewer {__version__}"))
    if first in _COMMANDS:
        return _run_command(first, f"snapviewer {first}", arguments[1:])
    if not first.startswith("-") and not os.path.lexists(first):
        return run(lambda: _refuse(first))
    return _run_command("open", "snapviewer", arguments)


def _welcome() -> None:
    """Open the window without a file, or print the help where no window can be opened."""
    from .window import NoWindowError, open_window

    try:
        open_window()
    except NoWindowError:
        print(help_text(), end="")


def _refuse(word: str) -> None:
    from difflib import get_close_matches

    from .errors import CommandError, UsageError

    if os.path.splitext(word)[1] or os.path.dirname(word):  # a file rather than a command
        raise CommandError(f"no such file: {word}")
    near = get_close_matches(word, _COMMANDS, n=1)
    advice = f"did you mean {near[0]}?" if near else "`snapviewer --help` lists the commands"
    raise UsageError(f"no such file or command: {word}; {advice}")


def help_text() -> str:
    """Return what `snapviewer --help` prints."""
    lines = [
        _USAGE,
        "Explore PyTorch's memory: CUDA snapshots, checkpoints, models and event logs.",
        "`snapviewer FILE` opens a window; `snapviewer` alone opens its welcome page.",
    ]
    for group, commands in GROUPS.items():
        lines += ["", f"{group}:"]
        lines += [f"  {name:<9} {about}" for name, (_, about) in commands.items()]
    lines += [
        "",
        "Options:",
        "  -h, --help  Show this help",
        "  --version   Show the version",
        "",
        "`snapviewer COMMAND --help` explains a command.",
    ]
    return "\n".join(lines) + "\n"


def description_of(command: str) -> str:
    """Return what a command does, as a sentence."""
    return f"{_COMMANDS[command][1]}."


def convert_main(arguments: Sequence[str] | None = None) -> int:
    """Run `convert` alone, as `python convert_snap.py` does."""
    return _run_command("convert", "convert_snap.py", arguments)


def gui_main(arguments: Sequence[str] | None = None) -> int:
    """Run `open` alone, as `python gui.py` does."""
    return _run_command("open", "gui.py", arguments)


def parser_main(arguments: Sequence[str] | None = None) -> int:
    """Run `model` alone, as `pytorch_parser` does: it always writes its report."""
    return run(lambda: _execute(_module("model").pytorch_parser(), arguments), mark="[ERROR] ")


def analyze_memory_main(
    arguments: Sequence[str] | None = None, *, program: str = "analyze_memory.py"
) -> int:
    """Run `events` as `analyze_memory.py` promises: in Chinese, and it always writes its report."""
    return run(
        lambda: _execute(_module("events").analyze_memory(program), arguments), mark="错误: "
    )


def run(work: Callable[[], None], *, mark: str = "snapviewer: ") -> int:
    """Do something, and return the exit code; a failure is one sentence on stderr, after `mark`."""
    before = make_streams_harmless()
    is_bug = False
    try:
        return _run(work, mark)
    except Exception:
        is_bug = True  # whose traceback is printed later, and may quote a file
        raise
    finally:
        if not is_bug:
            sys.stdout, sys.stderr = before


def _run(work: Callable[[], None], mark: str) -> int:
    try:
        work()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print(f"{mark}interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        close_output()
    except Exception as error:
        from .errors import exit_code, sentence

        code = exit_code(error)
        if code is None:
            raise
        if "logging" in sys.modules:
            sys.modules["logging"].getLogger(__name__).debug("failed", exc_info=True)
        print(f"{mark}{sentence(error)}", file=sys.stderr)
        return code
    return 0


def _run_command(name: str, program: str, arguments: Sequence[str] | None) -> int:
    def work() -> None:
        import argparse

        module = _module(name)
        kind = getattr(module, "Parser", argparse.ArgumentParser)
        parser = kind(prog=program, description=description_of(name))
        module.add_options(parser)
        _execute(parser, arguments)

    return run(work)


def _module(command: str) -> ModuleType:
    return import_module(f"snapviewer.cli.{_COMMANDS[command][0]}")


def _execute(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> None:
    from snapviewer.text import progress

    from .errors import UsageError

    options = parser.parse_args(arguments)
    if getattr(options, "log_level", None):
        _start_logging(options.log_level)
    progress.is_silent = getattr(options, "quiet", False)
    try:
        options.run(options)
    except UsageError as error:
        parser.error(str(error))


def _start_logging(level: str) -> None:
    import logging

    from .options import LOG_LEVELS

    logging.basicConfig(
        level=LOG_LEVELS[level], format="%(relativeCreated)7d ms  %(name)s  %(message)s"
    )
