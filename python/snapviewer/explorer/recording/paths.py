"""Which module of a model is called: modules are known by identity, and not kept alive.

A module that several others share has several paths. A call of it is one of the path that is
nearest to the caller; of paths that are as near, the first.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

_MAX_PATHS = 8
"""Of one module: those who share modules that share modules have paths without number."""


class KnownModule:
    """A module and its paths, in the order in which `named_modules` would meet them."""

    __slots__ = ("argument_names", "module", "paths")

    def __init__(self, module: Any) -> None:
        self.module = weakref.ref(module)
        self.paths: list[str] = []
        self.argument_names: tuple[str, ...] | None = None


class Paths:
    """The modules of a model, found by themselves."""

    def __init__(self, parts: Mapping[str, Any]) -> None:
        self._known: dict[int, KnownModule] = {}
        self._by_hooks: dict[int, KnownModule] = {}
        for path, part in parts.items():
            self._add(path, part)

    def find(self, module: Any) -> KnownModule | None:
        """Return what is known of a module, or None if it is not one of the model's."""
        known = self._known.get(id(module))
        if known is not None:
            # Else: another one, at the place of a module that is gone.
            return known if known.module() is module else None
        if module.__dict__.get("_is_replica"):
            # DataParallel calls copies, which share the dictionaries of the original.
            return self._by_hooks.get(_hooks_of(module))
        return None

    def learn(self, module: Any, callers: Iterable[tuple[str, Any]]) -> KnownModule | None:
        """Find a module that was added to one of its callers since the model was looked at.

        Args:
            module: Who is called.
            callers: The paths of the modules that are running, and these, the innermost first.
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
    """Return the modules that a module holds, with their names."""
    try:
        held = [(str(name), child) for name, child in module._modules.items()]  # noqa: SLF001
    except Exception:  # noqa: BLE001 (a module that is not like others may raise anything)
        return []
    return [(name, child) for name, child in held if is_module(child)]


def is_module(value: Any) -> bool:
    """Tell whether something is a torch module."""
    import torch

    return isinstance(value, torch.nn.Module)


def parts_of(explored: Any) -> dict[str, Any]:
    """Return the modules to listen to: the explored, or those that it holds.

    Raises:
        TypeError: There are none.
    """
    if is_module(explored):
        return {"": explored}
    held: Iterable[tuple[Any, Any]]
    if isinstance(explored, Mapping):
        held = explored.items()
    elif isinstance(explored, Sequence):
        held = enumerate(explored)
    else:
        held = getattr(explored, "__dict__", {}).items()
    parts = {str(name): value for name, value in held if is_module(value)}
    if not parts:
        kind = type(explored).__name__
        raise TypeError(f"a torch module, or an object that holds some, is needed; not {kind}")
    return parts


def joined(path: str, name: str) -> str:
    """Return the path of a child.

    >>> joined("", "layer1"), joined("layer1", "0")
    ('layer1', 'layer1.0')
    """
    return f"{path}.{name}" if path else name


def nearest(paths: Sequence[str], caller: str) -> str:
    """Choose the path that has most of the caller's in common.

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
