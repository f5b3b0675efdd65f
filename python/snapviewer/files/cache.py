"""The cache of bundles: snapshots that were converted before.

The key is a digest of a file's content, so that a changed file is converted again and a copy is
not. An entry is a bundle's directory with its checksum in a file beside it; one that does not match
is converted again. Several processes may share the cache: an entry is written under another name
and renamed, after its checksum, so that a bundle without a checksum is always damaged.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from snapviewer import SnapshotError, _core
from snapviewer.files.atomic_write import atomic_write
from snapviewer.files.directories import cache_directory
from snapviewer.files.regular_file import open_regular
from snapviewer.text.units import parse_bytes

Progress = Callable[[int, int], object]

DEFAULT_CACHE_BYTES = 8 * 1024**3

# Part of the key: entries of another format do not match.
_KEY_PREFIX = f"snapviewer {_core.FORMAT_VERSION}"

# Matches the names of entries and of unfinished ones, and nothing else.
_ENTRY_NAME = re.compile(r"\.?[0-9a-f]{50,64}\.(\S+\.)?(sum|bundle|new|part)")
_MAX_SUM_BYTES = 1000
_MAX_UNFINISHED_SECONDS = 24 * 60 * 60


class Cancel(Protocol):
    """A flag that stops work, such as `threading.Event`."""

    def is_set(self) -> bool:
        """Return whether to stop."""


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
        limit_bytes: The size of the cache; the least recently used entries are removed. By default
            $SNAPVIEWER_CACHE_BYTES, or 8 GiB.
        progress: Called with (done, total) from time to time.
        cancel: Set to stop.

    Returns:
        The bundle's directory, which later calls may remove when the cache is full.
    """
    if limit_bytes is None:
        limit_bytes = _default_limit()
    directory = cache_directory()
    entry = directory / f"{_digest([path], _KEY_PREFIX)}.bundle"
    if _is_whole(entry):
        # A cache may be read-only.
        with suppress(OSError):
            os.utime(_sum_file(entry))
        return entry
    directory.mkdir(parents=True, exist_ok=True)
    made = entry.with_suffix(f".{uuid.uuid4().hex}.new")
    try:
        _core.convert(path, made, progress=progress, cancel=cancel)
        _place(made, entry)
    finally:
        _remove_bundle(made)
    _shrink(directory, limit_bytes, keep=entry)
    return entry


def _default_limit() -> int:
    text = os.environ.get("SNAPVIEWER_CACHE_BYTES")
    if not text:
        return DEFAULT_CACHE_BYTES
    try:
        return parse_bytes(text)
    except (ValueError, OverflowError):
        raise SnapshotError(f"$SNAPVIEWER_CACHE_BYTES is not a size such as 8GiB: {text}") from None


def _place(made: Path, entry: Path) -> None:
    """Rename a new bundle and its checksum to an entry, unless another process did so meanwhile."""
    sum_file = _sum_file(entry)
    if sum_file.exists() and not sum_file.is_file():
        _remove_bundle(sum_file)
    with atomic_write(sum_file) as file:
        file.write(_digest(_files(made), "").encode())
    try:
        made.rename(entry)
    except OSError:
        # The same snapshot gives the same bytes, so the other's bundle matches our checksum.
        if not _is_whole(entry):
            _remove_bundle(entry)
            try:
                made.rename(entry)
            except OSError:
                sum_file.unlink(missing_ok=True)
                raise


def _files(entry: Path) -> list[Path]:
    return [entry / "allocations.json", entry / "elements.db"]


def _size(entry: Path) -> int:
    return sum(file.stat().st_size for file in entry.iterdir())


def _sum_file(entry: Path) -> Path:
    return entry.with_suffix(".sum")


def _digest(paths: list[Path], prefix: str) -> str:
    digest = hashlib.sha256(prefix.encode())
    for path in paths:
        with open_regular(path) as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest()


def _is_whole(entry: Path) -> bool:
    try:
        with open_regular(_sum_file(entry)) as file:
            expected = file.read(_MAX_SUM_BYTES)
        return expected == _digest(_files(entry), "").encode()
    except OSError:
        return False


def _remove(entry: Path) -> None:
    # The checksum goes first: an entry without one counts as damaged.
    _sum_file(entry).unlink(missing_ok=True)
    _remove_bundle(entry)


def _remove_bundle(bundle: Path) -> None:
    if bundle.is_dir() and not bundle.is_symlink():
        shutil.rmtree(bundle, ignore_errors=True)
    else:
        bundle.unlink(missing_ok=True)


def _shrink(directory: Path, limit_bytes: int, *, keep: Path) -> None:
    """Remove the least recently used entries until the rest fits, and old unfinished ones."""
    entries: list[tuple[float, int, Path]] = []
    for path in directory.iterdir():
        if not _ENTRY_NAME.fullmatch(path.name):
            continue
        entry = path.with_suffix(".bundle")
        # Another process may remove it meanwhile.
        with suppress(OSError):
            if entry.exists() and _sum_file(entry).exists():
                if path == entry:
                    used = _sum_file(entry).stat().st_mtime
                    entries.append((used, _size(entry), entry))
            elif time.time() - path.stat().st_mtime > _MAX_UNFINISHED_SECONDS:
                # Left by a process that was killed: no conversion takes that long.
                _remove_bundle(path)
    total = sum(size for _, size, _ in entries)
    for _, size, entry in sorted(entries):
        if total <= limit_bytes:
            break
        if entry != keep:
            _remove(entry)
            total -= size
