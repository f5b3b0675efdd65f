"""Why the allocator asked the device for memory, as text and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from snapviewer import Allocator, Device, Growth
from snapviewer.snapshot.growth import (
    CAUSES,
    EFFECTS,
    Between,
    growths_by_line,
    kept_apart,
    pins_by_line,
)
from snapviewer.text.sanitize import sanitize
from snapviewer.text.table import format_table
from snapviewer.text.units import count_of, format_bytes

from .info import device_name, moment_of
from .replay import replay_check, replay_json

LineOf = Callable[[int], str]
_EXAMPLES = 3
_MAX_LINES = 3
NO_GROWTH = "No memory came from the device during the trace, or it was not recorded."


def to_json(device: Device, event: int, line_of: LineOf, *, top: int) -> dict[str, Any]:
    """Return the document that `segments --growth --json` prints."""
    allocator = device.allocator
    growths = allocator.growths
    return {
        "device": device.index,
        "event": event,
        "replay": replay_json(device),
        "causes": {
            cause: {
                "growths": sum(growth.cause == cause for growth in growths),
                "bytes": sum(growth.grown_bytes for growth in growths if growth.cause == cause),
            }
            for cause in CAUSES
        },
        "groups": [
            {
                "key": one.line,
                "bytes": one.grown_bytes,
                "count": len(one.growths),
                "bytes_by_cause": dict(zip(CAUSES, one.cause_bytes, strict=True)),
            }
            for one in growths_by_line(allocator, line_of)[:top]
        ],
        "pins": [
            {
                "key": one.line,
                "bytes": one.pinned_bytes,
                "count": one.blocks,
                "block_bytes": one.block_bytes,
            }
            for one in pins_by_line(allocator, event, line_of)[:top]
        ],
        "growths": [
            {
                "event": growth.event,
                "key": line_of(growth.stack),
                "requested_bytes": growth.rounded_bytes,
                "grown_bytes": growth.grown_bytes,
                "free_bytes": growth.free_bytes,
                "largest_free_bytes": growth.largest_bytes,
                "largest_outside_bytes": growth.outside_bytes,
                "cause": growth.cause,
                "pool": None if growth.pool is None else list(growth.pool),
                "stream": growth.stream,
                "kind": growth.kind,
            }
            for growth in growths
        ],
    }


PER_REQUEST = (
    "A cause is that of one request: memory that was free then could often serve later ones.\n"
    "  What is unused in the end is reserved less active, see `snapviewer segments`."
)


def as_text(device: Device, event: int, line_of: LineOf, *, file: str, top: int) -> str:
    """Return the causes, the lines that grew, and the lines that pin free memory."""
    allocator = device.allocator
    growths = allocator.growths
    total = sum(growth.grown_bytes for growth in growths)
    asked = f"{count_of(len(growths), 'growth')}, {format_bytes(total)} from the device"
    lines = [f"{sanitize(file)}, {device_name(device)}: {asked}", ""]
    if growths:
        lines += [*_causes(growths), "", f"  {PER_REQUEST}", "", *_caused(allocator, line_of, top)]
        lines += _examples(device, allocator, line_of)
    else:
        lines.append(f"  {NO_GROWTH}")
    lines += ["", *_pins(device, allocator, event, line_of, top)]
    return "\n".join([*lines, "", f"  {replay_check(device)}"]) + "\n"


def _causes(growths: Sequence[Growth]) -> list[str]:
    rows = [("cause", "growths", "bytes", "")]
    for cause in CAUSES:
        sizes = [growth.grown_bytes for growth in growths if growth.cause == cause]
        rows.append((cause, f"{len(sizes):,}", format_bytes(sum(sizes)), EFFECTS[cause]))
    return format_table(rows, right={1, 2})


def _caused(allocator: Allocator, line_of: LineOf, top: int) -> list[str]:
    rows: list[tuple[str, ...]] = [("grown by", "growths", "bytes", *CAUSES)]
    rows += [
        (
            one.line,
            f"{len(one.growths):,}",
            *(format_bytes(size) for size in (one.grown_bytes, *one.cause_bytes)),
        )
        for one in growths_by_line(allocator, line_of)[:top]
    ]
    return format_table(rows, right=range(1, 6), max_padding=50)


def _examples(device: Device, allocator: Allocator, line_of: LineOf) -> Iterator[str]:
    """Describe the largest growths in spite of enough free memory."""
    growths = allocator.growths
    fragments = [place for place, one in enumerate(growths) if one.cause == "fragments"]
    fragments.sort(key=lambda place: -growths[place].grown_bytes)
    if fragments:
        yield from ("", "  The largest with enough free memory, in pieces:")
    for place in fragments[:_EXAMPLES]:
        growth = growths[place]
        yield f"  event {growth.event:,}: {growth_sentence(growth)}"
        yield f"    {apart_sentence(growth, kept_apart(device, allocator, place, line_of))}"


def growth_sentence(growth: Growth) -> str:
    """Return what a growth asked for and what was free, in words."""
    asked, grown = format_bytes(growth.rounded_bytes), format_bytes(growth.grown_bytes)
    free, largest = format_bytes(growth.free_bytes), format_bytes(growth.largest_bytes)
    if growth.cause == "fragments":
        had = f"{free} were free in pieces of at most {largest}"
    elif growth.cause == "demand":
        had = f"only {free} were free"
    else:
        outside = format_bytes(growth.outside_bytes)
        had = f"{free} were free, and a block of {outside} for another stream, pool or size class"
    return f"{grown} for a request of {asked}; {had}"


def apart_sentence(growth: Growth, between: Sequence[Between]) -> str:
    """Return what kept the free memory in pieces, in words."""
    if not between:
        return "no segment with free memory would have had room for it"
    size, count = sum(one.size_bytes for one in between), sum(one.count for one in between)
    parts = [f"{format_bytes(one.size_bytes)} {one.line}" for one in between[:_MAX_LINES]]
    if len(between) > _MAX_LINES:
        parts.append(count_of(len(between) - _MAX_LINES, "more line"))
    if len(between) == 1:
        parts = [between[0].line]
    blocks = count_of(count, "block")
    return f"kept apart by {blocks} of {format_bytes(size)}: {', '.join(parts)}"


def _pins(device: Device, allocator: Allocator, event: int, line_of: LineOf, top: int) -> list[str]:
    pins = pins_by_line(allocator, event, line_of)
    total = format_bytes(sum(one.pinned_bytes for one in pins))
    when = moment_of(device, event)
    if not pins:
        return [f"  {when}: no free memory is pinned by live blocks"]
    rows = [("pinned by", "pinned", "blocks", "their size")]
    rows += [
        (
            one.line,
            format_bytes(one.pinned_bytes),
            f"{one.blocks:,}",
            format_bytes(one.block_bytes),
        )
        for one in pins[:top]
    ]
    first = f"  {when}: {total} of free memory pinned by live blocks in the same segments"
    return [first, "", *format_table(rows, right=range(1, 4), max_padding=50)]
