"""`python -m snapviewer.pth_analyzer FILE …`: prints a table for each file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from snapviewer import SnapshotError
from snapviewer.checkpoint.paths import expand_names
from snapviewer.text.sanitize import replace_unprintable, sanitize
from snapviewer.text.streams import close_output, print_text

from . import analyze_pth_file


def main(arguments: Sequence[str] | None = None) -> int:
    """Analyze files and return the exit code: 1 if one of them failed."""
    parser = argparse.ArgumentParser(
        prog="python -m snapviewer.pth_analyzer",
        description="List the variables of a .pth file and their memory.",
    )
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="a checkpoint (.pth, .pt, .safetensors, …), a directory, or a quoted wildcard",
    )
    parser.add_argument("--quiet", action="store_true", help="print one line, not the table")
    parser.add_argument(
        "--max-depth",
        type=_depth,
        default=3,
        metavar="N",
        help="number of levels (default %(default)s)",
    )
    options = parser.parse_args(arguments)
    try:
        files, missing = expand_names(options.files)
        for item in missing:
            _print_failure(f"{item.reason}: {item.file}")
        failures = len(missing)
        for file in files:
            failures += not _analyze(file, options)
    except BrokenPipeError:  # such as `| head`
        close_output()
        return 0
    except OSError as error:
        _print_failure(str(error))
        return 1
    except KeyboardInterrupt:
        return 130
    return 1 if failures else 0


def _depth(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError("must be a whole number, such as 3") from None
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def _analyze(file: str, options: argparse.Namespace) -> bool:
    """Print the table of a file, or why it failed, and return whether it succeeded."""
    try:
        results = analyze_pth_file(file, max_depth=options.max_depth, verbose=not options.quiet)
    except BrokenPipeError:
        raise
    except (SnapshotError, OSError, MemoryError) as error:
        _print_failure(str(error) or type(error).__name__)
        return False
    if options.quiet:
        what = f"{results['total_size_formatted']}, {results['num_variables']:,} variables"
        print_text(f"{sanitize(file)}: {what}\n")
    return True


def _print_failure(reason: str) -> None:
    sentence = replace_unprintable(" ".join(reason.split()), keep_undecoded=True)
    sys.stderr.write(f"Failed to load file: {sentence}\n")


if __name__ == "__main__":
    sys.exit(main())
