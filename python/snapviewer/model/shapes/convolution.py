"""Convolutions, poolings, and resizing of images."""

from __future__ import annotations

from collections.abc import Sequence

from snapviewer.model.graph import TensorSpec
from snapviewer.model.shapes.dimensions import Shape, ShapeError, Size, multiply, sizes_of, whole
from snapviewer.model.shapes.registry import Output, shape_function


def windows(
    sizes: Sequence[Size],
    kernel: object,
    stride: object,
    padding: object,
    dilation: object = 1,
    *,
    ceil_mode: object = False,
) -> Shape:
    """Count the places of a window that slides over each dimension.

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
    stride: object,
    padding: object,
    dilation: object,
    groups: object,
    *,
    transposed: bool = False,
    output_padding: object = 0,
) -> TensorSpec:
    """Return what a convolution gives; the input may lack its batch dimension."""
    count = len(weight) - 2
    if count < 1 or len(spec.shape) not in (count + 1, count + 2):
        raise ShapeError(f"{len(spec.shape)} dimensions do not fit a weight of {len(weight)}")
    sizes = spec.shape[-count:]
    channels, group_count = spec.shape[-count - 1], whole(groups)
    needed = weight[0] if transposed else multiply((weight[1], group_count))
    if channels is not None and needed is not None and channels != needed:
        message = f"the input has {channels} channels, but the weights need {needed}"
        raise ShapeError(message, (channels, needed))
    outs: Shape
    if transposed:
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


@shape_function("conv1d", "conv2d", "conv3d", "_convolution_mode")
def _conv(
    input: TensorSpec,  # noqa: A002
    weight: TensorSpec,
    bias: object = None,
    stride: object = 1,
    padding: object = 0,
    dilation: object = 1,
    groups: object = 1,
) -> Output:
    return convolved(input, weight.shape, stride, padding, dilation, groups)


@shape_function("prim::mkldnn_convolution")
def _mkldnn(
    input: TensorSpec,  # noqa: A002
    weight: TensorSpec,
    bias: object,
    stride: object,
    padding: object,
    dilation: object,
    groups: object,
) -> Output:
    return convolved(input, weight.shape, stride, padding, dilation, groups)


@shape_function("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def _conv_transpose(
    input: TensorSpec,  # noqa: A002
    weight: TensorSpec,
    bias: object = None,
    stride: object = 1,
    padding: object = 0,
    output_padding: object = 0,
    groups: object = 1,
    dilation: object = 1,
) -> Output:
    return convolved(
        input,
        weight.shape,
        stride,
        padding,
        dilation,
        groups,
        transposed=True,
        output_padding=output_padding,
    )


@shape_function("_convolution", "convolution", "convolution_overrideable")
def _convolution(
    input: TensorSpec,  # noqa: A002
    weight: TensorSpec,
    bias: object,
    stride: object,
    padding: object,
    dilation: object,
    transposed: object,
    output_padding: object,
    groups: object,
    *rest: object,
) -> Output:
    return convolved(
        input,
        weight.shape,
        stride,
        padding,
        dilation,
        groups,
        transposed=transposed is True,
        output_padding=output_padding,
    )


def _pooled(spec: TensorSpec, count: int, outs: Shape) -> TensorSpec:
    if len(spec.shape) not in (count + 1, count + 2):
        raise ShapeError(f"{len(spec.shape)} dimensions do not fit a pooling of {count}")
    return TensorSpec((*spec.shape[:-count], *outs), spec.dtype)


def _register_poolings() -> None:
    for count in (1, 2, 3):

        def max_pool(
            self: TensorSpec,
            kernel_size: object,
            stride: object = (),
            padding: object = 0,
            dilation: object = 1,
            ceil_mode: object = False,
            *,
            _count: int = count,
        ) -> TensorSpec:
            outs = windows(
                self.shape[-_count:], kernel_size, stride, padding, dilation, ceil_mode=ceil_mode
            )
            return _pooled(self, _count, outs)

        def max_pool_with_indices(
            self: TensorSpec, *rest: object, _pool: object = max_pool, **named: object
        ) -> Output:
            assert callable(_pool)
            out = _pool(self, *rest, **named)
            return (out, TensorSpec(out.shape, "int64"))

        def avg_pool(
            self: TensorSpec,
            kernel_size: object,
            stride: object = (),
            padding: object = 0,
            ceil_mode: object = False,
            count_include_pad: object = True,
            divisor_override: object = None,
            *,
            _count: int = count,
        ) -> Output:
            outs = windows(self.shape[-_count:], kernel_size, stride, padding, ceil_mode=ceil_mode)
            return _pooled(self, _count, outs)

        def adaptive(self: TensorSpec, output_size: object, *, _count: int = count) -> TensorSpec:
            sizes = list(output_size) if isinstance(output_size, (list, tuple)) else [output_size]
            wanted = sizes * _count if len(sizes) == 1 else sizes
            outs = tuple(
                old if size is None else whole(size)
                for size, old in zip(wanted, self.shape[-_count:], strict=False)
            )
            return _pooled(self, _count, outs)

        def adaptive_max(
            self: TensorSpec, output_size: object, *, _pool: object = adaptive
        ) -> Output:
            assert callable(_pool)
            out = _pool(self, output_size)
            return (out, TensorSpec(out.shape, "int64"))

        shape_function(f"max_pool{count}d", f"quantized_max_pool{count}d")(max_pool)
        shape_function(f"max_pool{count}d_with_indices")(max_pool_with_indices)
        shape_function(f"avg_pool{count}d")(avg_pool)
        shape_function(f"adaptive_avg_pool{count}d", f"_adaptive_avg_pool{count}d")(adaptive)
        shape_function(f"adaptive_max_pool{count}d")(adaptive_max)


_register_poolings()


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
            raise ShapeError("the size to scale to is not known")
        old = self.shape[-len(factors) :] if factors else ()
        outs = [
            int(size * factor) if size is not None and isinstance(factor, (int, float)) else None
            for size, factor in zip(old, factors, strict=False)
        ]
    if len(outs) != len(self.shape) - 2:
        raise ShapeError(f"{len(outs)} sizes do not fit {len(self.shape)} dimensions")
    return TensorSpec((*self.shape[:2], *outs), self.dtype)


@shape_function("__interpolate", "__upsample", "__upsample_nearest", "__upsample_bilinear")
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


@shape_function("grid_sampler", "grid_sampler_2d", "grid_sampler_3d", "grid_sample")
def _grid_sample(input: TensorSpec, grid: TensorSpec, *rest: object) -> Output:  # noqa: A002
    return TensorSpec((*input.shape[:2], *grid.shape[1:-1]), input.dtype)


@shape_function("affine_grid_generator")
def _affine_grid(theta: TensorSpec, size: object, align_corners: object) -> Output:
    if not isinstance(size, (list, tuple)) or len(size) not in (4, 5):
        raise ShapeError("the size of the grid is not known")
    batch, _, *rest = (whole(item) for item in size)
    return TensorSpec((batch, *rest, len(size) - 2), theta.dtype)
