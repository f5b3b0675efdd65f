"""Small JSON files of the user's, in which programs remember choices from one run to the next.

A file that is missing, damaged or not writable costs nobody anything.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from snapviewer.files.atomic_write import atomic_write

_MOST_BYTES = 1 << 20


def settings_path(name: str) -> Path:
    """Return where a file of choices is: in $SNAPVIEWER_CONFIG, or the user's configuration."""
    if named := os.environ.get("SNAPVIEWER_CONFIG"):
        return Path(named) / name
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "snapviewer" / name


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)  # not to wait for someone to write into a pipe


def read_user_settings(path: Path) -> dict[str, Any]:
    """Read what is remembered; nothing if the file is not as it should be."""
    document: Any = None
    with (
        suppress(OSError, ValueError, RecursionError),
        open(path, "rb", opener=_opened) as file,
    ):
        document = json.loads(file.read(_MOST_BYTES) or b"")
    return document if isinstance(document, dict) else {}


def write_user_settings(path: Path, document: Mapping[str, Any]) -> None:
    """Write what to remember, whole or not at all."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.write(json.dumps(document, indent=2).encode())
