"""Read, check, draw and convert PyTorch CUDA memory snapshots; look into checkpoints.

>>> import snapviewer
>>> snap = snapviewer.load("snap.pickle")            # doctest: +SKIP
>>> [(dev.index, dev.peak_bytes) for dev in snap.devices]  # doctest: +SKIP
[(0, 68194387972)]
>>> checkpoint = snapviewer.read_checkpoint("model.pth")   # doctest: +SKIP
>>> [(tensor.name, tensor.shape) for tensor in checkpoint.tensors]  # doctest: +SKIP
[('0.weight', (3, 2)), ('0.bias', (3,))]

The native module is loaded when the first of these names is used: what does without it, such as
`snapviewer.events`, also runs where it was never built and nothing else is installed.
"""

# No `from __future__ import annotations`: that name is a module of ours.
from importlib import import_module

TYPE_CHECKING = False  # type checkers take it for true; `typing` takes ten milliseconds to import

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

# A type checker sees the names themselves, so that it finds the wrong ones.
if TYPE_CHECKING:
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
else:

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module("snapviewer._core"), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
