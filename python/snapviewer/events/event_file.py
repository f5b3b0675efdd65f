"""A log that survives what it records: a line is on disk, whole, when writing it returns.

A line is one write to a file opened for appending, so that lines of two writers do not mix, and a
line torn by a full disk or a lost machine hurts no other. Once open, nothing here raises: a log is
not worth the run that it tells of. What could not be written is counted, and said once.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
from collections.abc import Mapping
from contextlib import suppress

_log = logging.getLogger("snapviewer.events")

# What `fsync` answers for a pipe, a terminal or a file system that has no such thing.
_CANNOT_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EROFS}


class EventFile:
    """A file of JSON Lines that is being written.

    Args:
        path: The file; it is made if it is not there, but its directory is not.
        is_appended: Whether to keep what the file says already; else it begins empty.
        is_synced: Whether each line waits for the disk, and so survives the machine, too.

    Raises:
        OSError: The file cannot be written.
        ValueError: It is to be appended to, but is a JSON array, which has an end.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, is_appended: bool = False, is_synced: bool = True
    ) -> None:
        self.path = os.fspath(path)
        self.lost = 0
        self._is_synced = is_synced
        self._is_torn = is_appended and _ends_within_a_line(self.path)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | (0 if is_appended else os.O_TRUNC)
        self._handle = os.open(self.path, flags | getattr(os, "O_BINARY", 0), 0o666)
        if is_synced:
            _sync_directory(self.path)

    def write(self, event: Mapping[str, object]) -> None:
        """Append an event; it is on disk when this returns, or counted as lost."""
        line = json.dumps(event, allow_nan=False).encode("ascii") + b"\n"
        line = b"\n" + line if self._is_torn else line
        try:
            written = os.write(self._handle, line)
            self._is_torn = written < len(line)
            while written < len(line):  # a disk that is nearly full takes a part of it
                written += os.write(self._handle, line[written:])
            self._is_torn = False
            self._sync()
        except OSError as error:
            self._lose(error)

    def close(self) -> None:
        """Close the file; nothing can be written after."""
        with suppress(OSError):
            os.close(self._handle)

    def _sync(self) -> None:
        if not self._is_synced:
            return
        try:
            os.fsync(self._handle)
        except OSError as error:
            if error.errno not in _CANNOT_SYNC:
                raise
            self._is_synced = False

    def _lose(self, error: OSError) -> None:
        self.lost += 1
        if self.lost == 1:
            # Not a warning, which a program may turn into an exception.
            message = "memory events are being lost, the run goes on: %s: %s"
            _log.warning(message, error.strerror, self.path)


def _ends_within_a_line(path: str) -> bool:
    """Tell whether a line was torn at the end of an older recording.

    Raises:
        OSError: The file is there, but cannot be read.
        ValueError: It is a JSON array.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            if file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
                raise ValueError(f"cannot append to a JSON array, only to JSON Lines: {path}")
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 1, 0))
            return file.read(1) not in (b"", b"\n")
    except FileNotFoundError:
        return False


def _sync_directory(path: str) -> None:
    """Have the name of a new file on disk, too, where the system can."""
    with suppress(OSError):
        handle = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
