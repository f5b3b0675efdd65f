"""A state dict in memory as a tree, or any other mapping of tensors: what `torch.load` returns.

Names are those that the tensors would have in a file, and make the same tree.

# Invariants

No walk is endless: a container that contains itself is not entered again, and at most `MAX_ITEMS`
values are looked at, `MAX_DEPTH` containers deep.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, TypeAlias

from snapviewer.checkpoint.buffers import is_buffer, is_training_state
from snapviewer.checkpoint.saved_modules import SavedModules
from snapviewer.gc_pause import gc_pause

from .assembly import assemble
from .checkpoint import Parts, drafts_of, guess_note, training_note
from .live import is_module
from .safe_call import CallFailure, safe_call
from .tensors import TensorReader
from .tree import Tree

MAX_ITEMS = 10_000_000
MAX_DEPTH = 1000

_Named: TypeAlias = dict[str, Any]


def tensors_in(owner: Any) -> _Named:
    """Return the tensors in a mapping, list or tuple by name; none if it holds modules."""
    torch = sys.modules.get("torch")
    if torch is None or not _is_container(owner):
        return {}
    found = safe_call(lambda: dict(_walk(owner, torch.Tensor)))
    return {} if isinstance(found, CallFailure) else found


def _walk(owner: Any, tensor: type) -> Iterator[tuple[str, Any]]:
    if any(is_module(value) for _, value in _items("", owner)):
        return
    stack = [_items("", owner)]
    way = [id(owner)]
    left = MAX_ITEMS
    while stack and left:
        pair = next(stack[-1], None)
        if pair is None:
            stack.pop()
            way.pop()
            continue
        left -= 1
        name, value = pair
        if issubclass(type(value), tensor):
            yield pair
        elif _is_container(value) and id(value) not in way and len(way) < MAX_DEPTH:
            stack.append(_items(name, value))
            way.append(id(value))


def _is_container(value: Any) -> bool:
    # Not `isinstance`, which reads `__class__` of a live module.
    return issubclass(type(value), Mapping | list | tuple)


def _items(prefix: str, owner: Any) -> Iterator[tuple[str, Any]]:
    """Yield the items of a container with their names, as in files."""
    is_mapping = issubclass(type(owner), Mapping)
    pairs: Iterable[tuple[Any, Any]] = owner.items() if is_mapping else enumerate(owner)
    for key, value in islice(pairs, MAX_ITEMS):
        if issubclass(type(key), str):
            yield (f"{prefix}.{key}" if prefix else str.__str__(key)), value
        else:
            yield f"{prefix}[{key!r}]", value


def tree_of_tensors(name: str, tensors: Mapping[str, Any]) -> Tree:
    """Return the tree of tensors by their names, which are paths."""
    with gc_pause():
        parts, reader = Parts(name), TensorReader()
        has_flags = any(tensor.requires_grad for tensor in tensors.values())
        states = {path for path in tensors if is_training_state(path)}
        if len(states) == len(tensors):
            states.clear()  # an optimizer alone is shown as what it is
        for path, tensor in tensors.items():
            part, own_name = parts.of_tensor(path)
            key, entry = reader.read(own_name, path, tensor, is_buffer=False)
            is_other = path in states or is_buffer(path, entry.dtype)
            is_trainable = entry.is_trainable if has_flags else not is_other
            entry = replace(entry, is_buffer=is_other, is_trainable=is_trainable)
            part.tensors.append((key, entry))
        drafts = list(drafts_of(parts.root, SavedModules()))
        root = assemble(drafts)
    notes = (*training_note(len(states)), *parts.notes(), *guess_note(drafts, "a state dict"))
    return Tree(name, "live tensors", root, notes)
