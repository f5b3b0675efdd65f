"""The sizes of tensors that are known only by their shapes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from snapviewer.model.graph import TensorSpec, Unknown, Value
from snapviewer.text.units import format_shape

MAX_VALUES = 100_000
"""How many values one operation may have: nested tuples of a hostile file can have 2⁶⁰."""

ASSUMED_BITS = 32
"""The bits of an element of unknown type."""

_WORDS = {"bool": 8, "half": 16, "float": 32, "double": 64, "quint4x2": 4, "quint2x4": 2}


class NotKnownError(Exception):
    """A shape or an argument that a formula needs is unknown; the message says which."""


def bits_of(dtype: str) -> int | None:
    """Return the bits of an element, or None if the type is unknown.

    >>> bits_of("float32"), bits_of("complex64"), bits_of("float8_e4m3fn"), bits_of("quint4x2")
    (32, 64, 8, 4)
    """
    name = dtype.removeprefix("torch.")
    if name in _WORDS:
        return _WORDS[name]
    digits = re.fullmatch(r"(q?u?int|b?float|complex|bits)([0-9]{1,3})(_[a-z0-9_]+|x[248])?", name)
    if digits is None:
        return None
    # An `int4` and a pair of `float4` take a byte each in torch; a lone `float4` has four bits.
    is_byte = "int" in digits[1] or digits[1] == "bits" or name.endswith("_x2")
    return max(int(digits[2]), 8) if is_byte else int(digits[2])


def elements_of(spec: TensorSpec) -> int:
    """Return the number of elements of a tensor.

    >>> elements_of(TensorSpec((2, 3), "float32"))
    6
    """
    return prod(whole_shape(spec))


def whole_shape(spec: TensorSpec) -> tuple[int, ...]:
    """Return a shape without unknown dimensions, or raise `NotKnownError`."""
    shape = tuple(size for size in spec.shape if size is not None and size >= 0)
    if len(shape) != len(spec.shape):
        shown = format_shape(spec.shape[:16])
        raise NotKnownError(f"the size of a dimension is unknown ({shown})")
    return shape


def bytes_of(spec: TensorSpec) -> int:
    """Return the bytes of the elements of a tensor, packed ones rounded up.

    >>> bytes_of(TensorSpec((3, 5), "float16"))
    30
    """
    return -(-elements_of(spec) * (bits_of(spec.dtype) or ASSUMED_BITS) // 8)


def flatten(values: tuple[Value, ...]) -> Iterator[Value]:
    """Yield the values inside nested tuples, in order."""
    waiting: list[Value] = list(reversed(values))
    steps = 0
    while waiting:
        steps += 1
        if steps > MAX_VALUES:
            raise NotKnownError(f"it has more than {MAX_VALUES:,} values")
        value = waiting.pop()
        if isinstance(value, tuple):
            waiting.extend(reversed(value))
        else:
            yield value


def tensors_in(values: tuple[Value, ...]) -> list[TensorSpec]:
    """Return the tensors inside nested tuples, in order."""
    return [value for value in flatten(values) if isinstance(value, TensorSpec)]


def has_unknown(values: tuple[Value, ...]) -> bool:
    """Return whether a value inside nested tuples is unknown."""
    return any(isinstance(value, Unknown) for value in flatten(values))
