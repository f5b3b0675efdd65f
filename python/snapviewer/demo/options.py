"""What to put into a demo snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MAX = {"events": 1_000_000_000, "devices": 64, "streams": 64, "live": 10_000_000}
"""What would take more memory than a machine has is a slip of the keyboard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """The length of a demo snapshot and what happens in it."""

    events: int = 20_000
    """How many events each device's trace has: exactly this many. Recording stops there, in the
    middle of a step or not, and `segments` is the state at that event."""
    seed: int = 0
    """The same options and seed make the same bytes."""
    devices: int = 1
    """How many devices train, each with a trace of its own. Their addresses collide."""
    streams: int = 1
    """Above 1, batches are loaded and gradients reduced on side streams, and frees of memory used
    across streams are deferred."""
    expandable: bool = False
    """Expandable segments, with `segment_map` and `segment_unmap`."""
    private_pools: bool = False
    """CUDA graphs, which allocate from private pools."""
    oom: bool = False
    """Now and then a batch is too large; the loop catches it and tries half of it."""
    annotations: bool = True
    """Fill `external_annotations` with the phases of each step."""
    before_recording: bool = True
    """Recording begins after the model was loaded, whose weights then appear in `segments` only.
    Otherwise it begins with an empty device."""
    ring: bool = False
    """The ring buffer was too small: the oldest quarter of what happened is lost."""
    host: bool = False
    """Add `host_segments` and `host_traces`, the pinned memory of the data loader."""
    leak: bool = False
    """Each step keeps one tensor for ever."""
    compiled: bool = False
    """Stacks as deep and varied as torch.compile's, with `compile_context`."""
    live: int | None = None
    """About how many allocations are alive at a time; None means a 12-layer model's, 600."""
    context: Literal["alloc", "all"] = "alloc"
    """`alloc`: a free carries the list of its allocation; `all`: it has a stack of its own."""

    def __post_init__(self) -> None:
        for name in ("events", "devices", "streams", "live"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= MAX[name]:
                raise ValueError(f"{name} must be from 1 to {MAX[name]:,}, not {value:,}")
        if self.context not in ("alloc", "all"):
            raise ValueError(f"context must be 'alloc' or 'all', not {self.context!r}")
