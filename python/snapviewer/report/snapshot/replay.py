"""How far the allocator's rules explain a trace, and why requests failed."""

from __future__ import annotations

from typing import Any

from snapviewer import Device, Oom
from snapviewer.text.units import format_bytes

from .domains import domain_name, place_name


def replay_json(device: Device) -> dict[str, Any]:
    """Return how far the allocator's rules explain the trace."""
    allocator = device.allocator
    return {
        "placements": allocator.placements,
        "as_recorded": allocator.as_recorded,
        "contradictions": allocator.contradictions,
        "first_contradiction": allocator.first_contradiction,
        "settings": allocator.settings,
    }


def replay_check(device: Device) -> str:
    """Return how far the allocator's rules explain the trace, in words."""
    allocator = device.allocator
    if allocator.exact:
        if not allocator.placements:
            return "no allocations to replay"
        return f"replay: all {allocator.placements:,} placements as recorded"
    if not allocator.placements:
        return "replay: not possible, the file does not contain the segments of its allocations"
    worst = max(allocator.contradictions.items(), key=lambda item: item[1])
    first = allocator.first_contradiction
    since = "" if first is None else f", from event {first:,} on"
    return (
        f"replay: {allocator.as_recorded:,} of {allocator.placements:,} placements as recorded; "
        f"{worst[1]:,} {worst[0]}{since}"
    )


def ooms_json(device: Device) -> list[dict[str, Any]]:
    """Return why each failed request failed."""
    if not device.oom_events:
        return []
    return [
        {
            "event": oom.event,
            "requested_bytes": oom.requested_bytes,
            "device_free_bytes": oom.device_free_bytes,
            "live_bytes": oom.live_bytes,
            "reserved_bytes": oom.reserved_bytes,
            "free_bytes": oom.free_bytes,
            "largest_free_bytes": oom.largest_free_bytes,
            "released_bytes": oom.released_bytes,
            "verdict": oom.verdict,
            "short_by_bytes": oom.short_by_bytes,
            "sentence": oom_sentence(oom),
        }
        for oom in device.ooms
    ]


def oom_sentences(device: Device) -> dict[int, str]:
    """Return why each failed request failed, in words, by its event."""
    if not device.oom_events:
        return {}
    return {oom.event: oom_sentence(oom) for oom in device.ooms}


def state_sentence(device: Device) -> str:
    """Return what a state without a trace shows about a request that failed, with the numbers."""
    state = device.allocator.state(int(device.events) - 1)
    if not state.domains:
        return "the file contains no trace and no segments"
    reserved = sum(domain.reserved_bytes for domain in state.domains)
    free = sum(domain.free_bytes for domain in state.domains)
    releasable = sum(domain.releasable_bytes for domain in state.domains)
    largest = max(state.domains, key=lambda domain: domain.largest_free_bytes)
    return (
        "the file contains no trace, so the request is not known; "
        f"{format_bytes(reserved - free)} of {format_bytes(reserved)} reserved were in use and "
        f"{format_bytes(free)} free, of which {format_bytes(releasable)} could go back to the "
        f"device; requests above {format_bytes(largest.largest_free_bytes)} (the largest free "
        f"block, {domain_name(largest)}) needed memory from the device"
    )


def oom_sentence(oom: Oom) -> str:
    """Return why a request failed, with the numbers."""
    sentence = f"{oom.verdict}: {_REASONS[oom.verdict](oom)}"
    if oom.is_limited:
        free = format_bytes(oom.device_free_bytes)
        sentence += f"; the device had {free} free, so a limit of the program refused"
    return sentence if oom.exact else f"{sentence} (uncertain: the file contradicts itself before)"


def _demand(oom: Oom) -> str:
    live, request = format_bytes(oom.live_bytes), format_bytes(oom.requested_bytes)
    wanted = format_bytes(oom.live_bytes + oom.requested_bytes)
    return (
        f"{live} in use + {request} requested = {wanted}, {_capacity(oom)}: "
        f"{format_bytes(oom.short_by_bytes)} too much for any setting of the allocator"
    )


def _fragmentation(oom: Oom) -> str:
    if oom.active_bytes + oom.requested_bytes > oom.capacity_bytes:
        lost = format_bytes(oom.active_bytes - oom.live_bytes)
        return f"{_missing(oom)}; {lost} are lost to the rounding of blocks"
    return (
        f"{_missing(oom)}; {format_bytes(oom.domain_free_bytes)} were cached for such requests, "
        f"in pieces of at most {format_bytes(oom.largest_free_bytes)} between blocks in use"
    )


def _isolation(oom: Oom) -> str:
    if not oom.needed_bytes:
        return (
            f"a free block of {format_bytes(oom.largest_free_bytes)} would have done, but it was "
            "waiting for another stream when the allocator searched"
        )
    return (
        f"{_missing(oom)}; {format_bytes(oom.free_bytes)} were cached, but only "
        f"{format_bytes(oom.domain_free_bytes)} of it for the stream and pool that asked"
        f"{_elsewhere(oom)}"
    )


def _elsewhere(oom: Oom) -> str:
    """Return where most of the free memory was."""
    if oom.elsewhere is None:
        return ""
    pool, kind, stream, free = oom.elsewhere
    asked = place_name(oom.pool, oom.kind, oom.stream)
    return f" ({asked}); {format_bytes(free)} in {place_name(pool, kind, stream)}"


def _outside(oom: Oom) -> str:
    taken = format_bytes(oom.capacity_seen_bytes - oom.capacity_bytes)
    return (
        f"{format_bytes(oom.short_by_bytes)} were missing for {format_bytes(oom.requested_bytes)}; "
        f"PyTorch could have {format_bytes(oom.capacity_seen_bytes)} before and "
        f"{format_bytes(oom.capacity_bytes)} then, so {taken} went to something else on the device"
    )


_REASONS = {
    "demand": _demand,
    "fragmentation": _fragmentation,
    "isolation": _isolation,
    "outside": _outside,
}


def _capacity(oom: Oom) -> str:
    capacity, reserved = format_bytes(oom.capacity_bytes), format_bytes(oom.reserved_bytes)
    if oom.is_limited:
        return f"of at most {capacity}"
    free = format_bytes(oom.device_free_bytes)
    return f"of {capacity} ({reserved} reserved + {free} free on the device)"


def _missing(oom: Oom) -> str:
    needed, request = format_bytes(oom.needed_bytes), format_bytes(oom.requested_bytes)
    free = format_bytes(min(oom.device_free_bytes, oom.needed_bytes))
    if oom.is_limited:
        return f"{request} needed {needed} more from the device"
    return (
        f"{request} needed {needed} from the device, which had {free}: "
        f"{format_bytes(oom.short_by_bytes)} too little"
    )
