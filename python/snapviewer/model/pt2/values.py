"""The values of a program's JSON: tensors by name, dynamic sizes, constants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from snapviewer.model.graph import TensorSpec, Unknown, Value
from snapviewer.model.pt2.symbols import NotEvaluatedError, evaluate, symbols_of

# The numbers of dtypes in the schema of exported programs.
_DTYPES = {
    1: "uint8",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "float16",
    7: "float32",
    8: "float64",
    9: "complex32",
    10: "complex64",
    11: "complex128",
    12: "bool",
    13: "bfloat16",
    28: "uint16",
    29: "float8_e4m3fn",
    30: "float8_e5m2",
    31: "float8_e4m3fnuz",
    32: "float8_e5m2fnuz",
    33: "float8_e8m0fnu",
    34: "uint32",
    35: "uint64",
}

_MAX_TEXT = 1000
_MAX_DIMENSIONS = 64


@dataclass(slots=True)
class Sizes:
    """Evaluates sizes: those of the sample input, or those for `chosen` values of symbols."""

    chosen: Mapping[str, int] | None = None
    varying: set[str] = field(default_factory=set)
    """The symbols that occurred."""
    is_incomplete: bool = False
    """Whether a size depends on computed values."""
    _known: dict[str, int | None] = field(default_factory=dict)
    _left_characters: int = 1_000_000
    """The remaining limit for the length of all expressions; models are far below."""

    def size(self, entry: Any) -> int | None:
        """Return a size, or None if it is unknown before a run."""
        if type(whole := _get(entry, "as_int")) is int:
            return whole
        expression = _get(_get(entry, "as_expr"), "expr_str")
        if not isinstance(expression, str):
            return None
        if expression not in self._known:
            self._known[expression] = self._evaluate(expression, _get(entry, "as_expr"))
        return self._known[expression]

    def _evaluate(self, expression: str, entry: Any) -> int | None:
        self._left_characters -= len(expression)
        if self._left_characters < 0:
            self.is_incomplete = True
            return None
        self.varying |= symbols_of(expression)
        size: int | None = None
        if self.chosen is None:
            hint = _get(entry, "hint")
            hint = hint if type(hint) is int else _get(hint, "as_int")
            size = hint if type(hint) is int else None
        else:
            try:
                size = evaluate(expression, self.chosen)
            except NotEvaluatedError:
                size = None
        self.is_incomplete |= size is None
        return size


class Scope:
    """The tensors and numbers that have names in a graph.

    Args:
        graph: The JSON of the graph.
        sizes: Evaluates sizes.
    """

    def __init__(self, graph: Any, sizes: Sizes) -> None:
        self._tensors = mapping_in(graph, "tensor_values")
        self._numbers = {
            **mapping_in(graph, "sym_int_values"),
            **mapping_in(graph, "sym_float_values"),
            **mapping_in(graph, "sym_bool_values"),
        }
        self._sizes = sizes
        self._known: dict[str, Value] = {}

    def tensor(self, name: Any) -> Value:
        """Return a tensor by its name."""
        if not isinstance(name, str):
            return Unknown("the file does not name this tensor")
        if name not in self._known:
            self._known[name] = self._described(name)
        return self._known[name]

    def _described(self, name: str) -> Value:
        entry = self._tensors.get(name)
        entry = _get(entry, "meta") or entry  # one level more in the first versions
        if not isinstance(entry, dict):
            return Unknown("the file does not describe this tensor")
        sizes = items_in(entry, "sizes")
        if len(sizes) > _MAX_DIMENSIONS:
            return Unknown("the file gives this tensor too many dimensions")
        shape = tuple(self._sizes.size(size) for size in sizes)
        if any(size is not None and not 0 <= size < 2**63 for size in shape):
            return Unknown("the file gives this tensor an impossible size")
        return TensorSpec(shape, _DTYPES.get(_number(entry.get("dtype")), ""))

    def value(self, argument: Any) -> Value:
        """Return the value of an argument of the JSON: an object with one of its `as_…`."""
        if not isinstance(argument, dict):
            return Unknown("the file does not describe this argument")
        for key, held in argument.items():
            read = _READERS.get(key)
            if read is not None:
                return read(self, held)
        kind = next(iter(argument), "nothing")
        return Unknown(f"arguments of this kind are not supported: {str(kind)[:40]}")

    def symbol(self, held: Any) -> Value:
        """Return a dynamic number: a constant, or one with a name."""
        name = _get(held, "as_name")
        if name is not None:
            held = self._numbers.get(name) if isinstance(name, str) else None
        size = self._sizes.size(held)
        if size is not None:
            return _plain(self, size)
        for key in ("as_float", "as_bool"):
            constant = _get(held, key)
            if isinstance(constant, bool | float):
                return constant
        return Unknown("a number that is unknown before a run")


def tensor_names(argument: Any) -> Iterator[str]:
    """Yield the names of the tensors in an argument, in their order."""
    if not isinstance(argument, dict):
        return
    for key, held in argument.items():
        if key in ("as_tensor", "as_optional_tensor"):
            name = _get(held, "name") or _get(_get(held, "as_tensor"), "name")
            if isinstance(name, str):
                yield name
        elif key in ("as_tensors", "as_optional_tensors") and isinstance(held, list):
            for one in held:
                name = _get(one, "name") or _get(_get(one, "as_tensor"), "name")
                if isinstance(name, str):
                    yield name


def mapping_in(holder: Any, key: str) -> dict[str, Any]:
    """Return an object inside an object; empty if missing."""
    held = _get(holder, key)
    return held if isinstance(held, dict) else {}


def items_in(holder: Any, key: str) -> list[Any]:
    """Return a list inside an object; empty if missing."""
    held = _get(holder, key)
    return held if isinstance(held, list) else []


def text_in(holder: Any, key: str) -> str:
    """Return a text inside an object, shortened; empty if missing."""
    held = _get(holder, key)
    return held[:_MAX_TEXT] if isinstance(held, str) else ""


def _get(holder: Any, key: str) -> Any:
    return holder.get(key) if isinstance(holder, dict) else None


def _number(held: Any) -> int:
    return held if type(held) is int else -1


def _is_plain(held: Any) -> bool:
    return isinstance(held, bool | int | float)


def _plain(_: Scope, held: Any) -> Value:
    if isinstance(held, str):
        return held[:_MAX_TEXT]
    if type(held) is int and not -(2**63) <= held < 2**63:
        return Unknown("a number that torch does not support")
    return held if _is_plain(held) else Unknown("the file does not describe this argument")


def _float(_: Scope, held: Any) -> Value:
    if isinstance(held, str):  # JSON has no infinity
        held = {"Infinity": float("inf"), "-Infinity": float("-inf"), "NaN": float("nan")}.get(held)
    try:
        return float(held) if _is_plain(held) else Unknown("the file does not describe this number")
    except OverflowError:  # an integer of hundreds of digits
        return Unknown("a number that torch does not support")


def _many(read: Callable[[Scope, Any], Value]) -> Callable[[Scope, Any], Value]:
    def read_all(scope: Scope, held: Any) -> Value:
        if not isinstance(held, list):
            return Unknown("the file does not describe this argument")
        return tuple(read(scope, one) for one in held)

    return read_all


def _tensor(scope: Scope, held: Any) -> Value:
    return scope.tensor(_get(held, "name"))


def _optional_tensor(scope: Scope, held: Any) -> Value:
    return scope.value(held)


def _symbol(scope: Scope, held: Any) -> Value:
    return scope.symbol(held)


def _nothing(_: Scope, __: Any) -> Value:
    return None


def _dtype(_: Scope, held: Any) -> Value:
    return _DTYPES.get(_number(held)) or Unknown("an unknown dtype")


def _device(_: Scope, held: Any) -> Value:
    index = _get(held, "index")
    return text_in(held, "type") + (f":{index}" if type(index) is int else "")


_READERS: dict[str, Callable[[Scope, Any], Value]] = {
    "as_none": _nothing,
    "as_tensor": _tensor,
    "as_tensors": _many(_tensor),
    "as_optional_tensor": _optional_tensor,
    "as_optional_tensors": _many(_optional_tensor),
    "as_nested_tensors": _many(_many(_tensor)),
    "as_int": _plain,
    "as_ints": _many(_plain),
    "as_int_lists": _many(_many(_plain)),
    "as_float": _float,
    "as_floats": _many(_float),
    "as_bool": _plain,
    "as_bools": _many(_plain),
    "as_string": _plain,
    "as_strings": _many(_plain),
    "as_sym_int": _symbol,
    "as_sym_ints": _many(_symbol),
    "as_sym_float": _symbol,
    "as_sym_floats": _many(_symbol),
    "as_sym_bool": _symbol,
    "as_sym_bools": _many(_symbol),
    "as_scalar_type": _dtype,
    "as_memory_format": _plain,
    "as_layout": _plain,
    "as_device": _device,
    "as_operator": _plain,
}
