"""Operations that look at the same elements in another shape, cut them up or put them together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

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
    tensors_in,
    whole,
)
from snapviewer.model.shapes.dtypes import complex_of, dtype_name, real_of, result_type
from snapviewer.model.shapes.registry import Output, shape_function

_MOST_PARTS = 100_000


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
    """Work out the size that was left open (-1), or the one that is not known."""
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
        raise ShapeError("the sizes are not known")
    return with_size(self, place, *_filled_in([whole(s) for s in sizes], (self.shape[place],)))


@shape_function("permute", "permute_copy")
def _permute(self: TensorSpec, dims: object) -> Output:
    order = axes(dims, len(self.shape))
    if sorted(order) != list(range(len(self.shape))):
        raise ShapeError("the order of dimensions is no permutation")
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
        raise ShapeError("which dimensions vanish is not known")
    gone = set(axes(dim, len(self.shape)))
    kept = tuple(s for place, s in enumerate(self.shape) if s != 1 or place not in gone)
    return TensorSpec(kept, self.dtype)


@shape_function("expand", "broadcast_to", "expand_copy")
def _expand(self: TensorSpec, size: object, *, implicit: object = False) -> Output:
    if not isinstance(size, (list, tuple)):
        raise ShapeError("the sizes are not known")
    if len(size) < len(self.shape):
        raise ShapeError("expand cannot take away dimensions")
    old: Shape = (1,) * (len(size) - len(self.shape)) + self.shape
    kept = [o if whole(s) == -1 else whole(s) for s, o in zip(size, old, strict=True)]
    result = broadcast(kept, old)
    # Stretching only goes one way: a size of 1 that is asked for does not stretch to the old one.
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


def _parts(spec: TensorSpec, place: int, sizes: Sequence[Size]) -> Output:
    if len(sizes) > _MOST_PARTS:
        raise ShapeError(f"{len(sizes)} parts are too many to follow")
    return [with_size(spec, place, size) for size in sizes]


@shape_function("chunk", "unsafe_chunk")
def _chunk(self: TensorSpec, chunks: object, dim: object = 0) -> Output:
    place, count = axis(dim, len(self.shape)), whole(chunks)
    size = self.shape[place]
    if not count or count < 0:
        raise ShapeError("the number of chunks is not known")
    if size is None:
        return _parts(self, place, [None] * min(count, _MOST_PARTS + 1))
    if size == 0:
        return _parts(self, place, [0] * min(count, _MOST_PARTS + 1))
    return _split(self, -(-size // count), dim)


@shape_function("split", "unsafe_split", "split_copy")
def _split(self: TensorSpec, split_size: object, dim: object = 0) -> Output:
    if isinstance(split_size, (list, tuple)):
        return _split_with_sizes(self, split_size, dim)
    place, part = axis(dim, len(self.shape)), whole(split_size)
    size = self.shape[place]
    if size is None or part is None:
        raise ShapeError("the number of parts is not known")
    if part <= 0:
        return [self]
    if size // part > _MOST_PARTS:
        raise ShapeError(f"{size // part} parts are too many to follow")
    return _parts(self, place, [min(part, size - at) for at in range(0, size, part)] or [0])


@shape_function("split_with_sizes", "unsafe_split_with_sizes", "split_with_sizes_copy")
def _split_with_sizes(self: TensorSpec, split_sizes: object, dim: object = 0) -> Output:
    if not isinstance(split_sizes, (list, tuple)):
        raise ShapeError("the number of parts is not known")
    place = axis(dim, len(self.shape))
    sizes = [whole(size) for size in split_sizes]
    same(add(*sizes), self.shape[place], "the parts do not add up")
    return _parts(self, place, sizes)


@shape_function("tensor_split")
def _tensor_split(self: TensorSpec, indices_or_sections: object, dim: object = 0) -> Output:
    place = axis(dim, len(self.shape))
    size = self.shape[place]
    if isinstance(indices_or_sections, int) and size is not None:
        count = indices_or_sections
        if not 0 < count <= _MOST_PARTS:
            raise ShapeError("the number of parts is not known")
        return _parts(self, place, [size // count + (at < size % count) for at in range(count)])
    if isinstance(indices_or_sections, (list, tuple)) and size is not None:
        cuts = [0, *(whole(cut) or 0 for cut in indices_or_sections), size]
        kept = [len(range(size)[a:b]) for a, b in pairwise(cuts)]
        return _parts(self, place, kept)
    raise ShapeError("the number of parts is not known")


@shape_function("unbind", "unbind_copy")
def _unbind(self: TensorSpec, dim: object = 0) -> Output:
    place = axis(dim, len(self.shape))
    size = self.shape[place] if self.shape else None
    if size is None or size > _MOST_PARTS:
        raise ShapeError("the number of parts is not known or too large")
    return [with_size(self, place) for _ in range(size)]


@shape_function("cat", "concat", "concatenate", "quantized::cat")
def _cat(tensors: object, dim: object = 0, *rest: object) -> Output:
    specs = tensors_in(tensors)
    dtype = result_type(specs)
    # torch lets an empty list stand among tensors of any rank.
    real = [spec for spec in specs if spec.shape != (0,)] or specs
    if not real:
        raise ShapeError("there is nothing to put together")
    place = axis(dim, len(real[0].shape))
    shape = list(real[0].shape)
    for spec in real[1:]:
        if len(spec.shape) != len(shape):
            raise ShapeError("tensors put together differ in their number of dimensions")
        for at, size in enumerate(spec.shape):
            shape[at] = add(shape[at], size) if at == place else same(shape[at], size)
    return TensorSpec(tuple(shape), dtype)


@shape_function("stack", "_stack")
def _stack(tensors: object, dim: object = 0) -> Output:
    specs = tensors_in(tensors)
    if not specs:
        raise ShapeError("there is nothing to put together")
    for spec in specs[1:]:
        if len(spec.shape) != len(specs[0].shape):
            raise ShapeError("stacked tensors differ in their number of dimensions")
        for one, other in zip(specs[0].shape, spec.shape, strict=True):
            same(one, other, "stacked tensors differ in size")
    place = axis(dim, len(specs[0].shape) + 1)
    shape = specs[0].shape
    return TensorSpec((*shape[:place], len(specs), *shape[place:]), result_type(specs))


def _at_least(spec: TensorSpec, rank: int) -> TensorSpec:
    """Return a spec with enough dimensions: rows before, for three also one after."""
    shape = spec.shape
    if rank == 3 and len(shape) in (1, 2):
        return TensorSpec((*((1,) * (2 - len(shape))), *shape, 1), spec.dtype)
    return TensorSpec((*((1,) * (rank - len(shape))), *shape), spec.dtype)


@shape_function("hstack")
def _hstack(tensors: object) -> Output:
    specs = [_at_least(spec, 1) for spec in tensors_in(tensors)]
    return _cat(specs, 0 if specs and len(specs[0].shape) == 1 else 1)


@shape_function("vstack", "row_stack")
def _vstack(tensors: object) -> Output:
    return _cat([_at_least(spec, 2) for spec in tensors_in(tensors)], 0)


@shape_function("dstack")
def _dstack(tensors: object) -> Output:
    return _cat([_at_least(spec, 3) for spec in tensors_in(tensors)], 2)


@shape_function("column_stack")
def _column_stack(tensors: object) -> Output:
    specs = tensors_in(tensors)
    columns = [TensorSpec((*s.shape, 1), s.dtype) if len(s.shape) == 1 else s for s in specs]
    return _cat(columns, 1)


@shape_function("atleast_1d")
def _atleast_1d(self: TensorSpec) -> Output:
    return _at_least(self, 1)


@shape_function("atleast_2d")
def _atleast_2d(self: TensorSpec) -> Output:
    return _at_least(self, 2)


@shape_function("atleast_3d")
def _atleast_3d(self: TensorSpec) -> Output:
    return _at_least(self, 3)


@shape_function("_shape_as_tensor")
def _shape_as_tensor(self: TensorSpec) -> Output:
    return TensorSpec((len(self.shape),), "int64")


@shape_function("broadcast_tensors")
def _broadcast_tensors(tensors: object) -> Output:
    specs = tensors_in(tensors)
    shape = broadcast(*(spec.shape for spec in specs))
    return [TensorSpec(shape, spec.dtype) for spec in specs]


@shape_function("meshgrid")
def _meshgrid(tensors: object, *, indexing: object = "ij") -> Output:
    specs = tensors_in(tensors)
    shape = [spec.shape[0] if spec.shape else 1 for spec in specs]
    if indexing == "xy" and len(shape) > 1:
        shape[0], shape[1] = shape[1], shape[0]
    return [TensorSpec(tuple(shape), spec.dtype) for spec in specs]


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


@shape_function("pad", "constant_pad_nd", "reflection_pad1d", "reflection_pad2d")
def _pad(self: TensorSpec, pad: object, *rest: object, **named: object) -> Output:
    if not isinstance(pad, (list, tuple)):
        raise ShapeError("the padding is not known")
    if len(pad) > 2 * len(self.shape) or len(pad) % 2:
        raise ShapeError(f"{len(pad)} paddings do not fit {len(self.shape)} dimensions")
    shape = list(self.shape)
    for pair in range(len(pad) // 2):
        sides = (whole(pad[2 * pair]), whole(pad[2 * pair + 1]))
        shape[-1 - pair] = add(shape[-1 - pair], *sides)
    return TensorSpec(shape_of(shape), self.dtype)


for _name in ("reflection_pad3d", "replication_pad1d", "replication_pad2d", "replication_pad3d"):
    shape_function(_name)(_pad)
