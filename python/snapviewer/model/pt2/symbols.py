"""Dynamic sizes: expressions in symbols, evaluated for given sizes.

Expressions come as `Mul(Integer(2), Symbol('s77', positive=True, integer=True))`, from older
versions of torch as `2*s0`. They are parsed as Python and never run.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from math import prod

_MAX_CHARACTERS = 4096
_MAX_BITS = 256


class NotEvaluatedError(Exception):
    """An expression is not supported, or a symbol has no value."""


def symbol_of(expression: str) -> str | None:
    """Return the symbol of an expression that is only a symbol, else None.

    >>> symbol_of("Symbol('s77', positive=True, integer=True)"), symbol_of("2*s0")
    ('s77', None)
    """
    try:
        tree = _parsed(expression)
    except NotEvaluatedError:
        return None
    return _symbol(tree)


def symbols_of(expression: str) -> set[str]:
    """Return all symbols of an expression.

    >>> sorted(symbols_of("Add(Symbol('s1'), Mul(Integer(2), Symbol('s0')))"))
    ['s0', 's1']
    """
    try:
        tree = _parsed(expression)
    except NotEvaluatedError:
        return set()
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return {
        name
        for node in ast.walk(tree)
        if id(node) not in functions and (name := _symbol(node)) is not None
    }


def evaluate(expression: str, values: Mapping[str, int]) -> int:
    """Evaluate an expression.

    Raises:
        NotEvaluatedError: It cannot be evaluated.

    >>> evaluate("Add(Mul(Integer(2), Symbol('s7', integer=True)), Integer(-1))", {"s7": 4})
    7
    >>> evaluate("2*s0 + s1//3", {"s0": 4, "s1": 7})
    10
    """
    try:
        return _value(_parsed(expression), values)
    except (RecursionError, ZeroDivisionError) as error:
        raise NotEvaluatedError(str(error)) from None


def solve(expression: str, value: int, values: Mapping[str, int]) -> tuple[str, int] | None:
    """Solve for the single unknown symbol of an expression that is linear in it.

    >>> solve("2*s0 + 1", 9, {})
    ('s0', 4)
    """
    unknown = symbols_of(expression) - set(values)
    if len(unknown) != 1:
        return None
    (symbol,) = unknown
    try:
        at_0 = evaluate(expression, {**values, symbol: 0})
        slope = evaluate(expression, {**values, symbol: 1}) - at_0
        if slope == 0:
            return None
        found = (value - at_0) // slope
        is_right = evaluate(expression, {**values, symbol: found}) == value
    except NotEvaluatedError:
        return None
    return (symbol, found) if is_right else None


def _parsed(expression: str) -> ast.expr:
    if len(expression) > _MAX_CHARACTERS:
        raise NotEvaluatedError("the expression is too long")
    try:
        return ast.parse(expression, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise NotEvaluatedError("the expression cannot be parsed") from None


def _symbol(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    if node.func.id != "Symbol" or not node.args or not isinstance(node.args[0], ast.Constant):
        return None
    name = node.args[0].value
    return name if isinstance(name, str) else None


def _value(node: ast.AST, values: Mapping[str, int]) -> int:
    symbol = _symbol(node)
    if symbol is not None:
        if symbol not in values:
            raise NotEvaluatedError(f"{symbol} has no value")
        return values[symbol]
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return _small(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, values)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        function = _OPERATORS[type(node.op)]
        return _small(function(_value(node.left, values), _value(node.right, values)))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        named = _FUNCTIONS.get(node.func.id)
        if named is not None and node.args:
            arguments = [_value(argument, values) for argument in node.args]
            return _small(named(*arguments))
    raise NotEvaluatedError("the expression has unsupported parts")


def _small(value: int) -> int:
    if value.bit_length() > _MAX_BITS:
        raise NotEvaluatedError("the number is too large")
    return value


def _power(base: int, exponent: int = 1, *_: int) -> int:
    if not 0 <= exponent <= 64:
        raise NotEvaluatedError("the power is too high")
    return int(base**exponent)  # for the type checker: the exponent is not negative


def _quotient(numerator: int, divisor: int = 1, *_: int) -> int:
    return numerator // divisor


def _exact_quotient(numerator: int, divisor: int = 1, *_: int) -> int:
    if numerator % divisor:
        raise NotEvaluatedError("the quotient is not an integer")
    return numerator // divisor


def _remainder(numerator: int, divisor: int = 1, *_: int) -> int:
    return numerator % divisor


def _first(value: int, *_: int) -> int:
    return value


_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.FloorDiv: _quotient,
    ast.Div: _exact_quotient,
    ast.Mod: _remainder,
    ast.Pow: _power,
}
_FUNCTIONS: dict[str, Callable[..., int]] = {
    "Integer": _first,
    "Identity": _first,
    "Add": lambda *terms: sum(terms),
    "Mul": lambda *factors: prod(factors),
    "Pow": _power,
    "PowByNatural": _power,
    "FloorDiv": _quotient,
    "CleanDiv": _exact_quotient,
    "Mod": _remainder,
    "PythonMod": _remainder,
    "Max": lambda *values: max(values),
    "Min": lambda *values: min(values),
}
