"""Operations beyond the core of torch: quantized ones, those of frozen models, torchvision."""

from __future__ import annotations

from snapviewer.model.graph import TensorSpec
from snapviewer.model.shapes.convolution import convolved
from snapviewer.model.shapes.dimensions import (
    ShapeError,
    broadcast,
    sizes_of,
    tensors_in,
    whole,
)
from snapviewer.model.shapes.dtypes import dtype_name
from snapviewer.model.shapes.registry import Output, arguments, shape_function


@shape_function("quantize_per_tensor", "quantize_per_tensor_dynamic")
def _quantize(self: TensorSpec, *rest: object) -> Output:
    number = next((r for r in reversed(rest) if isinstance(r, int) and r in (12, 13, 14)), None)
    return TensorSpec(self.shape, dtype_name(number) or "quint8")


@shape_function("quantize_per_channel")
def _quantize_channels(
    self: TensorSpec, scales: object, zero_points: object, axis: object, dtype: object
) -> Output:
    return TensorSpec(self.shape, dtype_name(dtype))


@shape_function("dequantize")
def _dequantize(self: object) -> Output:
    if isinstance(self, (list, tuple)):
        return [TensorSpec(spec.shape, "float32") for spec in tensors_in(self)]
    if not isinstance(self, TensorSpec):
        raise ShapeError("the tensor is unknown")
    return TensorSpec(self.shape, "float32")


@shape_function("int_repr")
def _int_repr(self: TensorSpec) -> Output:
    return TensorSpec(self.shape, {"qint8": "int8", "qint32": "int32"}.get(self.dtype, "uint8"))


def _weight_of(packed: object) -> TensorSpec:
    if isinstance(packed, TensorSpec):
        return packed
    if isinstance(packed, (list, tuple)):
        for part in packed:
            if isinstance(part, TensorSpec) and len(part.shape) > 1:
                return part
            if isinstance(part, (list, tuple)):
                return _weight_of(part)
    raise ShapeError("the packed weight is unknown")


@shape_function(
    *(f"quantized::linear{tail}" for tail in ("", "_relu", "_leaky_relu", "_tanh", "_dynamic")),
    *(f"quantized::linear{tail}" for tail in ("_relu_dynamic", "_dynamic_fp16")),
    "quantized::linear_relu_dynamic_fp16 prepacked::linear_clamp_run",
)
def _packed_linear(X: TensorSpec, W_prepack: object, *rest: object) -> Output:  # noqa: N803
    return TensorSpec((*X.shape[:-1], _weight_of(W_prepack).shape[0]), X.dtype)


@shape_function(
    *(f"quantized::conv{n}d{tail}" for n in (1, 2, 3) for tail in ("", "_relu", "_dynamic")),
    *(f"quantized::conv_transpose{n}d" for n in (1, 2, 3)),
)
def _quantized_conv(qx: TensorSpec, packed: object, *rest: object) -> Output:
    weight = _weight_of(packed)
    if not isinstance(packed, (list, tuple)) or len(packed) != 8:
        raise ShapeError("the settings of a packed convolution are unknown")
    order = "stride padding dilation groups transposed output_padding"
    return convolved(qx, weight.shape, **arguments(order, packed[2:], {}))


@shape_function(
    *(f"quantized::{name}" for name in ("add", "add_relu", "mul", "mul_relu")),
)
def _quantized_pair(qa: TensorSpec, qb: object, *rest: object) -> Output:
    other = qb.shape if isinstance(qb, TensorSpec) else ()
    return TensorSpec(broadcast(qa.shape, other), qa.dtype)


@shape_function("torchvision::nms")
def _nms(dets: TensorSpec, scores: TensorSpec, iou_threshold: object) -> Output:
    return TensorSpec((None,), "int64")


@shape_function("torchvision::roi_align", "torchvision::roi_pool", "torchvision::ps_roi_align")
def _roi(
    input: TensorSpec,  # noqa: A002
    rois: TensorSpec,
    spatial_scale: object,
    pooled_height: object,
    pooled_width: object,
    *rest: object,
) -> Output:
    sizes = (whole(pooled_height), whole(pooled_width))
    return TensorSpec((rois.shape[0], input.shape[1], *sizes), input.dtype)


@shape_function("torchvision::deform_conv2d")
def _deform(input: TensorSpec, weight: TensorSpec, *rest: object) -> Output:  # noqa: A002
    _, _, _, *numbers, groups = (*rest, *([None] * 10))[:10]
    stride, padding, dilation = (sizes_of(numbers[place : place + 2], 2) for place in (0, 2, 4))
    return convolved(
        input, weight.shape, stride=stride, padding=padding, dilation=dilation, groups=groups
    )
