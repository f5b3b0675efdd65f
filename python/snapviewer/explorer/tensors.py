"""The tensors of live modules as plain entries. No element of them is read.

Some have no shape yet (lazy ones), some no memory (meta, fake), some are made of several (sparse,
quantized by a wrapper), and any of them may refuse to answer: each still has its line.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from .tree import TensorEntry

_LAYOUTS = {
    "sparse_coo": ("_indices", "_values"),
    "sparse_csr": ("crow_indices", "col_indices", "values"),
    "sparse_csc": ("ccol_indices", "row_indices", "values"),
    "sparse_bsr": ("crow_indices", "col_indices", "values"),
    "sparse_bsc": ("ccol_indices", "row_indices", "values"),
}
_MOST_PARTS_DEPTH = 8


class TensorReader:
    """Reads the tensors of one model; remembers the names of types and devices, and what is odd."""

    def __init__(self) -> None:
        self.without_shape = 0
        self.unreadable = 0
        self._names: dict[object, str] = {}
        self._kept: list[object] = []

    def read(
        self, name: str, path: str, tensor: Any, *, is_buffer: bool
    ) -> tuple[Hashable, TensorEntry]:
        """Return what tells a tensor from others, and its entry.

        Two tensors are the same if they have the same elements: the same place in memory, shape and
        strides. Those without memory are the same only if they are the same object.
        """
        try:
            shape = tuple(tensor.shape)
            elements = tensor.numel()
            dtype, device = self._name(tensor.dtype), self._name(tensor.device)
            entry = TensorEntry(
                name,
                path,
                shape,
                dtype,
                device,
                elements,
                self._size_bytes(tensor, elements),
                is_buffer,
                tensor.requires_grad,
            )
        except Exception:  # noqa: BLE001 (lazy tensors and strangers' subclasses raise anything)
            return self._by_itself(tensor), self._odd(name, path, tensor, is_buffer=is_buffer)
        return self._key(tensor, entry), entry

    def _key(self, tensor: Any, entry: TensorEntry) -> Hashable:
        try:
            place = tensor.data_ptr()
            if place:
                return place, entry.shape, tensor.stride(), entry.dtype, entry.device
        except Exception:  # noqa: BLE001 (fake and sparse tensors, and strangers' subclasses)
            return self._by_itself(tensor)
        return self._by_itself(tensor)

    def _by_itself(self, tensor: Any) -> int:
        self._kept.append(tensor)  # an id is nobody else's only as long as the object lives
        return id(tensor)

    def _name(self, value: Any) -> str:
        name = self._names.get(value)
        if name is None:
            name = self._names[value] = str(value).removeprefix("torch.")
        return name

    def _size_bytes(self, tensor: Any, elements: int) -> int:
        layout = self._name(tensor.layout)
        if layout == "strided" and not hasattr(type(tensor), "__tensor_flatten__"):
            size: int = elements * tensor.element_size()
            return size
        parts = _bytes_of_parts(tensor, layout, _MOST_PARTS_DEPTH)
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
                texts.append(str(getattr(tensor, attribute)).removeprefix("torch."))
            except Exception:  # noqa: BLE001 (see above)
                texts.append("")
        dtype, device, is_trainable = texts
        return TensorEntry(name, path, (), dtype, device, 0, 0, is_buffer, is_trainable == "True")


def _bytes_of_parts(tensor: Any, layout: str, depth: int) -> int | None:
    """Return the bytes of what a tensor is made of; None if it does not tell."""
    if depth == 0:
        return None
    try:
        if layout in _LAYOUTS:
            parts = [getattr(tensor, part)() for part in _LAYOUTS[layout]]
        elif hasattr(type(tensor), "__tensor_flatten__"):
            parts = [getattr(tensor, part) for part in tensor.__tensor_flatten__()[0]]
        else:
            return int(tensor.numel() * tensor.element_size())
        sizes = [
            _bytes_of_parts(part, str(part.layout).removeprefix("torch."), depth - 1)
            for part in parts
        ]
    except Exception:  # noqa: BLE001 (strangers' subclasses raise anything)
        return None
    return None if None in sizes else sum(size for size in sizes if size is not None)
