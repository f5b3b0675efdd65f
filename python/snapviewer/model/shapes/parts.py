"""Operations that split tensors or join them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from snapviewer.model.graph import TensorSpec
from snapviewer.model.shapes.dimensions import (
    ShapeError,
    Size,
    add,
    axis,
    broadcast,
    same,
    tensors_in,
    whole,
)
from snapviewer.model.shapes.dtypes import result_type
from snapviewer.model.shapes.registry import Output, ShapeFunction, shape_function
from snapviewer.model.shapes.views import with_size

_MAX_PARTS = 100_000


def _parts(spec: TensorSpec, place: int, sizes: Sequence[Size]) -> Output:
    if len(sizes) > _MAX_PARTS:
        raise ShapeError(f"{len(sizes)} parts are too many")
    return [with_size(spec, place, size) for size in sizes]


@shape_function("chunk", "unsafe_chunk")
def _chunk(self: TensorSpec, chunks: object, dim: object = 0) -> Output:
    place, count = axis(dim, len(self.shape)), whole(chunks)
    size = self.shape[place]
    if not count or count < 0:
        raise ShapeError("the number of chunks is unknown")
    if size is None:
        return _parts(self, place, [None] * min(count, _MAX_PARTS + 1))
    if size == 0:
        return _parts(self, place, [0] * min(count, _MAX_PARTS + 1))
    return _split(self, -(-size // count), dim)


@shape_function("split", "unsafe_split", "split_copy")
def _split(self: TensorSpec, split_size: object, dim: object = 0) -> Output:
    if isinstance(split_size, (list, tuple)):
        return _split_with_sizes(self, split_size, dim)
    place, part = axis(dim, len(self.shape)), whole(split_size)
    size = self.shape[place]
    if size is None or part is None:
        raise ShapeError("the number of parts is unknown")
    if part <= 0:
        return [self]
    if size // part > _MAX_PARTS:
        raise ShapeError(f"{size // part} parts are too many")
    return _parts(self, place, [min(part, size - at) for at in range(0, size, part)] or [0])


@shape_function("split_with_sizes", "unsafe_split_with_sizes", "split_with_sizes_copy")
def _split_with_sizes(self: TensorSpec, split_sizes: object, dim: object = 0) -> Output:
    if not isinstance(split_sizes, (list, tuple)):
        raise ShapeError("the number of parts is unknown")
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
        if not 0 < count <= _MAX_PARTS:
            raise ShapeError("the number of parts is unknown")
        return _parts(self, place, [size // count + (at < size % count) for at in range(count)])
    if isinstance(indices_or_sections, (list, tuple)) and size is not None:
        cuts = [0, *(whole(cut) or 0 for cut in indices_or_sections), size]
        kept = [len(range(size)[a:b]) for a, b in pairwise(cuts)]
        return _parts(self, place, kept)
    raise ShapeError("the number of parts is unknown")


@shape_function("unbind", "unbind_copy")
def _unbind(self: TensorSpec, dim: object = 0) -> Output:
    place = axis(dim, len(self.shape))
    size = self.shape[place] if self.shape else None
    if size is None or size > _MAX_PARTS:
        raise ShapeError("the number of parts is unknown or too large")
    return [with_size(self, place) for _ in range(size)]


@shape_function("cat", "concat", "concatenate", "quantized::cat")
def _cat(tensors: object, dim: object = 0, *rest: object) -> Output:
    specs = tensors_in(tensors)
    dtype = result_type(specs)
    # torch accepts an empty tensor among tensors of any rank.
    real = [spec for spec in specs if spec.shape != (0,)] or specs
    if not real:
        raise ShapeError("there is nothing to join")
    place = axis(dim, len(real[0].shape))
    shape = list(real[0].shape)
    for spec in real[1:]:
        if len(spec.shape) != len(shape):
            raise ShapeError("joined tensors differ in their number of dimensions")
        for at, size in enumerate(spec.shape):
            shape[at] = add(shape[at], size) if at == place else same(shape[at], size)
    return TensorSpec(tuple(shape), dtype)


@shape_function("stack", "_stack")
def _stack(tensors: object, dim: object = 0) -> Output:
    specs = tensors_in(tensors)
    if not specs:
        raise ShapeError("there is nothing to join")
    for spec in specs[1:]:
        if len(spec.shape) != len(specs[0].shape):
            raise ShapeError("stacked tensors differ in their number of dimensions")
        for one, other in zip(specs[0].shape, spec.shape, strict=True):
            same(one, other, "stacked tensors differ in size")
    place = axis(dim, len(specs[0].shape) + 1)
    shape = specs[0].shape
    return TensorSpec((*shape[:place], len(specs), *shape[place:]), result_type(specs))


def _at_least(spec: TensorSpec, rank: int) -> TensorSpec:
    """Return a spec with at least so many dimensions: rows before, for three also one after."""
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


def _atleast(rank: int) -> ShapeFunction:
    def shape(self: TensorSpec) -> Output:
        return _at_least(self, rank)

    return shape


for _rank in (1, 2, 3):
    shape_function(f"atleast_{_rank}d")(_atleast(_rank))


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
