"""Blocks of memory: how they lie side by side in a segment, and which of them are free.

The blocks of a segment are a doubly linked list in address order that covers all of it.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from .recorder import Frames

PoolId = tuple[int, int]
PoolKey = tuple[PoolId, bool, int]  # (pool, is_small, stream): memory is never shared across these

MIB, GIB = 1 << 20, 1 << 30
SMALL_SEGMENT = 2 * MIB
LARGE_SEGMENT = 20 * MIB

FREE, ALLOCATED, PENDING, UNMAPPED = range(4)

ADDRESS_BITS = 48


class Block:
    """A range of addresses in one segment: allocated, waiting for a stream, free or unmapped."""

    __slots__ = (
        "address",
        "frames",
        "next",
        "pool",
        "prev",
        "requested",
        "segment",
        "size",
        "state",
        "used_by_other_stream",
    )

    def __init__(self, address: int, size: int, state: int, pool: Pool, segment: Segment) -> None:
        self.address = address
        self.size = size
        self.requested = 0
        self.state = state
        self.frames: Frames | None = None
        self.prev: Block | None = None
        self.next: Block | None = None
        self.pool = pool
        self.segment = segment
        self.used_by_other_stream = False


class Segment:
    """What one cudaMalloc returned, or one reserved range of an expandable pool."""

    __slots__ = ("first", "frames", "size")

    def __init__(self, size: int, frames: Frames | None) -> None:
        self.size = size
        self.frames = frames
        self.first: Block


class Pool:
    """The free blocks of one (pool, size class, stream), ordered by size and then address."""

    __slots__ = ("blocks", "gaps", "granule", "is_small", "keys", "pool_id", "segments", "stream")

    def __init__(self, key: PoolKey) -> None:
        self.pool_id, self.is_small, self.stream = key
        # A key is size << 48 | address: integers, unlike tuples, make bisect quick.
        self.keys: list[int] = []
        self.blocks: dict[int, Block] = {}
        self.segments: dict[Segment, None] = {}  # an ordered set
        self.gaps: list[Block] = []  # the unmapped blocks of an expandable range, by address
        self.granule = SMALL_SEGMENT if self.is_small else LARGE_SEGMENT

    def add(self, block: Block) -> None:
        key = block.size << ADDRESS_BITS | block.address
        insort(self.keys, key)
        self.blocks[key] = block

    def remove(self, block: Block) -> None:
        key = block.size << ADDRESS_BITS | block.address
        keys = self.keys
        del keys[bisect_left(keys, key)]
        del self.blocks[key]

    def take_best_fit(self, size: int, *, expandable: bool) -> Block | None:
        keys, blocks = self.keys, self.blocks
        index = bisect_left(keys, size << ADDRESS_BITS)
        if index == len(keys):
            return None
        if expandable:
            # A block counts as what it could grow to.
            last = len(keys) - 1
            while index < last and _room(blocks[keys[index + 1]]) < _room(blocks[keys[index]]):
                index += 1
        return blocks.pop(keys.pop(index))


def _room(block: Block) -> int:
    after = block.next
    return block.size + (after.size if after is not None and after.state == UNMAPPED else 0)


def cut(block: Block, size: int) -> Block:
    """Shorten `block` to `size` bytes and return the rest, in the same state, linked after it."""
    rest = Block(block.address + size, block.size - size, block.state, block.pool, block.segment)
    block.size = size
    rest.prev, rest.next = block, block.next
    if block.next is not None:
        block.next.prev = rest
    block.next = rest
    return rest


def absorb(block: Block, neighbour: Block) -> None:
    """Join the neighbouring `neighbour` into `block`, which survives."""
    if neighbour is block.prev:
        block.address = neighbour.address
        block.prev = neighbour.prev
        if block.prev is not None:
            block.prev.next = block
        else:
            block.segment.first = block
    else:
        block.next = neighbour.next
        if block.next is not None:
            block.next.prev = block
    block.size += neighbour.size
