"""The parts of a TorchScript archive that tell what it computes, read without running anything.

# Cost

The weights are not read. Code is unpacked one file at a time, and only what is asked for; no file
of it may unpack to more than `MOST_CODE_BYTES`.
"""

from __future__ import annotations

import math
import os
import struct
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from snapviewer._core import Checkpoint, SnapshotError, Storage, read_checkpoint
from snapviewer._core import Tensor as FileTensor
from snapviewer.checkpoint.members import members_of, unpacked

MOST_CODE_BYTES = 4 << 20  # a file of code; the largest of torchvision's models is 0.3 MB
MOST_TOTAL_CODE_BYTES = 16 << 20
_MOST_PICKLE_BYTES = 64 << 20
_MOST_NUMBERS = 64
_CODES = {
    "bool": "?",
    "uint8": "B",
    "int8": "b",
    "int16": "h",
    "int32": "i",
    "int64": "q",
    "float16": "e",
    "float32": "f",
    "float64": "d",
}


@dataclass(frozen=True, slots=True)
class Archive:
    """A TorchScript file: its module tree, its files of code by the name of what they define."""

    path: str
    checkpoint: Checkpoint
    code: Mapping[str, zipfile.ZipInfo]
    traced_inputs: zipfile.ZipInfo | None
    is_little_endian: bool
    storages: Mapping[str, Storage] = field(default_factory=dict)
    """Those whose elements stand in the file as they are."""

    def source(self, name: str) -> str:
        """Return a file of code.

        Raises:
            SnapshotError: It cannot be read, or is too large.
        """
        raw = unpacked(self.path, self.code[name], MOST_CODE_BYTES)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise SnapshotError(f"the code of {name[:200]} is no text") from None

    def traced(self) -> Checkpoint | None:
        """Return the values that the model was traced with; their elements are not in the file."""
        if self.traced_inputs is None:
            return None
        raw = unpacked(self.path, self.traced_inputs, _MOST_PICKLE_BYTES)
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            file = Path(folder, "traced_inputs.pkl")
            file.write_bytes(raw)
            return read_checkpoint(file)

    def numbers(self, tensor: FileTensor) -> tuple[float, ...] | None:
        """Return the elements of a tensor that has only a few; None if they cannot be had."""
        code = _CODES.get(tensor.dtype)
        count = math.prod(tensor.shape)
        if code is None or tensor.parts or len(tensor.shape) > 1 or count > _MOST_NUMBERS:
            return None
        order = "<" if self.is_little_endian else ">"
        layout = struct.Struct(f"{order}{count}{code}")
        first = (tensor.offset or 0) * struct.calcsize(code)
        storage = None if tensor.storage is None else self.storages.get(tensor.storage)
        if storage is None or first + layout.size > storage.bytes:
            return None
        if tensor.stride not in ((), (1,)):
            return None
        with open(self.path, "rb") as file:
            file.seek(storage.start + first)
            raw = file.read(layout.size)
        return layout.unpack(raw) if len(raw) == layout.size else None


def open_archive(path: str | PathLike[str]) -> Archive:
    """Open a TorchScript archive.

    Raises:
        SnapshotError: The file is no TorchScript archive that can be read.
        OSError: The file cannot be read.
    """
    checkpoint = read_checkpoint(path)
    if checkpoint.format != "torchscript":
        raise SnapshotError(f"the file holds no TorchScript code: {os.fspath(path)}")
    members = members_of(path)
    tops = {info.filename.split("/")[0] for info in members if _is_root(info.filename)}
    if len(tops) != 1:
        raise SnapshotError(f"the archive has no single data.pkl: {os.fspath(path)}")
    top = tops.pop()
    code: dict[str, zipfile.ZipInfo] = {}
    others: dict[str, zipfile.ZipInfo] = {}
    for info in members:
        head, _, rest = info.filename.partition("/")
        if head != top:
            continue
        if rest.startswith("code/") and rest.endswith(".py"):
            code[rest[5:-3].replace("/", ".")] = info
        else:
            others[rest] = info
    if sum(info.file_size for info in code.values()) > MOST_TOTAL_CODE_BYTES:
        limit = MOST_TOTAL_CODE_BYTES >> 20
        raise SnapshotError(f"the code is larger than {limit} MiB, which no model needs")
    is_little = True
    if "byteorder" in others:
        is_little = unpacked(os.fspath(path), others["byteorder"], 64).strip() != b"big"
    traced = others.get("traced_inputs.pkl")
    storages = {
        storage.key: storage
        for storage in reversed(checkpoint.storages)
        if storage.packed_bytes == storage.bytes
    }
    return Archive(os.fspath(path), checkpoint, code, traced, is_little, storages)


def _is_root(name: str) -> bool:
    return name.endswith("/data.pkl") and name.count("/") == 1
