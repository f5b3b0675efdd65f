"""`python -m snapviewer.pth_analyzer FILE`: prints the table of one file."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from snapviewer import SnapshotError
from snapviewer.texts import clean

from . import analyze_pth_file
from .table import write_out


def main(arguments: Sequence[str] | None = None) -> int:
    """Analyze a file, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m snapviewer.pth_analyzer",
        description="Tell what is in a .pth file, and how much memory each thing takes.",
    )
    parser.add_argument("pth_file", metavar="FILE", help="a checkpoint: .pth, .pt, .safetensors, …")
    parser.add_argument("--quiet", action="store_true", help="print one line, not the table")
    parser.add_argument(
        "--max-depth", type=int, default=3, metavar="N", help="how many levels (%(default)s)"
    )
    options = parser.parse_args(arguments)
    try:
        results = analyze_pth_file(
            options.pth_file, max_depth=options.max_depth, verbose=not options.quiet
        )
        if options.quiet:
            what = f"{results['total_size_formatted']}, {results['num_variables']:,} variables"
            write_out(f"{clean(options.pth_file)}: {what}\n")
    except BrokenPipeError:  # whoever read it has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (SnapshotError, OSError, MemoryError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        sys.stderr.write(f"Failed to load file: {reason}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
