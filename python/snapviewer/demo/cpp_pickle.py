"""Writes a snapshot as PyTorch's C++ pickler does, in protocol 2.

It differs from Python's pickler in what a reader must cope with: a whole list is one batch, its
items on the stack all at once; a container is memoized after it is complete; strings are
memoized by their text, not their identity; and wide integers always take eight bytes.

Which containers are memoized follows the C++ reference counts: those that are a value in a dict,
those that occur more than once, and dicts that were given frames.

Cost: about 9 µs an event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from struct import pack
from typing import IO, Any

FLUSH_PARTS = 1 << 18
LEFT_OUT = frozenset({"compile_context", "user_metadata"})  # C++ does not write these


def dump(snapshot: dict[str, Any], file: IO[bytes]) -> None:
    """Write `snapshot` to a file open for writing bytes."""
    writer = _Writer(file)
    writer.count(snapshot)
    writer.parts.append(b"\x80\x02")
    writer.value(snapshot, is_held=True)
    writer.parts.append(b".")
    writer.flush()


class _Writer:
    def __init__(self, file: IO[bytes]) -> None:
        self.parts: list[bytes] = []
        self._file = file
        self._strings: dict[str, bytes] = {}  # text -> the opcode that gets it
        self._objects: dict[int, bytes] = {}  # id of a container -> the opcode that gets it
        self._uses: Counter[int] = Counter()
        self._next_id = 0

    def count(self, snapshot: dict[str, Any]) -> None:
        """Count in how many places each frame is, which decides whether it is memoized."""
        lists = {id(holder["frames"]): holder["frames"] for holder in _holders_of_frames(snapshot)}
        for frames in lists.values():
            self._uses.update(map(id, frames))

    def flush(self) -> None:
        self._file.write(b"".join(self.parts))
        self.parts.clear()

    def value(self, value: Any, *, is_held: bool) -> None:
        """Write one value; `is_held` says that C++ holds a second reference to it."""
        kind = type(value)
        if kind is int:
            self.parts.append(_integer(value))
        elif kind is str:
            self.parts.append(self._strings.get(value) or self._new_string(value))
        elif kind is dict or kind is list or kind is tuple:
            self._container(value, is_held=is_held)
        elif kind is bool:
            self.parts.append(b"\x88" if value else b"\x89")
        elif kind is float:
            self.parts.append(b"G" + pack(">d", value))
        elif value is None:
            self.parts.append(b"N")
        else:
            raise TypeError(f"a snapshot holds no {kind.__name__}")

    def _container(self, value: Any, *, is_held: bool) -> None:
        known = self._objects.get(id(value))
        if known is not None:
            self.parts.append(known)
            return
        if type(value) is dict:
            self._dict(value)
            is_held = is_held or bool(value.get("frames"))
        elif type(value) is list:
            self._list(value)
        else:
            self._pair(value)
        if is_held or self._uses[id(value)] > 1:
            put, self._objects[id(value)] = self._next_memo()
            self.parts.append(put)
        if len(self.parts) > FLUSH_PARTS:
            self.flush()

    def _dict(self, value: dict[str, Any]) -> None:
        append, strings = self.parts.append, self._strings
        append(b"}(")
        for key, item in value.items():
            if key in LEFT_OUT or (key == "frames" and not item and "action" in value):
                continue
            append(strings.get(key) or self._new_string(key))
            kind = type(
                item
            )  # the commonest kinds are written here, which saves a quarter of the time
            if kind is int:
                append(_integer(item))
            elif kind is str:
                append(strings.get(item) or self._new_string(item))
            else:
                self.value(item, is_held=True)
        append(b"u")

    def _list(self, value: list[Any]) -> None:
        self.parts.append(b"](")
        try:  # most lists are stacks whose frames were all written before
            self.parts.append(b"".join(map(self._objects.__getitem__, map(id, value))))
        except KeyError:
            for item in value:
                self.value(item, is_held=False)
        self.parts.append(b"e")

    def _pair(self, value: tuple[Any, ...]) -> None:
        if len(value) != 2:
            raise TypeError(f"a snapshot holds no tuple of {len(value)}")
        for item in value:
            self.value(item, is_held=False)
        self.parts.append(b"\x86")

    def _new_string(self, text: str) -> bytes:
        encoded = text.encode()
        put, self._strings[text] = self._next_memo()
        return b"X" + pack("<I", len(encoded)) + encoded + put

    def _next_memo(self) -> tuple[bytes, bytes]:
        """The opcodes that put the next memo entry and that get it later."""
        number = self._next_id
        self._next_id += 1
        if number < 256:
            short = number.to_bytes(1, "little")
            return b"q" + short, b"h" + short
        long = number.to_bytes(4, "little")
        return b"r" + long, b"j" + long


def _integer(value: int) -> bytes:
    if value > 0x7FFF_FFFF or value < -0x8000_0000:
        return b"\x8a\x08" + value.to_bytes(8, "little", signed=True)
    if value > 0xFFFF or value < 0:
        return b"J" + value.to_bytes(4, "little", signed=True)
    if value > 0xFF:
        return b"M" + value.to_bytes(2, "little")
    return b"K" + value.to_bytes(1, "little")


def _holders_of_frames(snapshot: dict[str, Any]) -> Iterable[dict[str, Any]]:
    for key in ("segments", "host_segments"):
        for segment in snapshot.get(key, ()):
            yield segment
            yield from segment["blocks"]
    for trace in (*snapshot["device_traces"], snapshot.get("host_traces", ())):
        yield from trace
