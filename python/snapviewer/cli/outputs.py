"""What a command writes: files, each kept unless `--force` replaces it, and standard output."""

from __future__ import annotations

import argparse
import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from snapviewer.files.atomic_write import atomic_write, write_text
from snapviewer.text.sanitize import json_text
from snapviewer.text.units import format_bytes

from .errors import UsageError

Renderer = Callable[[], str | bytes]


def check_outputs(
    options: argparse.Namespace,
    *,
    inputs: Sequence[str | os.PathLike[str]] = (),
    suffixes: Sequence[str] = (),
) -> None:
    """Refuse outputs before any work is done.

    Args:
        options: With `outputs` and `force`.
        inputs: Files that are read, which are never replaced.
        suffixes: What the command can write, if that depends on the suffix.

    Raises:
        UsageError: A suffix stands for no format of the command, or an output is given twice.
        OSError: An output exists, is an input, or cannot be a file.
    """
    for output in options.outputs:
        if suffixes and suffix_of(output, suffixes) is None:
            raise UsageError(
                f"the suffix of an output picks its format, {_list(suffixes)}: {output}"
            )
        if output.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(output))
        if output.exists() and not output.is_file():
            raise OSError(errno.EINVAL, "the output is not a regular file", str(output))
    refuse_existing(options, inputs=inputs)


def refuse_existing(
    options: argparse.Namespace,
    *,
    inputs: Sequence[str | os.PathLike[str]],
    kept: Sequence[Path] | None = None,
) -> None:
    """Refuse outputs that are inputs, that are given twice, or that exist without `--force`.

    Args:
        options: With `outputs` and `force`.
        inputs: Files that are read, which are never replaced.
        kept: The outputs that need `--force` to be replaced; None for all.

    Raises:
        UsageError: One is given twice.
        OSError: One is an input, or exists.
    """
    seen: set[str] = set()
    for output in options.outputs:
        if any(
            output.exists() and os.path.exists(file) and output.samefile(file) for file in inputs
        ):
            raise OSError(errno.EINVAL, "the output is the input itself", str(output))
        if (real := os.path.realpath(output)) in seen:
            raise UsageError(f"the output is given twice: {output}")
        seen.add(real)
        if not output.parent.exists():
            raise FileNotFoundError(errno.ENOENT, "no such directory", str(output.parent))
    for output in options.outputs if kept is None else kept:
        if os.path.lexists(output) and not options.force:
            raise FileExistsError(
                errno.EEXIST,
                "the output exists already; choose another name, or replace it with --force",
                str(output),
            )


def suffix_of(path: Path, suffixes: Iterable[str]) -> str | None:
    """Return the longest of some suffixes that a name has: `.pb.gz`, say.

    >>> suffix_of(Path("a.pb.gz"), (".gz", ".pb.gz")), suffix_of(Path("a.txt"), (".gz",))
    ('.pb.gz', None)
    """
    name = path.name.lower()
    found = (suffix for suffix in suffixes if name.endswith(suffix) and name != suffix)
    return max(found, key=len, default=None)


def _list(words: Sequence[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def answer(
    options: argparse.Namespace,
    *,
    text: Callable[[], str],
    document: Callable[[], object],
    others: Mapping[str, Renderer] | None = None,
) -> None:
    """Write the outputs that were asked for; without any, print the answer.

    Args:
        options: With `json`, `outputs` and `quiet`.
        text: Returns the answer for people, which is also the format of `.txt`.
        document: Returns the answer for programs, which `.json` and `--json` are.
        others: What returns the other formats, by their suffixes.
    """
    formats: dict[str, Renderer] = {
        ".txt": text,
        ".json": lambda: f"{json_text(document())}\n",
        **(others or {}),
    }
    # All are rendered before any is written.
    contents = [
        (path, formats[suffix_of(path, formats) or path.suffix.lower()]())
        for path in options.outputs
    ]
    for path, content in contents:
        write_file(path, content)
    if options.json:
        print_json(document())
    elif options.outputs:
        print_written(options)
    else:
        sys.stdout.write(text())


FORMATS = (".txt", ".json")  # that `answer` always has


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file whole, or leave what was there."""
    if isinstance(content, str):
        write_text(path, content)
        return
    with atomic_write(path) as file:
        file.write(content)


def print_written(options: argparse.Namespace, details: str = "") -> None:
    """Print the outputs that were written, and their sizes."""
    for output in () if options.quiet else options.outputs:
        print(f"{output}: {details}{format_bytes(size_of(output))}")


def written(options: argparse.Namespace) -> dict[str, object]:
    """Return the outputs as the JSON of commands has them: the first one, and all of them."""
    all_of_them = [{"output": str(path), "bytes": size_of(path)} for path in options.outputs]
    return {**all_of_them[0], "outputs": all_of_them}


def size_of(path: Path) -> int:
    """Return the bytes of a file, or of the files in a directory."""
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def print_json(document: object) -> None:
    """Print one JSON document."""
    sys.stdout.write(f"{json_text(document)}\n")


def output_width(options: argparse.Namespace) -> int | None:
    """Return the width of the terminal, or `COLUMNS`; what goes elsewhere has no width."""
    is_known = not options.outputs and (sys.stdout.isatty() or os.environ.get("COLUMNS"))
    return shutil.get_terminal_size().columns if is_known else None
