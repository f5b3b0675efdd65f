"""Recognizes bundles, the converted snapshots that this program writes."""

from __future__ import annotations

import re
import zipfile
import zlib
from pathlib import Path

_MEMBERS = ("allocations.json", "elements.db")
# How allocations.json begins, in every version.
_START = re.compile(rb'\s*\{\s*"format"\s*:\s*"snapviewer"')
_MAX_START = 100


def is_replaceable(path: Path) -> bool:
    """Return whether a path is a bundle and nothing else: a zip or a directory of its two files."""
    try:
        if path.is_dir():
            names = [file.name for file in path.iterdir()]
            if not (path / _MEMBERS[0]).is_file():
                return False
            with (path / _MEMBERS[0]).open("rb") as document:
                start = document.read(_MAX_START)
        elif not path.is_file():  # a pipe would be waited for
            return False
        else:
            with zipfile.ZipFile(path) as archive, archive.open(_MEMBERS[0]) as file:
                names, start = archive.namelist(), file.read(_MAX_START)
    # As `zipfile` raises them for files that are no zips, or damaged ones.
    except (OSError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return False
    return sorted(names) == sorted(_MEMBERS) and _START.match(start) is not None
