"""Operations that create tensors, and those that change the types of elements."""

from __future__ import annotations

import math

from snapviewer.model.graph import TensorSpec, Unknown
from snapviewer.model.shapes.dimensions import ShapeError, Size, shape_of, whole
from snapviewer.model.shapes.dtypes import NUMBERS, dtype_name, result_type
from snapviewer.model.shapes.registry import Output, shape_function


def _factory_dtype(dtype: object) -> str:
    return "float32" if dtype is None else dtype_name(dtype)


def _listed(size: object) -> tuple[Size, ...]:
    if not isinstance(size, (list, tuple)):
        raise ShapeError("the sizes are unknown")
    return shape_of(size)


@shape_function("zeros ones empty rand randn empty_quantized empty_strided")
def _zeros(size: object, *rest: object, dtype: object = None, **named: object) -> Output:
    return TensorSpec(_listed(size), _factory_dtype(dtype))


@shape_function("full")
def _full(size: object, fill_value: object, *, dtype: object = None, **named: object) -> Output:
    return TensorSpec(_listed(size), dtype_name(dtype) or result_type([fill_value]))


@shape_function("zeros_like ones_like empty_like rand_like randn_like full_like randint_like")
def _like(self: TensorSpec, *rest: object, dtype: object = None, **named: object) -> Output:
    return TensorSpec(self.shape, dtype_name(dtype) or self.dtype)


@shape_function("new_zeros new_ones new_empty new_full new_empty_strided")
def _new(
    self: TensorSpec, size: object, *rest: object, dtype: object = None, **named: object
) -> Output:
    return TensorSpec(_listed(size), dtype_name(dtype) or self.dtype)


@shape_function("arange range")
def _arange(
    start: object,
    end: object = None,
    step: object = None,
    *,
    dtype: object = None,
    **named: object,
) -> Output:
    if end is None:
        start, end = 0, start
    step = 1 if step is None else step
    given = [start, end, step]
    kind = dtype_name(dtype) or ("float32" if any(isinstance(v, float) for v in given) else "int64")
    numbers = [v for v in given if isinstance(v, (int, float))]
    if len(numbers) < 3 or not all(math.isfinite(v) for v in numbers) or not numbers[2]:
        return TensorSpec((None,), kind)
    low, high, stride = numbers
    if all(isinstance(v, int) for v in numbers):
        count = -((int(low) - int(high)) // int(stride))
    else:
        count = math.ceil((high - low) / stride)
    return TensorSpec(shape_of([max(0, count)]), kind)


@shape_function("linspace logspace")
def _linspace(
    start: object, end: object, steps: object, *rest: object, dtype: object = None, **named: object
) -> Output:
    return TensorSpec((whole(steps),), _factory_dtype(dtype))


@shape_function("eye")
def _eye(n: object, m: object = None, *, dtype: object = None, **named: object) -> Output:
    return TensorSpec((whole(n), whole(n if m is None else m)), _factory_dtype(dtype))


@shape_function("randint")
def _randint(
    low: object, high: object, size: object = None, *, dtype: object = None, **named: object
) -> Output:
    sizes = high if size is None else size
    return TensorSpec(_listed(sizes), dtype_name(dtype) or "int64")


@shape_function("randperm")
def _randperm(n: object, *, dtype: object = None, **named: object) -> Output:
    return TensorSpec((whole(n),), dtype_name(dtype) or "int64")


@shape_function("tril_indices triu_indices")
def _tri(row: object, col: object, *rest: object, dtype: object = None, **named: object) -> Output:
    return TensorSpec((2, None), dtype_name(dtype) or "int64")


@shape_function("hann_window hamming_window blackman_window kaiser_window")
def _window(window_length: object, *rest: object, dtype: object = None, **named: object) -> Output:
    return TensorSpec((whole(window_length),), _factory_dtype(dtype))


@shape_function("tensor as_tensor scalar_tensor")
def _tensor(data: object, *, dtype: object = None, **named: object) -> Output:
    if isinstance(data, TensorSpec):
        return TensorSpec(data.shape, dtype_name(dtype) or data.dtype)
    shape: list[Size] = []
    leaf = data
    while isinstance(leaf, (list, tuple)):
        shape.append(len(leaf))
        if not leaf:
            break
        leaf = leaf[0]
    if isinstance(leaf, TensorSpec):
        return TensorSpec((*shape, *leaf.shape), dtype_name(dtype) or leaf.dtype)
    kept = "" if isinstance(leaf, Unknown) else result_type([leaf]) or "float32"
    return TensorSpec(tuple(shape), dtype_name(dtype) or kept)


@shape_function(
    "to _to_copy type cpu cuda to_mkldnn _autocast_to_full_precision prim::mkldnn_to_dense data "
    "prim::data to_sparse coalesce _nested_tensor_from_mask"
)
def _to(self: TensorSpec, *rest: object, dtype: object = None, **named: object) -> Output:
    # to(dtype, …), to(device, dtype, …) and to(other, …): types are integers, not booleans.
    for value in rest:
        if isinstance(value, TensorSpec):
            return TensorSpec(self.shape, value.dtype)
    if dtype is None:
        dtype = next((v for v in rest if isinstance(v, int) and not isinstance(v, bool)), None)
    return TensorSpec(self.shape, dtype_name(dtype) or self.dtype)


@shape_function("type_as")
def _type_as(self: TensorSpec, other: TensorSpec) -> Output:
    return TensorSpec(self.shape, other.dtype)


_CASTS = {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "bfloat16": "bfloat16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
    "bool": "bool",
}
for _short, _dtype in _CASTS.items():

    def _cast(self: TensorSpec, non_blocking: object = False, *, _to: str = _dtype) -> Output:
        return TensorSpec(self.shape, _to)

    shape_function(_short, f"_cast_{_short.capitalize()}")(_cast)


@shape_function("result_type")
def _result_type(one: object, other: object) -> Output:
    return NUMBERS.get(result_type([one, other]))
