"""The native core: reading, lifetimes, bundles. Everything it returns is frozen."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Protocol, TypeAlias, final

import numpy as np
import numpy.typing as npt

from snapviewer.snapshot.event_count import EventCount

__all__ = [
    "ACTIONS",
    "CATEGORIES",
    "FORMAT_VERSION",
    "GROUPINGS",
    "SCHEMA",
    "Allocations",
    "Allocator",
    "Block",
    "CancelledError",
    "Categories",
    "Channels",
    "Checkpoint",
    "Clock",
    "Curves",
    "Cut",
    "Device",
    "Difference",
    "Domain",
    "Event",
    "Frame",
    "Group",
    "Groups",
    "Growth",
    "Icicle",
    "Image",
    "Keys",
    "Leak",
    "Leaks",
    "Ledger",
    "MemoryMap",
    "Oom",
    "Pattern",
    "Peak",
    "Pending",
    "Pin",
    "Profile",
    "PruningPoint",
    "Quality",
    "Release",
    "RoundTrip",
    "Screen",
    "Snapshot",
    "SnapshotError",
    "Spectrum",
    "State",
    "Stats",
    "Step",
    "Steps",
    "Storage",
    "Tensor",
    "TensorPart",
    "Timeline",
    "Tree",
    "TreeNode",
    "Value",
    "WhatIf",
    "convert",
    "is_bundle",
    "load",
    "null_device",
    "query",
    "read_checkpoint",
    "read_profile",
    "tensor_quality",
    "tensor_stats",
    "whatif",
]

ACTIONS: tuple[str, ...]
"""The known actions of events (`Event.action`); a file may have others."""

CATEGORIES: tuple[str, ...]
"""What `Allocations.category` and `Categories.category` count; the last two are only inferred."""

GROUPINGS: tuple[str, ...]
"""What `Device.alive` can group by."""

FORMAT_VERSION: int
"""The version of the bundle's format."""

SCHEMA: str
"""The tables and views that queries see, as SQL with comments; `snapshot.schema` reads them."""

# A filter's text, or a bool an allocation.
_Which: TypeAlias = str | npt.NDArray[np.bool_]
_Range: TypeAlias = tuple[float, float]
# x, y, width, height, (red, green, blue), alpha, over; see `Image.marked`
_Mark: TypeAlias = tuple[int, int, int, int, tuple[int, int, int], int, bool]
_Tables: TypeAlias = Mapping[str, npt.NDArray[np.int64]]

class _Cancel(Protocol):
    def is_set(self) -> bool: ...

class SnapshotError(Exception):
    """A file could not be read, written or queried; the message is one sentence that says why."""

class CancelledError(SnapshotError):
    """The work was cancelled by its caller."""

@final
class Frame:
    """One line of a call stack."""

    def __new__(cls, name: str, filename: str, line: int) -> Frame: ...
    @property
    def name(self) -> str:
        """The function."""
    @property
    def filename(self) -> str:
        """The file; "??" or empty in C++ frames."""
    @property
    def line(self) -> int:
        """The line; 0 in C++ frames."""
    @property
    def kind(self) -> Literal["own", "library", "torch", "other"]:
        """Whose code it is."""
    @property
    def rank(self) -> int:
        """How far it is from the user's own code; 0 is that."""
    @property
    def text(self) -> str:
        """A short text: `model.py:77 attention`, the node of a backward pass, or a C++ function."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...

@final
class Event:
    """One event of a trace, in words."""

    @property
    def index(self) -> int:
        """Its place in the trace."""
    @property
    def action(self) -> str:
        """What it does: "alloc", "snapshot", …, as the file calls it."""
    @property
    def address(self) -> int:
        """The address; 0 if there is none."""
    @property
    def size(self) -> int:
        """Bytes: as requested for allocations and frees, physical for segments."""
    @property
    def stream(self) -> int:
        """The stream."""
    @property
    def time_us(self) -> int | None:
        """When, in Unix microseconds; None if not recorded."""
    @property
    def stack(self) -> int:
        """Who did it: an id for `Snapshot.frames`; 0 if not recorded."""
    @property
    def compile_context(self) -> str | None:
        """The compile id; "N/A" outside of torch.compile."""
    @property
    def user_metadata(self) -> str | None:
        """What the user said of this stretch of the program."""
    @property
    def internal_metadata(self) -> str | None:
        """What the allocator says of its own event."""
    @property
    def category(self) -> str | None:
        """What the profiler says it is for."""
    @property
    def pool(self) -> tuple[int, int] | None:
        """The memory pool, if the event names it."""
    @property
    def forward_frames(self) -> tuple[str, ...]:
        """The forward stack of a backward allocation, a line each."""
    @property
    def device_free(self) -> int | None:
        """Of an OOM, instead of an address: the bytes that were free on the device."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...

@final
class Allocations:
    """Allocations in columns: read-only arrays over the core's own memory."""

    @property
    def size(self) -> npt.NDArray[np.uint64]:
        """Requested bytes."""
    @property
    def address(self) -> npt.NDArray[np.uint64]:
        """Addresses."""
    @property
    def stream(self) -> npt.NDArray[np.int64]:
        """The streams they were made on."""
    @property
    def stack(self) -> npt.NDArray[np.uint32]:
        """Who made them: ids for `Snapshot.frames`; 0 if not recorded."""
    @property
    def alloc_event(self) -> npt.NDArray[np.int64]:
        """The events that made them; -1 if alive before the recording."""
    @property
    def free_event(self) -> npt.NDArray[np.int64]:
        """The events that ended them; the number of events if never freed."""
    @property
    def free_requested(self) -> npt.NDArray[np.int64]:
        """The events that asked for their end; -1 if none."""
    @property
    def free_stack(self) -> npt.NDArray[np.uint32]:
        """Who freed them; 2**32-1 if not recorded."""
    @property
    def flags(self) -> npt.NDArray[np.uint8]:
        """Bit 0: the free was lost. Bit 1: no block at the end. Bit 2: from the segments only."""
    @property
    def pool(self) -> npt.NDArray[np.uint16]:
        """Their memory pools: 1 + the place in `Device.pools`; 0 if not known."""
    @property
    def category(self) -> npt.NDArray[np.uint8]:
        """What they are for, as the profiler says: 1 + a place in this list; 0 if not known.

        parameter, optimizer_state, input, temporary, activation, gradient, autograd_detail,
        unknown (`snapviewer._core.CATEGORIES`).
        """
    def __len__(self, /) -> int: ...

@final
class Group:
    """The allocations with one key."""

    @property
    def key(self) -> str:
        """What they have in common: a line of code, a module, a category, a stack's text, …."""
    @property
    def id(self) -> int:
        """Its number in `Keys.ids`."""
    @property
    def bytes(self) -> int:
        """Their bytes."""
    @property
    def count(self) -> int:
        """How many there are."""
    @property
    def largest(self) -> int:
        """The index of the largest; of equals the first."""
    @property
    def oldest(self) -> int:
        """The index of the one that was made first."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...

@final
class Groups:
    """What is alive after an event, by group."""

    @property
    def event(self) -> int:
        """The event; -1 is before the first."""
    @property
    def by(self) -> str:
        """What they are grouped by."""
    @property
    def total_bytes(self) -> int:
        """All bytes that are alive."""
    @property
    def count(self) -> int:
        """How many allocations are alive."""
    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups, the most bytes first; at most `top`."""
    @property
    def group_count(self) -> int:
        """How many groups there are."""
    @property
    def other_bytes(self) -> int:
        """Bytes of the groups that were left out."""
    @property
    def other_count(self) -> int:
        """Allocations of the groups that were left out."""
    @property
    def missing(self) -> str | None:
        """What the file lacks to answer this fully, as a sentence."""
    def __len__(self) -> int: ...

@final
class Keys:
    """The group of each allocation."""

    @property
    def by(self) -> str:
        """What they are grouped by."""
    @property
    def ids(self) -> npt.NDArray[np.uint32]:
        """The number of each allocation's group, below the length."""
    @property
    def missing(self) -> str | None:
        """What the file lacks to answer this fully, as a sentence."""
    def name(self, id: int) -> str:
        """The name of a group."""
    def __len__(self) -> int: ...

@final
class Categories:
    """What each allocation is for."""

    @property
    def category(self) -> npt.NDArray[np.uint8]:
        """Of each allocation: 1 + the place in `CATEGORIES`."""
    @property
    def missing(self) -> str | None:
        """What the file lacks to answer this fully, as a sentence."""
    def of(self, allocation: int) -> tuple[str, str, float]:
        """The name of an allocation's category, why, and how sure that is from 0 to 1."""
    def __len__(self) -> int: ...

@final
class Step:
    """What memory does in a step, or in another stretch of events."""

    @property
    def name(self) -> str:
        """What it is called."""
    @property
    def start(self) -> int:
        """Its first event."""
    @property
    def end(self) -> int:
        """The first event after it."""
    @property
    def is_whole(self) -> bool:
        """Whether the recording has all of it."""
    @property
    def peak_bytes(self) -> int:
        """The most live bytes after one of its events."""
    @property
    def peak_event(self) -> int:
        """The first event with that much."""
    @property
    def start_bytes(self) -> int:
        """Live bytes before it."""
    @property
    def end_bytes(self) -> int:
        """Live bytes after its last event."""
    @property
    def net_bytes(self) -> int:
        """By how much live bytes change in it."""
    @property
    def allocated_bytes(self) -> int:
        """Bytes that were allocated in it."""
    @property
    def allocated_count(self) -> int:
        """How many allocations were made in it."""
    @property
    def freed_bytes(self) -> int:
        """Bytes that were freed in it."""
    @property
    def freed_count(self) -> int:
        """How many allocations were freed in it."""
    @property
    def largest(self) -> int | None:
        """The index of the largest allocation that was made in it; None if there is none."""
    @property
    def new(self) -> tuple[tuple[str, int], ...]:
        """Lines that allocate more than in the step before, and how many bytes more."""

@final
class Steps:
    """The steps of a trace."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps, in order; they do not overlap."""
    @property
    def source(self) -> str:
        """Where they come from; "" if there are none."""
    @property
    def missing(self) -> str | None:
        """What the file lacks to answer this fully, as a sentence."""
    @property
    def phases(self) -> tuple[tuple[str, int, int], ...]:
        """What the program was doing, with the first event and the first one after.

        That is "forward", "backward", "optimizer", "construct" or "outside".
        """
    def __len__(self) -> int: ...

@final
class Leak:
    """A group that grows from step to step."""

    @property
    def key(self) -> str:
        """The line that allocates."""
    @property
    def id(self) -> int:
        """Its group in `Device.keys("line")`."""
    @property
    def bytes_per_step(self) -> float:
        """How many bytes it grows by in a step."""
    @property
    def first_step(self) -> int:
        """The first step that adds to it: a place among the whole steps of `Device.steps`."""
    @property
    def confidence(self) -> float:
        """How sure that is, from 0 to 1."""
    @property
    def grown_bytes(self) -> int:
        """Bytes that it has added by the end."""
    @property
    def shared_frames(self) -> tuple[str, ...]:
        """The frames that the stacks of its allocations share, innermost first."""
    @property
    def allocations(self) -> npt.NDArray[np.uint32]:
        """The indexes of the allocations that it has added and that are alive at the end."""

@final
class Leaks:
    """What grows from step to step."""

    @property
    def leaks(self) -> tuple[Leak, ...]:
        """The leaks, the fastest first."""
    @property
    def steps(self) -> int:
        """Over how many whole steps."""
    @property
    def is_guess(self) -> bool:
        """Whether the file has no steps, so that equal parts of the trace stand for them."""
    @property
    def missing(self) -> str | None:
        """What the file lacks to answer this fully, as a sentence."""
    def __len__(self) -> int: ...

@final
class Peak:
    """A moment that is higher than those around it."""

    @property
    def event(self) -> int:
        """The first event with that much; -1 is before the first."""
    @property
    def bytes(self) -> int:
        """Live bytes."""

@final
class Cut:
    """What must go to get below a limit."""

    @property
    def limit_bytes(self) -> int:
        """The limit."""
    @property
    def groups(self) -> tuple[tuple[int, Group], ...]:
        """The groups that must go, each with the event at which it was chosen."""
    @property
    def left_bytes(self) -> int:
        """The most bytes that are alive without them."""
    @property
    def left_event(self) -> int:
        """The first event with that much."""

@final
class Device:
    """What is known of one device."""

    @property
    def index(self) -> int:
        """The device's ordinal; -1 for pinned host memory."""
    @property
    def events(self) -> EventCount:
        """How many events its trace has."""
    @property
    def allocations(self) -> Allocations:
        """Its allocations, in stacking order."""
    @property
    def first_idx(self) -> int:
        """What queries call its allocation 0: in elements.db, `allocations.idx`."""
    @property
    def pools(self) -> tuple[tuple[int, int], ...]:
        """The memory pools that `Allocations.pool` counts: (0, 0), the default one, first."""
    @property
    def totals(self) -> npt.NDArray[np.uint64]:
        """Live requested bytes after each event."""
    @property
    def initial_bytes(self) -> int:
        """Live requested bytes before the first event."""
    @property
    def peak_bytes(self) -> int:
        """The most live requested bytes, before the first event or after any."""
    @property
    def peak_event(self) -> int:
        """The first event with that much; -1 if that was before the first event."""
    @property
    def final_bytes(self) -> int:
        """Live requested bytes after the last event."""
    @property
    def expected_final_bytes(self) -> int:
        """Requested bytes of the blocks that the segments hold at the end."""
    @property
    def reserved_initial_bytes(self) -> int:
        """Bytes got from the device before the first event."""
    @property
    def reserved_peak_bytes(self) -> int:
        """The most bytes that were got from the device."""
    @property
    def oom_events(self) -> int:
        """How often an allocation failed."""
    @property
    def oom_at(self) -> tuple[int, ...]:
        """The events at which an allocation failed."""
    @property
    def reconciles(self) -> bool:
        """Whether what is live at the end is what the segments hold, to the byte."""
    @property
    def warnings(self) -> tuple[str, ...]:
        """What is off, in sentences."""
    @property
    def allocator(self) -> Allocator:
        """The replay of PyTorch's allocator, made at the first use."""
    @property
    def curves(self) -> Curves:
        """Requested, allocated, active and reserved bytes after each event."""
    @property
    def ooms(self) -> tuple[Oom, ...]:
        """The requests that failed, each with the reason."""
    def alive(
        self, event: int, by: str = "line", *, where: _Which | None = None, top: int | None = None
    ) -> Groups:
        """What is alive after an event, by group.

        Args:
            event: The event; -1 is before the first.
            by: One of `GROUPINGS`: "line", "stack", "file", "function", "module", "category",
                "step", "stream", "pool", "compile", "size", "lifetime" or "segment".
            where: Which allocations count: a filter's text, or an array with a bool for each.
            top: The most groups to return; what is left out is summed up.

        Raises:
            IndexError: There is no such event.
            ValueError: The grouping or the filter is not understood.
        """
    def keys(self, by: str) -> Keys:
        """The group of each allocation; `by` is one of `GROUPINGS`."""
    @property
    def categories(self) -> Categories:
        """What each allocation is for, inferred where the file does not say."""
    @property
    def steps(self) -> Steps:
        """The steps of the trace."""
    def stretch(self, start: int, end: int) -> Step:
        """What memory does in a stretch of events, from `start` to before `end`."""
    @property
    def leaks(self) -> Leaks:
        """What grows from step to step."""
    @property
    def peaks(self) -> tuple[Peak, ...]:
        """The distinct peaks, the highest first.

        Memory fell between two of them by at least a twentieth of the highest.
        """
    def cut(self, limit_bytes: int, by: str = "line") -> Cut:
        """What must at least go so that no moment holds more than `limit_bytes`."""
    def timeline(self, order: str = "allocation", where: _Which | None = None) -> Timeline:
        """Stack the allocations in an order: all, or those that `where` describes.

        Args:
            order: What decides who stands below whom: "allocation" (older ones below), "stack"
                (those of a call stack together), "size" (large ones below), "lifetime" (long ones
                below), "pool", "stream" or "category".
            where: Which allocations to show: a filter's text, such as
                "attention|mlp size>=1MiB lifetime<100", or an array with a bool for each.

        Raises:
            ValueError: The order or the filter is not understood; the message says what is.
        """
    def tree(
        self,
        event: int | None = None,
        *,
        events: tuple[int, int] | None = None,
        measure: str = "alive",
        by: str = "line",
        frames: str = "folded",
        callers: bool = False,
        where: str | npt.NDArray[np.bool_] | None = None,
    ) -> Tree:
        """The call tree of the allocations, with weights that add up exactly.

        Args:
            event: Count what is alive after this event; default: at the peak.
            events: With the measures "allocated" and "time": the first event and the one behind the
                last; default: all.
            measure: "alive", "allocated" (bytes that the events allocate) or "time" (bytes × time).
            by: What a node is: "line", "function" or "file".
            frames: "folded" makes PyTorch's frames between others one node, "own" shows only the
                user's code, "all" shows every frame.
            callers: Start with the innermost frames.
            where: Count only what a filter or a mask shows.

        Raises:
            IndexError: There is no such event.
            ValueError: A choice or the filter is not understood.
        """
    def mask(self, where: str) -> npt.NDArray[np.bool_]:
        """Which allocations a filter matches.

        Raises:
            ValueError: The filter is not understood; the message says what is.
        """
    def event_rows(self, first: int, last: int) -> list[Event]:
        """The events from `first` to before `last`, as far as there are any.

        Raises:
            ValueError: More than 10,000 were asked for.
        """
    def events_of(self, action: str) -> npt.NDArray[np.int64]:
        """The events with this action ("snapshot", "oom", …), in their order."""
    def rounded_size(self, allocation: int) -> int | None:
        """What the allocator set aside for an allocation: the size of its block at the end.

        Returns:
            Bytes; None if it does not live so long, or the segments do not have its block.
        """
    def colors(self, color: str = "stack", theme: str = "light") -> npt.NDArray[np.uint8]:
        """The colour of each allocation: allocations × (red, green, blue)."""
    def scale(
        self, color: str, theme: str = "light"
    ) -> tuple[int, int, list[tuple[int, int, int]]] | None:
        """What the colours of "size" (bytes) and "age" (events) mean; None for other colours.

        Returns:
            The least, the most, and the colours from one to the other by the logarithm.
        """
    def clock(self, compress: bool = False) -> Clock | None:
        """When the events happened; None if the file has no times.

        Args:
            compress: Cut long times without events short.
        """

@final
class Allocator:
    """The replay of PyTorch's caching allocator on one device."""

    @property
    def exact(self) -> bool:
        """Whether nothing in the file contradicts the allocator's rules."""
    @property
    def placements(self) -> int:
        """Allocations whose placement was predicted."""
    @property
    def as_recorded(self) -> int:
        """Those that are where the rules put them."""
    @property
    def contradictions(self) -> dict[str, int]:
        """How often the file contradicts the rules, by what is wrong; empty if it does not."""
    @property
    def first_contradiction(self) -> int | None:
        """The first event that contradicts the rules."""
    @property
    def settings(self) -> dict[str, Any]:
        """The settings in force, by PyTorch's names."""
    @property
    def has_settings(self) -> bool:
        """Whether the file contains the allocator's settings."""
    @property
    def uncertain_blocks(self) -> int:
        """Blocks older than the trace whose size is only known up to 1 MiB."""
    @property
    def block_size(self) -> npt.NDArray[np.uint64]:
        """The size of the block of each allocation."""
    @property
    def growths(self) -> tuple[Growth, ...]:
        """The requests that made the allocator ask the device for memory."""
    @property
    def releases(self) -> tuple[Release, ...]:
        """The times at which memory went back to the device."""
    @property
    def pending(self) -> tuple[Pending, ...]:
        """The frees that waited for other streams, by the stream of the block."""
    def pins(self, event: int) -> tuple[Pin, ...]:
        """What each stack keeps from going back to the device after an event, the most first.

        The shares add up to the free memory that cannot go back.

        Raises:
            IndexError: The trace has no such event.
        """
    def kept_apart(self, growth: int) -> list[int]:
        """The allocations that kept free memory in pieces when the allocator grew.

        Without these, the fewest bytes of live blocks, the request would have fit. Empty if no
        segment was large enough.

        Args:
            growth: The place in `growths`.

        Raises:
            IndexError: There is no such growth.
        """
    def state(self, event: int) -> State:
        """The segments and their blocks after an event; -1 is before the first.

        Raises:
            IndexError: The trace has no such event.
        """

@final
class Growth:
    """A request that made the allocator ask the device for memory."""

    @property
    def event(self) -> int:
        """The first of its segment events."""
    @property
    def alloc_event(self) -> int:
        """The `alloc` that follows."""
    @property
    def stack(self) -> int:
        """The stack that asked."""
    @property
    def rounded_bytes(self) -> int:
        """The rounded request."""
    @property
    def grown_bytes(self) -> int:
        """What came from the device."""
    @property
    def free_bytes(self) -> int:
        """Free bytes for such requests at that moment."""
    @property
    def largest_bytes(self) -> int:
        """The largest free block for such requests."""
    @property
    def outside_bytes(self) -> int:
        """The largest free block for other requests."""
    @property
    def stream(self) -> int:
        """The stream."""
    @property
    def pool(self) -> tuple[int, int] | None:
        """The memory pool; None if it is not known."""
    @property
    def kind(self) -> str:
        """For which requests: "small" or "large"."""
    @property
    def cause(self) -> str:
        """Why nothing free would do: "demand", "fragments" or "other domain"."""

@final
class Oom:
    """A request that failed, and why."""

    @property
    def event(self) -> int:
        """The `oom` event."""
    @property
    def stack(self) -> int:
        """The stack that asked."""
    @property
    def requested_bytes(self) -> int:
        """The rounded request."""
    @property
    def device_free_bytes(self) -> int:
        """What the device had free."""
    @property
    def live_bytes(self) -> int:
        """What the program had asked for and not given back."""
    @property
    def active_bytes(self) -> int:
        """Blocks in use."""
    @property
    def reserved_bytes(self) -> int:
        """Memory from the device."""
    @property
    def free_bytes(self) -> int:
        """What of it no block used."""
    @property
    def domain_free_bytes(self) -> int:
        """What of that was for requests like this one."""
    @property
    def largest_free_bytes(self) -> int:
        """The largest free block for requests like this one."""
    @property
    def needed_bytes(self) -> int:
        """What the device would have had to give; 0 if a block became free after the search."""
    @property
    def released_bytes(self) -> int:
        """What the allocator gave back in vain right before."""
    @property
    def capacity_bytes(self) -> int:
        """All memory that the allocator could have had then."""
    @property
    def capacity_seen_bytes(self) -> int:
        """The most that it had, or could have had, before."""
    @property
    def is_limited(self) -> bool:
        """Whether the device had enough: then a limit of the program refused."""
    @property
    def stream(self) -> int:
        """The stream."""
    @property
    def pool(self) -> tuple[int, int] | None:
        """The memory pool; None if it is not known."""
    @property
    def kind(self) -> str:
        """For which requests: "small" or "large"."""
    @property
    def verdict(self) -> str:
        """Why it failed: "demand", "fragmentation", "isolation" or "outside"."""
    @property
    def elsewhere(self) -> tuple[tuple[int, int] | None, str, int, int] | None:
        """The pool, kind, stream and free bytes of what had the most for other requests."""
    @property
    def short_by_bytes(self) -> int:
        """How many bytes were missing."""
    @property
    def exact(self) -> bool:
        """Whether nothing before it contradicts the allocator's rules."""

@final
class Release:
    """Memory that went back to the device at once."""

    @property
    def event(self) -> int:
        """The first event."""
    @property
    def events(self) -> int:
        """How many events there are."""
    @property
    def bytes(self) -> int:
        """The bytes that went back."""
    @property
    def cause(self) -> str:
        """Why: "retry" (the device was full), "empty cache" or "other"."""

@final
class Pending:
    """The frees of one stream's blocks that waited for other streams."""

    @property
    def stream(self) -> int:
        """The stream that the blocks belong to."""
    @property
    def frees(self) -> int:
        """How many frees waited."""
    @property
    def bytes(self) -> int:
        """The bytes of their blocks."""
    @property
    def most_bytes(self) -> int:
        """The most that waited at one moment."""
    @property
    def longest_events(self) -> int:
        """The longest wait, in events."""
    @property
    def longest(self) -> int:
        """The allocation that waited longest."""
    @property
    def longest_us(self) -> int:
        """The longest wait in microseconds; 0 without times."""
    @property
    def mib_us(self) -> int:
        """MiB times microseconds; 0 without times."""

@final
class Pin:
    """Free memory that the blocks of one stack keep from going back to the device."""

    @property
    def stack(self) -> int:
        """The stack."""
    @property
    def pinned_bytes(self) -> int:
        """Its share of that memory; stacks with blocks in one segment have equal shares."""
    @property
    def blocks(self) -> int:
        """Its blocks in segments with such memory."""
    @property
    def block_bytes(self) -> int:
        """Their bytes."""

@final
class WhatIf:
    """What a simulation of the allocator found."""

    @property
    def trust(self) -> str:
        """How far it can be trusted: "exact", "interval" or "refused"."""
    @property
    def why(self) -> str:
        """Why not further; empty if it is exact."""
    @property
    def kind(self) -> str:
        """How the recording begins: "whole" (with an empty allocator), "grows" or "steady"."""
    @property
    def matches(self) -> tuple[int, ...]:
        """How many allocations each filter changes, in the order of the arguments."""
    @property
    def peak_requested_bytes(self) -> int | None:
        """The most that is requested; None if it was refused, as below."""
    @property
    def peak_active_bytes(self) -> int | None:
        """The most that blocks take."""
    @property
    def peak_reserved_bytes(self) -> int | None:
        """The most that comes from the device."""
    @property
    def peak_event(self) -> int | None:
        """The first event after which so much is reserved; -1 is before the first."""
    @property
    def low_bytes(self) -> int | None:
        """The least that the peak of reserved memory may be."""
    @property
    def high_bytes(self) -> int | None:
        """The most that it may be."""
    @property
    def capacity_bytes(self) -> int | None:
        """What the device can give; None if that is no limit."""
    @property
    def retries(self) -> tuple[int, ...]:
        """The events at which the device was full and cached memory went back to it."""
    @property
    def oom_events(self) -> tuple[int, ...]:
        """The events at which memory runs out: those of the recording, and one more at most."""
    @property
    def oom_event(self) -> int | None:
        """The first of them; None if there is none."""
    @property
    def oom_needed_bytes(self) -> int | None:
        """What the device would have had to give then."""
    @property
    def oom_available_bytes(self) -> int | None:
        """What it had."""
    @property
    def rescued_event(self) -> int | None:
        """Where the recording ran out of memory, and this does not: what follows is unknown."""
    @property
    def reserved(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        """Reserved bytes in steps: the events that change them, -1 first, and the bytes then."""

def whatif(
    device: Device,
    conf: str | None = None,
    *,
    capacity: int | None = None,
    memory: int | None = None,
    without: Sequence[str] = ...,
    scale: Sequence[tuple[str, float]] = ...,
    free_early: Sequence[tuple[str, int]] = ...,
) -> WhatIf:
    """Simulate a device's requests under other settings, with less memory, or changed.

    Args:
        device: The recording.
        conf: The allocator's settings, as in `PYTORCH_ALLOC_CONF`; None as recorded.
        capacity: The bytes that the device can give; None as far as the recording shows it.
        memory: All bytes of the device, of which `per_process_memory_fraction` is a part.
        without: Filters of allocations that are left out.
        scale: Filters of allocations, and what their sizes are multiplied by.
        free_early: Filters of allocations, and the event at which they are freed at the latest.

    Raises:
        ValueError: A setting or a filter is not understood.
        SnapshotError: The file does not contain the segments.
    """

@final
class Curves:
    """Four amounts of memory after each event, as PyTorch's statistics define them."""

    @property
    def requested(self) -> npt.NDArray[np.uint64]:
        """What the program asked for."""
    @property
    def allocated(self) -> npt.NDArray[np.uint64]:
        """The blocks that the program has."""
    @property
    def active(self) -> npt.NDArray[np.uint64]:
        """Those, and the blocks that wait for another stream."""
    @property
    def reserved(self) -> npt.NDArray[np.uint64]:
        """Memory from the device."""
    def sample(self, events: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[np.uint64]]:
        """All four after some events, in bytes; -1 is before the first."""
    @property
    def peaks(self) -> dict[str, int]:
        """The most of each, in bytes."""
    def at(self, event: int) -> dict[str, int]:
        """All four after one event, in bytes; -1 is before the first.

        Raises:
            IndexError: The trace has no such event.
        """

@final
class Domain:
    """The memory of one pool for small or large requests of one stream."""

    @property
    def pool(self) -> tuple[int, int] | None:
        """The memory pool; None if it is not known."""
    @property
    def kind(self) -> str:
        """For which requests: "small" or "large"."""
    @property
    def stream(self) -> int:
        """The stream."""
    @property
    def segments(self) -> int:
        """How many segments it has."""
    @property
    def reserved_bytes(self) -> int:
        """Their bytes."""
    @property
    def allocated_bytes(self) -> int:
        """Bytes of blocks that the program has."""
    @property
    def pending_bytes(self) -> int:
        """Bytes of blocks that wait for another stream."""
    @property
    def requested_bytes(self) -> int:
        """Requested bytes of both."""
    @property
    def free_bytes(self) -> int:
        """Free bytes."""
    @property
    def largest_free_bytes(self) -> int:
        """The largest free block."""
    @property
    def releasable_bytes(self) -> int:
        """Free bytes that could go back to the device."""

@final
class Block:
    """A block of a segment at one moment."""

    @property
    def segment(self) -> int:
        """The place of its segment in the state."""
    @property
    def address(self) -> int:
        """Where it begins."""
    @property
    def size(self) -> int:
        """Its bytes."""
    @property
    def requested(self) -> int:
        """The requested bytes; 0 if it is free."""
    @property
    def state(self) -> str:
        """One of "allocated", "pending" and "free"."""
    @property
    def allocation(self) -> int | None:
        """The allocation that has it; None if it is free."""

@final
class MemoryMap:
    """The segments of a state, laid out in rows below the headings of their domains."""

    @property
    def height(self) -> int:
        """The height of all rows, in pixels."""
    def rows(self, top: int, bottom: int) -> list[tuple[int, str, int, int]]:
        """The rows of which something is between two heights.

        Returns:
            The upper edge, "domain" or "segment", its place in the state, and which part of the
            segment the row shows.
        """
    def at(self, x: int, y: int) -> Block | None:
        """The block at a pixel; None if there is none."""
    def top_of(self, allocation: int) -> int | None:
        """The upper edge of the first row with an allocation; None if it has no block."""
    def image(
        self,
        *,
        top: int = 0,
        height: int,
        color: str = "stack",
        theme: str = "light",
        dim: str | npt.NDArray[np.bool_] | None = None,
        selected: int | None = None,
        previous: Image | None = None,
    ) -> Image:
        """Draw what is below a height; the arguments are those of `Timeline.image`."""

@final
class Profile:
    """Annotations, operators and kernels that PyTorch's profiler recorded, by their starts."""

    @property
    def skipped(self) -> int:
        """How many events were left out."""
    @property
    def names(self) -> int:
        """How many different names there are."""
    def text(self, name: int) -> str:
        """The text of a name.

        Raises:
            IndexError: There is no such name.
        """
    @property
    def name(self) -> npt.NDArray[np.uint32]:
        """The name of each event, for `text`."""
    @property
    def kind(self) -> npt.NDArray[np.uint8]:
        """The kind of each event: 0 is an annotation, 1 an operator, 2 a kernel."""
    @property
    def start_ns(self) -> npt.NDArray[np.int64]:
        """When each starts, in nanoseconds of Unix time."""
    @property
    def duration_ns(self) -> npt.NDArray[np.int64]:
        """How long each takes, in nanoseconds."""
    @property
    def track(self) -> npt.NDArray[np.uint32]:
        """The thread or the stream of each, a small number."""
    def __len__(self) -> int: ...

def read_profile(
    path: str | PathLike[str],
    *,
    progress: Callable[[int, int], object] | None = None,
    cancel: _Cancel | None = None,
) -> Profile:
    """Read a trace of PyTorch's profiler: JSON, or gzip of it.

    Raises:
        SnapshotError: It is no such trace; the message says why.
        OSError: The file cannot be read.
        CancelledError: It was cancelled.
    """

@final
class TreeNode:
    """A node of a call tree."""

    @property
    def index(self) -> int:
        """Its number; the root is 0. Those below a node have higher ones."""
    @property
    def parent(self) -> int | None:
        """The node above it; None for the root."""
    @property
    def depth(self) -> int:
        """How many nodes are above it."""
    @property
    def kind(self) -> str:
        """Either "root", "no stack", "folded", or whose code it is, as `Frame.kind`."""
    @property
    def text(self) -> str:
        """A short text for it: `model.py:77 attention`."""
    @property
    def name(self) -> str:
        """The function; empty if the node is no frame, or a file."""
    @property
    def filename(self) -> str:
        """The file; empty if it is not known."""
    @property
    def line(self) -> int:
        """The line; 0 if it has none."""
    @property
    def weight(self) -> int:
        """The weight of it and of everything below it."""
    @property
    def own(self) -> int:
        """The weight without what is below it."""
    @property
    def count(self) -> int:
        """How many allocations are at it or below it."""
    @property
    def largest(self) -> int | None:
        """The largest allocation of the heaviest stack at it or below it."""
    @property
    def children(self) -> tuple[int, ...]:
        """The nodes below it that have allocations, in the file's order."""

@final
class Tree:
    """Call paths of a device's allocations, with weights that add up exactly.

    A node's own weight and the weights of its children add up to its weight.
    """

    @property
    def total(self) -> int:
        """The weight of everything."""
    @property
    def count(self) -> int:
        """How many allocations there are."""
    @property
    def unit(self) -> str:
        """What weights are: "bytes", "byte-us" or "byte-events"."""
    @property
    def duration(self) -> int | None:
        """How long the events take, in µs or events, if weights are bytes × time."""
    @property
    def event(self) -> int | None:
        """The event whose live allocations it shows, if it shows those."""
    @property
    def events(self) -> tuple[int, int] | None:
        """The first event and the one behind the last, if it shows a range."""
    def node(self, node: int) -> TreeNode:
        """A node; 0 is the root.

        Raises:
            IndexError: There is no such node.
        """
    def node_of(self, allocation: int) -> int | None:
        """The node of an allocation; None if the allocation is not counted."""
    def mask(self, node: int) -> npt.NDArray[np.bool_]:
        """Which allocations are at a node or below it, for filters and pictures."""
    def search(self, text: str) -> tuple[npt.NDArray[np.uint32], int]:
        """Find the nodes that a regular expression matches.

        Returns:
            The nodes, and the weight of these and all below them, counted once.

        Raises:
            ValueError: The expression is not valid.
        """
    def icicle(self, *, width: int, row: int, focus: int | None = None) -> Icicle:
        """Lay out the tree from a node on.

        Args:
            width: Of the picture, in pixels.
            row: The height of a row, in pixels.
            focus: The node that takes the whole width, below those above it.
        """
    def __len__(self) -> int: ...

@final
class Icicle:
    """A call tree, laid out in rows: a box is as wide as its node is heavy."""

    @property
    def height(self) -> int:
        """The height of all rows, in pixels."""
    def at(self, x: int, y: int) -> int | None:
        """The node at a pixel; None if there is none."""
    def boxes(
        self, *, least: int = 1, top: int = 0, height: int
    ) -> list[tuple[int, int, int, int]]:
        """The boxes of at least `least` pixels between two heights: node, left, top and width."""
    def image(
        self,
        *,
        top: int = 0,
        height: int,
        color: str = "stack",
        theme: str = "light",
        dim: str | npt.NDArray[np.bool_] | None = None,
        selected: int | None = None,
        found: npt.NDArray[np.uint32] | None = None,
        letters: Sequence[tuple[int, int, int, bytes]] = ...,
        previous: Image | None = None,
    ) -> Image:
        """Draw what is below a height; further arguments are those of `Timeline.image`.

        Args:
            top: The height.
            height: Of the picture, in pixels.
            color: What to colour by.
            theme: "light" or "dark".
            dim: The allocations that are not dimmed.
            selected: The node with an outline.
            found: The nodes that are not dimmed, in ascending order.
            letters: Texts: left, top, width, and how far each pixel is covered, row by row.
            previous: A picture that is no longer needed.
        """

@final
class State:
    """The segments and their blocks after an event, in columns."""

    def map(
        self,
        *,
        width: int,
        row_bytes: int,
        row: int = 14,
        gap: int = 3,
        heading: int = 22,
        sort: str = "address",
    ) -> MemoryMap:
        """Lay the segments out in rows.

        Args:
            width: Of a row, in pixels.
            row_bytes: How many bytes a row shows; longer segments continue in the next one.
            row: The height of a row, in pixels.
            gap: Between two rows, in pixels.
            heading: The height of a domain's heading, in pixels.
            sort: The order within a domain: "address", "size", "waste" or "age".
        """

    @property
    def event(self) -> int:
        """The event."""
    @property
    def domains(self) -> tuple[Domain, ...]:
        """How much is in use: one record per pool, kind and stream."""
    @property
    def segment_address(self) -> npt.NDArray[np.uint64]:
        """Where the segments begin."""
    @property
    def segment_size(self) -> npt.NDArray[np.uint64]:
        """Their bytes."""
    @property
    def segment_stream(self) -> npt.NDArray[np.int64]:
        """Their streams."""
    @property
    def segment_pool(self) -> tuple[tuple[int, int] | None, ...]:
        """Their memory pools; None where it is not known."""
    @property
    def segment_is_small(self) -> npt.NDArray[np.bool_]:
        """Whether they are for requests of at most 1 MiB."""
    @property
    def segment_is_expandable(self) -> npt.NDArray[np.bool_]:
        """Whether they are part of an expandable segment."""
    @property
    def segment_born(self) -> npt.NDArray[np.int64]:
        """The event that they came with; -1 if they are older than the trace."""
    @property
    def segment_first_block(self) -> npt.NDArray[np.uint64]:
        """The place of their first block."""
    @property
    def block_address(self) -> npt.NDArray[np.uint64]:
        """Where the blocks begin, segment by segment."""
    @property
    def block_size(self) -> npt.NDArray[np.uint64]:
        """Their bytes."""
    @property
    def block_requested(self) -> npt.NDArray[np.uint64]:
        """The requested bytes; 0 if free."""
    @property
    def block_state(self) -> npt.NDArray[np.uint8]:
        """0 allocated, 1 pending, 2 free."""
    @property
    def block_allocation(self) -> npt.NDArray[np.int64]:
        """The allocations that have them; -1 if free."""
    @property
    def unplaced(self) -> npt.NDArray[np.uint32]:
        """Live allocations that have no block of their own: the file contradicts itself."""

@final
class Timeline:
    """Allocations of a device, stacked in an order and filtered.

    The stack at an event is what is alive after it, in the order, without gaps.
    """

    @property
    def totals(self) -> npt.NDArray[np.uint64]:
        """Live bytes of what is shown, after each event."""
    @property
    def peak_bytes(self) -> int:
        """The most live bytes of what is shown, before the first event or after any."""
    @property
    def peak_event(self) -> int:
        """The first event with that much; -1 if that was before the first event."""
    @property
    def initial_bytes(self) -> int:
        """Live bytes of what is shown before the first event."""
    @property
    def shown(self) -> int:
        """How many allocations are shown."""
    def at(self, event: int, byte: float) -> int | None:
        """The allocation at a byte of the stack after an event; None above it. -1 is before all."""
    def offset(self, allocation: int, event: int) -> int | None:
        """The byte at which an allocation begins in the stack after an event; None if not in it."""
    def stack(self, event: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
        """The stack after an event, from the bottom: the allocations, and where each begins."""
    def alive_by_stack(self, event: int) -> list[tuple[int, int, int, int, int]]:
        """What is alive after an event by stack, the most bytes first.

        Returns:
            The stack, its bytes, how many allocations, the largest (of equals the first), its size.
        """
    def largest_alive(self, event: int, limit: int) -> list[tuple[int, int, int, int, int]]:
        """The largest allocations that are alive after an event, the largest first.

        Returns:
            Which, its size, its stack, and the events that made and freed it.
        """
    def peak_in(self, first: int, last: int) -> tuple[int, int]:
        """Of the events from `first` to before `last`, the first with the most live bytes.

        Returns:
            The event, and the live bytes after it.
        """
    def color_groups(
        self, image: Image, event: int, color: str = "stack", theme: str = "light"
    ) -> list[tuple[int, int, int, tuple[int, int, int]]]:
        """What the colours of a picture stand for, the most bytes first.

        Returns:
            Stacks, streams, pools or categories, each with its live bytes after an event, its
            pixels in the picture and its colour. Empty for sizes and ages, which are scales.

        Raises:
            ValueError: The picture is of another device, or was given up.
        """
    def visible_extent(self, image: Image, color: str) -> tuple[int, int] | None:
        """The least and the largest size or age in a picture.

        Returns:
            None if `color` is neither, or the picture shows nothing.
        """
    def overview(
        self,
        *,
        events: _Range | None = None,
        time: _Range | None = None,
        clock: Clock | None = None,
        size: int,
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
        """The lowest and the highest total of each of some columns."""
    def image(
        self,
        *,
        events: _Range | None = None,
        time: _Range | None = None,
        bytes: tuple[float, float],
        size: tuple[int, int],
        clock: Clock | None = None,
        color: str = "stack",
        theme: str = "light",
        dim: _Which | None = None,
        selected: int | None = None,
        previous: Image | None = None,
        threads: int | None = None,
    ) -> Image:
        """Draw a part of the timeline.

        Every column shows one moment: the event with the largest total inside it. A pixel shows who
        owns the byte at its centre, or where 32 neighbours in the stack are together at most half a
        pixel tall, the heaviest of them.

        Args:
            events: From the left edge to the right, in events; or
            time: the same in microseconds since the first event.
            bytes: From the lower edge to the upper.
            size: Width and height in pixels.
            clock: What `time` is measured on; the plain one if not given.
            color: What colours stand for: "stack", "size", "stream", "pool", "age" (for how many
                events it lives) or "category".
            theme: "light" or "dark".
            dim: What this does not describe (a filter's text or a mask) is drawn faintly.
            selected: An allocation to outline.
            previous: A picture of the same timeline that is no longer needed, as when panning:
                columns that both have are moved, not drawn. It is empty afterwards.
            threads: How many work on it; all cores, up to 8, if not given.

        Raises:
            ValueError: There is nothing to see, or an argument is not understood.
        """

@final
class Image:
    """A picture of a timeline: pixels, and who is in each."""

    @property
    def rgb(self) -> npt.NDArray[np.uint8]:
        """The pixels: height × width × (red, green, blue), the first row on top."""
    @property
    def ids(self) -> npt.NDArray[np.uint32]:
        """The allocation in each pixel; 2**32-1 is background."""
    @property
    def events(self) -> npt.NDArray[np.int64]:
        """The event that each column shows: the one with the largest total in it; -1 if none."""
    def marked_bytes(self, marks: Sequence[_Mark]) -> bytes:
        """Return the same as `marked`, as bytes."""
    def marked(self, marks: Sequence[_Mark]) -> npt.NDArray[np.uint8]:
        """Return a copy of the pixels, with 255 as a fourth channel, and rectangles painted on.

        Args:
            marks: Rectangles, later ones on top: x and y of the upper left corner in pixels from
                the picture's, width and height; what lies outside is cut off. Then the colour; its
                alpha, of which 255 hides what is below; and whether it is over everything, rather
                than on the background only.
        """

@final
class Pattern:
    """A regular expression that takes time linear in what it searches.

    It has the syntax of filters: no look-around and no back-references. Case counts only if it has
    an upper-case letter.

    Raises:
        ValueError: It is not understood or too large; the message says why.
    """

    def __new__(cls, text: str) -> Pattern: ...
    def is_match(self, text: str) -> bool:
        """Whether it matches somewhere in a text."""
    def ends_behind(self, text: str, characters: int) -> bool:
        """Whether a match ends behind the first so many characters of a text."""
    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where it matches in a text, in characters."""

@final
class Screen:
    """A window of an X11 server of this machine, which pictures are put into without Tk.

    The server reads them from memory that it shares. The window's own content should be left alone:
    a Tk frame of background "" is. The server must know the window: call its `update()` before.

    Args:
        window: Its id, as Tk's `winfo_id()` gives it.
        display: The server's name; the one that the environment names if not given.

    Raises:
        OSError: This window cannot be shown pictures; the message says why.
    """

    def __new__(cls, window: int, display: str | None = None) -> Screen: ...
    def prepare(self, width: int, height: int) -> None:
        """Have memory for pictures of a size ready, so that the first one comes sooner.

        Raises:
            OSError: The screen was closed, or the system has no such memory.
            OverflowError: No window is that large.
        """
    def show(self, image: Image, marks: Sequence[_Mark] = (), *, x: int = 0, y: int = 0) -> None:
        """Put a picture into the window, and return when it is there.

        Windows inside of the window are not painted over. What is covered and uncovered again has
        to be shown again.

        Args:
            image: The picture.
            marks: Rectangles to paint on it; see `Image.marked`.
            x: Where its left edge is in the window; it may lie partly or wholly outside.
            y: The same for its upper edge.

        Raises:
            OSError: The window or the server is gone, or the screen was closed.
            ValueError: The picture was given up.
        """
    def close(self) -> None:
        """Give the connection and the memory back. A screen may be closed twice."""

@final
class Clock:
    """When events happened, in microseconds since the first one."""

    @property
    def start_us(self) -> int:
        """The Unix time of the first event, in microseconds."""
    @property
    def length_us(self) -> int:
        """From the first to the last event, on this clock."""
    @property
    def times(self) -> npt.NDArray[np.uint64]:
        """The time of each event on this clock, which never runs backwards."""
    @property
    def gaps(self) -> tuple[tuple[int, int, int, int], ...]:
        """Where time without events was cut short.

        Each is the event before it, from and to on this clock, and how long it was.
        """
    def at(self, event: int) -> int:
        """The time of an event on this clock."""
    def events(self, from_us: float, to_us: float) -> tuple[int, int]:
        """The events that a stretch of this clock shows: the first, and the one after the last.

        The first one happened at its start or before.
        """
    def real(self, us: float) -> float:
        """The real time since the first event that this clock shows as `us`."""

@final
class Snapshot:
    """An opened snapshot, or a bundle made of one."""

    @property
    def format(self) -> str:
        """What the file is: "pickle", "gzip json", "bundle of pickle", …."""
    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices; pinned host memory, if recorded, is the last and has the index -1."""
    @property
    def warnings(self) -> tuple[str, ...]:
        """What is odd about the file as a whole, in sentences."""
    def frames(self, stack_id: int) -> tuple[Frame, ...]:
        """The frames of a stack, innermost first.

        Raises:
            IndexError: There is no such stack.
        """
    @property
    def metadata(self) -> dict[str, Any]:
        """Further top-level entries of the file, such as `predicted`."""
    @property
    def annotations(self) -> tuple[tuple[str, str, int | None, int], ...]:
        """The marks that the program set, in the file's order: name, stage, device and Unix µs."""
    def query(
        self,
        sql: str,
        *,
        max_rows: int = 1000,
        max_seconds: float = 30.0,
        cancel: _Cancel | None = None,
        tables: _Tables | None = None,
    ) -> tuple[list[str], list[tuple[Any, ...]], bool]:
        """Run a read-only SQL query on a bundle, which stays open for the next one.

        Args:
            sql: One SELECT.
            max_rows: What is beyond them is left off.
            max_seconds: How long it may take.
            cancel: Asked now and then whether to stop, such as a `threading.Event`.
            tables: Further tables for this query: for each name the `idx` of some allocations, in
                any order. They have all columns of `allocations`, and `callstack`.

        Returns:
            The column names, the rows, and whether rows were left off.

        Raises:
            SnapshotError: This is no bundle, or the query fails; the message says why.
            ValueError: The name of a table is none, or hides a table that is there.
            CancelledError: `cancel` was set.
        """

@final
class Ledger:
    """The bytes of a checkpoint's files by what they are for; the parts add up to their size."""

    @property
    def tensors(self) -> int:
        """Bytes of storages that some tensor reaches."""
    @property
    def unreferenced(self) -> int:
        """Bytes of storages that none reaches."""
    @property
    def pickle(self) -> int:
        """Pickles."""
    @property
    def padding(self) -> int:
        """Zeros and spaces that align what follows."""
    @property
    def archive(self) -> int:
        """Headers, names, directories, small records, code."""

@final
class TensorPart:
    """One of the storages' views that a tensor is made of, such as the indices of a sparse one."""

    @property
    def role(self) -> str:
        """What it is to its tensor: "indices", "values", …."""
    @property
    def dtype(self) -> str:
        """The type of its elements."""
    @property
    def shape(self) -> tuple[int, ...]:
        """How many elements it has along each dimension."""
    @property
    def stride(self) -> tuple[int, ...]:
        """How many elements of the storage lie between neighbours, along each dimension."""
    @property
    def offset(self) -> int:
        """Its first element in the storage."""
    @property
    def storage(self) -> str:
        """The key of its storage."""

@final
class Tensor:
    """A tensor of a checkpoint, or something like one."""

    @property
    def name(self) -> str:
        """The way to it: `model.layer.weight`, `optimizer.state[0].exp_avg`."""
    @property
    def kind(self) -> str:
        """What it is: "tensor", "parameter", "sparse_coo", "quantized", "nested", "meta", …."""
    @property
    def dtype(self) -> str:
        """The type of its elements, such as "float32"."""
    @property
    def shape(self) -> tuple[int, ...]:
        """How many elements it has along each dimension."""
    @property
    def stride(self) -> tuple[int, ...] | None:
        """As torch counts it; None for a kind that is made of several parts, or of none."""
    @property
    def offset(self) -> int | None:
        """Its first element in the storage; None as for `stride`."""
    @property
    def storage(self) -> str | None:
        """The key of its storage; None as for `stride`."""
    @property
    def device(self) -> str:
        """Where it was when it was saved."""
    @property
    def requires_grad(self) -> bool:
        """Whether it wants gradients."""
    @property
    def logical_bytes(self) -> int:
        """Its elements, each written out."""
    @property
    def stored_bytes(self) -> int:
        """All of its storages."""
    @property
    def unique_bytes(self) -> int:
        """The bytes of its storages that it reaches, each once."""
    @property
    def wasted_bytes(self) -> int:
        """What saving a clone of it alone would save; 0 if others need the rest."""
    @property
    def parts(self) -> tuple[TensorPart, ...]:
        """What it is made of; empty for a plain tensor."""
    @property
    def class_name(self) -> str | None:
        """The class that the file names, if it is not torch's own."""
    @property
    def file(self) -> str | None:
        """The shard that it is in."""

@final
class Storage:
    """The bytes of one storage, and where they are."""

    @property
    def key(self) -> str:
        """What the file calls it."""
    @property
    def file(self) -> str | None:
        """The shard that it is in."""
    @property
    def start(self) -> int:
        """Where it begins in that file."""
    @property
    def bytes(self) -> int:
        """How many bytes it is when unpacked."""
    @property
    def packed_bytes(self) -> int:
        """How many bytes of the file it takes."""
    @property
    def reached_bytes(self) -> int:
        """How many of its bytes some tensor reaches."""
    @property
    def clone_bytes(self) -> int:
        """What clones of its tensors would take instead."""
    @property
    def tensors(self) -> tuple[int, ...]:
        """The indexes of the tensors that are views of it."""

@final
class Value:
    """A value of a checkpoint: what torch.load would return there, but inert.

    Two are equal, and have the same hash, if they are the same object of the file.
    """

    @property
    def type(self) -> str:
        """Its Python type: 'torch.Tensor', 'OrderedDict', 'str', …, or the file's own class."""
    @property
    def tensor(self) -> int | None:
        """The index of the tensor that it is."""
    @property
    def size_bytes(self) -> int:
        """What it takes in 64-bit CPython, contents included; what occurs twice counts once."""
    @property
    def value(self) -> bool | int | float | complex | str | bytes | None:
        """The plain value itself.

        Raises:
            ValueError: It is a collection, a tensor or an object, or an integer of more than 512
                bits.
        """
    @property
    def preview(self) -> str | None:
        """The repr of a plain value, shortened."""
    @property
    def count(self) -> int | None:
        """How many items a collection has."""
    @property
    def is_container(self) -> bool:
        """Whether it has items."""
    def items(self, start: int = 0, stop: int | None = None) -> list[tuple[str, Value]]:
        """Some of its items: keys of a dict as text, `[0]` in a sequence, names of attributes."""
    def entries(self, start: int = 0, stop: int | None = None) -> list[tuple[Value, Value]]:
        """Some of a dict's items: keys and values."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...

@final
class Stats:
    """Statistics of a tensor's elements; moments, norms and histogram are of the finite ones."""

    @property
    def count(self) -> int:
        """How many elements there are."""
    @property
    def mean(self) -> float | None:
        """None if no element is finite; the same below."""
    @property
    def std(self) -> float | None:
        """Unbiased; None with less than two finite elements."""
    @property
    def min(self) -> float | None:
        """The smallest."""
    @property
    def max(self) -> float | None:
        """The largest."""
    @property
    def zeros(self) -> int:
        """How many are zero, of either sign."""
    @property
    def nan(self) -> int:
        """How many are no numbers."""
    @property
    def inf(self) -> int:
        """How many are infinite."""
    @property
    def denormal(self) -> int:
        """How many are closer to zero than normal numbers."""
    @property
    def l1(self) -> float:
        """The sum of the absolute values."""
    @property
    def l2(self) -> float:
        """The root of the sum of squares."""
    @property
    def skewness(self) -> float | None:
        """Of the population; None if all are equal."""
    @property
    def kurtosis(self) -> float | None:
        """Excess, of the population; None if all are equal."""
    @property
    def entropy(self) -> float | None:
        """Of the histogram, in bits."""
    @property
    def histogram(self) -> tuple[int, ...]:
        """How many elements are in each of equal bins from `min` to `max`."""
    @property
    def edges(self) -> tuple[float, float] | None:
        """Where the histogram begins and ends."""

@final
class Difference:
    """How the elements of two tensors of the same type and shape differ."""

    @property
    def is_equal(self) -> bool:
        """Whether all are the same."""
    @property
    def changed(self) -> int:
        """How many differ."""
    @property
    def count(self) -> int:
        """How many there are."""
    @property
    def to_nonfinite(self) -> int:
        """How many were finite before, and are NaN or infinite now."""
    @property
    def from_nonfinite(self) -> int:
        """How many were NaN or infinite before, and are finite now."""
    @property
    def max_abs(self) -> float | None:
        """The largest difference; None if none is finite."""
    @property
    def mean_abs(self) -> float | None:
        """The mean difference."""
    @property
    def relative_l2(self) -> float | None:
        """The norm of the difference by the norm of the first; None if that is 0."""

@final
class RoundTrip:
    """What is left of a tensor after it was stored in a narrower format and taken back.

    SQNR is 10 · log10 of the sum of squares by the sum of squared errors. It is infinite if nothing
    is lost (above 240 dB, where our own rounding begins), and None if there is nothing but zeros.
    """

    @property
    def format(self) -> str:
        """One of "int8", "int4", "float8_e4m3fn", "float8_e5m2".

        Scaled so that the largest magnitude becomes the format's largest number (127, 7, 448,
        57344), without an offset, rounded to the nearest, half to even.
        """
    @property
    def sqnr_db(self) -> float | None:
        """With one scale for the tensor."""
    @property
    def channel_sqnr_db(self) -> float | None:
        """With one scale for each index along the first dimension."""

@final
class PruningPoint:
    """What setting a share of the values to 0, those of the smallest magnitudes, would cost."""

    @property
    def share(self) -> float:
        """How much is set to 0: 0.1, … 0.9 of the finite values, rounded down to whole ones."""
    @property
    def threshold(self) -> float:
        """The largest magnitude among them; 0 if there are none.

        Exact for types of up to 24 significant bits, else within 2⁻²⁴ of it.
        """
    @property
    def lost(self) -> float:
        """Their part of the sum of squares, from 0 to 1."""

@final
class Channels:
    """The norms (L2) of the slices along the first dimension: rows, output channels."""

    @property
    def count(self) -> int:
        """How many there are."""
    @property
    def median_norm(self) -> float:
        """The median of their norms; the mean of the two in the middle."""
    @property
    def small(self) -> int:
        """How many have a norm below 10 % of the median or 1 % of the root mean square."""

@final
class Spectrum:
    """The largest singular value of a tensor as a matrix: the first dimension by all others."""

    @property
    def shape(self) -> tuple[int, int]:
        """The matrix."""
    @property
    def norm(self) -> float:
        """The largest singular value, found by iteration; never more than the true one.

        Of a matrix of up to 4 million elements it is exact to about nine digits.
        """
    @property
    def upper_bound(self) -> float:
        """What the norm cannot exceed: the lesser of ‖A‖_F and √(‖A‖₁ · ‖A‖_∞)."""
    @property
    def iterations(self) -> int:
        """How often the matrix was read to find the norm."""
    @property
    def change(self) -> float:
        """How much of the norm the last iteration added."""
    @property
    def stable_rank(self) -> float | None:
        """‖A‖_F² ÷ norm²; None if all is 0."""
    @property
    def captured(self) -> float | None:
        """The share of ‖A‖_F² that some matrix of rank `iterations` keeps; None if all is 0."""

@final
class Quality:
    """What would be lost by storing a tensor in fewer bits or with fewer values.

    Values that are not finite are left out, and counted. Of complex ones the magnitudes are meant.
    """

    @property
    def count(self) -> int:
        """How many values there are."""
    @property
    def nan(self) -> int:
        """How many are no numbers."""
    @property
    def inf(self) -> int:
        """How many are infinite."""
    @property
    def max_abs(self) -> float | None:
        """The largest magnitude; None if no value is finite."""
    @property
    def round_trips(self) -> tuple[RoundTrip, ...]:
        """To int8, int4, float8_e4m3fn and float8_e5m2."""
    @property
    def pruning(self) -> tuple[PruningPoint, ...]:
        """For 10 % to 90 %; empty if no value is finite."""
    @property
    def channels(self) -> Channels | None:
        """The slices along the first dimension; None if unavailable."""
    @property
    def channels_unavailable(self) -> str | None:
        """Why `channels` and every `channel_sqnr_db` are None, in a sentence."""
    @property
    def spectrum(self) -> Spectrum | None:
        """The singular values; None if unavailable or not asked for."""
    @property
    def spectrum_unavailable(self) -> str | None:
        """Why `spectrum` is None, in a sentence."""

@final
class Checkpoint:
    """What is in a checkpoint. Its structure is read at once, bytes of tensors when needed."""

    @property
    def path(self) -> str:
        """The file."""
    @property
    def format(self) -> str:
        """What it is: "torch zip", "torchscript", "torch legacy", "pt2", "safetensors", …."""
    @property
    def files(self) -> tuple[str, ...]:
        """The file itself, then its shards."""
    @property
    def file_bytes(self) -> int:
        """Of all files together."""
    @property
    def ledger(self) -> Ledger:
        """What these bytes are for."""
    @property
    def logical_bytes(self) -> int:
        """The sum of the tensors' `logical_bytes`."""
    @property
    def unique_bytes(self) -> int:
        """Bytes that some tensor reaches, each once, unpacked."""
    @property
    def wasted_bytes(self) -> int:
        """What saving clones would save."""
    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """In the file's order."""
    @property
    def storages(self) -> tuple[Storage, ...]:
        """In the file's order."""
    @property
    def allowed_imports(self) -> tuple[str, ...]:
        """What loading would import, and torch allows without asking; sorted."""
    @property
    def flagged_imports(self) -> tuple[str, ...]:
        """What else it would import: code that somebody chose; sorted."""
    @property
    def warnings(self) -> tuple[str, ...]:
        """What is odd about the file, in sentences."""
    @property
    def metadata(self) -> dict[str, str]:
        """What a safetensors file says of itself."""
    @property
    def members(self) -> dict[str, int]:
        """The files in an archive, by their names in its folder: their sizes when unpacked."""
    def member(self, name: str, limit: int) -> bytes:
        """Read a file in the archive, unpacked.

        Raises:
            SnapshotError: It is not there, is damaged, or has more than `limit` bytes.
            OSError: The file cannot be read.
        """
    def open_member(self, name: str, limit: int) -> Checkpoint:
        """Read a file in the archive that is a checkpoint itself, or a pickle.

        Raises:
            SnapshotError: As for `member`, or it is neither.
            OSError: The file cannot be read.
        """
    @property
    def value_bytes(self) -> int:
        """What the parts of `root` take in memory; what occurs twice is counted once."""
    @property
    def root(self) -> Value:
        """What torch.load would return, inert."""
    def elements(self, index: int, *, limit: int = 64) -> tuple[float, ...]:
        """Return the elements of `tensors[index]`, the last dimension the fastest.

        Integers and truth values come as such.

        Raises:
            SnapshotError: It has more than `limit`, or they are quantized, complex, of less than a
                byte each, or not in the file.
        """
    def stats(
        self,
        index: int,
        *,
        bins: int = 64,
        progress: Callable[[int, int], object] | None = None,
        cancel: _Cancel | None = None,
    ) -> Stats:
        """Measure `tensors[index]`.

        Raises:
            SnapshotError: There is nothing to measure; the message says why.
            CancelledError: `cancel` was set.
        """
    def quality(
        self,
        index: int,
        *,
        spectrum: bool = True,
        progress: Callable[[int, int], object] | None = None,
        cancel: _Cancel | None = None,
    ) -> Quality:
        """Find what `tensors[index]` would lose in fewer bits or with fewer values.

        Args:
            index: Which tensor.
            spectrum: Whether to find the spectral norm too, which takes far longer than the rest.
            progress: Called with (done, total) now and then.
            cancel: Asked now and then whether to stop, such as a `threading.Event`.

        Raises:
            SnapshotError: There is nothing to measure; the message says why.
            CancelledError: `cancel` was set.
        """
    def difference(
        self,
        index: int,
        other: Checkpoint,
        other_index: int,
        *,
        progress: Callable[[int, int], object] | None = None,
        cancel: _Cancel | None = None,
    ) -> Difference:
        """Compare `tensors[index]` with a tensor of another checkpoint, element by element.

        Raises:
            SnapshotError: They differ in type or shape, or nothing to compare.
            CancelledError: `cancel` was set.
        """

def load(
    path: str | PathLike[str],
    *,
    rules: Sequence[tuple[str, str]] = ...,
    progress: Callable[[int, int], object] | None = None,
    cancel: _Cancel | None = None,
) -> Snapshot:
    """Open a snapshot (pickle, JSON, gzip of these, memory_viz page) or a bundle.

    Args:
        path: The file, or a bundle's directory or zip.
        rules: Categories that win over the recorded and inferred ones: the name of a category, and
            a filter for the allocations that have it. The first that matches counts.
        progress: Called with (done, total) now and then.
        cancel: Asked now and then whether to stop, such as a `threading.Event`.

    Raises:
        SnapshotError: The file is not a snapshot that can be read; the message says why.
        OSError: The file cannot be read.
        CancelledError: `cancel` was set.
    """

def is_bundle(path: str | PathLike[str]) -> bool:
    """Return whether a path is a converted snapshot: a directory, or a zip by its first bytes."""

def null_device() -> bytes | None:
    """Return the bytes of the null device, a shared library; None where it cannot be used."""

def convert(
    input: str | PathLike[str],
    output: str | PathLike[str],
    *,
    device: int | None = None,
    force: bool = False,
    progress: Callable[[int, int], object] | None = None,
    cancel: _Cancel | None = None,
) -> None:
    """Convert a snapshot into a bundle: a zip if the output's name ends so, else a directory.

    Nothing is left behind if it fails, is cancelled or is killed; an output that exists is replaced
    only with `force`.
    """

def query(
    path: str | PathLike[str],
    sql: str,
    *,
    max_rows: int = 1000,
    max_seconds: float = 30.0,
    cancel: _Cancel | None = None,
    tables: _Tables | None = None,
) -> tuple[list[str], list[tuple[Any, ...]], bool]:
    """Run a read-only SQL query on a bundle; see `Snapshot.query`.

    Returns:
        The column names, the rows, and whether rows were left off.
    """

def read_checkpoint(
    path: str | PathLike[str],
    *,
    progress: Callable[[int, int], object] | None = None,
    cancel: _Cancel | None = None,
) -> Checkpoint:
    """Read the structure of a checkpoint (.pth, .pt, .pt2, .safetensors, or the index of shards).

    Nothing is imported or called, and the tensors' bytes are not read.

    Args:
        path: The file.
        progress: Called with (done, total) now and then.
        cancel: Asked now and then whether to stop, such as a `threading.Event`.

    Raises:
        SnapshotError: The file is no checkpoint that can be read; the message says why.
        OSError: The file cannot be read.
        CancelledError: `cancel` was set.
    """

def tensor_stats(
    data: bytes | npt.NDArray[np.uint8],
    dtype: str,
    shape: Sequence[int],
    *,
    bins: int = 64,
    progress: Callable[[int, int], object] | None = None,
    cancel: _Cancel | None = None,
) -> Stats:
    """Measure a tensor in memory, as `Checkpoint.stats` does one in a file.

    Args:
        data: Its elements in a row, the last dimension the closest together, low byte first.
        dtype: Their type, as torch calls it, without `torch.` in front.
        shape: How many there are along each dimension.
        bins: How many bins the histogram has.
        progress: Called with (done, total) now and then.
        cancel: Asked now and then whether to stop, such as a `threading.Event`.

    Raises:
        ValueError: There is no such type, or the bytes are not as many as the shape has.
        CancelledError: `cancel` was set.
    """

def tensor_quality(
    data: bytes | npt.NDArray[np.uint8],
    dtype: str,
    shape: Sequence[int],
    *,
    spectrum: bool = True,
    progress: Callable[[int, int], object] | None = None,
    cancel: _Cancel | None = None,
) -> Quality:
    """Find what a tensor in memory would lose, as `Checkpoint.quality` does for one in a file.

    See `tensor_stats` for `data`, `dtype`, `shape` and what is raised.
    """
