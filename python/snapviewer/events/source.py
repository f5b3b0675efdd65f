"""The text of a file, in pieces, so that a file of any size takes the memory of a piece.

Bytes that are no text become U+FFFD: a name that was cut in the middle of a letter, or written in
another encoding, is no reason to lose the figures beside it.
"""

from __future__ import annotations

import codecs
import errno
import os
import stat
from collections.abc import Callable, Iterator

from snapviewer.events.errors import LogError, system_error

CHUNK_BYTES = 2**18


def read_text(
    path: str,
    *,
    chunk_bytes: int = CHUNK_BYTES,
    progress: Callable[[int, int], object] | None = None,
) -> Iterator[str]:
    """Read a file of UTF-8, or of UTF-16 with a byte order mark.

    Args:
        path: A regular file: anything else may wait, or go on, for ever.
        chunk_bytes: How much to read at once.
        progress: Called with the bytes read so far and all of them.

    Raises:
        LogError: The system does not let us read it.
    """
    descriptor, total_bytes = _opened(path)
    try:
        done_bytes = 0
        decoder: codecs.IncrementalDecoder | None = None
        while chunk := _read(path, descriptor, chunk_bytes):
            if decoder is None:
                # A mark may be cut by the end of the first piece, if pieces are tiny.
                while len(chunk) < 2 and (more := _read(path, descriptor, 1)):
                    chunk += more
                is_utf16 = chunk[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
                encoding = "utf-16" if is_utf16 else "utf-8-sig"
                decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
            done_bytes += len(chunk)
            yield decoder.decode(chunk)
            if progress is not None:
                # A file may grow while it is read.
                progress(done_bytes, max(total_bytes, done_bytes))
        if decoder is not None:
            yield decoder.decode(b"", final=True)
    finally:
        os.close(descriptor)


def _opened(path: str) -> tuple[int, int]:
    """Open a regular file; returns its descriptor and its size."""
    # Opening a pipe would wait for someone who writes into it.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        raise system_error(path, error) from error
    except ValueError as error:  # a NUL, or letters that no name of a file can have
        raise LogError(path, "这不是文件名", "this is no name of a file") from error
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise system_error(path, IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR)))
        if not stat.S_ISREG(found.st_mode):
            raise LogError(path, "这不是普通文件", "it is not a regular file")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, found.st_size


def _read(path: str, descriptor: int, most_bytes: int) -> bytes:
    try:
        return os.read(descriptor, most_bytes)
    except OSError as error:
        raise system_error(path, error) from error
