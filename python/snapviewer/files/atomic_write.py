"""Atomic writes: after an error a file is as it was before.

What is written goes to `.<name>.<process>.<random>.part` beside the file, which then replaces it. A
process that is killed leaves that behind; the next write to the same file removes it once the
process is gone, or after a day. The core does the same for bundles.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from snapviewer.text.sanitize import replace_controls

_MAX_PREFIX_CHARS = 50  # of 255 bytes that a name may have
_MAX_PART_SECONDS = 24 * 60 * 60


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces `path` when the block ends without an error.

    Raises:
        OSError: The directory or the disk cannot be written to, or `path` exists and is not a file.
            Its `filename` is `path`, unless the block itself failed at another file.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():  # /dev/null, say: root could replace it
        raise OSError(errno.EINVAL, "the output is not a regular file", str(path))
    prefix = f".{path.name[:_MAX_PREFIX_CHARS]}."
    _remove_litter(path.parent, prefix)
    part = path.parent / f"{prefix}{os.getpid()}.{os.urandom(8).hex()}.part"
    try:
        with open(part, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException as error:
        with suppress(OSError):
            part.unlink()
        if isinstance(error, OSError) and error.filename in (None, str(part), part):
            message = os.strerror(error.errno) if error.errno else str(error)
            raise OSError(error.errno, message, str(path)) from None
        raise


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text atomically, without control characters, as standard output has it."""
    with atomic_write(path) as file:
        file.write(replace_controls(text).encode("utf-8", "backslashreplace"))


def _remove_litter(directory: Path, prefix: str) -> None:
    """Remove what killed processes left; what cannot be removed is no reason to fail."""
    part = re.compile(re.escape(prefix) + r"(\d+)\.[0-9a-f]{16}\.part")
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if found := part.fullmatch(entry.name):
                with suppress(OSError):
                    age = time.time() - entry.stat(follow_symlinks=False).st_mtime
                    if age > _MAX_PART_SECONDS or _is_gone(int(found[1])):
                        os.unlink(entry.path)


def _is_gone(process: int) -> bool:
    """Return whether there is certainly no such process."""
    if os.name != "posix":  # elsewhere signal 0 is a real one
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        return False
    return False
