"""Operations that make one element of many."""

from __future__ import annotations

from snapviewer.model.graph import TensorSpec
from snapviewer.model.shapes.dimensions import Shape, ShapeError, add, axes, axis, broadcast
from snapviewer.model.shapes.dtypes import dtype_name, float_of, is_integral, real_of, result_type
from snapviewer.model.shapes.registry import Output, shape_function
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


@shape_function("sum", "nansum")
def _sum(
    self: TensorSpec, dim: object = None, keepdim: object = False, *, dtype: object = None
) -> Output:
    kept = "int64" if is_integral(self.dtype) else self.dtype
    return TensorSpec(reduced(self.shape, _dims(dim), keepdim), dtype_name(dtype) or kept)


@shape_function("mean", "nanmean")
def _mean(
    self: TensorSpec, dim: object = None, keepdim: object = False, *, dtype: object = None
) -> Output:
    return TensorSpec(reduced(self.shape, _dims(dim), keepdim), dtype_name(dtype) or self.dtype)


@shape_function("prod")
def _prod(
    self: TensorSpec, dim: object = None, keepdim: object = False, *, dtype: object = None
) -> Output:
    return _sum(self, dim, keepdim, dtype=dtype)


@shape_function("amax", "amin")
def _amax(self: TensorSpec, dim: object = None, keepdim: object = False) -> Output:
    return TensorSpec(reduced(self.shape, dim, keepdim), self.dtype)


@shape_function("logsumexp", "special_logsumexp")
def _logsumexp(self: TensorSpec, dim: object, keepdim: object = False) -> Output:
    return TensorSpec(reduced(self.shape, dim, keepdim), float_of(self.dtype))


@shape_function("all", "any")
def _all(self: TensorSpec, dim: object = None, keepdim: object = False) -> Output:
    kept = "uint8" if self.dtype == "uint8" else "bool"
    return TensorSpec(reduced(self.shape, _dims(dim), keepdim), kept)


@shape_function("argmax", "argmin")
def _argmax(self: TensorSpec, dim: object = None, keepdim: object = False) -> Output:
    return TensorSpec(reduced(self.shape, dim, keepdim), "int64")


@shape_function("max", "min", "median", "nanmedian", "mode")
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


@shape_function("std", "var")
def _std(
    self: TensorSpec,
    dim: object = None,
    unbiased: object = True,
    keepdim: object = False,
    *,
    correction: object = None,
) -> Output:
    return TensorSpec(reduced(self.shape, _dims(dim), keepdim), real_of(self.dtype))


@shape_function("var_mean", "std_mean")
def _var_mean(
    self: TensorSpec,
    dim: object = None,
    unbiased: object = True,
    keepdim: object = False,
    *,
    correction: object = None,
) -> Output:
    shape = reduced(self.shape, _dims(dim), keepdim)
    return (TensorSpec(shape, real_of(self.dtype)), TensorSpec(shape, self.dtype))


@shape_function("norm")
def _norm(
    self: TensorSpec,
    p: object = 2,
    dim: object = None,
    keepdim: object = False,
    *,
    dtype: object = None,
) -> Output:
    kept = real_of(dtype_name(dtype) or self.dtype)
    return TensorSpec(reduced(self.shape, dim, keepdim), kept)


@shape_function("linalg_vector_norm", "linalg_norm", "frobenius_norm")
def _vector_norm(
    self: TensorSpec,
    ord: object = 2,  # noqa: A002
    dim: object = None,
    keepdim: object = False,
    *,
    dtype: object = None,
) -> Output:
    return _norm(self, ord, dim, keepdim, dtype=dtype)


@shape_function("count_nonzero")
def _count_nonzero(self: TensorSpec, dim: object = None) -> Output:
    return TensorSpec(reduced(self.shape, dim, False), "int64")


@shape_function("quantile", "nanquantile")
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
    if not isinstance(n, int):
        raise ShapeError("its length is not known")
    place = axis(dim, len(self.shape))
    parts = [part for part in (prepend, self, append) if isinstance(part, TensorSpec)]
    if not self.shape or any(len(part.shape) != len(self.shape) for part in parts):
        raise ShapeError("its length is not known")
    size = add(*(part.shape[place] for part in parts))
    return with_size(self, place, None if size is None else max(0, size - n))


@shape_function("trace")
def _trace(self: TensorSpec) -> Output:
    return TensorSpec((), self.dtype)


@shape_function("cross_entropy_loss", "nll_loss", "nll_loss_nd", "kl_div", "ctc_loss")
def _loss(self: TensorSpec, *rest: object, **named: object) -> Output:
    if len(rest) > 2 and rest[2] == 0:
        raise ShapeError("a loss for each element is not followed")
    return TensorSpec((), self.dtype)
