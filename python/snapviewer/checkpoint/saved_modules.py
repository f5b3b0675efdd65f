"""The modules that a file names with their types: those of `torch.save(model)` and TorchScript.

Everything here is the inert record of what a file says; no class is looked up.

# Invariants

Nothing is entered into itself, and at most `MOST_VALUES` values are looked at, in any file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from snapviewer._core import Value

MOST_VALUES = 400_000
_MOST_LETTERS = 50_000_000  # of all paths
_MOST_DEPTH = 1000
_PLAIN_DEPTH = 4  # how deep in dicts modules are looked for
_PLAIN = frozenset(("dict", "OrderedDict", "defaultdict"))


@dataclass(slots=True)
class SavedModules:
    """Where a file has modules."""

    types: dict[str, str] = field(default_factory=dict)
    """Class names by path, parents first."""
    first: dict[str, str] = field(default_factory=dict)
    """By the path of a module that was met before: the path where that was."""
    tops: set[str] = field(default_factory=set)
    """The paths of modules that are in no other."""
    reached: dict[str, int] = field(default_factory=dict)
    """The index of each tensor that a module keeps as parameter or buffer, by path."""

    def hold(self, name: str) -> bool:
        """Tell whether a tensor of this name is somewhere in a module."""
        if not self.tops or "" in self.tops:
            return bool(self.tops)
        dots = (found.start() for found in re.finditer(r"\.", name[:_MOST_TOP]))
        return any(name[:dot] in self.tops for dot in dots)


_MOST_TOP = 400  # letters of a name in which the path of a top module is looked for


def saved_modules(root: Value) -> SavedModules:
    """Find the modules of a file."""
    found = SavedModules()
    values, letters = MOST_VALUES, _MOST_LETTERS
    met: dict[Value, str] = {}
    waiting: list[tuple[str, Value, int, bool]] = [("", root, 0, False)]
    while waiting and values > 0 and letters > 0:
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
        if depth >= _MOST_DEPTH or (value.count or 0) > values:
            continue
        below = []
        for label, item in value.items():
            values -= 1
            letters -= len(path) + len(label)
            if letters < 0:
                break
            way = f"{path}.{label}" if path else label
            if item.tensor is not None and is_module:
                found.reached[way] = item.tensor
            elif item.is_container and (not is_module or _is_class(item)):
                below.append((way, item, depth + 1, is_module))
        waiting += reversed(below)
    return found


def class_name(type_name: str) -> str:
    """Return the name of a class without where it is from.

    >>> class_name("__torch__.torch.nn.modules.linear.___torch_mangle_0.Linear")
    'Linear'
    """
    return type_name.rpartition(".")[2]


def _is_class(value: Value) -> bool:
    """Tell whether a value is an object of a class, as modules are, and no call or collection."""
    return (
        value.is_container
        and "." in value.type
        and value.type not in _PLAIN
        and not value.type.startswith(("collections.", "torch.jit._pickle.", "torch._"))
    )


def _is_known(value: Value) -> bool:
    return value.type.startswith(("torch.nn.", "__torch__."))


def _holds_some(value: Value) -> bool:
    """Tell whether an object has tensors or modules in its attributes."""
    return any(
        item.tensor is not None or (item.is_container and _is_class(item) and _is_known(item))
        for _, item in value.items(0, 64)
    )
