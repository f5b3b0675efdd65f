"""What the code works on while it is followed: tensors without elements, plain values, objects."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from snapviewer._core import Value as FileValue
from snapviewer.model.graph import TensorSpec, Unknown, Value
from snapviewer.model.shapes import UnknownNumber

_MOST_ITEMS = 100_000
_MOST_TEXT = 10_000  # characters of a string that goes into a node
_MOST_DEPTH = 20


@dataclass(slots=True, eq=False)
class Tensor:
    """A tensor: what is known of it, its one element if that is known, its name in the file.

    `row` has the elements of a short list, where code makes a tensor of sizes to find the largest.
    """

    spec: TensorSpec
    number: float | None = None
    name: str = ""
    requires_grad: bool = False
    row: tuple[float, ...] = ()


@dataclass(slots=True, eq=False)
class Instance:
    """An object of a class of the code. A module has a place in the tree, its path."""

    class_name: str
    path: str
    attributes: dict[str, Any] = field(default_factory=dict)
    stored: dict[str, FileValue] = field(default_factory=dict)
    """What the file holds and nobody has asked for yet."""

    @property
    def short_name(self) -> str:
        """The class's name without where it is defined."""
        return self.class_name.rpartition(".")[2]


class NamedValues(tuple[Any, ...]):
    """A tuple whose items have names."""

    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the code, by its full name, or one that is defined inside another."""

    name: str
    node: ast.FunctionDef | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an enumeration."""

    class_name: str
    name: str


def within_64_bits(value: Any) -> Any:
    """Return a value that a file states, or that it is a number that the code cannot have.

    Of a million digits, say: to compute with them would take forever.
    """
    if isinstance(value, int) and value.bit_length() > 64:
        return UnknownNumber("a number of more than 64 bits")
    return value


def spec_of(value: object, spend: Callable[[int], None]) -> object:
    """Return a value as the shape functions want it: tensors as specs, in lists too."""
    spend(1)
    if isinstance(value, Tensor):
        return value.spec
    if isinstance(value, (list, tuple)):
        return [spec_of(item, spend) for item in value]
    return value


def plain(value: object, spend: Callable[[int], None], depth: int = 0) -> Value:
    """Return a value as a node shows it; what has no such form is Unknown."""
    spend(1)
    if value is None or isinstance(value, (bool, int, float, TensorSpec)):
        return value
    if isinstance(value, Unknown):
        return Unknown(value.why)
    if isinstance(value, Tensor):
        return value.spec
    if isinstance(value, str):
        return value if len(value) <= _MOST_TEXT else Unknown("a long text")
    if isinstance(value, (list, tuple)) and depth < _MOST_DEPTH:
        if len(value) > _MOST_ITEMS:
            return Unknown(f"a list of {len(value)} values")
        return tuple(plain(item, spend, depth + 1) for item in value)
    if isinstance(value, dict) and depth < _MOST_DEPTH:
        items = list(value.items())[:_MOST_ITEMS]
        return tuple(plain(item, spend, depth + 1) for item in items)
    if isinstance(value, Instance):
        return Unknown(f"an object of class {value.short_name[:100]}")
    return Unknown(f"a value of type {type(value).__name__}")


def tensors_among(value: object, spend: Callable[[int], None]) -> list[Tensor]:
    """Return the tensors of an argument, those in lists too."""
    found: list[Tensor] = []
    pending = [value]
    while pending:
        spend(1)
        item = pending.pop()
        if isinstance(item, Tensor):
            found.append(item)
        elif isinstance(item, (list, tuple)):
            pending.extend(reversed(item))
    return found


def has_unknown(value: object, spend: Callable[[int], None]) -> bool:
    """Whether something in a value, or in its lists, is not known."""
    pending = [value]
    while pending:
        spend(1)
        item = pending.pop()
        if isinstance(item, Unknown):
            return True
        if isinstance(item, (list, tuple)):
            pending.extend(item)
        elif isinstance(item, dict):
            pending.extend(item.values())
    return False


def unknown_like(annotation: ast.expr | None, why: str) -> Unknown:
    """Return what stands for a value of a type: a number that is not known, or anything."""
    if isinstance(annotation, ast.Name) and annotation.id in ("int", "float", "bool", "number"):
        return UnknownNumber(why)
    return Unknown(why)
