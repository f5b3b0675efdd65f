"""Totals of recorded calls, and the plain data made from them."""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence
from dataclasses import replace

from snapviewer.explorer.recording.values import TensorRecord, shapes_of
from snapviewer.explorer.timing import ForwardStats, ModuleTiming, Spread

MAX_SAMPLES = 256


class Samples:
    """Times of any number of calls, in nanoseconds.

    Count, sum, minimum and maximum are exact. The median and the deviation are exact up to
    `MAX_SAMPLES` calls; beyond that, they are those of a uniform random sample (reservoir).
    """

    __slots__ = ("_sample", "count", "max_ns", "min_ns", "sum_ns")

    def __init__(self) -> None:
        self.count = 0
        self.sum_ns = 0
        self.min_ns = 0
        self.max_ns = 0
        self._sample = array("q")

    def add(self, time_ns: int) -> None:
        self.min_ns = min(self.min_ns, time_ns) if self.count else time_ns
        self.max_ns = max(self.max_ns, time_ns)
        self.sum_ns += time_ns
        self.count += 1
        if self.count <= MAX_SAMPLES:
            self._sample.append(time_ns)
        elif (place := _DRAW.randrange(self.count)) < MAX_SAMPLES:
            self._sample[place] = time_ns

    def spread(self) -> Spread | None:
        """Return the times in seconds, or None if there are none.

        >>> samples = Samples()
        >>> for time_ns in (1_000, 2_000, 9_000):
        ...     samples.add(time_ns)
        >>> round(samples.spread().median_s * 1e6), round(samples.spread().deviation_s * 1e6)
        (2, 1)
        """
        # A copy: another thread may be recording.
        sample = self._sample.tolist()
        if not sample:
            return None
        median = _median(sample)
        deviation = _median([abs(time - median) for time in sample])
        exact = (self.min_ns, self.max_ns, self.sum_ns)
        return Spread(self.count, median / 1e9, deviation / 1e9, *(time / 1e9 for time in exact))


def _median(values: Sequence[float]) -> float:
    # `statistics.median` would take seconds for 50,000 modules.
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


# An own generator: the random numbers of the recorded program must not change.
_DRAW = random.Random(0)


class CallTotals:
    """All calls of one module, under one of its paths."""

    __slots__ = (
        "activation_bytes",
        "allocated_bytes",
        "backward",
        "backward_own",
        "calls",
        "inputs",
        "outputs",
        "own",
        "path",
        "total",
        "type_name",
    )

    def __init__(self, path: str) -> None:
        self.path = path
        self.type_name = ""
        self.calls = 0
        self.total, self.own = Samples(), Samples()
        self.backward, self.backward_own = Samples(), Samples()
        self.inputs: Sequence[TensorRecord] = ()
        self.outputs: Sequence[TensorRecord] = ()
        self.activation_bytes = 0
        self.allocated_bytes: int | None = None

    def timing(self) -> ModuleTiming | None:
        """Return the timing, or None if no call completed."""
        total, own = self.total.spread(), self.own.spread()
        if total is None or own is None:
            return None
        return ModuleTiming(
            path=self.path,
            type_name=self.type_name,
            calls=self.calls,
            total=total,
            own=own,
            backward=self.backward.spread(),
            backward_own=self.backward_own.spread(),
            has_gradient=self.backward.count > 0,
            inputs=shapes_of(self.inputs),
            outputs=shapes_of(self.outputs),
            activation_bytes=self.activation_bytes,
            allocated_bytes=self.allocated_bytes,
        )


def relative_to(stats: ForwardStats, path: str) -> ForwardStats:
    """Return the stats of one module, with paths relative to it.

    Args:
        stats: The stats of the module and those below it only.
        path: The module's path.
    """
    if not path:
        return stats
    timings = {
        _relative(one.path, path): replace(one, path=_relative(one.path, path))
        for one in stats.timings.values()
    }
    depth = min((step.depth for step in stats.flow), default=0)
    flow = [
        replace(
            step,
            order=order,
            path=_relative(step.path, path),
            depth=step.depth - depth,
            sources=tuple(_relative(one, path) for one in step.sources if is_within(one, path)),
        )
        for order, step in enumerate(stats.flow)
    ]
    runs = timings[""].calls if "" in timings else 0
    return ForwardStats(timings, tuple(flow), runs, stats.notes)


def is_within(path: str, ancestor: str) -> bool:
    """Return whether a path is a module's or below it.

    >>> is_within("layer1.0", "layer1"), is_within("layer10", "layer1"), is_within("fc", "")
    (True, False, True)
    """
    return not ancestor or path == ancestor or path.startswith(f"{ancestor}.")


def _relative(path: str, ancestor: str) -> str:
    """Return a path relative to a module above it.

    >>> _relative("layer1.0.conv1", "layer1"), _relative("layer1", "layer1")
    ('0.conv1', '')
    """
    return path[len(ancestor) + 1 :]
