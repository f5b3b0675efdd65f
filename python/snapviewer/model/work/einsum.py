"""Einstein sums, as the pairwise products into which torch splits them, from left to right.

A label that only one of two operands has, and that is not needed later, is summed before they are
multiplied. Two operands that share a label that is not needed later are a matrix product; all
others are multiplied element-wise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from snapviewer.model.work.registry import Call, Work, register
from snapviewer.model.work.sizes import NotKnownError, whole_shape

_MAX_OPERANDS = 64


@dataclass(frozen=True, slots=True)
class Contraction:
    """The work of an Einstein sum."""

    macs: int
    other_flops: int


@register("einsum", "equation tensors path", kind="MatMul")
def _einsum(call: Call) -> Work:
    equation = call.value("equation")
    if not isinstance(equation, str):
        raise NotKnownError("its equation is unknown")
    operands = call.value("tensors")
    if not isinstance(operands, tuple) or len(call.tensors("tensors")) != len(operands):
        raise NotKnownError("the shapes of its operands are unknown")
    shapes = [whole_shape(spec) for spec in call.tensors("tensors")]
    done = contract(equation, shapes, path=call.integers("path"))
    return call.work(macs=done.macs, other_flops=done.other_flops)


def contract(
    equation: str, shapes: Sequence[tuple[int, ...]], *, path: tuple[int, ...] = ()
) -> Contraction:
    """Count an Einstein sum.

    Args:
        equation: Such as `bij,bjk->bik`, with or without the right side, with `...` or not.
        shapes: Those of the operands.
        path: Pairs of operands to multiply next, as in torch; from left to right if empty.

    >>> contract("bij,bjk->bik", [(4, 16, 32), (4, 32, 32)])
    Contraction(macs=65536, other_flops=0)
    """
    if len(shapes) > _MAX_OPERANDS or len(equation) > 10_000:
        raise NotKnownError("its equation is too long")
    left, arrow, right = equation.replace(" ", "").partition("->")
    parts = left.split(",")
    if len(parts) != len(shapes):
        raise ValueError("the equation has another number of operands")
    operands = [_sizes(part, shape) for part, shape in zip(parts, shapes, strict=True)]
    output = _labels(right, operands) if arrow else _implied(left, operands)
    return _multiply(operands, output, list(path))


def _sizes(part: str, shape: tuple[int, ...]) -> dict[str, int]:
    """Return the size of each label of an operand; those of `...` count from the right."""
    before, dots, after = part.partition("...")
    hidden = len(shape) - len(before) - len(after)
    if hidden < 0 or (hidden and not dots):
        raise ValueError("the equation has another number of dimensions")
    labels = [*before, *(f"...{hidden - index}" for index in range(hidden)), *after]
    return dict(zip(labels, shape, strict=True))


def _labels(text: str, operands: list[dict[str, int]]) -> set[str]:
    labels = set(text.replace("...", ""))
    return labels | _hidden(operands) if "..." in text else labels


def _hidden(operands: list[dict[str, int]]) -> set[str]:
    return {label for operand in operands for label in operand if label.startswith("...")}


def _implied(left: str, operands: list[dict[str, int]]) -> set[str]:
    """Return the labels of an implicit output: those that occur once."""
    times = Counter(left.replace("...", "").replace(",", ""))
    return {label for label, count in times.items() if count == 1} | _hidden(operands)


def _multiply(operands: list[dict[str, int]], output: set[str], path: list[int]) -> Contraction:
    macs = other = 0
    while len(operands) > 1:
        first, second = (path.pop(0), path.pop(0)) if len(path) > 1 else (0, 1)
        chosen = operands[first], operands[second]
        rest = [one for index, one in enumerate(operands) if index not in (first, second)]
        needed = output | {label for one in rest for label, size in one.items() if size != 1}
        one, two, sums = _sum_lone_labels(*chosen, needed)
        other += sums
        met = {label: max(one.get(label, 1), two.get(label, 1)) for label in {*one, *two}}
        size = prod(met.values())
        shared = {label for label in one if label in two and one[label] != 1 != two[label]}
        if shared - needed:
            macs += size
        else:
            other += size
        result = {label: size for label, size in met.items() if label in needed}
        operands = [result, *rest] if not path else [*rest, result]
    if operands and set(operands[0]) - output:
        other += prod(operands[0].values())
    return Contraction(macs, other)


def _sum_lone_labels(
    one: dict[str, int], two: dict[str, int], needed: set[str]
) -> tuple[dict[str, int], dict[str, int], int]:
    """Sum the labels that only one operand has and nothing needs; return both and the additions."""
    additions = 0
    results = []
    for mine, others in ((one, two), (two, one)):
        lone = {
            label
            for label, size in mine.items()
            if label not in needed and size != 1 and others.get(label, 1) == 1
        }
        additions += prod(mine.values()) if lone else 0
        results.append({label: size for label, size in mine.items() if label not in lone})
    return results[0], results[1], additions
