"""The operations of the code on plain values: numbers, texts, lists and dictionaries.

They have the semantics of Python, within limits: integers have 64 bits, and sizes are bounded.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from snapviewer.model.graph import Unknown
from snapviewer.model.shapes import UnknownNumber
from snapviewer.model.torchscript.run import Run
from snapviewer.model.torchscript.values import Tensor, has_unknown

MAX_LENGTH = 1_000_000  # of a list or a text
_LIMIT = 1 << 63


class NoOperationError(Exception):
    """There is no such operation on plain values."""


def _floordiv(a: Any, b: Any) -> Any:
    return a // b


def _round(x: Any) -> float:
    return float(round(x))


def _slice(items: Any, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    return items[slice(start, end, step)]


def _range_length(low: int, high: int, step: int) -> int:
    return len(range(low, high, step))


def _derive_index(index: int, start: int, step: int) -> int:
    return start + index * step


def _format(text: str, *values: Any) -> str:
    # Only the plain `{}` is replaced: the text is untrusted.
    parts = text.split("{}")
    shown = [str(value)[:1000] if isinstance(value, (int, str, float)) else "…" for value in values]
    shown += ["{}"] * (len(parts) - 1 - len(shown))
    if len(text) + sum(map(len, shown)) > MAX_LENGTH:
        raise OverflowError
    return "".join(part + value for part, value in zip(parts, [*shown, ""], strict=False))


def _join(separator: str, items: list[str]) -> str:
    if len(separator) * len(items) + sum(map(len, items)) > MAX_LENGTH:
        raise OverflowError
    return separator.join(items)


def _repeat(a: Any, b: Any) -> Any:
    if isinstance(a, (list, str)) or isinstance(b, (list, str)):
        items, times = (a, b) if isinstance(a, (list, str)) else (b, a)
        if len(items) * max(times, 0) > MAX_LENGTH:
            raise OverflowError
    return a * b


def _power(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and abs(a) > 1 and b > 64:
        raise OverflowError
    result = a**b
    if isinstance(result, complex):
        raise ValueError
    return result


def _shift(a: int, b: int) -> int:
    if not 0 <= b < 64:
        raise OverflowError
    return a << b


def _replace(text: str, old: str, new: str, most: int = -1) -> str:
    if (text.count(old) + 1) * len(new) + len(text) > MAX_LENGTH:
        raise OverflowError
    return text.replace(old, new, most)


_PURE: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "add_": operator.add,
    "sub": operator.sub,
    "mul": _repeat,
    "div": operator.truediv,
    "truediv": operator.truediv,
    "floordiv": _floordiv,
    "floor_divide": _floordiv,
    "remainder": operator.mod,
    "fmod": math.fmod,
    "mathremainder": math.remainder,
    "pow": _power,
    "neg": operator.neg,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "__not__": operator.not_,
    "__and__": operator.and_,
    "__or__": operator.or_,
    "__xor__": operator.xor,
    "__lshift__": _shift,
    "__rshift__": operator.rshift,
    "bitwise_not": operator.invert,
    "__contains__": lambda items, item: item in items,
    "__getitem__": operator.getitem,
    "len": len,
    "slice": _slice,
    "__range_length": _range_length,
    "__derive_index": _derive_index,
    "format": _format,
    "join": _join,
    "replace": _replace,
    "abs": abs,
    "min": min,
    "max": max,
    "sum": sum,
    "all": all,
    "any": any,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": _round,
    "Int": int,
    "Float": float,
    "Bool": bool,
    "int": int,
    "float": float,
    "bool": bool,
    "str": lambda value: _format("{}", value),
    "dict": lambda pairs=(): {_key(key): value for key, value in pairs},
    "ord": ord,
    "chr": chr,
    "hex": hex,
    "keys": list,
    "values": lambda items: list(items.values()),
    "items": lambda items: list(items.items()),
    "list": list,
    "copy": lambda items: items.copy(),
    "sorted": sorted,
    "index": lambda items, item: items.index(item),
    "count": lambda items, item: items.count(item),
    "find": lambda text, part: text.find(part),
    "get": lambda items, key, default=None: items.get(key, default),
    "gcd": math.gcd,
    "copysign": math.copysign,
    "isnan": math.isnan,
    "isinf": math.isinf,
    "isfinite": math.isfinite,
    "degrees": math.degrees,
    "radians": math.radians,
    "rangelist": lambda n: list(range(_short(n))),
    "range": lambda *bounds: list(_short_range(*bounds)),
    "TupleIndex": operator.getitem,
    "divmod": divmod,
}
for _function in (math.sqrt, math.exp, math.log, math.log2, math.log10, math.log1p, math.expm1):
    _PURE[_function.__name__] = _function
for _function in (math.sin, math.cos, math.tan, math.asin, math.acos, math.atan, math.tanh):
    _PURE[_function.__name__] = _function
_TEXTS = (
    "lower upper strip lstrip rstrip title capitalize swapcase split rsplit splitlines startswith "
    "endswith isdigit isalpha isalnum isspace isupper islower isidentifier partition rpartition "
    "rfind casefold"
)
for _name in _TEXTS.split():
    _PURE[_name] = getattr(str, _name)


def _key(value: Any) -> Any:
    if not isinstance(value, (int, float, str)):
        raise TypeError
    return value


def _short(count: int) -> int:
    if count > MAX_LENGTH:
        raise OverflowError
    return count


def _short_range(*bounds: int) -> range:
    numbers = range(*bounds)
    _short(len(numbers))
    return numbers


def _set_item(items: Any, key: Any, value: Any) -> None:
    items[key] = value


_CHANGING: dict[str, Callable[..., Any]] = {
    "append": list.append,
    "extend": list.extend,
    "insert": list.insert,
    "remove": list.remove,
    "reverse": list.reverse,
    "sort": lambda items, reverse=False: items.sort(reverse=reverse),
    "pop": lambda items, *key: items.pop(*key),
    "clear": lambda items: items.clear(),
    "_set_item": _set_item,
    "__setitem__": _set_item,
    "setdefault": lambda items, *rest: items.setdefault(*rest),
    "update": dict.update,
    "popitem": dict.popitem,
    "Delete": lambda items, key: items.pop(key),
    "__delitem__": lambda items, key: items.pop(key),
}
# They take constant time.
_QUICK = ("append", "len", "_set_item", "__getitem__", "TupleIndex", "__not__", "__derive_index")
# They return their argument, and so accept unknown values.
_ANY: dict[str, Callable[..., Any]] = {
    "_unwrap_optional": lambda value: value,
    "unchecked_unwrap_optional": lambda value: value,
}
# They compare items, whose nesting may be deep.
_COMPARED = "eq ne lt le gt ge __contains__ index count remove sort sorted min max"
_COMPARING = frozenset(_COMPARED.split())


def is_operation(name: str) -> bool:
    """Whether there is an operation of this name on plain values."""
    return name in _PURE or name in _CHANGING or name in _ANY or name in ("__is__", "__isnot__")


def apply(name: str, arguments: list[Any], keywords: dict[str, Any], run: Run) -> Any:
    """Apply an operation on plain values.

    Raises:
        NoOperationError: There is none of this name.
    """
    if name in _ANY and len(arguments) == 1:
        return _ANY[name](*arguments)
    if name in ("__is__", "__isnot__") and len(arguments) == 2:
        return _is_same(*arguments, wanted=name == "__is__")
    function = _PURE.get(name) or _CHANGING.get(name)
    if function is None:
        raise NoOperationError
    if name in _CHANGING and arguments and isinstance(arguments[0], (list, dict)):
        run.touch(arguments[0])
        if len(arguments[0]) >= MAX_LENGTH:
            return Unknown("a list became too long")
    elif any(isinstance(value, Unknown) for value in arguments):
        return _unknown_result(name, arguments)
    if name in _COMPARING and has_unknown(arguments, run.spend):
        return UnknownNumber("a comparison of unknown values")
    if any(isinstance(value, dict) for value in arguments) and any(
        isinstance(value, tuple) for value in arguments
    ):
        return Unknown("a dictionary with keys that are not plain")
    if name not in _QUICK:
        run.spend(1 + sum(len(v) for v in arguments if isinstance(v, (list, str, dict))) // 8)
    try:
        result = function(*arguments, **keywords)
        return result if name in _QUICK else _bounded(result, run)
    except (ArithmeticError, ValueError, TypeError, LookupError, AttributeError):
        return UnknownNumber(f"{name} on values that it does not accept")


def _unknown_result(name: str, arguments: list[Any]) -> Unknown:
    first = next(value for value in arguments if isinstance(value, Unknown))
    is_open = isinstance(first, UnknownNumber) or name in (
        *("len", "eq", "ne", "lt", "le", "gt", "ge", "__not__", "__contains__", "int", "float"),
        *("bool", "Int", "Float", "Bool", "__and__", "__or__", "all", "any", "index", "count"),
    )
    return UnknownNumber(first.why) if is_open else first


def _is_same(one: Any, other: Any, *, wanted: bool) -> Any:
    if isinstance(one, Unknown) or isinstance(other, Unknown):
        known = other if isinstance(one, Unknown) else one
        if known is None and isinstance(one if known is other else other, UnknownNumber):
            return not wanted
        return UnknownNumber("whether two values are the same")
    # Texts and numbers have no identity in the code. Tuples have none either, but nested ones could
    # take forever to compare.
    if one is not other and isinstance(one, tuple) and isinstance(other, tuple):
        return UnknownNumber("whether two tuples are the same")
    same = one is other or (
        not isinstance(one, (list, dict, Tensor)) and type(one) is type(other) and one == other
    )
    return same is wanted


def _bounded(value: Any, run: Run) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and not -_LIMIT <= value < _LIMIT:
        return UnknownNumber("a number of more than 64 bits")
    if isinstance(value, (list, str, dict)):
        # A list may have an object for each letter of a text.
        run.spend(len(value) // (8 if isinstance(value, str) else 2))
        if len(value) > MAX_LENGTH:
            return Unknown("a list or a text became too long")
    return value
