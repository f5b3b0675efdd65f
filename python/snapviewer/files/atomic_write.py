"""Atomic writes: after an error a file is as it was before."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces `path` when the block ends without an error.

    Raises:
        OSError: The directory cannot be written to, or `path` exists and is not a file.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():  # /dev/null, say: root could replace it
        raise OSError(errno.EINVAL, "the output is not a regular file", str(path))
    try:
        handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    except OSError as error:
        raise OSError(error.errno, os.strerror(error.errno or 0), str(path)) from None
    try:
        with open(handle, "wb") as file:
            yield file
        os.chmod(part, 0o666 & ~_umask())
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
