"""Finds the paths of called modules; modules are identified by `id` and not kept alive.

A shared module has several paths. A call counts for the path nearest to the caller; of equally near
ones, for the first.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

_MAX_PATHS = 8
"""Of one module: nested sharing makes the number of paths grow exponentially."""


class KnownModule:
    """A module and its paths, in the order of `named_modules`."""

    __slots__ = ("argument_names", "module", "paths")

    def __init__(self, module: Any) -> None:
        self.module = weakref.ref(module)
        self.paths: list[str] = []
        self.argument_names: tuple[str, ...] | None = None


class Paths:
    """The modules of a model with their paths."""

    def __init__(self, parts: Mapping[str, Any]) -> None:
        self._known: dict[int, KnownModule] = {}
        self._by_hooks: dict[int, KnownModule] = {}
        for path, part in parts.items():
            self._add(path, part)

    def find(self, module: Any) -> KnownModule | None:
        """Return the entry of a module; None if it does not belong to the model."""
        known = self._known.get(id(module))
        if known is not None:
            # Otherwise a new object has the id of a deleted module.
            return known if known.module() is module else None
        if module.__dict__.get("_is_replica"):
            # DataParallel calls replicas, which share the dictionaries of the original.
            return self._by_hooks.get(_hooks_of(module))
        return None

    def learn(self, module: Any, callers: Iterable[tuple[str, Any]]) -> KnownModule | None:
        """Find a module that was added to one of its callers after the recording began.

        Args:
            module: The called module.
            callers: The paths of the running modules, and these, the innermost first.
        """
        for path, caller in callers:
            for name, child in children_of(caller):
                if child is module:
                    self._add(joined(path, name), module)
                    return self._known[id(module)]
        return None

    def path_of(self, module: Any) -> str | None:
        """Return the first path of a module."""
        known = self.find(module)
        return None if known is None else known.paths[0]

    def shared(self) -> Iterator[tuple[str, ...]]:
        """Yield the paths of each module that has several."""
        for known in self._known.values():
            if len(known.paths) > 1:
                yield tuple(known.paths)

    def _add(self, path: str, part: Any) -> None:
        waiting = [(path, part)]
        while waiting:
            path, module = waiting.pop()
            known = self._known.get(id(module))
            if known is None or known.module() is not module:
                known = self._known[id(module)] = KnownModule(module)
                self._by_hooks[_hooks_of(module)] = known
            if len(known.paths) >= _MAX_PATHS:
                continue
            known.paths.append(path)
            children = [(joined(path, name), child) for name, child in children_of(module)]
            waiting.extend(reversed(children))


def children_of(module: Any) -> list[tuple[str, Any]]:
    """Return the children of a module with their names."""
    try:
        held = [(str(name), child) for name, child in module._modules.items()]  # noqa: SLF001
    except Exception:  # noqa: BLE001 (an unusual module may raise anything)
        return []
    return [(name, child) for name, child in held if is_module(child)]


def is_module(value: Any) -> bool:
    """Return whether a value is a torch module."""
    import torch

    return isinstance(value, torch.nn.Module)


def parts_of(model: Any) -> dict[str, Any]:
    """Return the modules to record: the model, or those that it holds.

    Raises:
        TypeError: There are none.
    """
    if is_module(model):
        return {"": model}
    held: Iterable[tuple[Any, Any]]
    if isinstance(model, Mapping):
        held = model.items()
    elif isinstance(model, Sequence):
        held = enumerate(model)
    else:
        held = getattr(model, "__dict__", {}).items()
    parts = {str(name): value for name, value in held if is_module(value)}
    if not parts:
        kind = type(model).__name__
        raise TypeError(f"a torch module, or an object that holds some, is needed; not {kind}")
    return parts


def joined(path: str, name: str) -> str:
    """Return the path of a child.

    >>> joined("", "layer1"), joined("layer1", "0")
    ('layer1', 'layer1.0')
    """
    return f"{path}.{name}" if path else name


def nearest(paths: Sequence[str], caller: str) -> str:
    """Return the path that has most in common with the caller's.

    >>> nearest(["encoder.norm", "decoder.norm"], "decoder")
    'decoder.norm'
    """
    if len(paths) == 1:
        return paths[0]
    way = caller.split(".") if caller else []
    return max(paths, key=lambda path: _in_common(path.split(".")[:-1], way))


def _in_common(ours: Sequence[str], theirs: Sequence[str]) -> int:
    pairs = enumerate(zip(ours, theirs, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(ours), len(theirs)))


def _hooks_of(module: Any) -> int:
    return id(module.__dict__.get("_forward_hooks"))
