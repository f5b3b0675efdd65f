"""The registry of shape functions.

A function has the parameters of the operation's schema, under the names of the schema, or `*rest`
and `**named`. A parameter annotated `TensorSpec` must be a tensor: if it is unknown, the output is
unknown too. The function returns a spec, a tuple for several outputs, or a list for one output that
is a list.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from snapviewer.model.graph import TensorSpec, Unknown
from snapviewer.model.shapes.dimensions import ShapeError

Output: TypeAlias = "TensorSpec | Unknown | int | float | list[Any] | tuple[Any, ...] | None"
ShapeFunction: TypeAlias = Callable[..., Output]
_Function = TypeVar("_Function", bound=ShapeFunction)


class UnknownNumber(Unknown):
    """An unknown number; unlike an unknown tensor it does not change the shape of a sum."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class _Rule:
    function: ShapeFunction
    signature: inspect.Signature
    tensors: tuple[str, ...]


_RULES: dict[str, _Rule] = {}


def shape_function(*ops: str) -> Callable[[_Function], _Function]:
    """Register a function for operations.

    Args:
        ops: Their names, also several in one text; a name without `::` is in `aten`.
    """

    def register(function: _Function) -> _Function:
        signature = inspect.signature(function)
        tensors = tuple(
            name
            for name, parameter in signature.parameters.items()
            if parameter.annotation in ("TensorSpec", TensorSpec)
        )
        for op in " ".join(ops).split():
            _RULES[op if "::" in op else f"aten::{op}"] = _Rule(function, signature, tensors)
        return function

    return register


def is_known(op: str) -> bool:
    """Whether there is a function for an operation, or for its out-of-place form.

    >>> is_known("aten::relu_"), is_known("aten::no_such_op")
    (True, False)
    """
    return op in _RULES or _out_of_place(op) in _RULES


def outputs_of(op: str, arguments: Sequence[object], keywords: Mapping[str, object]) -> Output:
    """Return the outputs of an operation.

    Raises:
        ShapeError: The arguments do not fit the operation.

    >>> outputs_of("aten::t", [TensorSpec((2, 3), "float32")], {})
    TensorSpec(shape=(3, 2), dtype='float32')
    """
    rule = _RULES.get(op)
    in_place = rule is None
    if rule is None:
        rule = _RULES.get(_out_of_place(op))
    if rule is None:
        return Unknown(f"there is no shape function for {op}")
    for value in (*arguments, *keywords.values()):
        if isinstance(value, Unknown) and not isinstance(value, UnknownNumber):
            return value
    try:
        bound = rule.signature.bind(*arguments, **keywords)
    except TypeError as error:
        raise ShapeError(f"unexpected arguments ({error})") from None
    for name in rule.tensors:
        value = bound.arguments.get(name)
        if isinstance(value, Unknown):
            return Unknown(value.why)
        if not isinstance(value, TensorSpec):
            raise ShapeError(f"`{name}` is not a tensor")
    output = rule.function(*bound.args, **bound.kwargs)
    first = arguments[0] if arguments else None
    if in_place and isinstance(output, TensorSpec) and isinstance(first, TensorSpec):
        return TensorSpec(output.shape, first.dtype)
    return output


def _out_of_place(op: str) -> str:
    return op[:-1] if op.endswith("_") and not op.endswith("__") else ""


def arguments(order: str, rest: Sequence[object], named: Mapping[str, object]) -> dict[str, Any]:
    """Return arguments by their names, for functions with `*rest` and `**named`.

    >>> arguments("stride padding", [2], {"padding": 1})
    {'stride': 2, 'padding': 1}
    """
    return {**dict(zip(order.split(), rest, strict=False)), **named}


def with_indices(function: Callable[..., Output]) -> ShapeFunction:
    """Return a shape function with a second output: integers of the same shape."""

    def both(self: TensorSpec, *rest: object, **named: object) -> Output:
        picked = function(self, *rest, **named)
        return (
            (picked, TensorSpec(picked.shape, "int64"))
            if isinstance(picked, TensorSpec)
            else picked
        )

    return both
