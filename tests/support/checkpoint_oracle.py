"""What torch itself makes of a checkpoint, too slow and too simple to be wrong.

`saved(path)` loads a file that a test wrote and notes every view that the file's own rebuild calls
make. Which bytes these reach is then a matter of setting a bit for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import pth_writer

# Types of which an element is less than a byte.
BITS = {"quint4x2": 4, "quint2x4": 2}
MODULE_PARTS = ("_parameters", "_buffers", "_modules")


@dataclass(frozen=True, slots=True)
class View:
    """Elements of a storage: shape, stride and offset count elements."""

    dtype: str
    bits: int
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]

    def logical_bytes(self) -> int:
        """Its bytes if each element is written out."""
        return -(-math.prod(self.shape) * self.bits // 8)

    def bytes_reached(self, size_bytes: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """For each byte of a storage of this size whether some element is in it."""
        reached = np.zeros(size_bytes, bool)
        places = np.full(self.shape, self.offset, dtype=np.int64)
        for axis, (size, step) in enumerate(zip(self.shape, self.stride, strict=True)):
            along = [1] * len(self.shape)
            along[axis] = size
            places += (np.arange(size, dtype=np.int64) * step).reshape(along)
        if self.bits < 8:
            reached[places * self.bits // 8] = True
        for byte in range(self.bits // 8):
            reached[places * (self.bits // 8) + byte] = True
        return reached


@dataclass(slots=True)
class Saved:
    """The storages of a file, by some key, and the views of each."""

    sizes: dict[Any, int] = field(default_factory=dict)
    views: dict[Any, list[View]] = field(default_factory=dict)

    def add(self, key: object, size_bytes: int, view: View | None) -> None:
        """Note a storage, and a view of it if there is one."""
        self.sizes[key] = size_bytes
        self.views.setdefault(key, [])
        if view is not None:
            self.views[key].append(view)

    def reached(self, key: object) -> int:
        """How many bytes of a storage some view reaches."""
        reached = np.zeros(self.sizes[key], bool)
        for view in self.views[key]:
            reached |= view.bytes_reached(self.sizes[key])
        return int(reached.sum())

    def clones(self, key: object) -> int:
        """How many bytes clones of a storage's views would take; equal views stay one."""
        return sum(view.logical_bytes() for view in set(self.views[key]))

    def reached_bytes(self) -> int:
        return sum(map(self.reached, self.sizes))

    def unreferenced_bytes(self) -> int:
        return sum(self.sizes.values()) - self.reached_bytes()

    def wasted_bytes(self) -> int:
        return sum(max(0, size - self.clones(key)) for key, size in self.sizes.items())

    def logical_bytes(self) -> int:
        """All views written out, equal ones too."""
        return sum(view.logical_bytes() for views in self.views.values() for view in views)


# With torch


def saved(path: Path, load: Callable[[Path], object] | None = None) -> Saved:
    """Every storage and view of a file that a test has written itself: loading runs its code."""
    import torch

    found, alive = Saved(), []

    def note(storage: Any, dtype: Any, offset: int, shape: Any, stride: Any) -> None:
        alive.append(storage)  # so that no other storage gets its address
        untyped = storage._untyped_storage
        name = str(dtype).removeprefix("torch.")
        bits = BITS.get(name, dtype.itemsize * 8)
        view = View(name, bits, offset, tuple(shape), tuple(stride))
        found.add(untyped._cdata, untyped.nbytes(), view)

    def noting(rebuild: Any, dtype_of: Callable[[tuple[Any, ...]], Any]) -> Any:
        def noted(*arguments: Any) -> Any:
            storage, offset, shape, stride = arguments[:4]
            note(storage, dtype_of(arguments), offset, shape, stride)
            return rebuild(*arguments)

        return noted

    def of_storage(arguments: tuple[Any, ...]) -> Any:
        return arguments[0].dtype

    utils = torch._utils
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_rebuild_tensor_v2", "_rebuild_qtensor"):
            patch.setattr(utils, name, noting(getattr(utils, name), of_storage))
        third = noting(utils._rebuild_tensor_v3, lambda arguments: arguments[6])
        patch.setattr(utils, "_rebuild_tensor_v3", third)
        if load is None:
            loaded = torch.load(path, map_location="cpu", weights_only=False)
        else:
            loaded = load(path)
    for _, leaf in leaves(loaded):
        if isinstance(leaf, (torch.UntypedStorage, torch.storage.TypedStorage)):
            untyped = leaf if isinstance(leaf, torch.UntypedStorage) else leaf._untyped_storage
            size = untyped.nbytes()
            found.add(untyped._cdata, size, View("uint8", 8, 0, (size,), (1,)))
    return found


def leaves(value: Any) -> list[tuple[str, Any]]:
    """Every tensor, storage and array in a value with the way to it, in order.

    What is shared is looked into once, under its first name; a tensor has all its names.
    """
    import torch

    storages = (torch.UntypedStorage, torch.storage.TypedStorage)
    found, entered = [], set()

    def walk(value: Any, name: str) -> None:
        if isinstance(value, (torch.Tensor, np.ndarray, *storages)):
            found.append((name or "root", value))
        if id(value) not in entered and not isinstance(value, storages):
            entered.add(id(value))
            for step, inner in _steps(value):
                walk(inner, name + step if name else step.removeprefix("."))

    walk(value, "")
    return found


def _steps(value: Any) -> Iterator[tuple[str, Any]]:
    """What is directly in a value; what a module is made of is named as in its state dict."""
    import torch

    if isinstance(value, dict):
        for key, inner in value.items():
            yield (f".{key}" if isinstance(key, str) else f"[{key!r}]"), inner
    elif isinstance(value, (list, tuple)):
        for place, inner in enumerate(value):
            yield f"[{place}]", inner
    elif isinstance(value, np.ndarray) or "__torch_dispatch__" in vars(type(value)):
        return  # what a wrapper holds are its parts
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        for key, inner in vars(value).items():
            is_part = isinstance(value, torch.nn.Module) and key in MODULE_PARTS
            yield ("" if is_part else f".{key}"), inner
    elif hasattr(type(value), "__slots__"):
        for key in type(value).__slots__:
            yield f".{key}", getattr(value, key, None)


# Without torch


def written(tensors: list[pth_writer.T], storages: list[pth_writer.S]) -> Saved:
    """The same of what `pth_writer` wrote: these views of these storages, by their keys."""
    found = Saved()
    for storage in storages:
        found.add(storage.key, len(storage.data), None)
    for tensor in tensors:
        assert tensor.storage is not None, "it is written by now"
        bits = pth_writer.DTYPES[tensor.dtype][2] * 8
        view = View(tensor.dtype, bits, tensor.offset, tuple(tensor.shape), tensor.strides())
        found.add(tensor.storage.key, len(tensor.storage.data), view)
    return found
