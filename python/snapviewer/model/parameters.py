"""The parameters of a file or a live module: shapes, statistics, the cost of compression.

The structure comes from the checkpoint reader, numbers from one pass of `stats` over all elements,
and the cost of fewer bits or fewer values from `quality`. Tied weights count once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from threading import Event
from typing import TYPE_CHECKING, Any

from snapviewer import CancelledError, Checkpoint, SnapshotError, _core
from snapviewer.checkpoint.buffers import buffers_of, is_sample
from snapviewer.model.placement import Placement
from snapviewer.text.progress import part_of

if TYPE_CHECKING:
    from snapviewer._core import Quality, Stats, Tensor

Progress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter or buffer; `tied_to` is the name of an earlier one with the same elements.

    `stats` and `quality` are None if they were not requested or not possible: `unmeasured` says
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
    placement: Placement | None = None
    """Its place in the file or in memory; None if unknown."""

    @property
    def sparsity(self) -> float | None:
        """The share of elements that are zero."""
        if self.stats is None or not self.stats.count:
            return None
        return self.stats.zeros / self.stats.count


@dataclass(frozen=True, slots=True)
class Parameters:
    """All parameters, and their sums without buffers and tied ones."""

    tensors: tuple[Parameter, ...]

    @property
    def counted(self) -> Iterator[Parameter]:
        """The parameters that count: each once, without buffers."""
        return (item for item in self.tensors if not item.is_buffer and item.tied_to is None)

    @property
    def count(self) -> int:
        """The number of elements."""
        return sum(item.elements for item in self.counted)

    @property
    def size_bytes(self) -> int:
        """The size in bytes."""
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
    """Analyze every tensor of a checkpoint.

    Args:
        checkpoint: The checkpoint.
        has_stats: Whether to read all elements for their statistics.
        has_quality: Whether to read them again for the cost of fewer bits.
        progress: Called with (done, total) in bytes.
        cancel: Stops it.

    Raises:
        CancelledError: `cancel` was set.
    """
    tensors = [
        (index, tensor)
        for index, tensor in enumerate(checkpoint.tensors)
        if not is_sample(checkpoint, tensor.name)
    ]
    starts = {
        (storage.file, storage.key): storage.start
        for storage in checkpoint.storages
        if storage.packed_bytes == storage.bytes  # compressed tensors have no place of their own
    }
    buffers = buffers_of(checkpoint)
    passes = 1 + has_quality
    total = max(1, passes * sum(tensor.logical_bytes for _, tensor in tensors))
    seen: dict[tuple[object, ...], str] = {}
    found = []
    done = 0
    for index, tensor in tensors:
        tied_to = _tied(tensor, seen)
        stats = quality = unmeasured = None
        size = tensor.logical_bytes
        if has_stats and tied_to is None:
            try:
                stats = checkpoint.stats(
                    index, progress=part_of(progress, done, size, total), cancel=cancel
                )
                if has_quality and is_float(tensor.dtype):
                    quality = checkpoint.quality(
                        index, progress=part_of(progress, done + size, size, total), cancel=cancel
                    )
            except CancelledError:
                raise
            except SnapshotError as error:
                unmeasured = str(error)
        done += passes * size
        if progress is not None:
            progress(done, total)
        found.append(
            Parameter(
                name=tensor.name,
                shape=tensor.shape,
                dtype=tensor.dtype,
                elements=prod(tensor.shape),
                size_bytes=tensor.logical_bytes,
                is_buffer=tensor.name in buffers,
                tied_to=tied_to,
                stats=stats,
                quality=quality,
                unmeasured=unmeasured,
                placement=_placed(tensor, starts),
            )
        )
    return Parameters(tuple(found))


def _placed(tensor: Tensor, starts: dict[tuple[str | None, str], int]) -> Placement | None:
    """Return the place of a tensor in its file."""
    elements = prod(tensor.shape)
    if tensor.storage is None or tensor.stride is None or tensor.offset is None or not elements:
        return None
    start = starts.get((tensor.file, tensor.storage))
    item_bytes = tensor.logical_bytes // elements
    if start is None or item_bytes < 1:
        return None
    address = start + tensor.offset * item_bytes
    return Placement(address, "the file", tensor.shape, tensor.stride, item_bytes)


def parameters_of_module(
    module: Any,
    *,
    has_quality: bool = True,
    progress: Progress | None = None,
    cancel: Event | None = None,
) -> Parameters:
    """Analyze the parameters and buffers of a live `torch.nn.Module`, as `parameters_of` does.

    Tied ones are the same object under several names. Tensors without storage are not measured.
    """
    from snapviewer.model.live.isolation import is_lazy

    seen: dict[int, str] = {}
    buffers = {name for name, _ in module.named_buffers(remove_duplicate=False)}
    found = []
    named = [*module.named_parameters(remove_duplicate=False)]
    named += [*module.named_buffers(remove_duplicate=False)]
    for number, (name, tensor) in enumerate(named):
        if progress is not None:
            progress(number, len(named))
        first = seen.setdefault(id(tensor), name)
        if is_lazy(tensor):
            found.append(_lazy(name, is_buffer=name in buffers))
            continue
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
            except CancelledError:
                raise
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
                placement=_placed_here(tensor),
            )
        )
    return Parameters(tuple(found))


def _lazy(name: str, *, is_buffer: bool) -> Parameter:
    why = "it gets its shape from the first run"
    return Parameter(name, (), "", 0, 0, is_buffer, None, None, None, why)


def _placed_here(tensor: Any) -> Placement | None:
    """Return the place of a tensor in the memory of this process."""
    if tensor.device.type != "cpu" or not tensor.numel():
        return None
    try:
        address, stride = tensor.data_ptr(), tuple(tensor.stride())
    except (RuntimeError, NotImplementedError):  # sparse, nested, fake
        return None
    return Placement(address, "this process", tuple(tensor.shape), stride, tensor.element_size())


def bytes_of(tensor: Any, *, is_any_order: bool = False) -> Any:
    """Return the bytes of a tensor, without a copy if it is contiguous in main memory.

    Args:
        tensor: A live tensor.
        is_any_order: Whether elements may come in the order of memory, so that a tensor with
            permuted dimensions, such as channels last, is not copied either.
    """
    import torch

    flat = tensor.detach().to("cpu")
    if is_any_order:
        flat = flat.permute(sorted(range(flat.dim()), key=flat.stride, reverse=True))
    flat = flat.contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy() if flat.numel() else b""


def is_float(dtype: str) -> bool:
    """Return whether a dtype is a floating-point one."""
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
