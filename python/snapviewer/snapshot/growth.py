"""Why the allocator asked the device for memory, and what kept free memory from use, by line.

The core finds the cause of each growth and what each stack pins; here stacks become lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from snapviewer._core import Allocator, Device, Growth

CAUSES = ("demand", "fragments", "other domain")
EFFECTS = {
    "demand": "less free memory than the request needed",
    "fragments": "enough free memory, but in pieces",
    "other domain": "enough in one piece, but for another stream, pool or size class",
}


@dataclass(frozen=True, slots=True)
class Caused:
    """The growths that one line of code caused.

    `cause_bytes` are those of each of `CAUSES`; `growths` are places in `Allocator.growths`, the
    largest first.
    """

    line: str
    grown_bytes: int
    cause_bytes: tuple[int, ...]
    growths: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pinning:
    """Free memory that the blocks of one line keep from going back to the device."""

    line: str
    pinned_bytes: int
    blocks: int
    block_bytes: int
    stacks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Between:
    """The live blocks of one line between which a request would have fit."""

    line: str
    size_bytes: int
    count: int


def growths_by_line(allocator: Allocator, line_of: Callable[[int], str]) -> tuple[Caused, ...]:
    """Rank lines of code by the memory from the device that they caused."""
    growths = allocator.growths
    by_line: dict[str, list[int]] = {}
    lines: dict[int, str] = {}
    for place, growth in enumerate(growths):
        if growth.stack not in lines:
            lines[growth.stack] = line_of(growth.stack)
        by_line.setdefault(lines[growth.stack], []).append(place)
    found = [_caused(line, places, growths) for line, places in by_line.items()]
    return tuple(sorted(found, key=lambda one: -one.grown_bytes))


def _caused(line: str, places: list[int], growths: Sequence[Growth]) -> Caused:
    places.sort(key=lambda place: -growths[place].grown_bytes)
    by_cause = dict.fromkeys(CAUSES, 0)
    for place in places:
        by_cause[growths[place].cause] += growths[place].grown_bytes
    return Caused(line, sum(by_cause.values()), tuple(by_cause.values()), tuple(places))


def pins_by_line(
    allocator: Allocator, event: int, line_of: Callable[[int], str]
) -> tuple[Pinning, ...]:
    """Rank lines of code by the free memory that their blocks pin after an event.

    The shares of stacks with blocks in one segment are equal, so that all add up.
    """
    by_line: dict[str, list[int]] = {}
    pins = allocator.pins(event)
    for place, pin in enumerate(pins):
        by_line.setdefault(line_of(pin.stack), []).append(place)
    found = [
        Pinning(
            line,
            sum(pins[place].pinned_bytes for place in places),
            sum(pins[place].blocks for place in places),
            sum(pins[place].block_bytes for place in places),
            tuple(pins[place].stack for place in places),
        )
        for line, places in by_line.items()
    ]
    return tuple(sorted(found, key=lambda one: -one.pinned_bytes))


def kept_apart(
    device: Device, allocator: Allocator, growth: int, line_of: Callable[[int], str]
) -> tuple[Between, ...]:
    """Return the blocks that kept free memory in pieces at a growth, by line of code.

    Empty if no segment with free memory was large enough for the request.
    """
    sizes: dict[str, list[int]] = {}
    block_size, stacks = allocator.block_size, device.allocations.stack
    for allocation in allocator.kept_apart(growth):
        line = line_of(int(stacks[allocation]))
        sizes.setdefault(line, []).append(int(block_size[allocation]))
    found = [Between(line, sum(of), len(of)) for line, of in sizes.items()]
    return tuple(sorted(found, key=lambda one: -one.size_bytes))
