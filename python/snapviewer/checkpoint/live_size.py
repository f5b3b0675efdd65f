"""How much memory a live Python object takes, with everything that it holds.

Each object counts once, however often it is met, and a cycle ends where it began. A tensor or array
counts the bytes of memory that it reaches; what two of them share counts once. torch is looked for
among the modules that are loaded, and never imported. Objects that misbehave (a `__sizeof__` that
raises, a proxy whose attributes fail) count as far as they can be looked at; nothing is raised.

# Cost

`O(objects)`; no recursion, so that depth does not matter.
"""

from __future__ import annotations

import sys
import types
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .address_runs import Reached

# They hold nothing; subclasses of them may.
_PLAIN = frozenset({int, float, complex, bool, str, bytes, bytearray})
# Shared by the whole program: they are there whether or not this object is.
_OF_THE_PROGRAM = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.CodeType,
    types.FrameType,
)
_LAYOUT_PARTS = {
    "torch.sparse_coo": ("_indices", "_values"),
    "torch.sparse_csr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_bsr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_csc": ("ccol_indices", "row_indices", "values"),
    "torch.sparse_bsc": ("ccol_indices", "row_indices", "values"),
    "torch.jagged": ("values", "offsets"),
}


def get_size_bytes(obj: Any) -> int:
    """Return the memory that an object takes, with all that it holds, in bytes.

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
    # Objects stay here so that the id of one that was made for us is not given to another.
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
    """Return the bytes of the object itself, and what it holds."""
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
    if kind in _PLAIN or issubclass(kind, _OF_THE_PROGRAM):
        return _own_bytes(item), []
    return _own_bytes(item), [*_items(item, kind), *_attributes(item, kind)]


def _is_of_torch(kind: type, name: str) -> bool:
    cls = getattr(sys.modules.get("torch"), name, None)
    return isinstance(cls, type) and issubclass(kind, cls)


def _look_at_tensor(item: Any, reached: Reached) -> tuple[int, list[Any]]:
    if flatten := getattr(item, "__tensor_flatten__", None):
        return 0, [getattr(item, name) for name in flatten()[0]]
    layout = str(item.layout)
    if layout in _LAYOUT_PARTS:
        return 0, [getattr(item, part)() for part in _LAYOUT_PARTS[layout]]
    if item.is_nested:
        return 0, list(item.unbind())
    if item.device.type == "meta":
        return 0, []
    width = item.element_size()
    try:
        address, strides = item.data_ptr(), [step * width for step in item.stride()]
    except RuntimeError:  # one without memory of its own, such as a fake tensor
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


# Subclasses may override how they are walked; the containers' own way runs no code of theirs.
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
    """Return what is in an object's `__dict__` (itself included) and in its slots."""
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
