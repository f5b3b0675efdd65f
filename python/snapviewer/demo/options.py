"""What to put into a demo snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MOST = {"events": 1_000_000_000, "devices": 64, "streams": 64, "live": 10_000_000}
"""What would take more memory than a machine has is a slip of the keyboard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """The length of a demo snapshot and what happens in it.

    Attributes:
        events: How many events each device's trace has: exactly this many. Recording stops
            there, in the middle of a step or not, and `segments` is the state at that event.
        seed: The same options and seed make the same bytes.
        devices: How many devices train, each with a trace of its own. Their addresses collide.
        streams: Above 1, batches are loaded and gradients reduced on side streams, and frees of
            memory used across streams are deferred.
        expandable: Expandable segments, with `segment_map` and `segment_unmap`.
        private_pools: CUDA graphs, which allocate from private pools.
        oom: Now and then a batch is too large; the loop catches it and tries half of it.
        annotations: Fill `external_annotations` with the phases of each step.
        before_recording: Recording begins after the model was loaded, whose weights then appear
            in `segments` only. Otherwise it begins with an empty device.
        ring: The ring buffer was too small: the oldest quarter of what happened is lost.
        host: Add `host_segments` and `host_traces`, the pinned memory of the data loader.
        leak: Each step keeps one tensor for ever.
        compiled: Stacks as deep and varied as torch.compile's, with `compile_context`.
        live: About how many allocations are alive at a time; None means a 12-layer model's, 600.
        context: 'alloc' as by default in the demo: a free carries the list of its allocation;
            'all': a free has a stack of its own.
    """

    events: int = 20_000
    seed: int = 0
    devices: int = 1
    streams: int = 1
    expandable: bool = False
    private_pools: bool = False
    oom: bool = False
    annotations: bool = True
    before_recording: bool = True
    ring: bool = False
    host: bool = False
    leak: bool = False
    compiled: bool = False
    live: int | None = None
    context: Literal["alloc", "all"] = "alloc"

    def __post_init__(self) -> None:
        for name in ("events", "devices", "streams", "live"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= MOST[name]:
                raise ValueError(f"{name} must be from 1 to {MOST[name]:,}, not {value:,}")
        if self.context not in ("alloc", "all"):
            raise ValueError(f"context must be 'alloc' or 'all', not {self.context!r}")
