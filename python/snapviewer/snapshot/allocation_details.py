"""The details of one allocation.

Cost: a few passes over columns of the device's allocations, and one event's row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from snapviewer._core import CATEGORIES, Clock, Device, Frame, Snapshot
from snapviewer.snapshot.annotations import Span, spans_of
from snapviewer.snapshot.frames import FrameKind, kind_of, own_frame
from snapviewer.snapshot.pools import name_of_pool

_NO_FREE_STACK = 2**32 - 1
_FLAGS = ("free lost", "no block at the end", "not in the trace")


class When(NamedTuple):
    """An event and its Unix time; None if the file has no times."""

    event: int
    time_us: int | None


class Length(NamedTuple):
    """A duration in events, and in microseconds if the file has times."""

    events: int
    time_us: int | None


class FrameDetails(NamedTuple):
    """A frame of a stack and whose code it is. `is_main` marks the most informative one."""

    frame: Frame
    kind: FrameKind
    is_main: bool

    @property
    def is_own(self) -> bool:
        """Whether the user wrote it."""
        return self.kind == "own"

    @property
    def is_library(self) -> bool:
        """Whether it is of a package that is not PyTorch."""
        return self.kind == "library"


class SameStack(NamedTuple):
    """The totals of all allocations with one stack, and their bytes at the device's peak."""

    allocations: int
    size_bytes: int
    peak_bytes: int
    peak_share: float


@dataclass(frozen=True, slots=True)
class AllocationDetails:
    """The details of an allocation.

    Args:
        allocation: Its index among the device's.
        name: `b<address>_<number of earlier allocations there>`, as memory_viz writes it.
        size_bytes: The requested size.
        rounded_bytes: The size of its block; None if not known.
        address: Its address.
        stream: The stream it was made on.
        pool: Its memory pool, in words.
        device: The device's ordinal; -1 for pinned host memory.
        category: The profiler's category; None if not known.
        allocated: When; None if older than the recording.
        freed: When; None if never.
        lifetime: From allocation to free, as far as recorded; None if nothing was recorded.
        is_lifetime_whole: Whether both ends were recorded.
        free_requested: When its free was requested; None if not recorded.
        pending: From the request to its end, or to the end of the trace.
        flags: What is unusual, in words.
        compile_context: What torch.compile was working on; None if nothing.
        user_metadata: The metadata that the program set; None if none.
        annotations: The spans that were open when it was made, outermost first.
        stack: The id of its stack.
        frames: Its stack, innermost first; empty if not recorded.
        forward_frames: The stack of the forward pass that its backward belongs to.
        free_frames: The stack that freed it; None if not recorded, or the same.
        same_stack: The totals of its stack.
        operator: The operator that ran when it was made, by a profiler's trace; None if not known.
        kernel: The kernel that ran then; None if not known.
    """

    allocation: int
    name: str
    size_bytes: int
    rounded_bytes: int | None
    address: int
    stream: int
    pool: str
    device: int
    category: str | None
    allocated: When | None
    freed: When | None
    lifetime: Length | None
    is_lifetime_whole: bool
    free_requested: When | None
    pending: Length | None
    flags: tuple[str, ...]
    compile_context: str | None
    user_metadata: str | None
    annotations: tuple[str, ...]
    stack: int
    frames: tuple[FrameDetails, ...]
    forward_frames: tuple[str, ...]
    free_frames: tuple[FrameDetails, ...] | None
    same_stack: SameStack
    operator: str | None = None
    kernel: str | None = None


def allocation_details(
    snapshot: Snapshot,
    device: Device,
    allocation: int,
    *,
    clock: Clock | None = None,
    spans: Sequence[Span] | None = None,
) -> AllocationDetails:
    """Return the details of an allocation.

    Args:
        snapshot: The file.
        device: One of its devices.
        allocation: The allocation's index among the device's.
        clock: The device's plain clock, to save making it again.
        spans: The device's spans, for the same reason.
    """
    clock = clock or device.clock()
    if spans is None:
        spans = spans_of(snapshot, device, clock)
    a, events = device.allocations, int(device.events)
    made, ended = int(a.alloc_event[allocation]), int(a.free_event[allocation])
    requested = int(a.free_requested[allocation])
    stack, free_stack = int(a.stack[allocation]), int(a.free_stack[allocation])
    category = int(a.category[allocation])
    row = device.event_rows(made, made + 1)[0] if made >= 0 else None
    return AllocationDetails(
        allocation=allocation,
        name=_name(device, allocation),
        size_bytes=int(a.size[allocation]),
        rounded_bytes=device.rounded_size(allocation),
        address=int(a.address[allocation]),
        stream=int(a.stream[allocation]),
        pool=pool_name(device.pools, int(a.pool[allocation])),
        device=device.index,
        category=CATEGORIES[category - 1] if category else None,
        allocated=_when(made, events, clock),
        freed=_when(ended, events, clock),
        lifetime=_length(made, ended, events, clock),
        is_lifetime_whole=made >= 0 and ended < events,
        free_requested=_when(requested, events, clock),
        pending=_length(requested, ended, events, clock) if requested >= 0 else None,
        flags=_flags(int(a.flags[allocation]), made, ended, events),
        compile_context=_recorded(row.compile_context) if row else None,
        user_metadata=_recorded(row.user_metadata) if row else None,
        annotations=tuple(span.name for span in spans if span.has(made)),
        stack=stack,
        frames=_frames(snapshot, stack),
        forward_frames=row.forward_frames if row else (),
        free_frames=(
            None if free_stack in (_NO_FREE_STACK, stack) else _frames(snapshot, free_stack)
        ),
        same_stack=_same_stack(device, stack),
    )


def _name(device: Device, allocation: int) -> str:
    a = device.allocations
    same = (a.address == a.address[allocation]).nonzero()[0]
    # Allocations at one address end in the order in which they began.
    in_order = same[a.free_event[same].argsort(kind="stable")]
    before = int((in_order == allocation).argmax())
    return f"b{int(a.address[allocation]):x}_{before}"


def pool_name(pools: Sequence[tuple[int, int]], index: int) -> str:
    """Return the name of a memory pool, as numbered in `Allocations.pool`."""
    return name_of_pool(pools[index - 1] if index else None)


def _when(event: int, events: int, clock: Clock | None) -> When | None:
    if not 0 <= event < events:
        return None
    return When(event, None if clock is None else clock.start_us + clock.at(event))


def _length(start: int, end: int, events: int, clock: Clock | None) -> Length | None:
    """Return the duration from one event to another, as far as there are events."""
    if events == 0:
        return None
    start = max(start, 0)
    if clock is None:
        return Length(end - start, None)
    return Length(end - start, clock.at(min(end, events - 1)) - clock.at(start))


def _flags(bits: int, made: int, ended: int, events: int) -> tuple[str, ...]:
    flags = [words for bit, words in enumerate(_FLAGS) if bits >> bit & 1]
    if events:
        flags += ["older than the recording"] if made < 0 else []
        flags += ["alive at the end"] if ended >= events else []
    return tuple(flags)


def _recorded(text: str | None) -> str | None:
    return None if text in (None, "", "N/A") else text


def _frames(snapshot: Snapshot, stack: int) -> tuple[FrameDetails, ...]:
    frames = snapshot.frames(stack)
    main = own_frame(frames)
    place = None if main is None else frames.index(main)
    return tuple(FrameDetails(frame, kind_of(frame), n == place) for n, frame in enumerate(frames))


def _same_stack(device: Device, stack: int) -> SameStack:
    a, peak = device.allocations, device.peak_event
    is_same = a.stack == stack
    is_there = is_same & (a.alloc_event <= peak) & (a.free_event > peak)
    peak_bytes = int(a.size[is_there].sum())
    return SameStack(
        allocations=int(is_same.sum()),
        size_bytes=int(a.size[is_same].sum()),
        peak_bytes=peak_bytes,
        peak_share=peak_bytes / device.peak_bytes if device.peak_bytes else 0.0,
    )
