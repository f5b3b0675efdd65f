"""Indexing, embeddings and sorting."""

from __future__ import annotations

from snapviewer.model.graph import TensorSpec, Unknown
from snapviewer.model.shapes.convolution import windows
from snapviewer.model.shapes.dimensions import (
    Shape,
    ShapeError,
    Size,
    axis,
    broadcast,
    divide,
    multiply,
    whole,
)
from snapviewer.model.shapes.registry import Output, arguments, shape_function, with_indices
from snapviewer.model.shapes.views import with_size


@shape_function("index", "_unsafe_index")
def _index(self: TensorSpec, indices: object) -> Output:
    if not isinstance(indices, (list, tuple)):
        raise ShapeError("the indices are unknown")
    picked: list[Shape] = []
    places: list[int] = []
    place = 0
    for item in indices:
        if isinstance(item, Unknown):
            raise ShapeError("an index is unknown")
        if not isinstance(item, TensorSpec):
            place += 1
            continue
        # A mask is a list of positions for each of its dimensions.
        is_mask = item.dtype in ("bool", "uint8")
        width = len(item.shape) if is_mask else 1
        picked.append((None,) if is_mask else item.shape)
        places.extend(range(place, place + width))
        place += width
    if place > len(self.shape):
        raise ShapeError("there are more indices than dimensions")
    if not places:
        return self
    shape = broadcast(*picked)
    kept = [size for at, size in enumerate(self.shape) if at not in places]
    is_together = places == list(range(places[0], places[-1] + 1))
    front = places[0] if is_together else 0
    return TensorSpec((*kept[:front], *shape, *kept[front:]), self.dtype)


@shape_function("index_select")
def _index_select(self: TensorSpec, dim: object, index: TensorSpec) -> Output:
    return (
        with_size(self, axis(dim, len(self.shape)), multiply(index.shape)) if self.shape else self
    )


@shape_function("gather")
def _gather(self: TensorSpec, dim: object, index: TensorSpec, **named: object) -> Output:
    return TensorSpec(index.shape, self.dtype)


@shape_function("take")
def _take(self: TensorSpec, index: TensorSpec) -> Output:
    return TensorSpec(index.shape, self.dtype)


@shape_function("take_along_dim")
def _take_along(self: TensorSpec, indices: TensorSpec, dim: object = None) -> Output:
    if dim is None:
        return TensorSpec((multiply(indices.shape),), self.dtype)
    place = axis(dim, len(self.shape))
    others = (with_size(spec, place, 1).shape for spec in (self, indices))
    return with_size(TensorSpec(broadcast(*others), self.dtype), place, indices.shape[place])


@shape_function("masked_select")
def _masked_select(self: TensorSpec, mask: TensorSpec) -> Output:
    return TensorSpec((None,), self.dtype)


@shape_function("nonzero", "argwhere")
def _nonzero(self: TensorSpec) -> Output:
    return TensorSpec((None, len(self.shape)), "int64")


@shape_function("nonzero_numpy")
def _nonzero_numpy(self: TensorSpec) -> Output:
    return [TensorSpec((None,), "int64") for _ in self.shape or (1,)]


@shape_function("embedding")
def _embedding(weight: TensorSpec, indices: TensorSpec, *rest: object) -> Output:
    return TensorSpec((*indices.shape, *weight.shape[1:]), weight.dtype)


@shape_function("embedding_bag _embedding_bag _embedding_bag_forward_only")
def _embedding_bag(
    weight: TensorSpec,
    indices: TensorSpec,
    offsets: TensorSpec,
    *rest: object,
    **named: object,
) -> Output:
    order = "scale_grad_by_freq mode sparse per_sample_weights include_last_offset"
    bags: Size = offsets.shape[0] if offsets.shape else None
    if arguments(order, rest, named).get("include_last_offset") is True and bags is not None:
        bags -= 1
    side = TensorSpec((None,), "int64")
    return (TensorSpec((bags, *weight.shape[1:]), weight.dtype), side, side, side)


@shape_function("topk")
@with_indices
def _topk(self: TensorSpec, k: object, dim: object = -1, *rest: object) -> Output:
    return with_size(self, axis(dim, len(self.shape)), whole(k)) if self.shape else self


@shape_function("kthvalue")
@with_indices
def _kthvalue(self: TensorSpec, k: object, dim: object = -1, keepdim: object = False) -> Output:
    place = axis(dim, len(self.shape))
    return with_size(self, place, *((1,) if keepdim is True else ())) if self.shape else self


@shape_function("_unique2 unique_dim unique_consecutive _unique")
def _unique(self: TensorSpec, *rest: object, **named: object) -> Output:
    numbers = TensorSpec((None,), "int64")
    return (TensorSpec((None,), self.dtype), numbers, numbers)


@shape_function("searchsorted")
def _searchsorted(sorted_sequence: TensorSpec, values: object, *rest: object) -> Output:
    return TensorSpec(values.shape if isinstance(values, TensorSpec) else (), "int64")


@shape_function("multinomial")
def _multinomial(self: TensorSpec, num_samples: object, *rest: object, **named: object) -> Output:
    return TensorSpec((*self.shape[:-1], whole(num_samples)), "int64")


@shape_function("one_hot")
def _one_hot(self: TensorSpec, num_classes: object = -1) -> Output:
    classes = whole(num_classes)
    return TensorSpec((*self.shape, None if classes == -1 else classes), "int64")


@shape_function("bincount")
def _bincount(self: TensorSpec, *rest: object) -> Output:
    return TensorSpec((None,), "int64")


@shape_function("im2col")
def _im2col(
    self: TensorSpec,
    kernel_size: object,
    dilation: object,
    padding: object,
    stride: object,
) -> Output:
    *front, channels, height, width = self.shape
    outs = windows((height, width), kernel_size, stride, padding, dilation)
    kernel = kernel_size if isinstance(kernel_size, (list, tuple)) else [kernel_size] * 2
    rows = multiply((channels, *(whole(k) for k in kernel)))
    return TensorSpec((*front, rows, multiply(outs)), self.dtype)


@shape_function("col2im")
def _col2im(self: TensorSpec, output_size: object, kernel_size: object, *rest: object) -> Output:
    if not isinstance(output_size, (list, tuple)) or not isinstance(kernel_size, (list, tuple)):
        raise ShapeError("the sizes are unknown")
    *front, rows, _ = self.shape
    channels = divide(rows, multiply(whole(k) for k in kernel_size))
    return TensorSpec((*front, channels, *(whole(size) for size in output_size)), self.dtype)
