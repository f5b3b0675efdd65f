"""The live allocations at an event: by line of code, and the largest ones.

Naming a stack may be slow, so only the heaviest stacks are named; the others are one group, so that
all groups add up to the total.

Cost: a few passes over the live allocations (10 ms for 250,000), and a name for each shown stack.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from snapviewer._core import Device, Frame, Timeline
from snapviewer.snapshot.frames import frame_text, own_frame
from snapviewer.text.units import count_of

if TYPE_CHECKING:
    import numpy.typing as npt

MAX_STACKS = 400
MAX_GROUPS = 200
MAX_LARGEST = 200
_MAX_FILTER = 1000  # characters; nobody would edit a longer filter


@dataclass(frozen=True, slots=True)
class Group:
    """Allocations whose stacks lead to the same line of code.

    `largest` is the index of the largest; `stacks` are the heaviest first, and empty for the rest.
    """

    line: str
    size_bytes: int
    count: int
    largest: int
    stacks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LiveAllocation:
    """A live allocation; `index` is its index among the device's."""

    index: int
    size_bytes: int
    line: str
    alloc_event: int
    free_event: int


@dataclass(frozen=True, slots=True)
class Alive:
    """The live allocations after an event; -1 is before the first.

    `groups` and `largest` have the most bytes first; `rest` is what is in no group.
    """

    event: int
    total_bytes: int
    count: int
    groups: tuple[Group, ...]
    rest: Group | None
    largest: tuple[LiveAllocation, ...]


def alive_at(
    device: Device, timeline: Timeline, event: int, line_of: Callable[[int], str]
) -> Alive:
    """Return the live allocations that a timeline shows after an event.

    Args:
        device: The device.
        timeline: A timeline of it; what its filter leaves out is not counted.
        event: The event; -1 is before the first.
        line_of: Returns the name of a stack. Called once for each shown stack.
    """
    a = device.allocations
    alive = np.sort(timeline.stack(event)[0])
    # No sum of sizes is above 63 bits: such a file is refused.
    sizes, stacks = a.size[alive].astype(np.int64), a.stack[alive]
    lines: dict[int, str] = {}

    def name(stack: int) -> str:
        if stack not in lines:
            lines[stack] = line_of(stack)
        return lines[stack]

    groups, rest = _groups(alive, sizes, stacks, name)
    heaviest = tuple(
        LiveAllocation(
            index=int(alive[place]),
            size_bytes=int(sizes[place]),
            line=name(int(stacks[place])),
            alloc_event=int(a.alloc_event[alive[place]]),
            free_event=int(a.free_event[alive[place]]),
        )
        for place in _heaviest(sizes, MAX_LARGEST)
    )
    return Alive(event, int(sizes.sum()), len(alive), groups, rest, heaviest)


def allocation_of_event(device: Device, event: int) -> int | None:
    """Return the allocation that an event made, freed, or requested to free."""
    a = device.allocations
    if not 0 <= event < device.events:
        return None
    # An event that makes one may also end another whose free was lost.
    for events in (a.alloc_event, a.free_event, a.free_requested):
        found = np.flatnonzero(events == event)
        if len(found):
            return int(found[0])
    return None


def filter_of(
    device: Device, stacks: Sequence[int], frames_of: Callable[[int], Sequence[Frame]]
) -> str | None:
    """Write a filter for the allocations of some stacks, in words that a person would type.

    The words are the line of code that the stacks share, such as `model.py:71`, or all of it
    where other lines have these words, too. Stacks that only pass through the line
    match, too, unless the ids of these stacks are a range, which is then part of the filter.

    Returns:
        The filter, or None if none describes them.
    """
    if not stacks:
        return None
    wanted = np.isin(device.allocations.stack, stacks)
    first, last = min(stacks), max(stacks)
    is_range = last - first + 1 == len(stacks)
    ids = f"stack={first}" if first == last else f"stack={first}..{last + 1}"
    words = [_in_words(device, text) for text in _lines_of(stacks, frames_of)]
    exact = [text for text, mask in words if np.array_equal(mask, wanted)]
    if exact:
        return exact[0]
    # Words that match less than wanted are no description.
    wider = [text for text, mask in words if not (wanted & ~mask).any()]
    if is_range:
        return f"{wider[0]} {ids}" if wider else ids
    return wider[-1] if wider else None


def _lines_of(stacks: Sequence[int], frames_of: Callable[[int], Sequence[Frame]]) -> list[str]:
    """Describe the lines of code of some stacks, the shortest description first."""
    frames = {own_frame(frames_of(stack)) for stack in stacks}
    known = sorted(
        (one for one in frames if one is not None), key=lambda one: (one.filename, one.line)
    )
    if not known or len(known) < len(frames):
        return []
    descriptions: tuple[Callable[[Frame], str], ...] = (
        _place,
        lambda one: f"{_place(one)}\\)" if one.line else _place(one),
        lambda one: f"^{_escaped(f'{one.name} ({one.filename}:{one.line})')}$",
    )
    texts = ("|".join(dict.fromkeys(map(of, known))) for of in descriptions)
    return [text for text in texts if len(text) <= _MAX_FILTER]


def _place(frame: Frame) -> str:
    """Return the file and line of a frame, or the function if it has none.

    A dot matches itself, too: it stays, as most people would type it.
    """
    if not frame.line:
        return _escaped(frame_text(frame))
    name = re.split(r"[/\\]", frame.filename)[-1]
    return _escaped(f"{name}:{frame.line}").replace("\\.", ".")


def _in_words(device: Device, expression: str) -> tuple[str, npt.NDArray[np.bool_]]:
    """Return an expression as a filter, and what it matches; quoted where it must be."""
    is_plain = re.fullmatch(r"[\w.:|/-]+", expression, re.ASCII) is not None
    text = expression if is_plain else f'"{expression}"'
    try:
        return text, device.mask(text)
    except ValueError:
        return text, np.zeros(len(device.allocations), dtype=np.bool_)


def _escaped(text: str) -> str:
    r"""Escape a text for an expression inside of a filter's quotes.

    >>> _escaped('f (a b.py:1)'), _escaped('"x"')
    ('f \\(a b\\.py:1\\)', '\\"x\\"')
    """
    return re.sub(r'[][\\.^$|?*+(){}"]', r"\\\g<0>", text)


def _groups(
    alive: npt.NDArray[np.uint32],
    sizes: npt.NDArray[np.int64],
    stacks: npt.NDArray[np.uint32],
    name: Callable[[int], str],
) -> tuple[tuple[Group, ...], Group | None]:
    """Group live allocations by stack, then the heaviest stacks by line."""
    if not len(alive):
        return (), None
    # By the stack's id: adding up in place needs no sorting.
    count = np.bincount(stacks)
    size, largest_size = np.zeros(len(count), np.int64), np.zeros(len(count), np.int64)
    np.add.at(size, stacks, sizes)
    np.maximum.at(largest_size, stacks, sizes)
    largest = np.zeros(len(count), np.int64)
    # Of equals the first: the last that is written wins.
    places = np.flatnonzero(sizes == largest_size[stacks])[::-1]
    largest[stacks[places]] = alive[places]

    present = np.flatnonzero(count)
    by_line: dict[str, list[int]] = {}
    for stack in present[_heaviest(size[present], MAX_STACKS)].tolist():
        by_line.setdefault(name(stack), []).append(stack)

    def group(line: str, of: npt.NDArray[np.int64], listed: tuple[int, ...]) -> Group:
        best = of[np.lexsort((largest[of], -largest_size[of]))[0]]
        return Group(line, int(size[of].sum()), int(count[of].sum()), int(largest[best]), listed)

    named = [group(line, np.array(of), tuple(of)) for line, of in by_line.items()]
    named.sort(key=lambda one: -one.size_bytes)
    shown = tuple(named[:MAX_GROUPS])
    is_other = count > 0
    is_other[[stack for one in shown for stack in one.stacks]] = False
    others = np.flatnonzero(is_other)
    if not len(others):
        return shown, None
    return shown, group(count_of(len(others), "more stack"), others, ())


def _heaviest(weights: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """Return the indexes of the largest, largest first; of equals the first.

    >>> _heaviest(np.array([3, 9, 3, 5]), 3)
    array([1, 3, 0])
    """
    places = np.arange(len(weights))
    if len(weights) > count:
        least = np.partition(weights, len(weights) - count)[len(weights) - count]
        places = np.flatnonzero(weights >= least)
    return places[np.argsort(-weights[places], kind="stable")][:count]
