"""Convolution, pooling and resizing of images."""

from __future__ import annotations

from collections.abc import Sequence

from snapviewer.model.graph import TensorSpec
from snapviewer.model.shapes.dimensions import Shape, ShapeError, Size, multiply, sizes_of, whole
from snapviewer.model.shapes.registry import (
    Output,
    ShapeFunction,
    arguments,
    shape_function,
    with_indices,
)


def windows(
    sizes: Sequence[Size],
    kernel: object,
    stride: object,
    padding: object,
    dilation: object = 1,
    *,
    ceil_mode: object = False,
) -> Shape:
    """Count the positions of a window that slides over each dimension.

    >>> windows((224, 224), 7, 2, 3)
    (112, 112)
    """
    count = len(sizes)
    if isinstance(stride, (list, tuple)) and not stride:
        stride = kernel
    columns = [sizes_of(value, count) for value in (kernel, stride, padding, dilation)]
    return tuple(
        _places(size, *row, ceil_mode=ceil_mode is True)
        for size, *row in zip(sizes, *columns, strict=True)
    )


def _places(
    size: Size, kernel: Size, stride: Size, padding: Size, dilation: Size, *, ceil_mode: bool
) -> Size:
    if size is None or kernel is None or padding is None or dilation is None:
        return None
    if stride is None or stride < 1:
        return None
    room = size + 2 * padding - dilation * (kernel - 1) - 1
    places = room // stride + 1
    if ceil_mode:
        places = -(-room // stride) + 1
        # The last window must start inside the input or its left padding.
        places -= (places - 1) * stride >= size + padding
    if places < 1 or kernel < 1:
        raise ShapeError(f"a window of {kernel} does not fit a size of {size}")
    return places


def convolved(
    spec: TensorSpec,
    weight: Shape,
    *,
    stride: object = 1,
    padding: object = 0,
    dilation: object = 1,
    groups: object = 1,
    transposed: object = False,
    output_padding: object = 0,
    **rest: object,
) -> TensorSpec:
    """Return the output of a convolution; the input may lack its batch dimension."""
    count = len(weight) - 2
    if count < 1 or len(spec.shape) not in (count + 1, count + 2):
        raise ShapeError(f"{len(spec.shape)} dimensions do not fit a weight of {len(weight)}")
    sizes = spec.shape[-count:]
    channels, group_count = spec.shape[-count - 1], whole(groups)
    needed = weight[0] if transposed is True else multiply((weight[1], group_count))
    if channels is not None and needed is not None and channels != needed:
        message = f"the input has {channels} channels, but the weights need {needed}"
        raise ShapeError(message, (channels, needed))
    outs: Shape
    if transposed is True:
        columns = [
            sizes_of(v, count) for v in (weight[2:], stride, padding, dilation, output_padding)
        ]
        outs = tuple(_stretched(*row) for row in zip(sizes, *columns, strict=True))
        out_channels = multiply((weight[1], group_count))
    else:
        if padding == "same":
            outs = sizes
        else:
            padding = 0 if padding == "valid" else padding
            outs = windows(sizes, weight[2:], stride, padding, dilation)
        out_channels = weight[0]
    return TensorSpec((*spec.shape[: -count - 1], out_channels, *outs), spec.dtype)


def _stretched(
    size: Size, kernel: Size, stride: Size, padding: Size, dilation: Size, extra: Size
) -> Size:
    if size is None or kernel is None or stride is None:
        return None
    if padding is None or dilation is None or extra is None:
        return None
    result = (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + extra + 1
    if result < 0:
        raise ShapeError("a transposed convolution would have a negative size")
    return result


def _convolution(order: str, **fixed: object) -> ShapeFunction:
    """Return the shape function of convolutions whose arguments have this order."""

    def shape(
        input: TensorSpec,  # noqa: A002
        weight: TensorSpec,
        bias: object = None,
        *rest: object,
        **named: object,
    ) -> Output:
        return convolved(input, weight.shape, **fixed, **arguments(order, rest, named))

    return shape


shape_function("conv1d conv2d conv3d _convolution_mode prim::mkldnn_convolution")(
    _convolution("stride padding dilation groups")
)
shape_function("conv_transpose1d conv_transpose2d conv_transpose3d")(
    _convolution("stride padding output_padding groups dilation", transposed=True)
)
shape_function("_convolution convolution convolution_overrideable")(
    _convolution("stride padding dilation transposed output_padding groups")
)


def _pooled(spec: TensorSpec, count: int, outs: Shape) -> TensorSpec:
    if len(spec.shape) not in (count + 1, count + 2):
        raise ShapeError(f"{len(spec.shape)} dimensions do not fit a pooling of {count}")
    return TensorSpec((*spec.shape[:-count], *outs), spec.dtype)


def _pooling(count: int, order: str) -> ShapeFunction:
    """Return the shape function of pooling whose arguments after the kernel have this order."""

    def shape(self: TensorSpec, kernel_size: object, *rest: object, **named: object) -> Output:
        given = arguments(order, rest, named)
        stride, padding = given.get("stride", ()), given.get("padding", 0)
        dilation, ceil_mode = given.get("dilation", 1), given.get("ceil_mode", False)
        sizes = self.shape[-count:]
        outs = windows(sizes, kernel_size, stride, padding, dilation, ceil_mode=ceil_mode)
        return _pooled(self, count, outs)

    return shape


def _adaptive_pooling(count: int) -> ShapeFunction:
    def shape(self: TensorSpec, output_size: object) -> Output:
        sizes = list(output_size) if isinstance(output_size, (list, tuple)) else [output_size]
        wanted = sizes * count if len(sizes) == 1 else sizes
        outs = tuple(
            old if size is None else whole(size)
            for size, old in zip(wanted, self.shape[-count:], strict=False)
        )
        return _pooled(self, count, outs)

    return shape


for _count in (1, 2, 3):
    _max_pooling = _pooling(_count, "stride padding dilation ceil_mode")
    _adaptive = _adaptive_pooling(_count)
    shape_function(f"max_pool{_count}d quantized_max_pool{_count}d")(_max_pooling)
    shape_function(f"max_pool{_count}d_with_indices")(with_indices(_max_pooling))
    shape_function(f"avg_pool{_count}d")(_pooling(_count, "stride padding ceil_mode"))
    shape_function(f"adaptive_avg_pool{_count}d _adaptive_avg_pool{_count}d")(_adaptive)
    shape_function(f"adaptive_max_pool{_count}d")(with_indices(_adaptive))


@shape_function(
    "upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d "
    "_upsample_nearest_exact2d _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d "
    "upsample_trilinear3d upsample_bicubic2d _upsample_bilinear2d_aa _upsample_bicubic2d_aa"
)
def _upsample(
    self: TensorSpec, output_size: object = None, *rest: object, **named: object
) -> Output:
    if isinstance(output_size, (list, tuple)):
        outs: list[Size] = [whole(size) for size in output_size]
    else:
        factors = next((r for r in (*named.values(), *rest) if isinstance(r, (list, tuple))), None)
        if factors is None:
            raise ShapeError("the size to scale to is unknown")
        old = self.shape[-len(factors) :] if factors else ()
        outs = [
            int(size * factor) if size is not None and isinstance(factor, (int, float)) else None
            for size, factor in zip(old, factors, strict=False)
        ]
    if len(outs) != len(self.shape) - 2:
        raise ShapeError(f"{len(outs)} sizes do not fit {len(self.shape)} dimensions")
    return TensorSpec((*self.shape[:2], *outs), self.dtype)


@shape_function("__interpolate __upsample __upsample_nearest __upsample_bilinear")
def _interpolate(
    input: TensorSpec,  # noqa: A002
    size: object = None,
    scale_factor: object = None,
    *rest: object,
    **named: object,
) -> Output:
    count = len(input.shape) - 2
    if size is not None:
        return TensorSpec((*input.shape[:2], *sizes_of(size, count)), input.dtype)
    factors = scale_factor if isinstance(scale_factor, (list, tuple)) else [scale_factor] * count
    return _upsample(input, None, list(factors) * (count if len(factors) == 1 else 1))


@shape_function("grid_sampler grid_sampler_2d grid_sampler_3d grid_sample")
def _grid_sample(input: TensorSpec, grid: TensorSpec, *rest: object) -> Output:  # noqa: A002
    return TensorSpec((*input.shape[:2], *grid.shape[1:-1]), input.dtype)


@shape_function("affine_grid_generator")
def _affine_grid(theta: TensorSpec, size: object, align_corners: object) -> Output:
    if not isinstance(size, (list, tuple)) or len(size) not in (4, 5):
        raise ShapeError("the size of the grid is unknown")
    batch, _, *rest = (whole(item) for item in size)
    return TensorSpec((batch, *rest, len(size) - 2), theta.dtype)
