"""The allocator's memory after an event: how much of each pool is in use, and every block."""

from __future__ import annotations

from typing import Any

from snapviewer import Device, Domain, State
from snapviewer.text.table import format_table
from snapviewer.text.units import count_of, format_bytes, format_duration, format_share

from .domains import domain_name
from .info import device_name, moment_of
from .replay import replay_check, replay_json

_STATES = ("allocated", "pending", "free")
_COLUMNS = (
    *("memory", "segments", "reserved", "in use", "pending", "free"),
    *("largest free", "releasable"),
)


def to_json(device: Device, state: State) -> dict[str, Any]:
    """Return the document that `segments --json` prints."""
    amounts = device.curves.at(state.event)
    blocks = [
        {
            "address": address,
            "size": size,
            "requested": requested,
            "state": _STATES[kind],
            "allocation": None if allocation < 0 else allocation,
        }
        for address, size, requested, kind, allocation in zip(
            state.block_address.tolist(),
            state.block_size.tolist(),
            state.block_requested.tolist(),
            state.block_state.tolist(),
            state.block_allocation.tolist(),
            strict=True,
        )
    ]
    firsts = [*state.segment_first_block.tolist(), len(blocks)]
    segments = [
        {
            "address": address,
            "size": size,
            "pool": None if pool is None else list(pool),
            "stream": stream,
            "kind": "small" if is_small else "large",
            "expandable": is_expandable,
            "blocks": blocks[firsts[place] : firsts[place + 1]],
        }
        for place, (address, size, pool, stream, is_small, is_expandable) in enumerate(
            zip(
                state.segment_address.tolist(),
                state.segment_size.tolist(),
                state.segment_pool,
                state.segment_stream.tolist(),
                state.segment_is_small.tolist(),
                state.segment_is_expandable.tolist(),
                strict=True,
            )
        )
    ]
    return {
        "device": device.index,
        "event": state.event,
        **{f"{name}_bytes": size for name, size in amounts.items()},
        "replay": replay_json(device),
        "pending": [
            {
                "stream": one.stream,
                "frees": one.frees,
                "bytes": one.bytes,
                "most_bytes": one.most_bytes,
                "longest_events": one.longest_events,
                "longest_us": one.longest_us or None,
            }
            for one in device.allocator.pending
        ],
        "segments": segments,
    }


def as_text(device: Device, state: State, *, file: str) -> str:
    """Return the four amounts, a table of the pools, and the settings."""
    amounts = device.curves.at(state.event)
    requested, allocated = amounts["requested"], amounts["allocated"]
    active, reserved = amounts["active"], amounts["reserved"]
    lines = [
        f"{file}, {device_name(device)}: {moment_of(device, state.event)}",
        "",
        *(
            f"  {name:<10}{format_bytes(size):>11}{note}"
            for name, size, note in (
                ("requested", requested, ""),
                ("allocated", allocated, _note(active - requested, "lost to rounding")),
                ("active", active, _note(active - allocated, "waiting for another stream")),
                ("reserved", reserved, _note(reserved - active, "cached, not in use")),
            )
        ),
    ]
    if state.domains:
        rows = [_COLUMNS, *(_row(domain) for domain in state.domains)]
        lines += ["", *format_table(rows, right=range(1, len(_COLUMNS)))]
    pinned = sum(domain.free_bytes - domain.releasable_bytes for domain in state.domains)
    if pinned:
        lines += [
            "",
            f"  {format_bytes(pinned)} of the free memory "
            f"({format_share(pinned, max(reserved, 1))} of what is reserved) is in segments with "
            "live blocks: only requests that fit into the gaps can use it.",
        ]
    if waited := pending_lines(device):
        lines += ["", *waited]
    lines += ["", f"  {replay_check(device)}"]
    if len(state.unplaced):
        lines.append(f"  {count_of(len(state.unplaced), 'live allocation')} without a block")
    return "\n".join(lines) + "\n"


def _note(size: int, what: str) -> str:
    return f"   {format_bytes(size)} {what}" if size > 0 else ""


def _row(domain: Domain) -> tuple[str, ...]:
    sizes = (
        *(domain.reserved_bytes, domain.allocated_bytes, domain.pending_bytes),
        *(domain.free_bytes, domain.largest_free_bytes, domain.releasable_bytes),
    )
    return (domain_name(domain), f"{domain.segments:,}", *(format_bytes(size) for size in sizes))


def pending_lines(device: Device) -> list[str]:
    """Return how much memory waited for other streams, and how long."""
    found = []
    for one in device.allocator.pending:
        blocks = f"{count_of(one.frees, 'block')}, {format_bytes(one.bytes)}"
        if not device.events:
            found.append(f"  freed on stream {one.stream:,}, waiting for another stream: {blocks}")
            continue
        longest = count_of(one.longest_events, "event")
        if one.longest_us:
            longest += f", {format_duration(one.longest_us)}"
        found.append(
            f"  freed on stream {one.stream:,} while another stream could use it: "
            f"{blocks}; at most "
            f"{format_bytes(one.most_bytes)} at once; waited up to {longest}"
        )
    return found
