"""From a snapshot file to a bundle, and the cache of bundles.

The cache is keyed by a file's whole content, so that a file that changes is converted again and a
copy is not. An entry is a bundle's directory with a sum beside it; one that does not match its sum
is made again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from snapviewer import _core

Progress = Callable[[int, int], object]

CACHE_FORMAT = 1
"""Goes into every key: entries of another format are other entries."""

DEFAULT_CACHE_BYTES = 8 * 1024**3


class Cancel(Protocol):
    """What can tell that work should stop, such as `threading.Event`."""

    def is_set(self) -> bool:
        """Return whether to stop."""


def cache_directory() -> Path:
    """Return where converted snapshots are kept: $SNAPVIEWER_CACHE, or the user's cache."""
    if named := os.environ.get("SNAPVIEWER_CACHE"):
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "snapviewer"


def cached_bundle(
    path: Path,
    *,
    limit_bytes: int | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
) -> Path:
    """Convert a snapshot unless its bundle is in the cache, and return the bundle.

    Args:
        path: A snapshot file.
        limit_bytes: How much the cache may hold; entries not used for longest go first. None takes
            $SNAPVIEWER_CACHE_BYTES, or 8 GiB.
        progress: Called with (done, total) now and then.
        cancel: Asked now and then whether to stop.

    Returns:
        The bundle's directory, which later calls may remove when the cache is full.
    """
    if limit_bytes is None:
        limit_bytes = int(os.environ.get("SNAPVIEWER_CACHE_BYTES", DEFAULT_CACHE_BYTES))
    directory = cache_directory()
    entry = directory / f"{_digest([path], f'snapviewer {CACHE_FORMAT}')}.bundle"
    if _is_whole(entry):
        os.utime(_sum_file(entry))
        return entry
    directory.mkdir(parents=True, exist_ok=True)
    _remove(entry)
    _core.convert(path, entry, progress=progress, cancel=cancel)
    aside = _sum_file(entry).with_suffix(f".{os.getpid()}.part")
    aside.write_text(_digest(_files(entry), ""))
    aside.replace(_sum_file(entry))
    _shrink(directory, limit_bytes, keep=entry)
    return entry


def _files(entry: Path) -> list[Path]:
    return [entry / "allocations.json", entry / "elements.db"]


def _sum_file(entry: Path) -> Path:
    return entry.with_suffix(".sum")


def _digest(paths: list[Path], salt: str) -> str:
    digest = hashlib.sha256(salt.encode())
    for path in paths:
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()


def _is_whole(entry: Path) -> bool:
    try:
        return _sum_file(entry).read_text() == _digest(_files(entry), "")
    except OSError:
        return False


def _remove(entry: Path) -> None:
    # The sum goes first: an entry without one is not whole.
    _sum_file(entry).unlink(missing_ok=True)
    shutil.rmtree(entry, ignore_errors=True)


def _shrink(directory: Path, limit_bytes: int, *, keep: Path) -> None:
    """Remove the entries that were not used for longest until the rest fits."""
    entries: list[tuple[float, int, Path]] = []
    for sum_file in directory.glob("*.sum"):
        entry = sum_file.with_suffix(".bundle")
        try:
            size = sum(file.stat().st_size for file in _files(entry))
            entries.append((sum_file.stat().st_mtime, size, entry))
        except OSError:
            _remove(entry)
    total = sum(size for _, size, _ in entries)
    for _, size, entry in sorted(entries):
        if total <= limit_bytes:
            break
        if entry != keep:
            _remove(entry)
            total -= size
