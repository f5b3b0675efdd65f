"""The tensors of live modules as plain entries. No element is read.

Some have no shape yet (lazy), some no memory (meta, fake), some consist of several (sparse, wrapper
subclasses), and any of them may raise: each still has its entry.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable
from itertools import islice
from typing import Any

from snapviewer.text.sanitize import sanitize

from .tree import TensorEntry

_MAX_PARTS = 1000
_MAX_DIMENSIONS = 1000
_MAX_ELEMENTS = (1 << 63) - 1
_MAX_NAME_CHARS = 80


class TensorReader:
    """Reads the tensors of one model; caches names of dtypes and devices, and counts failures."""

    def __init__(self) -> None:
        self.without_shape = 0
        self.unreadable = 0
        self._names: dict[object, str] = {}
        self._alive: list[object] = []
        # Torch's own classes are trusted and read without checks, which halves the time.
        torch = sys.modules.get("torch")
        self._own = (torch.Tensor, torch.nn.Parameter) if torch is not None else ()
        self._strided = torch.strided if torch is not None else None

    def read(
        self, name: str, path: str, tensor: Any, *, is_buffer: bool
    ) -> tuple[Hashable, TensorEntry]:
        """Return the identity of a tensor and its entry.

        Two tensors are the same if they have the same elements: address, shape and strides. Those
        without memory are the same only if they are the same object.
        """
        try:
            dtype, device = self._name(tensor.dtype), self._name(tensor.device)
            if type(tensor) in self._own and tensor.layout is self._strided:
                shape, elements = tuple(tensor.shape), tensor.numel()
                size_bytes = elements * tensor.element_size()
            else:
                shape = tuple(map(_amount, islice(tensor.shape, _MAX_DIMENSIONS)))
                elements = _amount(tensor.numel())
                size_bytes = _amount(self._size_bytes(tensor, elements))
            is_trainable = bool(tensor.requires_grad)
            entry = TensorEntry(
                name, path, shape, dtype, device, elements, size_bytes, is_buffer, is_trainable
            )
        # Lazy tensors and custom subclasses may raise anything.
        except (Exception, SystemExit):  # noqa: BLE001
            return self._identity(tensor), self._odd(name, path, tensor, is_buffer=is_buffer)
        return self._key(tensor, entry), entry

    def _key(self, tensor: Any, entry: TensorEntry) -> Hashable:
        try:
            place = tensor.data_ptr()
            if place:
                key = (place, entry.shape, tensor.stride(), entry.dtype, entry.device)
                hash(key)
                return key
        # Fake and sparse tensors, and custom subclasses.
        except (Exception, SystemExit):  # noqa: BLE001
            return self._identity(tensor)
        return self._identity(tensor)

    def _identity(self, tensor: Any) -> int:
        self._alive.append(tensor)  # an id is unique only as long as the object lives
        return id(tensor)

    def _name(self, value: Any) -> str:
        name = self._names.get(value)
        if name is None:
            name = self._names[value] = _text(value)
        return name

    def _size_bytes(self, tensor: Any, elements: int) -> int:
        layout = self._name(tensor.layout)
        if layout == "strided" and not hasattr(type(tensor), "__tensor_flatten__"):
            size: int = elements * tensor.element_size()
            return size
        parts = _bytes_of_parts(tensor)
        return elements * tensor.element_size() if parts is None else parts

    def _odd(self, name: str, path: str, tensor: Any, *, is_buffer: bool) -> TensorEntry:
        """Return the entry of a tensor without a readable shape."""
        if type(tensor).__name__.startswith("Uninitialized"):
            self.without_shape += 1
        else:
            self.unreadable += 1
        texts = []
        for attribute in ("dtype", "device", "requires_grad"):
            try:
                texts.append(_text(getattr(tensor, attribute)))
            except (Exception, SystemExit):  # noqa: BLE001 (see above)
                texts.append("")
        dtype, device, is_trainable = texts
        return TensorEntry(name, path, (), dtype, device, 0, 0, is_buffer, is_trainable == "True")


def _amount(value: Any) -> int:
    """Return a size as a plain, checked number; a tensor subclass may return anything."""
    amount = int(value)
    if not 0 <= amount <= _MAX_ELEMENTS:
        raise ValueError
    return amount


def _text(value: Any) -> str:
    return sanitize(str(value).removeprefix("torch."), _MAX_NAME_CHARS)


def _bytes_of_parts(tensor: Any) -> int | None:
    """Return the bytes of a tensor's parts; None if they are unreadable or too many."""
    from snapviewer.checkpoint.live_size import LAYOUT_PARTS  # with NumPy

    size, seen, waiting = 0, 0, [tensor]
    try:
        while waiting:
            part = waiting.pop()
            if hasattr(type(part), "__tensor_flatten__"):
                names = islice(part.__tensor_flatten__()[0], _MAX_PARTS)
                waiting += [getattr(part, each) for each in names]
            elif (layout := str(part.layout)) in LAYOUT_PARTS:
                waiting += [getattr(part, each)() for each in LAYOUT_PARTS[layout]]
            else:
                size += int(part.numel() * part.element_size())
            seen += 1
            if seen + len(waiting) > _MAX_PARTS:
                return None
    except (Exception, SystemExit):  # noqa: BLE001 (custom subclasses may raise anything)
        return None
    return size
