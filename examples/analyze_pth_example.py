"""Shows what is in one checkpoint, or compares the sizes of many.

python examples/analyze_pth_example.py path/to/file.pth
python examples/analyze_pth_example.py 'data/processed/*.pth'
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Sequence

from snapviewer import SnapshotError
from snapviewer.pth_analyzer import analyze_pth_file, check_structure, format_size


def main(arguments: Sequence[str]) -> int:
    """Analyze the files that the arguments stand for, and return the exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__, end="")
        return 0 if arguments else 2
    files = [file for argument in arguments for file in files_of(argument)]
    failed = 0
    total_bytes = 0
    for file in files:
        try:
            results = analyze_pth_file(file, verbose=True)
        except (SnapshotError, OSError) as error:
            print(f"Failed to load file: {error}", file=sys.stderr)
            failed += 1
            continue
        total_bytes += results["total_size_bytes"]
        print_more(results)
    if len(files) > 1:
        analyzed = len(files) - failed
        print(f"{analyzed} files, {format_size(total_bytes)} in all; {failed} failed")
    return 1 if failed else 0


def files_of(argument: str) -> list[str]:
    """Expand a wildcard; a name that is there, or that stands for nothing, stays as it is."""
    if os.path.exists(argument):
        return [argument]
    return sorted(glob.glob(argument, recursive=True)) or [argument]


def print_more(results: dict[str, object]) -> None:
    """Use the results: the largest variable, and whether a known pipeline wrote the file."""
    variables = results["variables"]
    assert isinstance(variables, dict)
    if variables:
        largest = max(variables, key=lambda name: int(variables[name]["size_bytes"]))
        print(f"Largest: {largest} - {variables[largest]['size_formatted']}")
    if results["structure"] is not None:
        print(f"Structure: {results['structure']}")
    elif "video_latent" in variables:
        for complaint in check_structure(results):
            print(f"Warning: {complaint}")
    print()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
