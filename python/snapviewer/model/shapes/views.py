"""Views: the same elements, or some of them, in another shape; repetition and padding."""

from __future__ import annotations

from collections.abc import Sequence

from snapviewer.model.graph import TensorSpec
from snapviewer.model.shapes.dimensions import (
    Shape,
    ShapeError,
    Size,
    add,
    axes,
    axis,
    broadcast,
    divide,
    multiply,
    same,
    shape_of,
    whole,
)
from snapviewer.model.shapes.dtypes import complex_of, dtype_name, real_of
from snapviewer.model.shapes.registry import Output, shape_function


def with_size(spec: TensorSpec, place: int, *sizes: Size) -> TensorSpec:
    """Return a spec with one dimension replaced by none, one or more."""
    return TensorSpec((*spec.shape[:place], *sizes, *spec.shape[place + 1 :]), spec.dtype)


@shape_function("view", "reshape", "_unsafe_view", "_reshape_alias", "view_copy")
def _view(self: TensorSpec, size: object, *rest: object) -> Output:
    if isinstance(size, int) and not isinstance(size, bool) and not rest:
        return TensorSpec(self.shape, dtype_name(size))  # view(dtype) of the same width
    if not isinstance(size, (list, tuple)):
        return TensorSpec((None,), self.dtype)
    return TensorSpec(_filled_in([whole(item) for item in size], self.shape), self.dtype)


def _filled_in(wanted: Sequence[Size], shape: Shape) -> Shape:
    """Compute the size that was left open (-1), or the one that is unknown."""
    if wanted.count(-1) > 1:
        raise ShapeError("more than one size is left open")
    elements = multiply(shape)
    rest = multiply(size for size in wanted if size != -1)
    if -1 in wanted:
        if elements is not None and rest and elements % rest:
            raise ShapeError(f"{elements} elements do not fit {list(wanted)}")
        left = divide(elements, rest)
        return tuple(left if size == -1 else size for size in wanted)
    if rest is None and wanted.count(None) == 1:
        known = multiply(size for size in wanted if size is not None)
        return tuple(divide(elements, known) if size is None else size for size in wanted)
    same(elements, rest, "the numbers of elements differ")
    return shape_of(wanted)


@shape_function("view_as", "reshape_as")
def _view_as(self: TensorSpec, other: TensorSpec) -> Output:
    return TensorSpec(_filled_in(other.shape, self.shape), self.dtype)


@shape_function("flatten")
def _flatten(self: TensorSpec, start_dim: object = 0, end_dim: object = -1) -> Output:
    if not self.shape:
        return TensorSpec((1,), self.dtype)
    start, end = (axis(dim, len(self.shape)) for dim in (start_dim, end_dim))
    if start > end:
        raise ShapeError("flatten ends before it starts")
    middle = multiply(self.shape[start : end + 1])
    return TensorSpec((*self.shape[:start], middle, *self.shape[end + 1 :]), self.dtype)


@shape_function("ravel")
def _ravel(self: TensorSpec) -> Output:
    return TensorSpec((multiply(self.shape),), self.dtype)


@shape_function("unflatten")
def _unflatten(self: TensorSpec, dim: object, sizes: object) -> Output:
    place = axis(dim, len(self.shape))
    if not isinstance(sizes, (list, tuple)):
        raise ShapeError("the sizes are unknown")
    return with_size(self, place, *_filled_in([whole(s) for s in sizes], (self.shape[place],)))


@shape_function("permute", "permute_copy")
def _permute(self: TensorSpec, dims: object) -> Output:
    order = axes(dims, len(self.shape))
    if sorted(order) != list(range(len(self.shape))):
        raise ShapeError("the order of dimensions is not a permutation")
    return TensorSpec(tuple(self.shape[place] for place in order), self.dtype)


@shape_function("transpose", "swapaxes", "swapdims", "transpose_copy", "_mkldnn_transpose")
def _transpose(self: TensorSpec, dim0: object, dim1: object) -> Output:
    shape = list(self.shape)
    one, other = axis(dim0, len(shape)), axis(dim1, len(shape))
    if shape:
        shape[one], shape[other] = shape[other], shape[one]
    return TensorSpec(tuple(shape), self.dtype)


@shape_function("t", "numpy_T", "mT", "mH", "adjoint", "matrix_H", "t_copy")
def _t(self: TensorSpec) -> Output:
    if len(self.shape) < 2:
        return self
    return TensorSpec((*self.shape[:-2], self.shape[-1], self.shape[-2]), self.dtype)


@shape_function("movedim", "moveaxis")
def _movedim(self: TensorSpec, source: object, destination: object) -> Output:
    rank = len(self.shape)
    sources, targets = axes(source, rank), axes(destination, rank)
    others = iter(place for place in range(rank) if place not in sources)
    moved = dict(zip(targets, sources, strict=True))
    order = [moved[place] if place in moved else next(others) for place in range(rank)]
    return TensorSpec(tuple(self.shape[place] for place in order), self.dtype)


@shape_function("unsqueeze", "unsqueeze_copy")
def _unsqueeze(self: TensorSpec, dim: object) -> Output:
    place = axis(dim, len(self.shape) + 1)
    return TensorSpec((*self.shape[:place], 1, *self.shape[place:]), self.dtype)


@shape_function("squeeze", "squeeze_copy")
def _squeeze(self: TensorSpec, dim: object = None) -> Output:
    if dim is None and None in self.shape:
        raise ShapeError("which dimensions are removed is unknown")
    gone = set(axes(dim, len(self.shape)))
    kept = tuple(s for place, s in enumerate(self.shape) if s != 1 or place not in gone)
    return TensorSpec(kept, self.dtype)


@shape_function("expand", "broadcast_to", "expand_copy")
def _expand(self: TensorSpec, size: object, *, implicit: object = False) -> Output:
    if not isinstance(size, (list, tuple)):
        raise ShapeError("the sizes are unknown")
    if len(size) < len(self.shape):
        raise ShapeError("expand cannot remove dimensions")
    old: Shape = (1,) * (len(size) - len(self.shape)) + self.shape
    kept = [o if whole(s) == -1 else whole(s) for s, o in zip(size, old, strict=True)]
    result = broadcast(kept, old)
    # A requested size of 1 does not expand to the old size.
    for wanted, got in zip(kept, result, strict=True):
        same(wanted, got, "a size cannot be expanded")
    return TensorSpec(shape_of(result), self.dtype)


@shape_function("expand_as")
def _expand_as(self: TensorSpec, other: TensorSpec) -> Output:
    return _expand(self, other.shape)


@shape_function("repeat", "tile")
def _repeat(self: TensorSpec, repeats: object) -> Output:
    given = [whole(item) for item in repeats] if isinstance(repeats, (list, tuple)) else []
    counts: Shape = (*((1,) * (len(self.shape) - len(given))), *given)
    old: Shape = (1,) * (len(counts) - len(self.shape)) + self.shape
    return TensorSpec(
        shape_of([multiply(pair) for pair in zip(old, counts, strict=True)]), self.dtype
    )


@shape_function("repeat_interleave")
def _repeat_interleave(
    self: TensorSpec, repeats: object = None, dim: object = None, *, output_size: object = None
) -> Output:
    if repeats is None:
        return TensorSpec((whole(output_size),), "int64")
    flat = self if dim is not None else TensorSpec((multiply(self.shape),), self.dtype)
    place = axis(dim if dim is not None else 0, len(flat.shape))
    is_one = isinstance(repeats, int)
    grown = multiply((flat.shape[place], whole(repeats))) if is_one else whole(output_size)
    return with_size(flat, place, grown)


@shape_function("select", "select_copy")
def _select(self: TensorSpec, dim: object, index: object) -> Output:
    if not self.shape:
        raise ShapeError("a number has no parts to select")
    place, number = axis(dim, len(self.shape)), whole(index)
    size = self.shape[place]
    if number is not None and size is not None and not -size <= number < size:
        raise ShapeError(f"there is no element {number} among {size}")
    return with_size(self, place)


@shape_function("slice", "slice_copy")
def _slice(
    self: TensorSpec,
    dim: object = 0,
    start: object = None,
    end: object = None,
    step: object = 1,
) -> Output:
    place = axis(dim, len(self.shape))
    if not self.shape:
        raise ShapeError("a number cannot be sliced")
    size, stride = self.shape[place], whole(step)
    unknown = any(v is not None and whole(v) is None for v in (start, end))
    if size is None or stride is None or unknown:
        whole_kept = start in (None, 0) and end is None and step == 1
        return with_size(self, place, size if whole_kept else None)
    if stride <= 0:
        raise ShapeError("a slice must go forwards")
    return with_size(
        self, place, len(range(*slice(whole(start), whole(end), stride).indices(size)))
    )


@shape_function("narrow", "narrow_copy")
def _narrow(self: TensorSpec, dim: object, start: object, length: object) -> Output:
    return with_size(self, axis(dim, len(self.shape)), whole(length))


@shape_function("unfold")
def _unfold(self: TensorSpec, dimension: object, size: object, step: object) -> Output:
    place, width, stride = axis(dimension, len(self.shape)), whole(size), whole(step)
    length = self.shape[place] if self.shape else 1
    if length is None or width is None or not stride:
        turns: Size = None
    else:
        turns = (length - width) // stride + 1
    return TensorSpec((*with_size(self, place, turns).shape, width), self.dtype)


@shape_function("as_strided", "as_strided_copy")
def _as_strided(self: TensorSpec, size: object, *rest: object) -> Output:
    return TensorSpec(shape_of(size), self.dtype)


@shape_function("diagonal", "linalg_diagonal")
def _diagonal(self: TensorSpec, offset: object = 0, dim1: object = 0, dim2: object = 1) -> Output:
    one, other = axis(dim1, len(self.shape)), axis(dim2, len(self.shape))
    shift = whole(offset)
    rows, columns = self.shape[one], self.shape[other]
    length: Size = None
    if shift is not None and rows is not None and columns is not None:
        length = max(0, min(rows, columns - shift) if shift >= 0 else min(rows + shift, columns))
    kept = [s for place, s in enumerate(self.shape) if place not in (one, other)]
    return TensorSpec((*kept, length), self.dtype)


@shape_function("diag")
def _diag(self: TensorSpec, diagonal: object = 0) -> Output:
    if len(self.shape) == 2:
        return _diagonal(self, diagonal)
    side = add(self.shape[0], abs(whole(diagonal) or 0))
    return TensorSpec((side, side), self.dtype)


@shape_function("diag_embed")
def _diag_embed(self: TensorSpec, offset: object = 0, *rest: object) -> Output:
    side = add(self.shape[-1], abs(whole(offset) or 0))
    return TensorSpec((*self.shape[:-1], side, side), self.dtype)


@shape_function("rot90")
def _rot90(self: TensorSpec, k: object = 1, dims: object = (0, 1)) -> Output:
    turned = (whole(k) or 0) % 2 and isinstance(dims, (list, tuple)) and len(dims) == 2
    return _transpose(self, *dims) if turned and isinstance(dims, (list, tuple)) else self


@shape_function("view_as_real")
def _view_as_real(self: TensorSpec) -> Output:
    return TensorSpec((*self.shape, 2), real_of(self.dtype))


@shape_function("view_as_complex")
def _view_as_complex(self: TensorSpec) -> Output:
    return TensorSpec(self.shape[:-1], complex_of(self.dtype))


@shape_function("pixel_shuffle")
def _pixel_shuffle(self: TensorSpec, upscale_factor: object) -> Output:
    factor = whole(upscale_factor)
    *front, channels, height, width = self.shape
    area = multiply((factor, factor))
    scaled = (multiply((height, factor)), multiply((width, factor)))
    return TensorSpec((*front, divide(channels, area), *scaled), self.dtype)


@shape_function("pixel_unshuffle")
def _pixel_unshuffle(self: TensorSpec, downscale_factor: object) -> Output:
    factor = whole(downscale_factor)
    *front, channels, height, width = self.shape
    area = multiply((channels, factor, factor))
    return TensorSpec((*front, area, divide(height, factor), divide(width, factor)), self.dtype)


@shape_function(
    "pad constant_pad_nd reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d "
    "replication_pad2d replication_pad3d"
)
def _pad(self: TensorSpec, pad: object, *rest: object, **named: object) -> Output:
    if not isinstance(pad, (list, tuple)):
        raise ShapeError("the padding is unknown")
    if len(pad) > 2 * len(self.shape) or len(pad) % 2:
        raise ShapeError(f"{len(pad)} paddings do not fit {len(self.shape)} dimensions")
    shape = list(self.shape)
    for pair in range(len(pad) // 2):
        sides = (whole(pad[2 * pair]), whole(pad[2 * pair + 1]))
        shape[-1 - pair] = add(shape[-1 - pair], *sides)
    return TensorSpec(shape_of(shape), self.dtype)
