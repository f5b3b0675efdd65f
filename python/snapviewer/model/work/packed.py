"""Layers with packed weights: quantized models, frozen ones, and those for phones.

A linear layer is counted by the last dimension of its input, so its weights need not be known. A
convolution needs the shape of its kernel, which is known if the graph has the tensors inside the
packed parameters.
"""

from __future__ import annotations

from snapviewer.model.work.convolution import convolution_macs, transposed_macs
from snapviewer.model.work.registry import (
    Call,
    Uncounted,
    Work,
    in_namespace,
    matrix_product,
    per_output,
    register,
)
from snapviewer.model.work.sizes import whole_shape

_PACKED = "its weights are packed, and their shapes are not in the graph"

_LINEAR = """
    quantized::linear quantized::linear_dynamic quantized::linear_dynamic_fp16
    quantized::linear_dynamic_fp16_unpacked_weight
    quantized::linear_with_input_q_dq_qweight_dq_output_fp32 prepacked::linear_clamp_run
    mkldnn::_linear_pointwise metal_prepacked::linear_run vulkan_prepacked::linear_run
    vulkan_prepacked::run_linear_context mkl::_mkl_linear
    onednn::qlinear_pointwise onednn::linear_dynamic_fp16
"""
_LINEAR_WITH_ACTIVATION = """
    quantized::linear_relu quantized::linear_relu_dynamic quantized::linear_relu_dynamic_fp16
    quantized::linear_leaky_relu quantized::linear_tanh
    quantized::linear_with_input_q_dq_qweight_dq_relu_output_fp32 onednn::linear_relu_dynamic_fp16
"""
_CONVOLUTIONS = """
    conv1d conv2d conv3d conv1d_relu conv2d_relu conv3d_relu conv1d_dynamic conv2d_dynamic
    conv3d_dynamic conv2d_add conv2d_add_relu
"""
_TRANSPOSED = " ".join(
    f"quantized::conv_transpose{n}d quantized::conv_transpose{n}d_dynamic" for n in (1, 2, 3)
)
_PREPACKED = """
    prepacked::conv2d_clamp_run mkldnn_prepacked::conv2d_run metal_prepacked::conv2d_run
    vulkan_prepacked::conv2d_clamp_run vulkan_prepacked::run_conv2d_context
"""


register(_LINEAR, "X|x|qx", kind="Linear")(matrix_product("X"))
register(_LINEAR_WITH_ACTIVATION, "X|x", kind="Linear")(matrix_product("X", flops=1))
register("quantized::matmul", "qa", kind="MatMul")(matrix_product("qa"))
_BATCH_NORMS = " ".join(
    f"batch_norm{form} batch_norm{form}_relu" for form in ("", "1d", "2d", "3d")
)
register(in_namespace("quantized", _BATCH_NORMS), "qx", kind="Normalization")(per_output(4))
_NORMS = in_namespace("quantized", "layer_norm group_norm instance_norm")
register(_NORMS, "input", kind="Normalization")(per_output(8))
# Each element is scaled and shifted back.
_EMBEDDINGS = in_namespace("quantized", "embedding_byte embedding_4bit")
register(_EMBEDDINGS, "weight indices", kind="Embedding")(per_output(2))


def _kernel(call: Call, name: str) -> tuple[int, ...] | None:
    """Return the shape of the weight among packed parameters: the one with most dimensions."""
    shapes = [whole_shape(spec) for spec in call.tensors(name)]
    kernels = [shape for shape in shapes if len(shape) >= 3]
    return max(kernels, key=len) if kernels else None


def _convolved(call: Call, kernel: tuple[int, ...] | None, other: int) -> Work | Uncounted:
    if kernel is None:
        return Uncounted(_PACKED)
    outputs = call.output_elements()
    return call.work(macs=convolution_macs(outputs, kernel), other_flops=other * outputs)


def _register_quantized(name: str) -> None:
    extra = ("_relu" in name) + ("_add" in name)
    order = "qx qaccum packed_weight" if "_add" in name else "qx packed_weight|weight"

    @register(f"quantized::{name}", order, kind="Convolution")
    def _formula(call: Call) -> Work | Uncounted:
        return _convolved(call, _kernel(call, "packed_weight"), extra)


for _name in _CONVOLUTIONS.split():
    _register_quantized(_name)


@register(_PREPACKED, "X W_prepack", kind="Convolution")
def _prepacked(call: Call) -> Work | Uncounted:
    return _convolved(call, _kernel(call, "W_prepack"), 0)


@register(
    f"{_TRANSPOSED} prepacked::conv2d_transpose_clamp_run",
    "qx|X packed_weight|W_prepack",
    kind="Convolution",
)
def _transposed(call: Call) -> Work | Uncounted:
    kernel = _kernel(call, "packed_weight")
    if kernel is None:
        return Uncounted(_PACKED)
    return call.work(macs=transposed_macs(call.elements("qx"), kernel))


@register("mkldnn::_convolution_pointwise", "X W", kind="Convolution")
def _pointwise(call: Call) -> Work | Uncounted:
    # The overload with a second tensor to add has it before the weight.
    third = call.with_parameters("X other W")
    is_binary = len(call.tensors("W")) == 1 and len(third.tensors("W")) == 1
    has_bias_third = is_binary and len(third.shape("W")) < 3
    weight = third if is_binary and not has_bias_third else call
    return _convolved(call, _kernel(weight, "W"), 1)


@register("mkldnn::_convolution_transpose_pointwise", "X W", kind="Convolution")
def _transposed_pointwise(call: Call) -> Work:
    return call.work(macs=transposed_macs(call.elements("X"), call.shape("W")))


@register(
    in_namespace("onednn", "qconv1d_pointwise qconv2d_pointwise qconv3d_pointwise qconv_pointwise"),
    "qx x_scale x_zero_point qw",
    kind="Convolution",
)
def _onednn_convolution(call: Call) -> Work | Uncounted:
    return _convolved(call, _kernel(call, "qw"), 0)


@register(
    in_namespace(
        "quantized",
        "linear_prepack conv1d_prepack conv2d_prepack conv3d_prepack linear_unpack conv1d_unpack "
        "conv2d_unpack conv3d_unpack",
    ),
    kind="Copy",
)
def _pack(call: Call) -> Work:
    return call.work()
