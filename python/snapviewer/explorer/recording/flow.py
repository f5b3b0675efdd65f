"""Finds which module's output goes into which module.

A tensor comes from the module that returned it last: the same object, or one that shares its
storage, as views do. Functions between modules compute new tensors. With gradients,
autograd's graph shows what these were computed from; without, their source is unknown. Tensors are
not kept alive: a storage is only compared while the returned tensor exists, since another one may
get its address afterwards.
"""

from __future__ import annotations

import weakref
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from snapviewer.explorer.recording.backward import Call
from snapviewer.explorer.recording.values import Named, storage_of

_SWEPT_AT = 4096
_MAX_NODES = 256
"""Nodes that are searched between two modules: enough for the functions of a layer."""


class Producers:
    """The modules that returned the live tensors."""

    def __init__(self) -> None:
        self._by_tensor: dict[int, tuple[Any, str]] = {}
        self._by_storage: dict[int, tuple[Any, str]] = {}
        self._swept_at = _SWEPT_AT

    def sources(self, tensors: Sequence[Named], done: Sequence[Sequence[Call]]) -> tuple[str, ...]:
        """Return the paths of the modules that tensors come from, each once.

        Args:
            tensors: What goes into a module.
            done: For each call that it is in, the innermost first, the calls in that which ended
                and made nodes, in order.
        """
        found: dict[str, None] = {}
        for _, tensor in tensors:
            node = tensor.grad_fn if done else None
            path = self._source(tensor)
            if node is not None and (path is None or _maker(node, done) is None):
                found |= dict.fromkeys(_computed_from(node, done))
            elif path is not None:
                found[path] = None
        return tuple(found)

    def returned(self, path: str, tensors: Sequence[Named]) -> None:
        """Note the outputs of a module."""
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
        # The rest is in use; sweep again at twice the size.
        self._swept_at = max(_SWEPT_AT, 2 * (len(self._by_tensor) + len(self._by_storage)))


def _computed_from(node: Any, done: Sequence[Sequence[Call]]) -> list[str]:
    """Return the modules whose nodes are first on the paths back from a node."""
    found: dict[Call, None] = {}
    seen, waiting = {node}, [node]
    while waiting and len(seen) <= _MAX_NODES:
        node = waiting.pop()
        call = _maker(node, done)
        if call is not None:
            found[call] = None
            continue
        new = [one for one, _ in node.next_functions if one is not None and one not in seen]
        seen.update(new)
        waiting.extend(new)
    return [call.owner.path for call in sorted(found, key=lambda call: call.start)]


def _maker(node: Any, done: Sequence[Sequence[Call]]) -> Call | None:
    """Return the outermost ended call that made a node."""
    number = node._sequence_nr()  # noqa: SLF001 (what autograd orders nodes by)
    for ended in done:
        place = bisect_right(ended, number, key=lambda call: call.start) - 1
        if place >= 0 and number < ended[place].end:
            return ended[place]
    return None
