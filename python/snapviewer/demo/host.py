"""Pinned host memory: PyTorch's caching host allocator, simulated.

Unlike the device's allocator it never splits: a request is rounded to a power of two, and each
block is a segment of its own, kept for the next request of that size.
"""

from __future__ import annotations

from typing import Any

from .recorder import Frames, Recorder

HOST_DEVICE = -1
BASE_ADDRESS = 0x7E40_0000_0000


class HostBlock:
    """One pinned block; `requested` is the last request that it served."""

    __slots__ = ("address", "frames", "is_allocated", "requested", "segment_frames", "size")

    def __init__(self, address: int, size: int, frames: Frames) -> None:
        self.address = address
        self.size = size
        self.requested = 0
        self.is_allocated = False
        self.frames = frames
        self.segment_frames = frames


class HostAllocator:
    """Pinned memory, recorded into a trace of its own."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._blocks: list[HostBlock] = []
        self._free: dict[int, list[HostBlock]] = {}
        self._next_address = BASE_ADDRESS

    def malloc(self, size: int, frames: Frames) -> HostBlock:
        """Pin `size` bytes, or reuse a block that is pinned already."""
        rounded = max(512, 1 << (size - 1).bit_length())
        cached = self._free.get(rounded)
        if cached:
            block = cached.pop()
        else:
            block = HostBlock(self._next_address, rounded, frames)
            self._next_address += rounded
            self._blocks.append(block)
            self.recorder.event("segment_alloc", block.address, rounded, 0, frames)
        block.is_allocated = True
        block.requested = size
        block.frames = frames
        self.recorder.event("alloc", block.address, size, 0, frames)
        return block

    def free(self, block: HostBlock) -> None:
        """Keep a block for later requests."""
        for action in ("free_requested", "free_completed"):
            self.recorder.event(action, block.address, block.requested, 0, block.frames)
        block.is_allocated = False
        self._free.setdefault(block.size, []).append(block)

    def segments(self) -> list[dict[str, Any]]:
        """Describe all pinned blocks, each as a segment with one block."""
        return [self._entry(block) for block in self._blocks]

    def _entry(self, block: HostBlock) -> dict[str, Any]:
        active = block.size if block.is_allocated else 0
        pool = (0, 0)
        return {
            "device": HOST_DEVICE,
            "address": block.address,
            "total_size": block.size,
            "allocated_size": active,
            "active_size": active,
            "requested_size": block.requested if block.is_allocated else 0,
            "stream": 0,
            "segment_type": "large",
            "segment_pool_id": (pool[0], pool[1]),
            "is_expandable": False,
            "frames": block.segment_frames,
            "blocks": [
                {
                    "address": block.address,
                    "size": block.size,
                    "requested_size": block.requested,
                    "state": "active_allocated" if block.is_allocated else "inactive",
                    "frames": block.frames if block.is_allocated else self.recorder.empty_frames,
                }
            ],
        }
