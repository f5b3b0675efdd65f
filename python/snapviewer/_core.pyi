"""The native core: reading, lifetimes, bundles. Everything it returns is frozen."""

from collections.abc import Callable
from os import PathLike
from typing import Any, Protocol, final

import numpy as np
import numpy.typing as npt

from snapviewer.counts import EventCount

__all__ = [
    "CATEGORIES",
    "FORMAT_VERSION",
    "Allocations",
    "CancelledError",
    "Device",
    "Frame",
    "Snapshot",
    "SnapshotError",
    "convert",
    "is_bundle",
    "load",
    "query",
]

CATEGORIES: tuple[str, ...]
"""The profiler's categories, which `Allocations.category` counts."""

FORMAT_VERSION: int
"""The version of the bundle's format."""

class _Cancel(Protocol):
    def is_set(self) -> bool: ...

class SnapshotError(Exception):
    """A file could not be read, written or queried; the message is one sentence that says why."""

class CancelledError(SnapshotError):
    """The work was cancelled by its caller."""

@final
class Frame:
    """One line of a call stack."""

    @property
    def name(self) -> str:
        """The function."""
    @property
    def filename(self) -> str:
        """The file; "??" or empty in C++ frames."""
    @property
    def line(self) -> int:
        """The line; 0 in C++ frames."""
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
        """The most that was live after any event; if there are no events, what is live."""
    @property
    def peak_event(self) -> int:
        """The first event with that much; -1 if there are no events."""
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
    @property
    def stack_count(self) -> int:
        """How many stacks there are: ids for `frames` are below that."""
    def frames(self, stack_id: int) -> tuple[Frame, ...]:
        """The frames of a stack, innermost first."""

def load(
    path: str | PathLike[str],
    *,
    progress: Callable[[int, int], object] | None = None,
    cancel: _Cancel | None = None,
) -> Snapshot:
    """Open a snapshot (pickle, JSON, gzip of these, memory_viz page) or a bundle.

    Args:
        path: The file, or a bundle's directory or zip.
        progress: Called with (done, total) now and then.
        cancel: Asked now and then whether to stop, such as a `threading.Event`.

    Raises:
        SnapshotError: The file is not a snapshot that can be read; the message says why.
        OSError: The file cannot be read.
        CancelledError: `cancel` was set.
    """

def is_bundle(path: str | PathLike[str]) -> bool:
    """Tell whether a path is a converted snapshot: a directory, or a zip by its first bytes."""

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
) -> tuple[list[str], list[tuple[Any, ...]], bool]:
    """Run a read-only SQL query on a bundle.

    Returns:
        The column names, the rows, and whether rows were left off.
    """
