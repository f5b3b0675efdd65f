"""The alignment and the cache locality of a parameter, from its address, shape and strides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from snapviewer.model.quantity import Quantity, unavailable

LINE_BYTES = 64
# A page: nothing needs more.
_MAX_ALIGNMENT = 4096
# Strided elements repeat their places in cache lines after at most 64.
_MAX_EXAMINED = 4096


@dataclass(frozen=True, slots=True)
class Placement:
    """The address and the layout of a parameter.

    `address` is its first byte in `where`: a file or the memory of this process.
    """

    address: int
    where: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    item_bytes: int

    @property
    def is_contiguous(self) -> bool:
        """Whether its elements are contiguous in row-major order."""
        runs = _merged(self.shape, self.stride)
        return 0 in self.shape or not runs or (len(runs) == 1 and runs[0][1] == 1)

    @property
    def alignment(self) -> Quantity:
        """The largest power of two that divides its address, up to a page."""
        aligned = min(self.address & -self.address or _MAX_ALIGNMENT, _MAX_ALIGNMENT)
        return Quantity(
            float(aligned), "B", "computed", f"begins at byte {self.address:,} of {self.where}"
        )

    @property
    def locality(self) -> Quantity:
        """The bytes of cache lines that a row-major walk touches per byte used."""
        count, step = _innermost(self.shape, self.stride)
        if not count:
            return unavailable("B/B", "it has no elements")
        touched = _lines(self.address, count, step * self.item_bytes, self.item_bytes) * LINE_BYTES
        return Quantity(
            touched / (count * self.item_bytes),
            "B/B",
            "computed",
            f"lines of {LINE_BYTES} B under runs of {count:,} elements, {step:,} apart",
        )


def no_placement(why: str) -> tuple[Quantity, Quantity]:
    """Return an unknown alignment and locality."""
    return unavailable("B", why), unavailable("B/B", why)


def _merged(shape: Sequence[int], stride: Sequence[int]) -> list[tuple[int, int]]:
    """Return (count, step) of the dimensions, adjacent ones merged where contiguous.

    >>> _merged((2, 3, 4), (12, 4, 1)), _merged((3, 4), (1, 3))
    ([(24, 1)], [(3, 1), (4, 3)])
    """
    merged: list[tuple[int, int]] = []
    for count, step in zip(shape, stride, strict=True):
        if count == 1:
            continue
        if merged and merged[-1][1] == step * count:
            merged[-1] = (merged[-1][0] * count, step)
        else:
            merged.append((count, step))
    return merged


def _innermost(shape: Sequence[int], stride: Sequence[int]) -> tuple[int, int]:
    if 0 in shape:
        return 0, 1
    return (_merged(shape, stride) or [(1, 1)])[-1]


def _lines(address: int, count: int, step_bytes: int, item_bytes: int) -> int:
    """Count the cache lines of elements that are a step apart.

    >>> _lines(0, 16, 4, 4), _lines(4, 16, 4, 4), _lines(0, 4, 256, 4), _lines(0, 1000, 0, 4)
    (1, 2, 4, 1)
    """
    step_bytes = abs(step_bytes)
    start = address % LINE_BYTES
    if step_bytes <= LINE_BYTES:
        return (start + (count - 1) * step_bytes + item_bytes - 1) // LINE_BYTES + 1
    # Lines are skipped, and an unaligned element may span two of them.
    examined = min(count, _MAX_EXAMINED)
    touched = {
        byte // LINE_BYTES
        for index in range(examined)
        for byte in (start + index * step_bytes, start + index * step_bytes + item_bytes - 1)
    }
    return len(touched) * count // examined
