"""Normalisations: the input shape, and the shapes of statistics."""

from __future__ import annotations

from snapviewer.model.graph import TensorSpec
from snapviewer.model.shapes.dimensions import ShapeError, same, whole
from snapviewer.model.shapes.registry import Output, shape_function


@shape_function("batch_norm instance_norm local_response_norm quantized::batch_norm2d")
def _normalised(input: TensorSpec, weight: object = None, *rest: object) -> Output:  # noqa: A002
    if isinstance(weight, TensorSpec) and len(input.shape) > 1:
        same(input.shape[1], weight.shape[0], "channels of the input and of the weight differ")
    return input


@shape_function("layer_norm rms_norm group_norm _fused_rms_norm")
def _layer_norm(input: TensorSpec, *rest: object, **named: object) -> Output:  # noqa: A002
    if rest and isinstance(rest[0], (list, tuple)):
        wanted = [whole(size) for size in rest[0]]
        if len(wanted) > len(input.shape):
            raise ShapeError("there are fewer dimensions than are normalised")
        for size, old in zip(reversed(wanted), reversed(input.shape), strict=False):
            same(size, old, "the normalised sizes differ")
    return input


@shape_function("native_batch_norm _native_batch_norm_legit cudnn_batch_norm")
def _native_batch_norm(input: TensorSpec, *rest: object, **named: object) -> Output:  # noqa: A002
    channels = TensorSpec(input.shape[1:2], "float32")
    return (input, channels, channels)


@shape_function("native_layer_norm")
def _native_layer_norm(
    input: TensorSpec,  # noqa: A002
    normalized_shape: object,
    *rest: object,
) -> Output:
    count = len(normalized_shape) if isinstance(normalized_shape, (list, tuple)) else 1
    kept = len(input.shape) - count
    side = TensorSpec((*input.shape[:kept], *((1,) * count)), "float32")
    return (input, side, side)


@shape_function("native_group_norm")
def _native_group_norm(
    input: TensorSpec,  # noqa: A002
    weight: object,
    bias: object,
    N: object,  # noqa: N803
    C: object,  # noqa: N803
    HxW: object,  # noqa: N803
    group: object,
    eps: object,
) -> Output:
    side = TensorSpec((whole(N), whole(group)), input.dtype)
    return (input, side, side)
