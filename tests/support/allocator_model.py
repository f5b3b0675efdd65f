"""PyTorch's caching allocator on one device, with lists and loops: slow and obvious.

It writes the trace that PyTorch would record, and remembers its whole state after every event.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

KIB, MIB, GIB = 2**10, 2**20, 2**30
MIN_BLOCK = 512
SMALL_PAGE, LARGE_PAGE = 2 * MIB, 20 * MIB
RESERVATION = 64 * GIB
FIRST_ADDRESS = 0x7F00_0000_0000
DEFAULT_POOL = (0, 0)
STATES = {"allocated": "active_allocated", "pending": "active_pending_free", "free": "inactive"}

Pool = tuple[int, int]
Domain = tuple[Pool, str, int]
Frames = list[dict[str, Any]]


class OutOfMemoryError(Exception):
    """The device is full."""


@dataclass
class Settings:
    """What a user can set."""

    expandable: bool = False
    max_split: int | None = None
    divisions: int = 0
    npu: bool = False
    capacity: int | None = None

    def written(self) -> dict[str, Any]:
        """The settings as a snapshot has them."""
        return {
            "expandable_segments": self.expandable,
            "max_split_size": -1 if self.max_split is None else self.max_split,
            "garbage_collection_threshold": 0.0,
            "roundup_power2_divisions": {str(2**place): self.divisions for place in range(16)},
        }


@dataclass(eq=False)
class Block:
    """A part of a region: allocated, pending, free or unmapped."""

    address: int
    size: int
    state: str
    requested: int = 0
    frames: Frames = field(default_factory=list)
    used_by_other_stream: bool = False

    @property
    def end(self) -> int:
        return self.address + self.size


@dataclass(eq=False)
class Region:
    """A plain segment, or the addresses of an expandable one. The blocks follow one another."""

    domain: Domain
    is_expandable: bool
    blocks: list[Block]

    def merge(self) -> None:
        """Join neighbours that are both free, or both unmapped."""
        place = 0
        while place + 1 < len(self.blocks):
            one, other = self.blocks[place], self.blocks[place + 1]
            if one.state == other.state and one.state in ("free", "unmapped"):
                one.size += other.size
                self.blocks.remove(other)
            else:
                place += 1

    def cut(self, block: Block, size: int) -> None:
        """Cut a block into two of the same state; the first has the size given."""
        if size < block.size:
            rest = Block(block.address + size, block.size - size, block.state)
            self.blocks.insert(self.blocks.index(block) + 1, rest)
            block.size = size

    def mapped_runs(self) -> list[list[Block]]:
        """The blocks between unmapped ranges."""
        runs: list[list[Block]] = [[]]
        for block in self.blocks:
            if block.state == "unmapped":
                runs.append([])
            else:
                runs[-1].append(block)
        return [run for run in runs if run]


class Model:
    """The allocator."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.regions: list[Region] = []
        self.deferred: list[Block] = []
        self.dead_pools: set[Pool] = set()
        self.next_address = FIRST_ADDRESS
        self.trace: list[dict[str, Any]] = []
        self.states: list[Any] = [self.state()]
        self.amounts: list[tuple[int, int, int, int]] = [self.count()]

    # What a program does

    def malloc(
        self, size: int, frames: Frames, stream: int = 0, pool: Pool = DEFAULT_POOL
    ) -> Block:
        """Serve a request."""
        rounded = self.round(size)
        domain = (pool, "small" if rounded <= MIB else "large", stream)
        found = self.best_fit(domain, rounded)
        if found is None:
            found = self.grow(domain, rounded, frames)
        if found is None and self.release_oversize(domain, rounded, frames):
            found = self.grow(domain, rounded, frames)
        if found is None:
            self.complete_deferred(len(self.deferred), frames)
            self.release_cached(frames)
            found = self.grow(domain, rounded, frames)
        if found is None:
            self.record_oom(rounded, frames, domain)
            raise OutOfMemoryError
        region, block = found
        block = self.aligned(region, block, rounded)
        rest = block.size - rounded
        if domain[1] == "small" or self.settings.expandable:
            is_split = rest >= MIN_BLOCK
        else:
            is_split = rest > MIB and rounded < self.max_split
        if is_split:
            region.cut(block, rounded)
        block.state, block.requested, block.frames = "allocated", size, frames
        self.record("alloc", block.address, size, frames, domain)
        return block

    def free(self, block: Block, frames: Frames) -> None:
        """Give a block back, at once or when another stream has finished with it."""
        block.state = "pending"
        domain = self.region_of(block).domain
        self.record("free_requested", block.address, block.requested, frames, domain)
        if block.used_by_other_stream:
            self.deferred.append(block)
        else:
            self.complete(block, frames)

    def complete_deferred(self, count: int, frames: Frames) -> None:
        """The other stream has finished with the first of the blocks that wait for it."""
        for _ in range(min(count, len(self.deferred))):
            self.complete(self.deferred.pop(0), frames)

    def empty_cache(self, frames: Frames) -> None:
        """As `torch.cuda.empty_cache` does."""
        self.complete_deferred(len(self.deferred), frames)
        self.release_cached(frames)

    # The rules

    @property
    def max_split(self) -> int:
        return self.settings.max_split or 2**64

    def round(self, size: int) -> int:
        """The size of the block that a request needs."""
        divisions = self.settings.divisions
        size += 32 if self.settings.npu else 0
        if size < MIN_BLOCK:
            return MIN_BLOCK
        if divisions <= 1 or size <= MIN_BLOCK * divisions:
            return -(-size // MIN_BLOCK) * MIN_BLOCK
        power = 1
        while power * 2 <= size:
            power *= 2
        step = power // divisions
        return -(-size // step) * step

    def aligned(self, region: Region, block: Block, rounded: int) -> Block:
        """The fork for NPUs: large requests at multiples of 16 KiB, if there is room before."""
        offset = -block.address % (16 * KIB)
        is_aligned = self.settings.npu and self.settings.expandable and rounded >= 2 * MIB
        if not is_aligned or not offset or offset + rounded > block.size:
            return block
        region.cut(block, offset)
        return region.blocks[region.blocks.index(block) + 1]

    def best_fit(self, domain: Domain, rounded: int) -> tuple[Region, Block] | None:
        """The smallest free block that fits, the lowest of equals."""
        fitting = [
            (block.size, block.address, region, block)
            for region in self.regions
            if region.domain == domain
            for block in region.blocks
            if block.state == "free" and block.size >= rounded
        ]
        fitting.sort(key=lambda one: one[:2])
        if not fitting:
            return None
        place = 0
        if self.settings.expandable:
            # A block counts as what it could grow to.
            while place + 1 < len(fitting) and self.room(*fitting[place + 1][2:]) < self.room(
                *fitting[place][2:]
            ):
                place += 1
        size, _, region, block = fitting[place]
        if rounded < self.max_split <= size:
            return None
        if rounded >= self.max_split and size >= rounded + 20 * MIB:
            return None
        return region, block

    def room(self, region: Region, block: Block) -> int:
        """The size that a block could grow to."""
        after = region.blocks[region.blocks.index(block) + 1 :][:1]
        return block.size + sum(one.size for one in after if one.state == "unmapped")

    def grow(self, domain: Domain, rounded: int, frames: Frames) -> tuple[Region, Block] | None:
        """Get memory from the device."""
        if self.settings.expandable:
            return self.grow_mapped(domain, rounded, frames)
        if domain[1] == "small":
            size = SMALL_PAGE
        elif rounded < 10 * MIB:
            size = LARGE_PAGE
        else:
            size = -(-rounded // (2 * MIB)) * 2 * MIB
        if not self.has_device_memory(size):
            return None
        block = Block(self.new_addresses(size), size, "free")
        region = Region(domain, False, [block])
        self.regions.append(region)
        self.record("segment_alloc", block.address, size, frames, domain)
        return region, block

    def grow_mapped(
        self, domain: Domain, rounded: int, frames: Frames
    ) -> tuple[Region, Block] | None:
        region, block = self.expandable_place(domain, rounded)
        page = SMALL_PAGE if domain[1] == "small" else LARGE_PAGE
        while block.state == "unmapped" or block.size < rounded:
            target, missing = block, rounded
            if block.state == "free":
                target = region.blocks[region.blocks.index(block) + 1]
                missing = rounded - block.size
            size = -(-min(missing, target.size) // page) * page
            if not self.has_device_memory(size):
                return None
            region.cut(target, size)
            target.state = "free"
            address = target.address
            region.merge()
            self.record("segment_map", address, size, frames, domain)
            block = next(one for one in region.blocks if one.address <= address < one.end)
        return region, block

    def expandable_place(self, domain: Domain, rounded: int) -> tuple[Region, Block]:
        """The first free or unmapped block, by address, from which on there is room."""
        expandable = [one for one in self.regions if one.domain == domain and one.is_expandable]
        for region in sorted(expandable, key=lambda one: one.blocks[0].address):
            for place, block in enumerate(region.blocks):
                if block.state != "unmapped":
                    continue
                first = place
                if place > 0 and region.blocks[place - 1].state == "free":
                    first = place - 1
                room = 0
                for one in region.blocks[first:]:
                    if one.state not in ("free", "unmapped"):
                        break
                    room += one.size
                if room >= rounded:
                    return region, region.blocks[first]
        block = Block(self.new_addresses(RESERVATION), RESERVATION, "unmapped")
        region = Region(domain, True, [block])
        self.regions.append(region)
        return region, block

    def release_oversize(self, domain: Domain, rounded: int, frames: Frames) -> bool:
        """With `max_split_size`: give back one large block that suffices, or several."""
        if self.settings.max_split is None:
            return False
        wanted = max(rounded, self.max_split)
        free = [
            (block.size, block.address, region)
            for region in self.regions
            for block in region.blocks
            if region.domain == domain
            and not region.is_expandable
            and block.state == "free"
            and block.size >= self.max_split
        ]
        free.sort(key=lambda one: one[:2])
        enough = [one for one in free if one[0] >= wanted]
        if enough:
            self.release(enough[0][2], frames)
            return True
        released = 0
        for size, _, region in reversed(free):
            if released >= wanted:
                break
            self.release(region, frames)
            released += size
        return released >= wanted

    def release_cached(self, frames: Frames) -> None:
        """Give back every segment that is one free block, and every free page."""
        for kind in ("large", "small"):
            free = [
                (region.domain[2], block.size, block.address, region)
                for region in self.regions
                for block in region.blocks
                if region.domain[1] == kind
                and block.state == "free"
                and (region.domain[0] == DEFAULT_POOL or region.domain[0] in self.dead_pools)
            ]
            free.sort(key=lambda one: one[:3])
            for _, _, _, region in free:
                if not region.is_expandable and len(region.blocks) == 1:
                    self.release(region, frames)
            for _, size, address, region in free:
                if region.is_expandable:
                    self.unmap(region, address, size, frames)

    def release(self, region: Region, frames: Frames) -> None:
        self.regions.remove(region)
        [block] = region.blocks
        self.record("segment_free", block.address, block.size, frames, region.domain)

    def unmap(self, region: Region, address: int, size: int, frames: Frames) -> None:
        """Unmap the whole pages of a free block."""
        page = SMALL_PAGE if region.domain[1] == "small" else LARGE_PAGE
        base = region.blocks[0].address
        first = base + -(-(address - base) // page) * page
        last = base + (address + size - base) // page * page
        if first >= last:
            return
        block = next(one for one in region.blocks if one.address == address)
        if address < first:
            region.cut(block, first - address)
            block = region.blocks[region.blocks.index(block) + 1]
        region.cut(block, last - first)
        block.state = "unmapped"
        region.merge()
        if len(region.blocks) == 1:
            # Addresses of which nothing is mapped are given up.
            self.regions.remove(region)
        self.record("segment_unmap", first, last - first, frames, region.domain)

    def complete(self, block: Block, frames: Frames) -> None:
        region = self.region_of(block)
        address, requested = block.address, block.requested
        block.state, block.requested, block.used_by_other_stream = "free", 0, False
        region.merge()
        self.record("free_completed", address, requested, frames, region.domain)

    # The device

    def reserved(self) -> int:
        mapped = [b for region in self.regions for b in region.blocks if b.state != "unmapped"]
        return sum(block.size for block in mapped)

    def has_device_memory(self, size: int) -> bool:
        capacity = self.settings.capacity
        return capacity is None or self.reserved() + size <= capacity

    def new_addresses(self, size: int) -> int:
        """Addresses that were never used, with a gap before them."""
        self.next_address += 64 * MIB
        address = self.next_address
        self.next_address += size
        return address

    def region_of(self, block: Block) -> Region:
        return next(region for region in self.regions if block in region.blocks)

    # What is recorded

    def record(self, action: str, address: int, size: int, frames: Frames, domain: Domain) -> None:
        event = {"action": action, "addr": address, "size": size, "stream": domain[2]}
        self._record({**event, "pool_id": domain[0], "frames": frames})

    def record_oom(self, rounded: int, frames: Frames, domain: Domain) -> None:
        free = (self.settings.capacity or 0) - self.reserved()
        event = {"action": "oom", "device_free": free, "size": rounded, "stream": domain[2]}
        self._record({**event, "pool_id": domain[0], "frames": frames})

    def _record(self, event: dict[str, Any]) -> None:
        event["time_us"] = 1_700_000_000_000_000 + len(self.trace)
        self.trace.append(event)
        self.states.append(self.state())
        self.amounts.append(self.count())

    def state(self) -> list[Any]:
        """The segments by address: what they are, and their blocks."""
        found = []
        for region in self.regions:
            for run in region.mapped_runs():
                blocks = [(b.address, b.size, b.requested, b.state) for b in run]
                pool, kind, stream = region.domain
                first = (run[0].address, sum(block.size for block in run))
                found.append((*first, pool, kind, stream, region.is_expandable, blocks))
        return sorted(found)

    def count(self) -> tuple[int, int, int, int]:
        """Requested, allocated, active and reserved bytes."""
        blocks = [block for region in self.regions for block in region.blocks]
        allocated = sum(block.size for block in blocks if block.state == "allocated")
        active = [block for block in blocks if block.state in ("allocated", "pending")]
        requested = sum(block.requested for block in active)
        return requested, allocated, sum(block.size for block in active), self.reserved()

    def snapshot(self, first: int = 0) -> dict[str, Any]:
        """The file that PyTorch would write, without the first events."""
        segments = []
        for region in self.regions:
            for run in region.mapped_runs():
                pool, kind, stream = region.domain
                blocks = [
                    {
                        "address": block.address,
                        "size": block.size,
                        "requested_size": block.requested,
                        "state": STATES[block.state],
                        "frames": block.frames,
                    }
                    for block in run
                ]
                active = [block.size for block in run if block.state != "free"]
                segment: dict[str, Any] = {"device": 0, "address": run[0].address, "stream": stream}
                segment["total_size"] = sum(block.size for block in run)
                segment |= {"allocated_size": sum(active), "active_size": sum(active)}
                segment |= {"segment_type": kind, "segment_pool_id": pool, "frames": []}
                segments.append(
                    {**segment, "is_expandable": region.is_expandable, "blocks": blocks}
                )
        trace = copy.deepcopy(self.trace[first:])
        settings = self.settings.written()
        return {"segments": segments, "device_traces": [trace], "allocator_settings": settings}
