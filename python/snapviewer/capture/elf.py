"""Names that a shared library imports and exports, and strings in it: 64-bit ELF, little-endian."""

from __future__ import annotations

import mmap
import re
import struct
from contextlib import contextmanager
from dataclasses import dataclass

from snapviewer._lazy import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MAGIC = b"\x7fELF\x02\x01"  # 64 bits, little-endian
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL_BYTES = 24
_DYNAMIC_SYMBOLS = 11  # the type of a section
_WORD = re.compile(rb"(?<=\0)(?:cu|nvml)[A-Z][A-Za-z0-9_]{3,60}(?=\0)")


@dataclass(frozen=True, slots=True)
class Symbols:
    """The names in the dynamic symbol table of a library."""

    imported: frozenset[str]
    exported: frozenset[str]


def read_symbols(path: Path) -> Symbols:
    """Read the dynamic symbols of a library.

    Raises:
        ValueError: The file is not such a library.
    """
    import numpy as np

    entry = np.dtype([("name", "<u4"), ("rest", "<u2"), ("section", "<u2"), ("more", "<u8", 2)])
    with _mapped(path) as data:
        table, names = _sections(data)
        symbols = np.frombuffer(data[table[0] : table[1]], entry)
        text = data[names[0] : names[1]]

    def named(offsets: np.ndarray) -> frozenset[str]:
        found = (text[at : text.index(b"\0", at)] for at in offsets if 0 < at < len(text))
        return frozenset(name.decode("ascii", "replace") for name in found)

    is_imported = symbols["section"] == 0
    return Symbols(named(symbols["name"][is_imported]), named(symbols["name"][~is_imported]))


def driver_names(path: Path) -> frozenset[str]:
    """Return the strings in a library that look like functions of the driver or of NVML."""
    with _mapped(path) as data:
        return frozenset(word.decode("ascii") for word in _WORD.findall(data))


@contextmanager
def _mapped(path: Path) -> Iterator[mmap.mmap]:
    with path.open("rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # empty
            raise ValueError(f"not a shared library: {path}") from None
        with data:
            if data[:6] != _MAGIC:
                raise ValueError(f"not a shared library: {path}")
            yield data


def _sections(data: mmap.mmap) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return where the dynamic symbols are, and their names."""
    try:
        (start,) = struct.unpack_from("<Q", data, 0x28)
        size, count = struct.unpack_from("<HH", data, 0x3A)
        sections = [_SECTION.unpack_from(data, start + size * i) for i in range(count)]
        for section in sections:
            if section[1] == _DYNAMIC_SYMBOLS:
                offset, length, names = section[4], section[5], sections[section[6]]
                whole = length // _SYMBOL_BYTES * _SYMBOL_BYTES
                return (offset, offset + whole), (names[4], names[4] + names[5])
    except (struct.error, IndexError, OverflowError):
        pass
    raise ValueError("a shared library without dynamic symbols")
