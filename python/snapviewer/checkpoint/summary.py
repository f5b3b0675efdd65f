"""A summary of a checkpoint's structure: types, shared and wasted storages, possible savings.

# Invariants

The bytes that the advice saves add up to the checkpoint's `wasted_bytes`.

# Cost

`O(tensors + storages)`; no element of a tensor is read.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from snapviewer._core import Checkpoint, Storage, Tensor

SORTS = ("file", "name", "size", "waste", "dtype")


class RowChoice(NamedTuple):
    """Which rows a report on a checkpoint has.

    `sort` is one of `SORTS`, None the order that suits the report; `top` is the number of tensors,
    None that of the report; with `depth`, tensors are grouped by this many parts of their names.
    """

    sort: str | None = None
    top: int | None = None
    depth: int | None = None


USUAL_ROWS = RowChoice()


class TensorGroup(NamedTuple):
    """The totals of tensors with the same type, or the same beginning of their names."""

    name: str
    tensors: int
    elements: int
    logical_bytes: int


class SharedStorage(NamedTuple):
    """Tensors that are views of one storage."""

    storage: Storage
    tensors: tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class StorageAdvice:
    """A storage that is larger than its tensors need, and how to save a smaller file."""

    storage: Storage
    tensors: tuple[Tensor, ...]
    """The tensors to clone; none if no tensor uses the storage."""

    @property
    def saved_bytes(self) -> int:
        """The bytes that this saves."""
        return self.storage.bytes - self.storage.clone_bytes


@dataclass(frozen=True, slots=True)
class Summary:
    """A checkpoint and the summary of its structure."""

    file: str
    checkpoint: Checkpoint
    tensors: tuple[Tensor, ...]
    elements: int
    dtypes: tuple[TensorGroup, ...]
    """The most bytes first."""
    sharing: tuple[SharedStorage, ...]
    """The largest storage first."""
    group_of: dict[int, int]
    """From the index of a tensor to the index of its first group in `sharing`."""
    advice: tuple[StorageAdvice, ...]
    """The largest savings first."""


def summary_of(checkpoint: Checkpoint, file: str) -> Summary:
    """Summarize a checkpoint.

    Args:
        checkpoint: The checkpoint.
        file: The name of its file in reports.
    """
    tensors = checkpoint.tensors
    storages = sorted(checkpoint.storages, key=lambda storage: -storage.bytes)
    shared = [storage for storage in storages if len(set(storage.tensors)) > 1]
    group_of: dict[int, int] = {}
    for group, storage in enumerate(shared):
        for index in storage.tensors:
            group_of.setdefault(index, group)
    users = {id(storage): tuple(tensors[i] for i in storage.tensors) for storage in storages}
    advice = [
        StorageAdvice(storage, users[id(storage)])
        for storage in storages
        if storage.bytes > storage.clone_bytes
    ]
    return Summary(
        file=file,
        checkpoint=checkpoint,
        tensors=tensors,
        elements=sum(map(elements_of, tensors)),
        dtypes=_shares(tensors, lambda tensor: tensor.dtype),
        sharing=tuple(SharedStorage(storage, users[id(storage)]) for storage in shared),
        group_of=group_of,
        advice=tuple(sorted(advice, key=lambda item: -item.saved_bytes)),
    )


def elements_of(tensor: Tensor) -> int:
    """Return the number of elements of a tensor."""
    return math.prod(tensor.shape)


def order_of(tensors: Sequence[Tensor], sort: str) -> list[int]:
    """Return the indexes of tensors in one of the orders `SORTS`; it is stable."""
    keys: dict[str, Callable[[int], Any]] = {
        "file": lambda index: index,
        "name": lambda index: _natural(tensors[index].name),
        "size": lambda index: -tensors[index].logical_bytes,
        "waste": lambda index: -tensors[index].wasted_bytes,
        "dtype": lambda index: tensors[index].dtype,
    }
    return sorted(range(len(tensors)), key=keys[sort])


def groups_of(tensors: Sequence[Tensor], depth: int) -> tuple[TensorGroup, ...]:
    """Group tensors by the first parts of their names, in the order of the file."""
    groups = _shares(tensors, lambda tensor: prefix_of(tensor.name, depth), is_sorted=False)
    return tuple(groups)


def prefix_of(name: str, depth: int) -> str:
    """Return the first parts of a tensor's name.

    >>> prefix_of("model.layers.0.weight", 3), prefix_of("optimizer.state[0].step", 2)
    ('model.layers.0', 'optimizer.state')
    """
    parts = re.findall(r"\.?[^.\[]+|\[[^\]]*\]?|.", name)
    return "".join(parts[:depth])


def _shares(
    tensors: Sequence[Tensor], key: Callable[[Tensor], str], *, is_sorted: bool = True
) -> tuple[TensorGroup, ...]:
    groups: dict[str, list[Tensor]] = defaultdict(list)
    for tensor in tensors:
        groups[key(tensor)].append(tensor)
    shares = [
        TensorGroup(
            name,
            len(group),
            sum(map(elements_of, group)),
            sum(tensor.logical_bytes for tensor in group),
        )
        for name, group in groups.items()
    ]
    return tuple(sorted(shares, key=lambda share: -share.logical_bytes) if is_sorted else shares)


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key that orders `layers.2` before `layers.10`."""
    return [
        (len(part.lstrip("0")), part.lstrip("0")) if part.isdecimal() else (-1, part)
        for part in re.split(r"(\d+)", name)
    ]
