"""The live allocations at an event: by line of code, and the largest ones.

Naming a stack may be slow, so only the heaviest stacks are named; the others are one group, so that
all groups add up to the total.

The core adds up by stack; each shown stack is named once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from snapviewer._core import Device, Timeline
from snapviewer._lazy import TYPE_CHECKING
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize
from snapviewer.text.units import count_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

# A stack, its bytes, how many allocations, the largest and its size: see `Timeline.alive_by_stack`.
_Share: TypeAlias = tuple[int, int, int, int, int]

MAX_STACKS = 400
MAX_GROUPS = 200
MAX_LARGEST = 200


@dataclass(frozen=True, slots=True)
class Group:
    """Allocations whose stacks lead to the same line of code, or that share something else.

    `largest` is the index of the largest; `stacks` are the heaviest first, and empty for the rest.
    `id` is the group's number in `Device.keys`, if it is not a line.
    """

    line: str
    size_bytes: int
    count: int
    largest: int
    stacks: tuple[int, ...]
    id: int | None = None


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
    lines: dict[int, str] = {}

    def name(stack: int) -> str:
        if stack not in lines:
            lines[stack] = line_of(stack)
        return lines[stack]

    shares = timeline.alive_by_stack(event)
    groups, rest = _groups(shares, name)
    heaviest = tuple(
        LiveAllocation(index, size, name(stack), made, freed)
        for index, size, stack, made, freed in timeline.largest_alive(event, MAX_LARGEST)
    )
    total, count = sum(share[1] for share in shares), sum(share[2] for share in shares)
    return Alive(event, total, count, groups, rest, heaviest)


def regrouped(alive: Alive, device: Device, by: str, shown: npt.NDArray[np.bool_] | None) -> Alive:
    """Return the same live allocations, grouped by something else than lines.

    Args:
        alive: What `alive_at` returned.
        device: The device.
        by: One of `GROUPINGS`.
        shown: The allocations that count; None for all.
    """
    found = device.alive(alive.event, by, where=shown, top=MAX_GROUPS)
    groups = tuple(
        Group(group_name(by, one.key), one.bytes, one.count, one.largest, (), one.id)
        for one in found.groups
    )
    rest = None
    if found.other_count:
        name = count_of(found.group_count - len(groups), "more group")
        rest = Group(name, found.other_bytes, found.other_count, groups[-1].largest, ())
    return replace(alive, groups=groups, rest=rest)


def group_name(by: str, key: str) -> str:
    """Return the name of a group of `Device.alive` on one line."""
    first, *more = key.split("\n")
    name = sanitize(first.replace("_", " ") if by == "category" else first, MAX_NAME_CHARS)
    return f"{name} and {count_of(len(more), 'more frame')}" if more else name


def allocation_of_event(device: Device, event: int) -> int | None:
    """Return the allocation that an event made, freed, or requested to free."""
    import numpy as np

    a = device.allocations
    if not 0 <= event < device.events:
        return None
    # An event that makes one may also end another whose free was lost.
    for events in (a.alloc_event, a.free_event, a.free_requested):
        found = np.flatnonzero(events == event)
        if len(found):
            return int(found[0])
    return None


def _groups(
    shares: Sequence[_Share], name: Callable[[int], str]
) -> tuple[tuple[Group, ...], Group | None]:
    """Group the heaviest stacks by line; all others are the rest."""
    by_line: dict[str, list[_Share]] = {}
    for share in shares[:MAX_STACKS]:
        by_line.setdefault(name(share[0]), []).append(share)
    named = [_group(line, of, tuple(share[0] for share in of)) for line, of in by_line.items()]
    named.sort(key=lambda one: -one.size_bytes)
    shown = tuple(named[:MAX_GROUPS])
    listed = {stack for one in shown for stack in one.stacks}
    others = [share for share in shares if share[0] not in listed]
    if not others:
        return shown, None
    return shown, _group(count_of(len(others), "more stack"), others, ())


def _group(line: str, shares: Sequence[_Share], stacks: tuple[int, ...]) -> Group:
    size, count = sum(share[1] for share in shares), sum(share[2] for share in shares)
    *_, largest, _ = max(shares, key=lambda share: (share[4], -share[3]))
    return Group(line, size, count, largest, stacks)
