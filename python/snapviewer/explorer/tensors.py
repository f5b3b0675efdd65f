"""The tensors of live modules as plain entries. No element of them is read.

Some have no shape yet (lazy ones), some no memory (meta, fake), some are made of several (sparse,
quantized by a wrapper), and any of them may refuse to answer: each still has its line.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable
from itertools import islice
from typing import Any

from snapviewer.text.sanitize import sanitize

from .tree import TensorEntry

_LAYOUTS = {
    "sparse_coo": ("_indices", "_values"),
    "sparse_csr": ("crow_indices", "col_indices", "values"),
    "sparse_csc": ("ccol_indices", "row_indices", "values"),
    "sparse_bsr": ("crow_indices", "col_indices", "values"),
    "sparse_bsc": ("ccol_indices", "row_indices", "values"),
}
_MOST_PARTS = 1000
_MOST_DIMENSIONS = 1000
_MOST_ELEMENTS = (1 << 63) - 1
_MOST_OF_A_NAME = 80


class TensorReader:
    """Reads the tensors of one model; remembers the names of types and devices, and what is odd."""

    def __init__(self) -> None:
        self.without_shape = 0
        self.unreadable = 0
        self._names: dict[object, str] = {}
        self._kept: list[object] = []
        # Torch's own classes say nothing odd, and are read without checks: half of the time.
        torch = sys.modules.get("torch")
        self._own = (torch.Tensor, torch.nn.Parameter) if torch is not None else ()
        self._strided = torch.strided if torch is not None else None

    def read(
        self, name: str, path: str, tensor: Any, *, is_buffer: bool
    ) -> tuple[Hashable, TensorEntry]:
        """Return what tells a tensor from others, and its entry.

        Two tensors are the same if they have the same elements: the same place in memory, shape and
        strides. Those without memory are the same only if they are the same object.
        """
        try:
            dtype, device = self._name(tensor.dtype), self._name(tensor.device)
            if type(tensor) in self._own and tensor.layout is self._strided:
                shape, elements = tuple(tensor.shape), tensor.numel()
                size_bytes = elements * tensor.element_size()
            else:
                shape = tuple(map(_amount, islice(tensor.shape, _MOST_DIMENSIONS)))
                elements = _amount(tensor.numel())
                size_bytes = _amount(self._size_bytes(tensor, elements))
            is_trainable = bool(tensor.requires_grad)
            entry = TensorEntry(
                name, path, shape, dtype, device, elements, size_bytes, is_buffer, is_trainable
            )
        # Lazy tensors and strangers' subclasses raise anything.
        except (Exception, SystemExit):  # noqa: BLE001
            return self._by_itself(tensor), self._odd(name, path, tensor, is_buffer=is_buffer)
        return self._key(tensor, entry), entry

    def _key(self, tensor: Any, entry: TensorEntry) -> Hashable:
        try:
            place = tensor.data_ptr()
            if place:
                key = (place, entry.shape, tensor.stride(), entry.dtype, entry.device)
                hash(key)
                return key
        # Fake and sparse tensors, and strangers' subclasses.
        except (Exception, SystemExit):  # noqa: BLE001
            return self._by_itself(tensor)
        return self._by_itself(tensor)

    def _by_itself(self, tensor: Any) -> int:
        self._kept.append(tensor)  # an id is nobody else's only as long as the object lives
        return id(tensor)

    def _name(self, value: Any) -> str:
        name = self._names.get(value)
        if name is None:
            name = self._names[value] = _said(value)
        return name

    def _size_bytes(self, tensor: Any, elements: int) -> int:
        layout = self._name(tensor.layout)
        if layout == "strided" and not hasattr(type(tensor), "__tensor_flatten__"):
            size: int = elements * tensor.element_size()
            return size
        parts = _bytes_of_parts(tensor)
        return elements * tensor.element_size() if parts is None else parts

    def _odd(self, name: str, path: str, tensor: Any, *, is_buffer: bool) -> TensorEntry:
        """Return the entry of a tensor that does not tell its shape."""
        if type(tensor).__name__.startswith("Uninitialized"):
            self.without_shape += 1
        else:
            self.unreadable += 1
        texts = []
        for attribute in ("dtype", "device", "requires_grad"):
            try:
                texts.append(_said(getattr(tensor, attribute)))
            except (Exception, SystemExit):  # noqa: BLE001 (see above)
                texts.append("")
        dtype, device, is_trainable = texts
        return TensorEntry(name, path, (), dtype, device, 0, 0, is_buffer, is_trainable == "True")


def _amount(value: Any) -> int:
    """Return a size as the plain number that it is; a subclass of tensors may say anything."""
    amount = int(value)
    if not 0 <= amount <= _MOST_ELEMENTS:
        raise ValueError
    return amount


def _said(value: Any) -> str:
    return sanitize(str(value).removeprefix("torch."), _MOST_OF_A_NAME)


def _bytes_of_parts(tensor: Any) -> int | None:
    """Return the bytes of what a tensor is made of; None if it does not tell, or of too much."""
    size, seen, waiting = 0, 0, [tensor]
    try:
        while waiting:
            part = waiting.pop()
            layout = str(part.layout).removeprefix("torch.")
            if layout in _LAYOUTS:
                waiting += [getattr(part, each)() for each in _LAYOUTS[layout]]
            elif hasattr(type(part), "__tensor_flatten__"):
                names = islice(part.__tensor_flatten__()[0], _MOST_PARTS)
                waiting += [getattr(part, each) for each in names]
            else:
                size += int(part.numel() * part.element_size())
            seen += 1
            if seen + len(waiting) > _MOST_PARTS:
                return None
    except (Exception, SystemExit):  # noqa: BLE001 (strangers' subclasses raise anything)
        return None
    return size
