"""Bytes and counts for people."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def format_bytes(count: int) -> str:
    """Say a number of bytes in binary units, with three significant digits or more.

    >>> [format_bytes(n) for n in (0, 1023, 1536, 68_194_387_972)]
    ['0 B', '1,023 B', '1.50 KiB', '63.5 GiB']
    """
    size = float(count)
    for unit in _UNITS:
        if abs(size) < 1023.5 or unit == _UNITS[-1]:
            break
        size /= 1024
    if unit == "B":
        return f"{count:,} B"
    digits = 2 if abs(size) < 9.995 else 1 if abs(size) < 99.95 else 0
    return f"{size:,.{digits}f} {unit}"


def parse_bytes(text: str) -> int:
    """Read a number of bytes as people write it; 1 KB and 1 KiB are both 1,024 bytes.

    >>> parse_bytes("4GiB"), parse_bytes("512 kb"), parse_bytes("7")
    (4294967296, 524288, 7)
    """
    text = text.strip().lower().removesuffix("b").removesuffix("i").strip()
    for power, prefix in enumerate("kmgtpe", start=1):
        if text.endswith(prefix):
            return round(float(text[:-1]) * float(1024**power))
    return round(float(text))
