"""The wire format of protocol buffers: a field's number and kind, then its value."""

from __future__ import annotations

from collections.abc import Iterable


def varint(number: int) -> bytes:
    r"""Encode a number from 0 on.

    >>> varint(1), varint(300)
    (b'\x01', b'\xac\x02')
    """
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def number(field: int, value: int) -> bytes:
    """Encode a field that is a number; 0 is the default and is left out."""
    return varint(field << 3) + varint(value) if value else b""


def message(field: int, value: bytes) -> bytes:
    """Encode a field that is a message, bytes, or text in UTF-8."""
    return varint(field << 3 | 2) + varint(len(value)) + value


def packed(field: int, values: Iterable[int]) -> bytes:
    """Encode a field of several numbers."""
    return message(field, b"".join(map(varint, values)))
