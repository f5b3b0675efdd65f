"""The types of elements, and type promotion.

The rules are those of torch: a tensor with dimensions has priority over one without, and that over
a plain number; the priority yields only to a higher kind (bool, integer, real, complex).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from snapviewer.model.graph import TensorSpec

# The numbers of the types in TorchScript.
DTYPES = {
    0: "uint8",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "float16",
    6: "float32",
    7: "float64",
    8: "complex32",
    9: "complex64",
    10: "complex128",
    11: "bool",
    12: "qint8",
    13: "quint8",
    14: "qint32",
    15: "bfloat16",
    16: "quint4x2",
    17: "quint2x4",
    23: "float8_e5m2",
    24: "float8_e4m3fn",
    25: "float8_e5m2fnuz",
    26: "float8_e4m3fnuz",
    27: "uint16",
    28: "uint32",
    29: "uint64",
}
NUMBERS = {name: number for number, name in DTYPES.items()}

_INTEGERS = {"uint8": 8, "int8": 8, "int16": 16, "int32": 32, "int64": 64}
_UNSIGNED = {"uint16": 16, "uint32": 32, "uint64": 64}
_REALS = {"float16": 16, "bfloat16": 16, "float32": 32, "float64": 64}
_COMPLEX = {"complex32": 32, "complex64": 64, "complex128": 128}
_REAL_OF = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
_COMPLEX_OF = {
    "float16": "complex32",
    "bfloat16": "complex64",
    "float32": "complex64",
    "float64": "complex128",
}


def dtype_name(dtype: object) -> str:
    """Return the name of a type given by its TorchScript number or its name; empty if unknown.

    >>> dtype_name(6), dtype_name("int64"), dtype_name(None)
    ('float32', 'int64', '')
    """
    if isinstance(dtype, int):
        return DTYPES.get(dtype, "")
    return dtype if isinstance(dtype, str) else ""


def is_real(dtype: str) -> bool:
    """Whether elements are real numbers, not integers."""
    return dtype in _REALS or dtype.startswith("float")


def is_complex(dtype: str) -> bool:
    """Whether elements are complex numbers."""
    return dtype in _COMPLEX


def is_integral(dtype: str) -> bool:
    """Whether elements are integers or booleans."""
    return dtype in _INTEGERS or dtype in _UNSIGNED or dtype == "bool"


def real_of(dtype: str) -> str:
    """Return the type of the parts of a complex number."""
    return _REAL_OF.get(dtype, dtype)


def complex_of(dtype: str) -> str:
    """Return the complex type whose parts have a type."""
    return _COMPLEX_OF.get(dtype, dtype)


def float_of(dtype: str) -> str:
    """Return the result type of a function such as the sine: integers become float32."""
    return "float32" if is_integral(dtype) else dtype


def promote(one: str, other: str) -> str:
    """Return the smallest type that holds both.

    >>> promote("uint8", "int8"), promote("int64", "float16"), promote("float16", "bfloat16")
    ('int16', 'float16', 'float32')
    """
    if one == other:
        return one
    low, high = sorted((one, other), key=_rank)
    if _rank(low) < 0:
        return ""
    if is_complex(high):
        wide = low if is_complex(low) else complex_of(low) if is_real(low) else high
        return max(wide, high, key=lambda name: _COMPLEX.get(name, 0))
    if is_real(high):
        if not is_real(low):
            return high
        is_tie = _REALS.get(low, 8) == _REALS.get(high, 8)
        return "float32" if is_tie else high
    if low == "bool":
        return high
    if "uint8" in (low, high):
        other = low if high == "uint8" else high
        return "int16" if _INTEGERS.get(other, 0) == 8 else other
    return high


def result_type(values: Iterable[object]) -> str:
    """Return the type of an element-wise operation on tensors and numbers.

    >>> result_type([TensorSpec((2,), "int32"), TensorSpec((), "int64"), 1])
    'int32'
    >>> result_type([TensorSpec((2,), "int32"), 1.5])
    'float32'
    """
    with_dims: list[str] = []
    without_dims: list[str] = []
    numbers: list[str] = []
    for value in values:
        if isinstance(value, TensorSpec):
            (with_dims if value.shape else without_dims).append(value.dtype)
        elif isinstance(value, bool):
            numbers.append("bool")
        elif isinstance(value, int):
            numbers.append("int64")
        elif isinstance(value, float):
            numbers.append("float32")
        elif isinstance(value, complex):
            numbers.append("complex64")
    weights = [reduce(promote, names) if names else None for names in (with_dims, without_dims)]
    light = reduce(promote, numbers) if numbers else None
    return _heavier(weights[0], _heavier(weights[1], light)) or ""


def _heavier(heavy: str | None, light: str | None) -> str | None:
    if heavy is None or light is None:
        return light if heavy is None else heavy
    if not heavy or is_complex(heavy):
        return heavy
    if is_real(heavy):
        return complex_of(heavy) if is_complex(light) else heavy
    if heavy == "bool" or is_real(light) or is_complex(light):
        return promote(heavy, light)
    return heavy


def _rank(dtype: str) -> int:
    if dtype == "bool":
        return 0
    if dtype in _INTEGERS or dtype in _UNSIGNED:
        return 100 + _INTEGERS.get(dtype, _UNSIGNED.get(dtype, 0))
    if is_real(dtype):
        return 1000 + _REALS.get(dtype, 8)
    return 10_000 + _COMPLEX[dtype] if dtype in _COMPLEX else -1
