"""The elements of tiny tensors, with which traced code computes sizes.

A tensor without dimensions has a number, a short one-dimensional tensor has a row; all others are
only shapes. Elements are rounded to their types, because a size that is off by one changes every
later layer.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any, TypeAlias

from snapviewer.model.graph import TensorSpec
from snapviewer.model.shapes.dtypes import is_integral
from snapviewer.model.torchscript.values import Tensor

MAX_ROW = 16

Row: TypeAlias = "tuple[float, ...]"
_Elements: TypeAlias = "float | Row"

_KEEPING = (
    *("to", "type_as", "cpu", "long", "int", "float", "double", "tensor", "as_tensor"),
    *("clone", "detach", "alias", "contiguous", "lift_fresh", "lift_fresh_copy"),
    *("view", "reshape", "flatten", "squeeze", "ravel"),
)
_REDUCING: dict[str, Callable[[Row], float]] = {
    "min": min,
    "max": max,
    "amin": min,
    "amax": max,
    "sum": sum,
    "prod": math.prod,
}
_ROUNDED: dict[object, Callable[[Any, Any], Any]] = {
    "trunc": lambda a, b: int(a / b),
    "floor": lambda a, b: a // b,
    None: lambda a, b: a / b,
}
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "rsub": lambda a, b: b - a,
    "mul": lambda a, b: a * b,
    "remainder": lambda a, b: a % b,
    "fmod": math.fmod,
    "pow": lambda a, b: a**b if abs(b) < 64 else None,
    "square": lambda a: a * a,
    "neg": lambda a: -a,
    "reciprocal": lambda a: 1 / a,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "log2": math.log2,
    "maximum": max,
    "minimum": min,
    "max": max,
    "min": min,
    "clamp_min": max,
    "clamp_max": min,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "round": round,
    "abs": abs,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "logical_not": lambda a: not a,
    "logical_and": lambda a, b: bool(a) and bool(b),
    "logical_or": lambda a, b: bool(a) or bool(b),
}


def with_elements(
    name: str, arguments: list[Any], keywords: dict[str, Any], spec: TensorSpec
) -> Tensor:
    """Return the result of an operation as a tensor, with its elements if known."""
    made = Tensor(spec)
    if len(spec.shape) > 1 or (spec.shape and (spec.shape[0] or MAX_ROW + 1) > MAX_ROW):
        return made
    try:
        elements = _elements(name, arguments, keywords)
    except (ArithmeticError, ValueError, TypeError, IndexError):
        return made
    row = elements if isinstance(elements, tuple) else (elements,)
    stored = [_stored_as(number, spec.dtype) for number in row]
    known = tuple(number for number in stored if number is not None)
    if len(known) != len(stored):
        return made
    if spec.shape and spec.shape[0] == len(known):
        made.row = known
    elif not spec.shape and len(known) == 1:
        made.number = known[0]
    return made


def _elements(name: str, arguments: list[Any], keywords: dict[str, Any]) -> Any:
    """Compute the elements of a result; None among them, or an error, if they are unknown."""
    if name in ("tensor", "as_tensor", "stack", "cat", "concat") and isinstance(arguments[0], list):
        return tuple(number for value in arguments[0] for number in _row_of(value))
    first = _given(arguments[0])
    if name in _KEEPING:
        return first
    if name == "clamp":
        low, high = [*arguments[1:], None, None][:2]
        low, high = keywords.get("min", low), keywords.get("max", high)
        return _each(lambda a: _clamped(a, low, high), first)
    if isinstance(first, tuple):
        if name in _REDUCING and len(arguments) == 1:
            return _REDUCING[name](first)
        if name == "select" and len(arguments) == 3:
            return first[arguments[2]]
        if name == "slice" and len(arguments) > 2:
            return first[slice(*arguments[2:5])]
        if name == "flip":
            return first[::-1]
    elif name in _REDUCING and len(arguments) == 1:
        return first
    if keywords.get("alpha", 1) != 1 or any(value != 1 for value in arguments[2:]):
        return None
    if name in ("div", "floor_divide", "true_divide"):
        mode = "floor" if name == "floor_divide" else keywords.get("rounding_mode")
        function: Callable[..., Any] | None = _ROUNDED.get(mode)
    else:
        function = _ARITHMETIC.get(name)
    if function is None:
        return None
    return _each(function, first, *(_given(value) for value in arguments[1:2]))


def _clamped(number: float, low: Any, high: Any) -> float:
    number = number if low is None else max(number, _single(low))
    return number if high is None else min(number, _single(high))


def _single(value: Any) -> float:
    number = _given(value)
    if isinstance(number, tuple):
        raise TypeError
    return number


def _row_of(value: Any) -> Row:
    elements = _given(value)
    return elements if isinstance(elements, tuple) else (elements,)


def _given(value: Any) -> _Elements:
    """Return the elements of an argument.

    Raises:
        TypeError: They are unknown.
    """
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, Tensor) and value.number is not None and not value.spec.shape:
        return value.number
    if isinstance(value, Tensor) and value.row:
        return value.row
    raise TypeError


def _each(function: Callable[..., Any], *operands: _Elements) -> Any:
    """Apply a function to each element; a number is broadcast over a row."""
    length = max((len(one) for one in operands if isinstance(one, tuple)), default=None)
    if length is None:
        return function(*operands)
    columns = [one if isinstance(one, tuple) else (one,) * length for one in operands]
    return tuple(function(*numbers) for numbers in zip(*columns, strict=True))


def _stored_as(number: Any, dtype: str) -> float | None:
    """Round a number to its type."""
    if not isinstance(number, (int, float)) or not abs(number) < 2**63:
        return None
    try:
        if dtype in ("float32", "float16"):
            code = "f" if dtype == "float32" else "e"
            rounded: float = struct.unpack(code, struct.pack(code, number))[0]
            return rounded
        return int(number) if is_integral(dtype) and dtype != "bool" else number
    except (OverflowError, ValueError):
        return None
