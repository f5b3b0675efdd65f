"""Which module's output goes into which module.

A tensor comes from the module that returned it last: the same object, or one that shares its
storage, as views do. What functions compute between modules is a new tensor, whose source is not
known. Tensors are not kept alive: a storage is only compared while the tensor that was returned is
there, since another one may get its place afterwards.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from snapviewer.explorer.recording.values import Named, storage_of

_SWEPT_AT = 4096


class Producers:
    """The modules that returned the tensors that are alive."""

    def __init__(self) -> None:
        self._by_tensor: dict[int, tuple[Any, str]] = {}
        self._by_storage: dict[int, tuple[Any, str]] = {}
        self._swept_at = _SWEPT_AT

    def sources(self, tensors: Sequence[Named]) -> tuple[str, ...]:
        """Return the paths of the modules that tensors come from, each once."""
        found = (self._source(tensor) for _, tensor in tensors)
        return tuple(dict.fromkeys(path for path in found if path is not None))

    def returned(self, path: str, tensors: Sequence[Named]) -> None:
        """Take note of what a module returned."""
        for _, tensor in tensors:
            entry = (weakref.ref(tensor), path)
            self._by_tensor[id(tensor)] = entry
            storage = storage_of(tensor)
            if storage is not None:
                self._by_storage[storage[0]] = entry
        if len(self._by_tensor) + len(self._by_storage) > self._swept_at:
            self._sweep()

    def _source(self, tensor: Any) -> str | None:
        reference, path = self._by_tensor.get(id(tensor), (None, ""))
        if reference is not None and reference() is tensor:
            return path
        storage = storage_of(tensor)
        if storage is None:
            return None
        reference, path = self._by_storage.get(storage[0], (None, ""))
        return path if reference is not None and reference() is not None else None

    def _sweep(self) -> None:
        for table in (self._by_tensor, self._by_storage):
            for key in [key for key, (reference, _) in list(table.items()) if reference() is None]:
                table.pop(key, None)
        # What is left is in use; look again when there is twice as much.
        self._swept_at = max(_SWEPT_AT, 2 * (len(self._by_tensor) + len(self._by_storage)))
