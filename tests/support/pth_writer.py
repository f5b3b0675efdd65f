"""Writes checkpoints byte by byte as torch does, without torch, so that all of them is known.

A checkpoint is any Python value with tensors (`T`), storages (`S`), names of things to import
(`G`), calls (`Call`) and objects of classes (`Obj`) in it. None of those names has to exist: a
writer only spells them out.
"""

from __future__ import annotations

import io
import itertools
import json
import math
import pickle
import struct
import tarfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

Order = Literal["little", "big"]

# torch's name of a type: the class of its typed storage, its name in safetensors, bytes an element.
DTYPES: dict[str, tuple[str | None, str | None, int]] = {
    "float64": ("DoubleStorage", "F64", 8),
    "float32": ("FloatStorage", "F32", 4),
    "float16": ("HalfStorage", "F16", 2),
    "bfloat16": ("BFloat16Storage", "BF16", 2),
    "int64": ("LongStorage", "I64", 8),
    "int32": ("IntStorage", "I32", 4),
    "int16": ("ShortStorage", "I16", 2),
    "int8": ("CharStorage", "I8", 1),
    "uint8": ("ByteStorage", "U8", 1),
    "bool": ("BoolStorage", "BOOL", 1),
    "complex64": ("ComplexFloatStorage", "C64", 8),
    "complex128": ("ComplexDoubleStorage", "C128", 16),
    "uint16": (None, "U16", 2),
    "uint32": (None, "U32", 4),
    "uint64": (None, "U64", 8),
    "complex32": (None, None, 4),
    "float8_e4m3fn": (None, "F8_E4M3", 1),
    "float8_e5m2": (None, "F8_E5M2", 1),
    "float8_e4m3fnuz": (None, "F8_E4M3FNUZ", 1),
    "float8_e5m2fnuz": (None, "F8_E5M2FNUZ", 1),
    "float8_e8m0fnu": (None, "F8_E8M0", 1),
    "float4_e2m1fn_x2": (None, None, 1),
    "int4": (None, None, 1),
    "uint4": (None, None, 1),
}

MAGIC = 0x1950A86A20F9469CFC6C
SYSTEM = {
    "protocol_version": 1001,
    "little_endian": True,
    "type_sizes": {"short": 2, "int": 4, "long": 4},
}


@dataclass(frozen=True, slots=True, eq=False)
class S:
    """A storage: what the file calls it, its bytes, and the type it has where no tensor says so."""

    key: str
    data: bytes
    dtype: str | None = None
    device: str = "cpu"


@dataclass(slots=True, eq=False)
class T:
    """A tensor: a view of `storage`, or of one of its own with `data` (zeros if there is none)."""

    dtype: str
    shape: Sequence[int]
    data: bytes | None = None
    storage: S | None = None
    offset: int = 0
    stride: Sequence[int] | None = None
    requires_grad: bool = False
    device: str = "cpu"
    is_parameter: bool = False

    def strides(self) -> tuple[int, ...]:
        """Its strides, those of a contiguous tensor if it says nothing."""
        if self.stride is not None:
            return tuple(self.stride)
        steps = itertools.accumulate(
            reversed(self.shape[1:]), lambda a, b: a * max(b, 1), initial=1
        )
        return tuple(reversed(list(steps))) if self.shape else ()


@dataclass(frozen=True, slots=True)
class G:
    """Something to import, by its name."""

    module: str
    name: str

    def __call__(self) -> None:
        """Pickle wants to see something that could be called. Nobody calls it."""


@dataclass(slots=True, eq=False)
class Call:
    """The result of a call when the pickle is loaded; the opcode is REDUCE."""

    function: G
    arguments: tuple[Any, ...]
    state: Any = None


@dataclass(slots=True, eq=False)
class Obj:
    """An object of a class and its state; the opcodes are NEWOBJ and BUILD."""

    cls: G
    state: Any = None


# The files


def write_pth(
    path: Path,
    obj: object,
    *,
    prefix: str = "archive",
    deflate: bool = False,
    byteorder: Order | None = "little",
    protocol: int = 2,
    extra_members: Mapping[str, bytes] | None = None,
) -> None:
    """Write the zip file that torch 2.13 would; numbers are stored as given, whatever `byteorder`.

    Args:
        path: Where to.
        obj: What to save.
        prefix: The folder that all members are in.
        deflate: Pack every member, as someone does who zips a checkpoint again.
        byteorder: What the file says of its numbers; None leaves that out, as torch before 2.1 did.
        protocol: Of the pickle.
        extra_members: More members, by their names in the folder, at the end.
    """
    pickled, storages = pickle_of(obj, protocol=protocol)
    members = {"data.pkl": pickled, ".format_version": b"1", ".storage_alignment": b"64"}
    if byteorder is not None:
        members["byteorder"] = byteorder.encode()
    members |= {f"data/{storage.key}": storage.data for storage in storages}
    members |= {"version": b"3\n", ".data/serialization_id": b"0123456789" * 4}
    members |= extra_members or {}
    named = [(f"{prefix}/{name}", data) for name, data in members.items()]
    path.write_bytes(zip_of(named, deflate=deflate))


def write_legacy(path: Path, obj: object, *, protocol: int = 2) -> None:
    """Write the stream of five pickles and raw storages that torch wrote before 1.6."""
    pickled, storages = pickle_of(obj, protocol=protocol, views=True)
    by_key = {storage.key: storage for storage in storages}
    head = (pickle.dumps(part, protocol) for part in (MAGIC, 1001, SYSTEM))
    raw = (_counted(by_key[key]) for key in sorted(by_key))
    path.write_bytes(b"".join([*head, pickled, pickle.dumps(sorted(by_key), protocol), *raw]))


def write_tar(path: Path, obj: object) -> None:
    """Write the TAR archive that torch wrote before 0.1.10."""
    tensors: list[T] = []
    storages: dict[str, S] = {}
    keys = map(str, itertools.count(10**6))

    def persistent_id(value: object) -> object:
        if isinstance(value, T):
            if value not in tensors:
                value.storage = _storage_of(value, lambda: next(keys))
                typed = replace(value.storage, dtype=value.dtype)
                storages.setdefault(typed.key, typed)
                tensors.append(value)
            return str(1000 + tensors.index(value))
        return None

    members = {"sys_info": pickle.dumps(SYSTEM, 2), "pickle": _pickled(obj, 2, persistent_id)}
    parts = [pickle.dumps(len(tensors), 2)]
    for number, tensor in enumerate(tensors):
        key = cast(S, tensor.storage).key
        kind = G("torch", str(DTYPES[tensor.dtype][0]).replace("Storage", "Tensor"))
        parts.append(_pickled((1000 + number, int(key), kind), 2))
        size = len(tensor.shape)
        numbers = (size, *tensor.shape, *tensor.strides(), tensor.offset)
        parts.append(struct.pack(f"<i4x{2 * size + 1}q", *numbers))
    members["tensors"] = b"".join(parts)
    parts = [pickle.dumps(len(storages), 2)]
    for key, storage in storages.items():
        kind = G("torch", str(DTYPES[str(storage.dtype)][0]))
        parts.append(_pickled((int(key), storage.device, kind), 2))
        parts.append(_counted(storage))
    members["storages"] = b"".join([*parts, pickle.dumps([], 2)])
    with tarfile.open(path, "w:", format=tarfile.PAX_FORMAT) as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def write_safetensors(
    path: Path, tensors: Mapping[str, T], metadata: Mapping[str, str] | None = None
) -> None:
    """Write a safetensors file, the header filled up with spaces to a multiple of eight bytes."""
    header: dict[str, object] = {} if metadata is None else {"__metadata__": dict(metadata)}
    data = b""
    for name, tensor in tensors.items():
        own = _bytes_of(tensor)
        offsets = [len(data), len(data) + len(own)]
        kind = DTYPES[tensor.dtype][1]
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": offsets}
        data += own
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


# Their parts


def pickle_of(obj: object, *, protocol: int = 2, views: bool = False) -> tuple[bytes, list[S]]:
    """The pickle of a value and the storages that it names, in the order in which it names them.

    With `views`, as the legacy writer has it: each persistent id ends with None.
    """
    storages: dict[str, S] = {}
    keys = map(str, itertools.count())

    def persistent_id(value: object) -> object:
        if isinstance(value, S):
            value = _Stored(value, None)
        if not isinstance(value, _Stored):
            return None
        storage, kind, size = value.storage, G("torch.storage", "UntypedStorage"), 1
        typed, _, width = DTYPES[value.dtype] if value.dtype else (None, None, 1)
        if typed is not None:
            kind, size = G("torch", typed), width
        storages.setdefault(storage.key, replace(storage, dtype=value.dtype))
        found = ("storage", kind, storage.key, storage.device, len(storage.data) // size)
        return (*found, None) if views else found

    def free_key() -> str:
        return next(key for key in keys if key not in storages)

    return _pickled(obj, protocol, persistent_id, free_key), list(storages.values())


def zip_of(
    members: Sequence[tuple[str, bytes]], *, deflate: bool = False, align: int = 64
) -> bytes:
    """A zip file as torch writes it: zeros in local headers, data aligned, a ZIP64 end always."""
    file, directory = bytearray(), bytearray()
    for name, data in members:
        packed = _deflated(data) if deflate else data
        encoded, start, method = name.encode("utf-8", "surrogateescape"), len(file), 8 * deflate
        flags = 0x808 if packed else 0x800  # an empty member is not followed by its sizes
        filling = b"Z" * (-(start + 30 + len(encoded) + 4) % align)
        extra = b"FB" + struct.pack("<H", len(filling)) + filling
        sizes = struct.pack("<III", zlib.crc32(data), len(packed), len(data))
        file += b"PK\3\4" + struct.pack("<HHHHH", 0, flags, method, 0, 0) + b"\0" * 12
        file += struct.pack("<HH", len(encoded), len(extra)) + encoded + extra + packed
        if packed:
            file += b"PK\7\x08" + sizes
        directory += b"PK\1\2" + struct.pack("<HHHHHH", 0, 0, flags, method, 0, 0) + sizes
        directory += struct.pack("<HHHHHII", len(encoded), 0, 0, 0, 0, 0, start) + encoded
    begin, end, count = len(file), len(file) + len(directory), len(members)
    large = struct.pack("<QHHIIQQQQ", 44, 0x31E, 45, 0, 0, count, count, len(directory), begin)
    locator = struct.pack("<IQI", 0, end, 1)
    small = struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), begin, 0)
    return bytes(file + directory + b"PK\6\6" + large + b"PK\6\7" + locator + b"PK\5\6" + small)


@dataclass(frozen=True, slots=True, eq=False)
class _Stored:
    """A storage as a tensor of one type names it."""

    storage: S
    dtype: str | None


# The one written in Python: it can be changed to save what is not there. Not all of it has types.
_PurePickler: Any = pickle._Pickler


class _Pickler(_PurePickler):  # type: ignore[misc]
    """Pickle in Python, where it can be made to spell out names of what is not there."""

    def __init__(
        self,
        file: io.BytesIO,
        protocol: int,
        persistent_id: Callable[[object], object],
        free_key: Callable[[], str],
    ) -> None:
        super().__init__(file, protocol)
        self._persistent_id = persistent_id
        self._free_key = free_key
        self._globals: dict[G, G] = {}

    def persistent_id(self, obj: object) -> object:
        return self._persistent_id(obj)

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if isinstance(obj, G):
            obj = self._globals.setdefault(obj, obj)
        known = self.memo.get(id(obj))
        if known is not None or not isinstance(obj, (T, G, Call, Obj)):
            super().save(obj, save_persistent_id)
        elif save_persistent_id and (named := self.persistent_id(obj)) is not None:
            self.save_pers(named)
        elif isinstance(obj, G):
            if self.proto >= 4:
                self.save(obj.module)
                self.save(obj.name)
                self.write(pickle.STACK_GLOBAL)
            else:
                self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
            self.memoize(obj)
        elif isinstance(obj, T):
            self.save_reduce(*self._rebuilding(obj), obj=obj)
        elif isinstance(obj, Call):
            self.save_reduce(obj.function, obj.arguments, obj.state, obj=obj)
        else:
            self.save(obj.cls)
            self.write(pickle.EMPTY_TUPLE + pickle.NEWOBJ)
            self.memoize(obj)
            if obj.state is not None:
                self.save(obj.state)
                self.write(pickle.BUILD)

    def _rebuilding(self, tensor: T) -> tuple[G, tuple[Any, ...]]:
        if tensor.storage is None:
            tensor.storage = _storage_of(tensor, self._free_key)
        stored = _Stored(tensor.storage, tensor.dtype)
        hooks = Call(G("collections", "OrderedDict"), ())
        grad = tensor.requires_grad and not tensor.is_parameter
        place = (stored, tensor.offset, tuple(tensor.shape), tensor.strides(), grad, hooks)
        if DTYPES[tensor.dtype][0] is None:
            typed = (*place, G("torch", tensor.dtype))
            rebuilding = Call(G("torch._utils", "_rebuild_tensor_v3"), typed)
        else:
            rebuilding = Call(G("torch._utils", "_rebuild_tensor_v2"), place)
        if not tensor.is_parameter:
            return rebuilding.function, rebuilding.arguments
        own = (rebuilding, tensor.requires_grad, Call(G("collections", "OrderedDict"), ()))
        return G("torch._utils", "_rebuild_parameter"), own


def _pickled(
    obj: object,
    protocol: int,
    persistent_id: Callable[[object], object] = lambda _: None,
    free_key: Callable[[], str] = lambda: "0",
) -> bytes:
    file = io.BytesIO()
    _Pickler(file, protocol, persistent_id, free_key).dump(obj)
    return file.getvalue()


def _storage_of(tensor: T, free_key: Callable[[], str]) -> S:
    return tensor.storage or S(free_key(), _bytes_of(tensor), tensor.dtype, tensor.device)


def _bytes_of(tensor: T) -> bytes:
    if tensor.data is not None:
        return tensor.data
    return bytes(math.prod(tensor.shape) * DTYPES[tensor.dtype][2])


def _counted(storage: S) -> bytes:
    """A storage after the number of its elements."""
    typed, _, size = DTYPES[storage.dtype] if storage.dtype else (None, None, 1)
    return struct.pack("<q", len(storage.data) // (size if typed else 1)) + storage.data


def _deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()
