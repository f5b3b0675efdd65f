"""Read, check, draw and convert PyTorch CUDA memory snapshots.

>>> import snapviewer
>>> snap = snapviewer.load("snap.pickle")            # doctest: +SKIP
>>> [(dev.index, dev.peak_bytes) for dev in snap.devices]  # doctest: +SKIP
[(0, 68194387972)]
"""

from snapviewer._core import (
    Allocations,
    CancelledError,
    Clock,
    Device,
    Event,
    Frame,
    Image,
    Screen,
    Snapshot,
    SnapshotError,
    Timeline,
    convert,
    load,
    query,
)

__version__ = "0.1.0"

__all__ = [
    "Allocations",
    "CancelledError",
    "Clock",
    "Device",
    "Event",
    "Frame",
    "Image",
    "Screen",
    "Snapshot",
    "SnapshotError",
    "Timeline",
    "__version__",
    "convert",
    "load",
    "query",
]
