"""The bytes of memory that arrays and tensors reach, each byte counted once.

Views overlap, repeat and leave gaps. Each is split into runs of contiguous bytes, and the union of
all runs is measured.

# Cost

`O(runs × log runs)` time, 16 bytes a run. A contiguous view is one run. A view of more than
`MAX_RUNS` runs is counted on its own, without overlaps with others.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

MAX_RUNS = 1 << 22

_Numbers = npt.NDArray[np.int64]


class Reached:
    """The bytes reached so far, for each device.

    >>> reached = Reached()
    >>> reached.add("cpu", 1000, 4, shape=(10,), strides=(4,))
    >>> reached.add("cpu", 1020, 4, shape=(10,), strides=(4,))  # half of it is new
    >>> reached.total_bytes()
    60
    """

    def __init__(self) -> None:
        self._runs: dict[str, list[tuple[_Numbers, int]]] = defaultdict(list)
        self._alone: set[tuple[object, ...]] = set()
        self._alone_bytes = 0

    def add(
        self,
        device: str,
        address: int,
        item_bytes: int,
        shape: Sequence[int],
        strides: Sequence[int],
    ) -> None:
        """Add a view.

        Args:
            device: Whose addresses these are.
            address: Of the first element.
            item_bytes: The size of an element.
            shape: The number of elements along each dimension.
            strides: The bytes from one element to the next, along each dimension.
        """
        if item_bytes <= 0 or 0 in shape:
            return
        # A dimension with stride 0 reaches the same bytes again.
        steps = [(step, n) for step, n in zip(strides, shape, strict=True) if n > 1 and step]
        address += sum(step * (n - 1) for step, n in steps if step < 0)
        steps = sorted((abs(step), n) for step, n in steps)
        length = item_bytes
        while steps and steps[0][0] <= length:  # the next one begins before this one ends
            step, n = steps.pop(0)
            length += step * (n - 1)
        count = math.prod(n for _, n in steps)
        if count > MAX_RUNS:
            view = (device, address, length, *steps)
            if view not in self._alone:
                self._alone.add(view)
                self._alone_bytes += length * count
            return
        starts = np.full(1, address, dtype=np.int64)
        for step, n in steps:
            starts = (starts[:, None] + step * np.arange(n, dtype=np.int64)).ravel()
        self._runs[device].append((starts, length))

    def total_bytes(self) -> int:
        """Return the number of bytes that all views reach together."""
        return self._alone_bytes + sum(_union_bytes(runs) for runs in self._runs.values())


def _union_bytes(runs: Sequence[tuple[_Numbers, int]]) -> int:
    starts = np.concatenate([start for start, _ in runs])
    ends = np.concatenate([start + length for start, length in runs])
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    # A run adds what is beyond the end of everything before it.
    before = np.concatenate([starts[:1], ends[:-1]])
    return int(np.maximum(ends - np.maximum(starts, before), 0).sum())
