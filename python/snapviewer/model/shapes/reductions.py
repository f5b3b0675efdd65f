"""Reductions: operations that compute one element from many."""

from __future__ import annotations

from collections.abc import Callable

from snapviewer.model.graph import TensorSpec
from snapviewer.model.shapes.dimensions import Shape, ShapeError, add, axes, axis, broadcast, whole
from snapviewer.model.shapes.dtypes import dtype_name, float_of, is_integral, real_of, result_type
from snapviewer.model.shapes.registry import Output, ShapeFunction, shape_function
from snapviewer.model.shapes.views import with_size


def reduced(shape: Shape, dims: object, keepdim: object) -> Shape:
    """Return a shape without some of its dimensions, or with 1 in their place."""
    gone = set(axes(dims, len(shape)))
    if keepdim is True or keepdim == 1:
        return tuple(1 if place in gone else size for place, size in enumerate(shape))
    return tuple(size for place, size in enumerate(shape) if place not in gone)


def _dims(dim: object) -> object:
    # sum(x, dtype=…) has no dimensions; a bool is a later argument of another overload.
    return None if isinstance(dim, bool) else dim


def _reduction(dtype_of: Callable[[str], str]) -> ShapeFunction:
    """Return the shape function of reductions whose outputs have a type that depends on theirs."""

    def shape(
        self: TensorSpec, dim: object = None, keepdim: object = False, *, dtype: object = None
    ) -> Output:
        kept = dtype_name(dtype) or dtype_of(self.dtype)
        return TensorSpec(reduced(self.shape, _dims(dim), keepdim), kept)

    return shape


def _sum_type(dtype: str) -> str:
    return "int64" if is_integral(dtype) else dtype


for _ops, _dtype_of in (
    ("sum nansum prod", _sum_type),
    ("mean nanmean amax amin", str),
    ("logsumexp special_logsumexp", float_of),
    ("all any", lambda dtype: "uint8" if dtype == "uint8" else "bool"),
    ("argmax argmin count_nonzero", lambda _: "int64"),
):
    shape_function(_ops)(_reduction(_dtype_of))


@shape_function("max min median nanmedian mode")
def _max(self: TensorSpec, dim: object = None, keepdim: object = False) -> Output:
    if dim is None:
        return TensorSpec((), self.dtype)
    if isinstance(dim, TensorSpec):
        return TensorSpec(broadcast(self.shape, dim.shape), result_type([self, dim]))
    picked = TensorSpec(reduced(self.shape, axis(dim, len(self.shape)), keepdim), self.dtype)
    return (picked, TensorSpec(picked.shape, "int64"))


@shape_function("aminmax")
def _aminmax(self: TensorSpec, *, dim: object = None, keepdim: object = False) -> Output:
    spec = TensorSpec(reduced(self.shape, dim, keepdim), self.dtype)
    return (spec, spec)


@shape_function("std var")
def _std(
    self: TensorSpec,
    dim: object = None,
    unbiased: object = True,
    keepdim: object = False,
    **named: object,
) -> TensorSpec:
    return TensorSpec(reduced(self.shape, _dims(dim), keepdim), real_of(self.dtype))


@shape_function("var_mean std_mean")
def _var_mean(self: TensorSpec, *rest: object, **named: object) -> Output:
    deviation = _std(self, *rest, **named)
    return (deviation, TensorSpec(deviation.shape, self.dtype))


@shape_function("norm linalg_vector_norm linalg_norm frobenius_norm")
def _norm(
    self: TensorSpec,
    p: object = 2,
    dim: object = None,
    keepdim: object = False,
    *,
    dtype: object = None,
    **named: object,
) -> Output:
    kept = real_of(dtype_name(dtype) or self.dtype)
    return TensorSpec(reduced(self.shape, dim, keepdim), kept)


@shape_function("quantile nanquantile")
def _quantile(
    self: TensorSpec,
    q: object,
    dim: object = None,
    keepdim: object = False,
    *,
    interpolation: object = "linear",
) -> Output:
    front = q.shape if isinstance(q, TensorSpec) else ()
    return TensorSpec((*front, *reduced(self.shape, dim, keepdim)), self.dtype)


@shape_function("diff")
def _diff(
    self: TensorSpec,
    n: object = 1,
    dim: object = -1,
    prepend: object = None,
    append: object = None,
) -> Output:
    place, times = axis(dim, len(self.shape)), whole(n)
    ends = [end.shape[place] for end in (prepend, append) if isinstance(end, TensorSpec)]
    size = add(self.shape[place], *ends)
    left = None if size is None or times is None else max(0, size - times)
    kept = "bool" if self.dtype == "bool" else result_type([self, prepend, append])
    return TensorSpec(with_size(self, place, left).shape, kept)


@shape_function("histc")
def _histc(self: TensorSpec, bins: object = 100, *rest: object, **named: object) -> Output:
    return TensorSpec((whole(bins),), self.dtype)


@shape_function("trace")
def _trace(self: TensorSpec) -> Output:
    return TensorSpec((), self.dtype)


@shape_function("cross_entropy_loss nll_loss nll_loss_nd kl_div ctc_loss")
def _loss(self: TensorSpec, *rest: object, **named: object) -> Output:
    if len(rest) > 2 and rest[2] == 0:
        raise ShapeError("a loss for each element is not supported")
    return TensorSpec((), self.dtype)
