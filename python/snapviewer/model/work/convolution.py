"""Convolutions: grouped, dilated, depthwise and transposed, under all their names.

Each output of a convolution is a sum over one window of its group's channels, so the size of
the weight behind its first dimension is the number of multiply-adds per output. A transposed one
does the same per input. Taps that fall on padding, or are cut off, count as the others do.
A bias takes the place of the addition that the first product does not need.
"""

from __future__ import annotations

from math import prod

from snapviewer.model.work.registry import Call, Work, register

_FORWARD = (
    "aten::conv1d",
    "aten::conv2d",
    "aten::conv3d",
    "aten::_convolution_mode",
    "aten::_nnpack_spatial_convolution",
    "aten::thnn_conv2d",
    "aten::_slow_conv2d_forward",
    "aten::slow_conv3d",
    "aten::slow_conv3d_forward",
    "aten::slow_conv_dilated2d",
    "aten::slow_conv_dilated3d",
    "aten::_conv_depthwise2d",
    "aten::conv_depthwise3d",
    "aten::cudnn_convolution",
    "aten::mkldnn_convolution",
    "aten::miopen_convolution",
    "aten::miopen_depthwise_convolution",
    "aten::_mps_convolution",
    "prim::mkldnn_convolution",
)
_TRANSPOSED = (
    "aten::conv_transpose1d",
    "aten::conv_transpose2d",
    "aten::conv_transpose3d",
    "aten::slow_conv_transpose2d",
    "aten::slow_conv_transpose3d",
    "aten::cudnn_convolution_transpose",
    "aten::miopen_convolution_transpose",
    "aten::_mps_convolution_transpose",
)
_EITHER = ("aten::_convolution", "aten::convolution", "aten::convolution_overrideable")


def convolution_macs(outputs: int, weight: tuple[int, ...]) -> int:
    """Return the multiply-adds of a convolution with so many outputs.

    >>> convolution_macs(64 * 112 * 112, (64, 3, 7, 7))
    118013952
    """
    return outputs * prod(weight[1:])


def transposed_macs(inputs: int, weight: tuple[int, ...]) -> int:
    """Return the multiply-adds of a transposed convolution with so many inputs."""
    return inputs * prod(weight[1:])


@register(_FORWARD, "input|self weight", kind="Convolution")
def _forward(call: Call) -> Work:
    return call.work(macs=convolution_macs(call.output_elements(), call.shape("weight")))


@register(_TRANSPOSED, "input|self weight", kind="Convolution")
def _transposed(call: Call) -> Work:
    return call.work(macs=transposed_macs(call.elements("input"), call.shape("weight")))


@register(_EITHER, "input weight bias stride padding dilation transposed", kind="Convolution")
def _either(call: Call) -> Work:
    return _transposed(call) if call.integer("transposed", 0) else _forward(call)


@register(
    ("aten::cudnn_convolution_relu", "aten::miopen_convolution_relu"),
    "self weight",
    kind="Convolution",
)
def _with_activation(call: Call) -> Work:
    outputs = call.output_elements()
    macs = convolution_macs(outputs, call.shape("weight"))
    return call.work(macs=macs, other_flops=outputs)


@register(
    ("aten::cudnn_convolution_add_relu", "aten::miopen_convolution_add_relu"),
    "self weight",
    kind="Convolution",
)
def _with_addition_and_activation(call: Call) -> Work:
    outputs = call.output_elements()
    macs = convolution_macs(outputs, call.shape("weight"))
    return call.work(macs=macs, other_flops=2 * outputs)


@register("aten::conv_tbc", "self weight", kind="Convolution")
def _time_batch_channels(call: Call) -> Work:
    taps, channels, _ = call.shape("weight")
    return call.work(macs=call.output_elements() * taps * channels)
