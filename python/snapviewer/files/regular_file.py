"""Opens regular files only: a named pipe or a device would wait, or never end."""

from __future__ import annotations

import errno
import os
import stat
from typing import IO


def open_regular(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file for reading.

    Raises:
        OSError: There is no such file, it cannot be read, or it is a pipe, a device or a directory.
    """
    return open(path, "rb", opener=_opener)


def _opener(path: str, flags: int) -> int:
    # Opening a named pipe would wait for its writer; Windows has neither.
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise OSError(errno.EINVAL, "not a regular file", path)
