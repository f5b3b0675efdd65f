"""Every parameter of a file: what it is, what its elements are like, what could be left out.

Structure comes from the checkpoint reader, numbers from the one pass of `stats` over all elements,
and what fewer bits or fewer values would cost from `quality`. Tied weights count once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from threading import Event
from typing import TYPE_CHECKING, Any

from snapviewer import Checkpoint, SnapshotError, _core

if TYPE_CHECKING:
    from snapviewer._core import Quality, Stats, Tensor

Progress = Callable[[int, int], object]

# Numbers that a model keeps and does not learn.
_BUFFERS = ("running_mean", "running_var", "num_batches_tracked", "position_ids")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter or buffer; `tied_to` is the name of an earlier one with the same elements.

    `stats` and `quality` are None where they were not asked for, or cannot be: `unmeasured` says
    why.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    elements: int
    size_bytes: int
    is_buffer: bool
    tied_to: str | None
    stats: Stats | None
    quality: Quality | None
    unmeasured: str | None

    @property
    def sparsity(self) -> float | None:
        """The share of elements that are zero."""
        if self.stats is None or not self.stats.count:
            return None
        return self.stats.zeros / self.stats.count


@dataclass(frozen=True, slots=True)
class Parameters:
    """All of them, and their sums; buffers and tied ones are not in the sums."""

    tensors: tuple[Parameter, ...]

    @property
    def counted(self) -> Iterator[Parameter]:
        """Those that count: each once, without buffers."""
        return (item for item in self.tensors if not item.is_buffer and item.tied_to is None)

    @property
    def count(self) -> int:
        """How many elements they have."""
        return sum(item.elements for item in self.counted)

    @property
    def size_bytes(self) -> int:
        """What they take."""
        return sum(item.size_bytes for item in self.counted)

    @property
    def sparsity(self) -> float | None:
        """The share of zeros in all elements that were measured."""
        measured = [item.stats for item in self.counted if item.stats]
        count = sum(stats.count for stats in measured)
        return sum(stats.zeros for stats in measured) / count if count else None


def parameters_of(
    checkpoint: Checkpoint,
    *,
    has_stats: bool = True,
    has_quality: bool = False,
    progress: Progress | None = None,
    cancel: Event | None = None,
) -> Parameters:
    """Look at every tensor of a checkpoint.

    Args:
        checkpoint: What was read.
        has_stats: Whether to read all elements for their statistics.
        has_quality: Whether to read them again for what fewer bits would cost.
        progress: Called with (done, total) in bytes.
        cancel: Stops it.

    Raises:
        CancelledError: `cancel` was set.
    """
    tensors = checkpoint.tensors
    total = sum(tensor.logical_bytes for tensor in tensors)
    seen: dict[tuple[object, ...], str] = {}
    found = []
    done = 0
    for index, tensor in enumerate(tensors):
        tied_to = _tied(tensor, seen)
        stats = quality = unmeasured = None
        if has_stats and tied_to is None:
            try:
                stats = checkpoint.stats(index, cancel=cancel)
                if has_quality and is_float(tensor.dtype):
                    quality = checkpoint.quality(index, cancel=cancel)
            except SnapshotError as error:
                unmeasured = str(error)
        done += tensor.logical_bytes
        if progress is not None:
            progress(done, max(1, total))
        found.append(
            Parameter(
                name=tensor.name,
                shape=tensor.shape,
                dtype=tensor.dtype,
                elements=prod(tensor.shape),
                size_bytes=tensor.logical_bytes,
                is_buffer=is_buffer(tensor.name, tensor.dtype),
                tied_to=tied_to,
                stats=stats,
                quality=quality,
                unmeasured=unmeasured,
            )
        )
    return Parameters(tuple(found))


def parameters_of_module(
    module: Any, *, has_quality: bool = True, cancel: Event | None = None
) -> Parameters:
    """Look at the parameters and buffers of a live `torch.nn.Module`, as `parameters_of` does.

    Tied ones are the same object under several names. What has no storage is not measured.
    """
    seen: dict[int, str] = {}
    buffers = {name for name, _ in module.named_buffers(remove_duplicate=False)}
    found = []
    named = [*module.named_parameters(remove_duplicate=False)]
    named += [*module.named_buffers(remove_duplicate=False)]
    for name, tensor in named:
        first = seen.setdefault(id(tensor), name)
        dtype = str(tensor.dtype).removeprefix("torch.")
        stats = quality = unmeasured = None
        if first == name and tensor.device.type == "meta":
            unmeasured = "it has no elements (device meta)"
        elif first == name:
            try:
                data = bytes_of(tensor)
                shape = tuple(tensor.shape)
                stats = _core.tensor_stats(data, dtype, shape, cancel=cancel)
                if has_quality and is_float(dtype):
                    quality = _core.tensor_quality(data, dtype, shape, cancel=cancel)
            except (SnapshotError, RuntimeError, TypeError) as error:
                unmeasured = str(error)
        found.append(
            Parameter(
                name=name,
                shape=tuple(tensor.shape),
                dtype=dtype,
                elements=tensor.numel(),
                size_bytes=tensor.numel() * tensor.element_size(),
                is_buffer=name in buffers,
                tied_to=first if first != name else None,
                stats=stats,
                quality=quality,
                unmeasured=unmeasured,
            )
        )
    return Parameters(tuple(found))


def bytes_of(tensor: Any, *, is_any_order: bool = False) -> Any:
    """Return the bytes of a tensor, without a copy if it lies in this machine's memory as it is.

    Args:
        tensor: A live tensor.
        is_any_order: Whether elements may come in the order of memory, so that what only has its
            dimensions in another order, such as channels last, is not copied either.
    """
    import torch

    flat = tensor.detach().to("cpu")
    if is_any_order:
        flat = flat.permute(sorted(range(flat.dim()), key=flat.stride, reverse=True))
    flat = flat.contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy() if flat.numel() else b""


def is_buffer(name: str, dtype: str) -> bool:
    """Tell whether a tensor is kept rather than learned, by its name and type.

    >>> is_buffer("bn1.running_mean", "float32"), is_buffer("conv1.weight", "float32")
    (True, False)
    """
    return name.rsplit(".", 1)[-1] in _BUFFERS or dtype.startswith(("int64", "bool"))


def is_float(dtype: str) -> bool:
    """Tell whether elements of a type have a fraction."""
    return dtype.startswith(("float", "bfloat"))


def _tied(tensor: Tensor, seen: dict[tuple[object, ...], str]) -> str | None:
    """Return the earlier name of the same elements, if there is one."""
    if tensor.storage is None or not tensor.shape:
        return None
    key = (tensor.file, tensor.storage, tensor.offset, tensor.shape, tensor.stride, tensor.dtype)
    first = seen.setdefault(key, tensor.name)
    return first if first != tensor.name else None


def largest(tensors: Sequence[Parameter], count: int) -> list[Parameter]:
    """Return the largest, the largest first."""
    return sorted(tensors, key=lambda item: -item.size_bytes)[:count]
