"""A log that survives the run it records: a line is on disk, whole, when writing it returns.

A line is one write to a file opened for appending, so that lines of two writers do not mix, and a
line torn by a full disk or a crash damages no other. Once open, nothing here raises: a log is not
worth the run it records. Lost events are counted, and logged once.

Lines are ASCII, which makes some texts longer, but a torn line is still valid text, lone surrogates
can be written, and a terminal that shows the file interprets nothing in it.
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

_MAX_FIRST_LINE_BYTES = 2**20  # the reader's limit
# The errors of `fsync` for pipes, terminals and file systems that do not support it.
_CANNOT_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS, errno.EROFS}


class EventFile:
    """A file of JSON Lines that is being written.

    Args:
        path: The file, in a directory that exists. A named pipe or `/dev/stdout` is never waited
            for: what cannot be written at once is lost.
        is_appended: Whether to keep what the file contains; else it begins empty.
        is_synced: Whether each line waits for the disk, and so survives the machine, too.

    Raises:
        OSError: The file cannot be written, the pipe has no reader, or it is a block device.
        ValueError: It is to be appended to, but is not JSON Lines that begin with an event.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, is_appended: bool = False, is_synced: bool = True
    ) -> None:
        self.path = os.fspath(path)
        self.lost = 0
        self._is_synced = is_synced
        self._is_torn = is_appended and _ends_within_a_line(self.path)
        self._handle = _opened(self.path, 0 if is_appended else os.O_TRUNC)
        if is_synced:
            _sync_directory(self.path)

    def write(self, event: Mapping[str, object]) -> None:
        """Append an event; it is on disk when this returns, or counted as lost."""
        line = json.dumps(event, allow_nan=False).encode("ascii") + b"\n"
        line = b"\n" + line if self._is_torn else line
        try:
            written = os.write(self._handle, line)
            self._is_torn = written < len(line)
            while written < len(line):  # a nearly full disk takes a part of it
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
            complain(f"memory events are being lost, the run goes on: {error.strerror}", self.path)


def complain(message: str, path: str | os.PathLike[str]) -> None:
    """Log what is wrong with a recording, even where logging itself raises."""
    with suppress(Exception):
        # Not a warning, which a program may turn into an exception.
        _log.warning("%s: %s", message, os.fspath(path))


def _opened(path: str, flags: int) -> int:
    """Open a file for appending without waiting for anyone.

    Raises:
        OSError: It cannot be written.
    """
    mode = 0
    with suppress(FileNotFoundError):
        mode = os.stat(path).st_mode
    if stat.S_ISBLK(mode):
        raise OSError(errno.EINVAL, "this is a disk, not a file", path)
    flags |= os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
    if mode and not stat.S_ISREG(mode):
        flags |= getattr(os, "O_NONBLOCK", 0)  # a pipe would wait for its reader
    try:
        return os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno == errno.ENXIO and stat.S_ISFIFO(mode):
            why = "nobody reads this pipe: start its reader first"
            raise OSError(errno.ENXIO, why, path) from None
        raise


def _ends_within_a_line(path: str) -> bool:
    """Return whether an older recording ends with a torn line.

    Raises:
        OSError: The file exists, but cannot be read.
        ValueError: It is not JSON Lines that begin with an event.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        with open(path, "rb") as file:
            head = file.read(_MAX_FIRST_LINE_BYTES).removeprefix(b"\xef\xbb\xbf").lstrip()
            if head and not _is_event(head.partition(b"\n")[0]):
                raise ValueError(
                    "cannot append to a JSON array or another file, only to JSON Lines whose "
                    f"first line is an event: {path}"
                )
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 1, 0))
            return file.read(1) not in (b"", b"\n")
    except FileNotFoundError:
        return False


def _is_event(line: bytes) -> bool:
    try:
        entry = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return False
    return isinstance(entry, dict) and "event" in entry


def _sync_directory(path: str) -> None:
    """Write the name of a new file to disk, too, where the system can."""
    with suppress(OSError):
        handle = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
