"""The values of the interpreter: tensors without elements, plain values, objects."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from snapviewer._core import Value as FileValue
from snapviewer.model.graph import TensorSpec, Unknown, Value
from snapviewer.model.shapes import UnknownNumber

_MAX_ITEMS = 100_000
_MAX_TEXT = 10_000  # characters of a string that goes into a node
_MAX_DEPTH = 20


@dataclass(slots=True, eq=False)
class Tensor:
    """A tensor: its spec, its single element if known, its name in the file.

    `row` has the elements of a short tensor, such as one of sizes from which code takes the
    largest.
    """

    spec: TensorSpec
    number: float | None = None
    name: str = ""
    requires_grad: bool = False
    row: tuple[float, ...] = ()


@dataclass(slots=True, eq=False)
class Instance:
    """An object of a class of the code; `path` is that of a module in the tree."""

    class_name: str
    path: str
    attributes: dict[str, Any] = field(default_factory=dict)
    stored: dict[str, FileValue] = field(default_factory=dict)
    """Attributes in the file that were not needed yet."""

    @property
    def short_name(self) -> str:
        """The class's name without where it is defined."""
        return self.class_name.rpartition(".")[2]


class NamedValues(tuple[Any, ...]):
    """A tuple whose items have names."""

    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the code by its full name, or one defined inside another."""

    name: str
    node: ast.FunctionDef | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an enumeration."""

    class_name: str
    name: str


def within_64_bits(value: Any) -> Any:
    """Return a value of a file, or an unknown one in place of an integer of more than 64 bits.

    Computing with a million digits would take forever.
    """
    if isinstance(value, int) and value.bit_length() > 64:
        return UnknownNumber("a number of more than 64 bits")
    return value


def spec_of(value: object, spend: Callable[[int], None]) -> object:
    """Return a value for shape functions: tensors as specs, also in lists."""
    spend(1)
    if isinstance(value, Tensor):
        return value.spec
    if isinstance(value, (list, tuple)):
        return [spec_of(item, spend) for item in value]
    return value


def plain(value: object, spend: Callable[[int], None], depth: int = 0) -> Value:
    """Return a value for a node; a value without such a form is Unknown."""
    spend(1)
    if value is None or isinstance(value, (bool, int, float, TensorSpec)):
        return value
    if isinstance(value, Unknown):
        return Unknown(value.why)
    if isinstance(value, Tensor):
        return value.spec
    if isinstance(value, str):
        return value if len(value) <= _MAX_TEXT else Unknown("a long text")
    if isinstance(value, (list, tuple)) and depth < _MAX_DEPTH:
        if len(value) > _MAX_ITEMS:
            return Unknown(f"a list of {len(value)} values")
        return tuple(plain(item, spend, depth + 1) for item in value)
    if isinstance(value, dict) and depth < _MAX_DEPTH:
        items = list(value.items())[:_MAX_ITEMS]
        return tuple(plain(item, spend, depth + 1) for item in items)
    if isinstance(value, Instance):
        return Unknown(f"an object of class {value.short_name[:100]}")
    return Unknown(f"a value of type {type(value).__name__}")


def tensors_among(value: object, spend: Callable[[int], None]) -> list[Tensor]:
    """Return the tensors of an argument, also in lists."""
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
    """Whether something in a value, or in its lists, is unknown."""
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
    """Return an unknown value of a type: a number, or anything."""
    if isinstance(annotation, ast.Name) and annotation.id in ("int", "float", "bool", "number"):
        return UnknownNumber(why)
    return Unknown(why)
