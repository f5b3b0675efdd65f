"""Read, check, draw and convert PyTorch CUDA memory snapshots; look into checkpoints.

>>> import snapviewer
>>> snap = snapviewer.load("snap.pickle")            # doctest: +SKIP
>>> [(dev.index, dev.peak_bytes) for dev in snap.devices]  # doctest: +SKIP
[(0, 68194387972)]
>>> checkpoint = snapviewer.read_checkpoint("model.pth")   # doctest: +SKIP
>>> [(tensor.name, tensor.shape) for tensor in checkpoint.tensors]  # doctest: +SKIP
[('0.weight', (3, 2)), ('0.bias', (3,))]
"""

from snapviewer._core import (
    Allocations,
    CancelledError,
    Checkpoint,
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
    read_checkpoint,
)

__version__ = "0.1.0"

__all__ = [
    "Allocations",
    "CancelledError",
    "Checkpoint",
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
    "read_checkpoint",
]
