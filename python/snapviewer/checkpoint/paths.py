"""Names on a command line as checkpoint files: files, wildcards and directories."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from snapviewer import SnapshotError

_INDEXES = (".safetensors.index.json", ".bin.index.json")
_CHECKPOINTS = (".pth", ".pt", ".pt2", ".ckpt", ".bin", ".safetensors")
_MAX_DIRECTORIES = 20_000
_MAX_FOUND = 2_000


@dataclass(frozen=True, slots=True)
class FailedFile:
    """A file that could not be analyzed, and why."""

    file: str
    reason: str


def failed_file(file: str, reason: str) -> FailedFile:
    """Return a failure; its reason does not repeat the name of the file.

    >>> failed_file("a.pth", "not a checkpoint: a.pth").reason
    'not a checkpoint'
    """
    return FailedFile(file, reason.removesuffix(f": {file}"))


def is_wildcard(name: str) -> bool:
    """Return whether a name is a wildcard, and not a file."""
    return glob.has_magic(name) and not os.path.lexists(name)


def expand_names(names: Sequence[str]) -> tuple[list[str], list[FailedFile]]:
    """Return the files that names stand for, each once, and the names without files."""
    files: dict[str, None] = {}
    failed = []
    for name in names:
        if os.path.isdir(name):
            found, reason = in_directory(name), "no checkpoint in this directory"
        elif is_wildcard(name):
            everything = sorted(glob.glob(name, recursive=True))
            found = [file for file in everything if not os.path.isdir(file)]
            reason = "no matching file"
        else:
            found, reason = [name], ""
        files.update(dict.fromkeys(found))
        if not found:
            failed.append(FailedFile(name, reason))
    return list(files), failed


def one_file(name: str) -> str:
    """Return the checkpoint of a name: itself, or the only one in a directory.

    Raises:
        SnapshotError: There is none, or there are several.
    """
    files, failed = expand_names([name])
    if failed:
        raise SnapshotError(f"{failed[0].reason}: {name}")
    if len(files) > 1:
        raise SnapshotError(f"{len(files):,} checkpoints found, expected one: {name}")
    return files[0]


def in_directory(directory: str) -> list[str]:
    """Return the indexes in a directory, which name the other files, or else its checkpoints.

    Raises:
        OSError: The directory cannot be read.
    """
    names = sorted(os.listdir(directory))
    found = [name for name in names if name.endswith(_INDEXES)]
    found = found or [name for name in names if name.lower().endswith(_CHECKPOINTS)]
    paths = [os.path.join(directory, name) for name in found]
    return [path for path in paths if not os.path.isdir(path)]


def below(directory: str) -> list[str]:
    """Return the checkpoints in a directory and below it, those that are near first.

    Hidden directories, links to directories, and ones that cannot be read are left out, and so is
    what comes after the first few thousand.
    """
    found: list[str] = []
    level = [directory]
    looked_into = 0
    while level and looked_into < _MAX_DIRECTORIES and len(found) < _MAX_FOUND:
        deeper: list[str] = []
        for folder in level[: _MAX_DIRECTORIES - looked_into]:
            with suppress(OSError):
                found += in_directory(folder)
                deeper += _folders(folder)
        looked_into += len(level)
        level = deeper
    return [os.path.normpath(file) for file in found[:_MAX_FOUND]]


def _folders(directory: str) -> list[str]:
    with os.scandir(directory) as entries:
        folders = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
    return sorted(entry.path for entry in folders if not entry.name.startswith("."))
