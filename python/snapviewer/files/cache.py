"""From a snapshot file to a bundle, and the cache of bundles.

The cache is keyed by a file's whole content, so that a file that changes is converted again and a
copy is not. An entry is a bundle's directory with a sum beside it; one that does not match its sum
is made again. Several processes may work on the same cache: an entry is made aside, and the sum is
there before the bundle, so that a bundle without its sum is damaged and never one that is about to
be whole.
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
from snapviewer.text.units import parse_bytes

Progress = Callable[[int, int], object]

DEFAULT_CACHE_BYTES = 8 * 1024**3

# Entries of another format are other entries.
_SALT = f"snapviewer {_core.FORMAT_VERSION}"

# All names that we give, and none that somebody else would. What conversions hold aside is hidden.
_OURS = re.compile(r"\.?[0-9a-f]{50,64}\.(\S+\.)?(sum|bundle|new|part)")
_LITTER_SECONDS = 24 * 60 * 60


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
        limit_bytes = _usual_limit()
    directory = cache_directory()
    entry = directory / f"{_digest([path], _SALT)}.bundle"
    if _is_whole(entry):
        # In a cache that we may only read, when it was used last is not ours to say.
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


def _usual_limit() -> int:
    text = os.environ.get("SNAPVIEWER_CACHE_BYTES")
    if not text:
        return DEFAULT_CACHE_BYTES
    try:
        return parse_bytes(text)
    except (ValueError, OverflowError):
        raise SnapshotError(f"$SNAPVIEWER_CACHE_BYTES is not a size such as 8GiB: {text}") from None


def _place(made: Path, entry: Path) -> None:
    """Let an entry appear whole, unless another process did so meanwhile."""
    aside = made.with_suffix(".part")
    try:
        aside.write_text(_digest(_files(made), ""))
        aside.replace(_sum_file(entry))
    finally:
        aside.unlink(missing_ok=True)
    try:
        made.rename(entry)
    except OSError:
        # The same snapshot makes the same bytes, so their bundle matches our sum.
        if not _is_whole(entry):
            _remove_bundle(entry)
            made.rename(entry)


def _files(entry: Path) -> list[Path]:
    return [entry / "allocations.json", entry / "elements.db"]


def _size(entry: Path) -> int:
    return sum(file.stat().st_size for file in entry.iterdir())


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
        return _sum_file(entry).read_bytes() == _digest(_files(entry), "").encode()
    except OSError:
        return False


def _remove(entry: Path) -> None:
    # The sum goes first: an entry without one is not whole.
    _sum_file(entry).unlink(missing_ok=True)
    _remove_bundle(entry)


def _remove_bundle(bundle: Path) -> None:
    if bundle.is_dir() and not bundle.is_symlink():
        shutil.rmtree(bundle, ignore_errors=True)
    else:
        bundle.unlink(missing_ok=True)


def _shrink(directory: Path, limit_bytes: int, *, keep: Path) -> None:
    """Remove the entries that were not used for longest until the rest fits, and old litter."""
    entries: list[tuple[float, int, Path]] = []
    for path in directory.iterdir():
        if not _OURS.fullmatch(path.name):
            continue
        entry = path.with_suffix(".bundle")
        # Whatever another process removes meanwhile is none of our business.
        with suppress(OSError):
            if entry.exists() and _sum_file(entry).exists():
                if path == entry:
                    used = _sum_file(entry).stat().st_mtime
                    entries.append((used, _size(entry), entry))
            elif time.time() - path.stat().st_mtime > _LITTER_SECONDS:
                # A killed process left it: no other takes that long to go on.
                _remove_bundle(path)
    total = sum(size for _, size, _ in entries)
    for _, size, entry in sorted(entries):
        if total <= limit_bytes:
            break
        if entry != keep:
            _remove(entry)
            total -= size
