"""The memory of a live Python object, with everything that it holds.

Each object counts once, and so does memory that tensors and arrays share. torch is never imported:
only what is loaded already is recognised. Objects that misbehave (a `__sizeof__` that raises, a
proxy whose attributes fail) count as far as they can be inspected; nothing is raised.

# Cost

`O(objects)`, without recursion: any depth works.
"""

from __future__ import annotations

import sys
import types
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .address_runs import Reached

# These hold nothing; subclasses may.
_LEAF_TYPES = frozenset({int, float, complex, bool, str, bytes, bytearray})
# Shared by the whole program, whether or not this object exists.
_SHARED_TYPES = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.CodeType,
    types.FrameType,
)
LAYOUT_PARTS = {
    "torch.sparse_coo": ("_indices", "_values"),
    "torch.sparse_csr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_bsr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_csc": ("ccol_indices", "row_indices", "values"),
    "torch.sparse_bsc": ("ccol_indices", "row_indices", "values"),
    "torch.jagged": ("values", "offsets"),
}


def get_size_bytes(obj: Any) -> int:
    """Return the memory of an object with everything that it holds, in bytes.

    Args:
        obj: Anything: a tensor, an array, a container, an object of any class.

    >>> get_size_bytes(7) == sys.getsizeof(7)
    True
    >>> get_size_bytes(np.zeros((3, 224, 224), np.float32))
    602112
    >>> loop = []
    >>> loop.append(loop)
    >>> get_size_bytes(loop) == sys.getsizeof(loop)
    True
    """
    reached = Reached()
    total = 0
    # Keeps objects alive, so that no id is used again.
    met: dict[int, object] = {}
    waiting: list[Any] = [obj]
    while waiting:
        item = waiting.pop()
        if id(item) in met:
            continue
        met[id(item)] = item
        try:
            size, inner = _look_at(item, reached)
        except Exception:  # noqa: BLE001 - whatever the object's own code raises
            size, inner = _own_bytes(item), []
        total += size
        waiting += inner
    return total + reached.total_bytes()


def _look_at(item: Any, reached: Reached) -> tuple[int, list[Any]]:
    """Return the size of the object itself, and what it holds."""
    kind = type(item)
    if issubclass(kind, np.ndarray):
        reached.add("cpu", item.ctypes.data, item.itemsize, item.shape, item.strides)
        return 0, list(item.flat) if item.dtype.hasobject else []
    if _is_of_torch(kind, "Tensor"):
        return _look_at_tensor(item, reached)
    if _is_of_torch(kind, "UntypedStorage"):
        if item.device.type != "meta":
            reached.add(str(item.device), item.data_ptr(), 1, (item.nbytes(),), (1,))
        return 0, []
    if _is_of_torch(kind, "TypedStorage"):
        return 0, [item.untyped()]
    if kind in _LEAF_TYPES or issubclass(kind, _SHARED_TYPES):
        return _own_bytes(item), []
    return _own_bytes(item), [*_items(item, kind), *_attributes(item, kind)]


def _is_of_torch(kind: type, name: str) -> bool:
    cls = getattr(sys.modules.get("torch"), name, None)
    return isinstance(cls, type) and issubclass(kind, cls)


def _look_at_tensor(item: Any, reached: Reached) -> tuple[int, list[Any]]:
    if flatten := getattr(item, "__tensor_flatten__", None):
        return 0, [getattr(item, name) for name in flatten()[0]]
    layout = str(item.layout)
    if layout in LAYOUT_PARTS:
        return 0, [getattr(item, part)() for part in LAYOUT_PARTS[layout]]
    if item.is_nested:
        return 0, list(item.unbind())
    if item.device.type == "meta":
        return 0, []
    width = item.element_size()
    try:
        address, strides = item.data_ptr(), [step * width for step in item.stride()]
    except RuntimeError:  # without memory of its own, such as a fake tensor
        return item.numel() * width, []
    reached.add(str(item.device), address, width, tuple(item.shape), strides)
    is_per_channel = item.is_quantized and "channel" in str(item.qscheme())
    return 0, [item.q_per_channel_scales(), item.q_per_channel_zero_points()] if (
        is_per_channel
    ) else []


def _own_bytes(item: object) -> int:
    for measure in (sys.getsizeof, object.__sizeof__):
        try:
            return measure(item)
        except Exception:  # noqa: BLE001 - a `__sizeof__` may do anything
            continue
    return 0


# Subclasses may override iteration; the built-in one runs none of their code.
_WALKS: tuple[tuple[type, Callable[[Any], Iterable[Any]]], ...] = (
    (dict, lambda item: (part for pair in dict.items(item) for part in pair)),
    (list, list.__iter__),
    (tuple, tuple.__iter__),
    (set, set.__iter__),
    (frozenset, frozenset.__iter__),
    (deque, deque.__iter__),
)


def _items(item: Any, kind: type) -> Iterable[Any]:
    return next((walk(item) for base, walk in _WALKS if issubclass(kind, base)), ())


def _attributes(item: Any, kind: type) -> list[Any]:
    """Return an object's `__dict__` (itself included) and the values of its slots."""
    found = []
    for cls in kind.__mro__:
        for member in vars(cls).values():
            is_slot = isinstance(member, types.MemberDescriptorType)
            if is_slot or (
                isinstance(member, types.GetSetDescriptorType) and member.__name__ == "__dict__"
            ):
                try:
                    found.append(member.__get__(item, kind))
                except AttributeError:  # a slot that is empty
                    continue
    return found
