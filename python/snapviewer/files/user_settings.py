"""Small JSON files in which programs keep the user's choices from one run to the next.

A file that is missing, damaged or not writable is no error: the program begins with its defaults.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from snapviewer.files.atomic_write import atomic_write
from snapviewer.files.directories import settings_directory
from snapviewer.files.regular_file import open_regular

_MAX_BYTES = 1 << 20


def settings_path(name: str) -> Path:
    """Return the path of a file of settings."""
    return settings_directory() / name


def read_user_settings(path: Path) -> dict[str, Any]:
    """Read settings; empty if the file cannot be read or holds anything else."""
    document: Any = None
    with suppress(OSError, ValueError, RecursionError), open_regular(path) as file:
        document = json.loads(file.read(_MAX_BYTES) or b"")
    return document if isinstance(document, dict) else {}


def write_user_settings(path: Path, document: Mapping[str, Any]) -> None:
    """Write settings atomically; a directory that cannot be written to is ignored."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.write(json.dumps(document, indent=2).encode())
