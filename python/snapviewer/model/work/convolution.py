"""Convolutions: grouped, dilated, depthwise and transposed, under all their names.

Each output of a convolution is a sum over one window of its group's channels, so the elements of
the weight after its first dimension are the multiply-adds per output. A transposed one does the
same per input. Taps on padding, or that are cut off, count as well. A bias takes the place of the
addition that the first product does not need.
"""

from __future__ import annotations

from math import prod

from snapviewer.model.work.registry import Call, Formula, Work, register

_FORWARD = """
    conv1d conv2d conv3d _convolution_mode _nnpack_spatial_convolution thnn_conv2d
    _slow_conv2d_forward slow_conv3d slow_conv3d_forward slow_conv_dilated2d slow_conv_dilated3d
    _conv_depthwise2d conv_depthwise3d cudnn_convolution mkldnn_convolution miopen_convolution
    miopen_depthwise_convolution _mps_convolution prim::mkldnn_convolution
"""
_TRANSPOSED = """
    conv_transpose1d conv_transpose2d conv_transpose3d slow_conv_transpose2d slow_conv_transpose3d
    cudnn_convolution_transpose miopen_convolution_transpose _mps_convolution_transpose
"""
_EITHER = "_convolution convolution convolution_overrideable"


def convolution_macs(outputs: int, weight: tuple[int, ...]) -> int:
    """Return the multiply-adds of a convolution with so many outputs.

    >>> convolution_macs(64 * 112 * 112, (64, 3, 7, 7))
    118013952
    """
    return outputs * prod(weight[1:])


def transposed_macs(inputs: int, weight: tuple[int, ...]) -> int:
    """Return the multiply-adds of a transposed convolution with so many inputs."""
    return inputs * prod(weight[1:])


def _forward(flops: int = 0) -> Formula:
    """Return the formula of a convolution with further FLOPs per output."""

    def formula(call: Call) -> Work:
        outputs = call.output_elements()
        macs = convolution_macs(outputs, call.shape("weight"))
        return call.work(macs=macs, other_flops=flops * outputs)

    return formula


register(_FORWARD, "input|self weight", kind="Convolution")(_forward())
for _flops, _ending in ((1, "relu"), (2, "add_relu")):
    _ops = f"cudnn_convolution_{_ending} miopen_convolution_{_ending}"
    register(_ops, "self weight", kind="Convolution")(_forward(_flops))


@register(_TRANSPOSED, "input|self weight", kind="Convolution")
def _transposed(call: Call) -> Work:
    return call.work(macs=transposed_macs(call.elements("input"), call.shape("weight")))


@register(_EITHER, "input weight bias stride padding dilation transposed", kind="Convolution")
def _either(call: Call) -> Work:
    if call.integer("transposed", 0):
        return _transposed(call)
    return call.work(macs=convolution_macs(call.output_elements(), call.shape("weight")))


@register("conv_tbc", "self weight", kind="Convolution")
def _time_batch_channels(call: Call) -> Work:
    taps, channels, _ = call.shape("weight")
    return call.work(macs=call.output_elements() * taps * channels)
