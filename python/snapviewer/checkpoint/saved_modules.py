"""The modules of a file and their types, for `torch.save(model)` and TorchScript.

They are read from the inert record of the pickle: no class is looked up.

# Invariants

Cycles end, and at most `MAX_VALUES` values are visited, whatever the file holds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from snapviewer._core import Value

MAX_VALUES = 400_000
_MAX_PATH_CHARS = 50_000_000  # of all paths together
_MAX_DEPTH = 1000
_PLAIN_DEPTH = 4  # levels of dicts in which modules are searched
_PLAIN = frozenset(("dict", "OrderedDict", "defaultdict"))


@dataclass(slots=True)
class SavedModules:
    """The modules of a file."""

    types: dict[str, str] = field(default_factory=dict)
    """Class names by path, parents first."""
    first: dict[str, str] = field(default_factory=dict)
    """From the path of a module that occurs again to its first path."""
    tops: set[str] = field(default_factory=set)
    """The paths of modules that are in no other module."""
    reached: dict[str, int] = field(default_factory=dict)
    """The index of each tensor that a module keeps as parameter or buffer, by path."""

    def hold(self, name: str) -> bool:
        """Return whether a tensor of this name is in a module."""
        if not self.tops or "" in self.tops:
            return bool(self.tops)
        dots = (found.start() for found in re.finditer(r"\.", name[:_MAX_TOP]))
        return any(name[:dot] in self.tops for dot in dots)


_MAX_TOP = 400  # characters of a name in which the path of a top module is searched


def saved_modules(root: Value) -> SavedModules:
    """Return the modules of a file."""
    found = SavedModules()
    values, characters = MAX_VALUES, _MAX_PATH_CHARS
    met: dict[Value, str] = {}
    waiting: list[tuple[str, Value, int, bool]] = [("", root, 0, False)]
    while waiting and values > 0 and characters > 0:
        path, value, depth, is_inside = waiting.pop()
        is_module = _is_class(value) and (is_inside or _is_known(value) or _holds_some(value))
        if is_module:
            found.types[path] = class_name(value.type)
            if not is_inside:
                found.tops.add(path)
            if met.setdefault(value, path) != path:
                found.first[path] = met[value]
                continue
        elif depth > _PLAIN_DEPTH or value.type not in _PLAIN:
            continue
        if depth >= _MAX_DEPTH or (value.count or 0) > values:
            continue
        below = []
        for label, item in value.items():
            values -= 1
            characters -= len(path) + len(label)
            if characters < 0:
                break
            below_path = f"{path}.{label}" if path else label
            if item.tensor is not None and is_module:
                found.reached[below_path] = item.tensor
            elif item.is_container and (not is_module or _is_class(item)):
                below.append((below_path, item, depth + 1, is_module))
        waiting += reversed(below)
    return found


def class_name(type_name: str) -> str:
    """Return the name of a class without its module.

    >>> class_name("__torch__.torch.nn.modules.linear.___torch_mangle_0.Linear")
    'Linear'
    """
    return type_name.rpartition(".")[2]


def _is_class(value: Value) -> bool:
    """Return whether a value is an object of a class, as modules are, not a call or collection."""
    return (
        value.is_container
        and "." in value.type
        and value.type not in _PLAIN
        and not value.type.startswith(("collections.", "torch.jit._pickle.", "torch._"))
    )


def _is_known(value: Value) -> bool:
    return value.type.startswith(("torch.nn.", "__torch__."))


def _holds_some(value: Value) -> bool:
    """Return whether an object has tensors or modules in its attributes."""
    return any(
        item.tensor is not None or (item.is_container and _is_class(item) and _is_known(item))
        for _, item in value.items(0, 64)
    )
