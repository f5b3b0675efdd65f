"""Reads from the null device: which lines of the program asked for a value, and what they did.

The device holds no values, so that a read returns zero. Where this decides a size or a branch, the
prediction is not what a real run would do. The user can set what an expression returns.
"""

from __future__ import annotations

import ctypes
import dis
import linecache
import os
import re
import struct
import sys
from types import FrameType
from typing import Any

_MAX_PLACES = 200
_MAX_FRAMES = 8
# Functions whose result has a size that depends on values.
_SIZES = re.compile(
    r"nonzero|argwhere|masked_select|unique|repeat_interleave|bincount|tolist|\bwhere\("
)
_FORMATS = {1: "b", 2: "h", 4: "i", 8: "q"}


class Reads:
    """Reads by the place of the program that made them."""

    def __init__(self, values: tuple[tuple[str, float], ...] = ()) -> None:
        self._values = values
        self._places: dict[tuple[str, int, str], dict[str, Any]] = {}
        self._callback: Any = None
        self._others = 0

    def watch(self, library: ctypes.CDLL) -> None:
        """Be called for each read."""
        self._callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)(self._read)
        library.snapviewer_on_read(self._callback)

    def seen(self) -> list[dict[str, Any]]:
        """Return the places, those that decided a size or a branch first."""
        order = {"size": 0, "branch": 1, "value": 2}
        return sorted(self._places.values(), key=lambda place: order[place["kind"]])

    def _read(self, address: int, size: int) -> None:
        frames = _frames_of_program(sys._getframe(1))  # noqa: SLF001
        if not frames:
            return
        frame = frames[0]
        text = expression(frame)
        key = (frame.f_code.co_filename, frame.f_lineno, text)
        place = self._places.get(key)
        if place is None:
            if len(self._places) >= _MAX_PLACES:
                self._others += 1
                return
            place = self._places[key] = {
                "kind": kind_of(frame, text),
                "expression": text,
                "count": 0,
                "bytes": size,
                "value": 0,
                "stack": [
                    {
                        "name": each.f_code.co_name,
                        "filename": each.f_code.co_filename,
                        "line": each.f_lineno,
                    }
                    for each in frames[:_MAX_FRAMES]
                ],
            }
        place["count"] += 1
        self._set_value(place, address, size)

    def _set_value(self, place: dict[str, Any], address: int, size: int) -> None:
        for text, value in self._values:
            if text in place["expression"]:
                place["value"] = value
                if content := encoded(value, size):
                    ctypes.memmove(address, content, size)


def encoded(value: float, size: int) -> bytes | None:
    r"""Return a number as the bytes of a scalar; None if it has no such size.

    An int is written as an integer, a float as a floating-point number.

    >>> encoded(3, 4), encoded(0.5, 4)
    (b'\x03\x00\x00\x00', b'\x00\x00\x00?')
    """
    if size not in _FORMATS:
        return None
    try:
        if isinstance(value, int):
            return struct.pack(f"<{_FORMATS[size]}", value)
        return struct.pack({2: "<e", 4: "<f", 8: "<d"}[size], value)
    except (struct.error, KeyError, OverflowError):
        return None


def _frames_of_program(frame: FrameType | None) -> list[FrameType]:
    """Return the frames outside of PyTorch and this package, innermost first."""
    found = []
    while frame is not None:
        path = frame.f_code.co_filename
        package = os.path.dirname(__file__)
        if f"{os.sep}torch{os.sep}" not in path and not path.startswith((package, "<frozen")):
            found.append(frame)
        frame = frame.f_back
    return [each for each in found if each.f_code.co_filename != _RUNPY]


_RUNPY = os.path.join(os.path.dirname(os.__file__), "runpy.py")


def expression(frame: FrameType) -> str:
    """Return the text that a frame evaluates: an expression since Python 3.11, before the line."""
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    if sys.version_info >= (3, 11):
        positions = list(frame.f_code.co_positions())
        start, end, first, last = positions[frame.f_lasti // 2]
        if start == end == frame.f_lineno and first is not None and last is not None:
            # Columns are bytes of UTF-8.
            line = line.encode()[first:last].decode("utf-8", "replace")
    return line.strip()


def kind_of(frame: FrameType, text: str) -> str:
    """Return what a value was for: a `size`, a `branch`, or only a `value`."""
    name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
    if "JUMP" in name or name in ("TO_BOOL", "UNARY_NOT", "COMPARE_OP", "CONTAINS_OP"):
        return "branch"
    if name.startswith(("BINARY_SUBSCR", "STORE_SUBSCR", "BINARY_OP")) and "[" in text:
        return "size"  # `x[mask]`
    return "size" if _SIZES.search(text) else "value"
