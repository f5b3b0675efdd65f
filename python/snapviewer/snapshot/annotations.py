"""The annotations of a program, paired into spans of time.

PyTorch keeps annotations in a ring buffer of their own, as STARTs and ENDs. Either may be lost, and
those of several threads are interleaved. An END belongs to the latest START of its name that has no
END yet.

Cost: linear in the annotations, times the lanes, of which there are at most `MAX_LANES`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from snapviewer._core import Clock, Device, Snapshot

MAX_LANES = 32
"""Deeper spans are in the last lane, where spans may overlap."""


@dataclass(frozen=True, slots=True)
class Span:
    """A named span of time.

    `start_us` and `end_us` are microseconds since the first event on the device's plain clock;
    `start_event` is the first event in it, `end_event` the first one after it. A span is open at an
    end that was not recorded or is outside of the trace: it is cut there. Spans of one lane do not
    overlap, and a span within another is in a further lane.
    """

    name: str
    lane: int
    start_us: int
    end_us: int
    start_event: int
    end_event: int
    is_open_start: bool
    is_open_end: bool

    def has(self, event: int) -> bool:
        """Return whether an event is in it."""
        return self.start_event <= event < self.end_event


def spans_of(snapshot: Snapshot, device: Device, clock: Clock | None) -> tuple[Span, ...]:
    """Pair a device's annotations, in the order of their starts; none without a clock.

    Args:
        snapshot: The file.
        device: The device; annotations without a device count, too.
        clock: The device's plain clock.
    """
    if clock is None or int(device.events) == 0:
        return ()
    import numpy as np  # only here, so that commands that do not need it start quickly

    marks = (
        _Endpoint(name, stage == "START", time_us - clock.start_us)
        for name, stage, of, time_us in snapshot.annotations
        if (of is None or of == device.index) and stage in ("START", "END")
    )
    stretches = list(_cut(_pair(marks), clock.length_us))
    # Of two that start together, the longer one is the outer one.
    stretches.sort(key=lambda one: (one.start_us, -one.end_us))
    starts = np.array([one.start_us for one in stretches], dtype=np.uint64)
    ends = np.array([one.end_us for one in stretches], dtype=np.uint64)
    first = np.searchsorted(clock.times, starts, side="left").tolist()
    after = np.searchsorted(clock.times, ends, side="right").tolist()
    return tuple(
        Span(
            one.name,
            lane,
            one.start_us,
            one.end_us,
            start_event,
            end_event,
            one.is_open_start,
            one.is_open_end,
        )
        for one, lane, start_event, end_event in zip(
            stretches, _lanes(stretches), first, after, strict=True
        )
    )


class _Endpoint(NamedTuple):
    name: str
    is_start: bool
    time_us: int


class _Pair(NamedTuple):
    """A START and its END; None was not recorded. `place` is the index of the first of them."""

    name: str
    start_us: int | None
    end_us: int | None
    place: int


class _Stretch(NamedTuple):
    name: str
    start_us: int
    end_us: int
    is_open_start: bool
    is_open_end: bool


def _pair(marks: Iterable[_Endpoint]) -> list[_Pair]:
    """Pair STARTs and ENDs, in the order of the list."""
    pairs: list[_Pair] = []
    unended: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for place, mark in enumerate(marks):
        if mark.is_start:
            unended[mark.name].append((place, mark.time_us))
        elif starts := unended[mark.name]:
            start_place, start_us = starts.pop()
            # Clocks of threads may differ a little.
            pairs.append(_Pair(mark.name, start_us, max(start_us, mark.time_us), start_place))
        else:
            pairs.append(_Pair(mark.name, None, mark.time_us, place))
    for name, starts in unended.items():
        pairs += [_Pair(name, start_us, None, place) for place, start_us in starts]
    pairs.sort(key=lambda pair: pair.place)
    return pairs


def _cut(pairs: Iterable[_Pair], length_us: int) -> Iterator[_Stretch]:
    """Cut pairs to the trace, and leave out those that are outside of it."""
    for name, start_us, end_us, _ in pairs:
        is_before = end_us is not None and end_us < 0
        is_after = start_us is not None and start_us > length_us
        if is_before or is_after:
            continue
        is_open_start = start_us is None or start_us < 0
        is_open_end = end_us is None or end_us > length_us
        yield _Stretch(
            name,
            0 if start_us is None or is_open_start else start_us,
            length_us if end_us is None or is_open_end else end_us,
            is_open_start,
            is_open_end,
        )


def _lanes(stretches: Sequence[_Stretch]) -> Iterator[int]:
    """Yield a lane for each: the first free one beyond those of the spans around it."""
    ends: list[int] = []
    for one in stretches:
        least = 0
        for lane, end_us in enumerate(ends):
            if end_us > one.start_us and end_us >= one.end_us:
                least = lane + 1
        free = (lane for lane in range(least, len(ends)) if ends[lane] <= one.start_us)
        lane = min(next(free, len(ends)), MAX_LANES - 1)
        if lane == len(ends):
            ends.append(one.end_us)
        else:
            ends[lane] = max(ends[lane], one.end_us)
        yield lane
