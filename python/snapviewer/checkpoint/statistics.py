"""Statistics of all tensors of a checkpoint.

Tensors that are the same view of the same storage (tied weights) are measured once.

# Cost

One or two passes over the bytes of the tensors, in parallel and in bounded memory.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING

from snapviewer import CancelledError, SnapshotError
from snapviewer.text.progress import part_of

if TYPE_CHECKING:
    from snapviewer._core import Checkpoint, Stats, Tensor

TensorStats = dict[int, "Stats | str"]
"""For the index of each tensor its statistics, or the reason why there are none."""

BINS = 64
"""The default number of bins of the histograms."""


def measure(
    checkpoint: Checkpoint,
    *,
    bins: int = BINS,
    progress: Callable[[int, int], object] | None = None,
    cancel: Event | None = None,
) -> TensorStats:
    """Measure all tensors of a checkpoint.

    Args:
        checkpoint: The checkpoint.
        bins: The number of bins of the histograms.
        progress: Called with (done, total) bytes from time to time.
        cancel: Set to stop.

    Raises:
        CancelledError: `cancel` was set.
        OSError: The file cannot be read.
    """
    tensors = checkpoint.tensors
    total = sum(tensor.logical_bytes for tensor in tensors)
    known: dict[object, Stats | str] = {}
    measured: TensorStats = {}
    done = 0
    for index, tensor in enumerate(tensors):
        view = _view_of(tensor, index)
        if view not in known:
            report = part_of(progress, done, tensor.logical_bytes, total)
            try:
                known[view] = checkpoint.stats(index, bins=bins, progress=report, cancel=cancel)
            except CancelledError:
                raise
            except SnapshotError as error:
                known[view] = str(error)
        measured[index] = known[view]
        done += tensor.logical_bytes
        if progress is not None:
            progress(done, total)
    return measured


def _view_of(tensor: Tensor, index: int) -> object:
    """Return a key that is equal for tensors with the same elements in the same place."""
    if tensor.storage is None or tensor.parts:
        return index
    place = (tensor.file, tensor.storage, tensor.offset, tensor.stride)
    return (*place, tensor.kind, tensor.dtype, tensor.shape)
