"""A shared library of functions that do nothing, return 0 and count their calls.

It is generated for the installed PyTorch, because the functions that PyTorch imports differ from
release to release. A function whose name says that it creates something also stores a handle
through its first argument. Written byte by byte, so that no compiler is needed where it runs.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from snapviewer._lazy import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COUNTS = "snapviewer_stub_counts"  # the exported array: one u64 per function, in order
_HANDLE = 0x1000  # what a created thing is
_PAGE = 0x10000  # the largest page of any supported system
_CREATES = re.compile(r"^(cublas|cusparse|cusolver)\w*(Create|createDescr)")
_DOES_NOT_CREATE = {"cusparseCreateIdentityPermutation"}


@dataclass(frozen=True, slots=True)
class Machine:
    """A processor: its number in ELF, and the code of a function that counts."""

    number: int
    slot_bytes: int
    code: Callable[[int, int, bool], bytes]


def _x86_64(code_at: int, counter_at: int, creates: bool) -> bytes:
    code = b"\xf0\x48\xff\x05" + struct.pack("<i", counter_at - (code_at + 8))  # lock inc [counter]
    if creates:
        code += b"\x48\xc7\x07" + struct.pack("<i", _HANDLE)  # mov qword [rdi], handle
    return code + b"\x31\xc0\xc3"  # xor eax, eax; ret


def _aarch64(code_at: int, counter_at: int, creates: bool) -> bytes:
    pages = (counter_at >> 12) - (code_at >> 12)
    words = [
        0x90000010 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5,  # adrp x16, counter
        0x91000210 | (counter_at & 0xFFF) << 10,  # add x16, x16, #low
        0xF9400211,  # ldr x17, [x16]
        0x91000631,  # add x17, x17, #1
        0xF9000211,  # str x17, [x16]
    ]
    if creates:
        words += [0xD2800011 | _HANDLE << 5, 0xF9000011]  # mov x17, #handle; str x17, [x0]
    return struct.pack(f"<{len(words) + 2}I", *words, 0x52800000, 0xD65F03C0)  # mov w0, #0; ret


MACHINES = {"x86_64": Machine(62, 24, _x86_64), "aarch64": Machine(183, 40, _aarch64)}


def creates(name: str) -> bool:
    """Return whether a function stores a new handle through its first argument.

    >>> creates("cusparseCreateCsr"), creates("cusparseSpMM")
    (True, False)
    """
    return bool(_CREATES.match(name)) and name not in _DOES_NOT_CREATE


def stub_library(names: Sequence[str], *, machine: str, soname: str, needed: str) -> bytes:
    """Return a shared library that defines `names`, and `COUNTS` beside them.

    Args:
        names: The functions.
        machine: The processor, as `platform.machine()` returns it.
        soname: What the library is called.
        needed: A library that it depends on: looking up a name in ours also looks there.
    """
    kind = MACHINES[machine]
    text, offsets = _strings([*names, COUNTS, soname, needed])
    hashes = _hash_table([*names, COUNTS])
    symbols_at = _aligned(64 + 56 * 5, 8)
    symbols_bytes = 24 * (len(names) + 2)
    hash_at = symbols_at + symbols_bytes
    text_at = hash_at + len(hashes)
    code_at = _aligned(text_at + len(text), _PAGE)
    code_bytes = kind.slot_bytes * len(names)
    dynamic_at = _aligned(code_at + code_bytes, _PAGE)
    dynamic = _dynamic(
        {1: offsets[needed], 14: offsets[soname], 4: hash_at, 5: text_at, 6: symbols_at}
        | {10: len(text), 11: 24}
    )
    counts_at = dynamic_at + len(dynamic)
    counts_bytes = 8 * max(1, len(names))

    code = bytearray()
    symbols = bytearray(24)
    for i, name in enumerate(names):
        at = code_at + i * kind.slot_bytes
        one = kind.code(at, counts_at + 8 * i, creates(name))
        code += one.ljust(kind.slot_bytes, b"\0")
        symbols += struct.pack("<IBBHQQ", offsets[name], 0x12, 0, 1, at, len(one))
    symbols += struct.pack("<IBBHQQ", offsets[COUNTS], 0x11, 0, 1, counts_at, counts_bytes)

    file = bytearray(dynamic_at)
    file[:64] = _header(kind.number)
    file[64 : 64 + 56 * 5] = (
        _load(4, 0, text_at + len(text))
        + _load(5, code_at, code_bytes)
        + _load(6, dynamic_at, len(dynamic), len(dynamic) + counts_bytes)
        + struct.pack("<IIQQQQQQ", 2, 6, *[dynamic_at] * 3, *[len(dynamic)] * 2, 8)
        + struct.pack("<IIQQQQQQ", 0x6474E551, 6, 0, 0, 0, 0, 0, 16)  # a stack without code
    )
    file[symbols_at:hash_at] = symbols
    file[hash_at:text_at] = hashes
    file[text_at : text_at + len(text)] = text
    file[code_at : code_at + code_bytes] = code
    return bytes(file + dynamic)


def _aligned(offset: int, unit: int) -> int:
    return -(-offset // unit) * unit


def _header(machine: int) -> bytes:
    identity = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    return identity + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 64, 0, 0, 64, 56, 5, 64, 0, 0)


def _load(flags: int, at: int, file_bytes: int, memory_bytes: int | None = None) -> bytes:
    memory_bytes = file_bytes if memory_bytes is None else memory_bytes
    return struct.pack("<IIQQQQQQ", 1, flags, at, at, at, file_bytes, memory_bytes, _PAGE)


def _strings(names: Sequence[str]) -> tuple[bytes, dict[str, int]]:
    text, offsets = bytearray(1), {}
    for name in names:
        offsets[name] = len(text)
        text += name.encode("ascii") + b"\0"
    return bytes(text), offsets


def _dynamic(entries: dict[int, int]) -> bytes:
    return b"".join(struct.pack("<QQ", *entry) for entry in [*entries.items(), (0, 0)])


def _hash_table(names: Sequence[str]) -> bytes:
    """Return the table by which the loader finds names; symbol 0 is nobody's."""
    buckets, chains = [0] * len(names), [0] * (len(names) + 1)
    for number, name in enumerate(names, start=1):
        bucket = _hash(name) % len(buckets)
        chains[number], buckets[bucket] = buckets[bucket], number
    words = [len(buckets), len(chains), *buckets, *chains]
    table = struct.pack(f"<{len(words)}I", *words)
    return table.ljust(_aligned(len(table), 8), b"\0")


def _hash(name: str) -> int:
    value = 0
    for byte in name.encode("ascii"):
        value = (value << 4) + byte
        value = (value ^ (value & 0xF0000000) >> 24) & 0x0FFFFFFF
    return value
