"""The members of an archive, unpacked within limits.

Not by `zipfile`'s own reading: torch may write no checksums, which that insists on, and it has no
limit on what a member unpacks to.
"""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from os import PathLike

from snapviewer._core import SnapshotError

_LOCAL_HEADER = struct.Struct("<4s5H3I2H")


def members_of(path: str | PathLike[str]) -> list[zipfile.ZipInfo]:
    """Return what an archive holds; the native reader has bounded its directory before.

    Raises:
        SnapshotError: The directory cannot be read.
        OSError: The file cannot be read.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.infolist()
    except (zipfile.BadZipFile, ValueError, struct.error, NotImplementedError, EOFError):
        raise SnapshotError(f"the archive's directory cannot be read: {os.fspath(path)}") from None


def unpacked(path: str, member: zipfile.ZipInfo, limit: int) -> bytes:
    """Unpack a member, up to a limit.

    Raises:
        SnapshotError: It is larger, damaged, or packed in a way that torch does not use.
        OSError: The file cannot be read.
    """
    name = member.filename[:200]
    wrong = f"a file of the archive cannot be unpacked: {name}"
    try:
        with open(path, "rb") as file:
            file.seek(member.header_offset)
            header = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
            file.seek(header[-2] + header[-1], os.SEEK_CUR)
            raw = file.read(min(member.compress_size, limit + 1))
        if header[0] != b"PK\3\4" or member.compress_type not in (
            zipfile.ZIP_STORED,
            zipfile.ZIP_DEFLATED,
        ):
            raise SnapshotError(wrong)
        if member.compress_type == zipfile.ZIP_DEFLATED:
            raw = zlib.decompressobj(-zlib.MAX_WBITS).decompress(raw, limit + 1)
    except (struct.error, ValueError, OverflowError, zlib.error):
        raise SnapshotError(wrong) from None
    if len(raw) > limit:
        size = f"{limit >> 20} MiB" if limit >> 20 else f"{limit} bytes"
        raise SnapshotError(f"a file of the archive is larger than {size}: {name}")
    return raw
