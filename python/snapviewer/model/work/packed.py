"""Layers whose weights were packed: quantized models, frozen ones, and those for phones.

A linear layer is counted by its input's last dimension, so its weights need not be known. A
convolution needs the shape of its kernel, which is countable if the graph has the tensors inside
the packed parameters.
"""

from __future__ import annotations

from snapviewer.model.work.convolution import convolution_macs, transposed_macs
from snapviewer.model.work.registry import Call, Uncounted, Work, register
from snapviewer.model.work.sizes import whole_shape

_PACKED = "its weights are packed, and their shapes not in the graph"

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
_TRANSPOSED = """
    quantized::conv_transpose1d quantized::conv_transpose2d quantized::conv_transpose3d
    quantized::conv_transpose1d_dynamic quantized::conv_transpose2d_dynamic
    quantized::conv_transpose3d_dynamic prepacked::conv2d_transpose_clamp_run
"""
_PREPACKED = """
    prepacked::conv2d_clamp_run mkldnn_prepacked::conv2d_run metal_prepacked::conv2d_run
    vulkan_prepacked::conv2d_clamp_run vulkan_prepacked::run_conv2d_context
"""


@register(_LINEAR.split(), "X|x|qx", kind="Linear")
def _linear(call: Call) -> Work:
    return call.work(macs=call.output_elements() * call.shape("X")[-1])


@register(_LINEAR_WITH_ACTIVATION.split(), "X|x", kind="Linear")
def _linear_and_activation(call: Call) -> Work:
    outputs = call.output_elements()
    return call.work(macs=outputs * call.shape("X")[-1], other_flops=outputs)


def _kernel(call: Call, name: str) -> tuple[int, ...] | None:
    """Return the shape of the weight among packed parameters: the one of most dimensions."""
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


@register(_PREPACKED.split(), "X W_prepack", kind="Convolution")
def _prepacked(call: Call) -> Work | Uncounted:
    return _convolved(call, _kernel(call, "W_prepack"), 0)


@register(_TRANSPOSED.split(), "qx|X packed_weight|W_prepack", kind="Convolution")
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
    (
        "onednn::qconv1d_pointwise",
        "onednn::qconv2d_pointwise",
        "onednn::qconv3d_pointwise",
        "onednn::qconv_pointwise",
    ),
    "qx x_scale x_zero_point qw",
    kind="Convolution",
)
def _onednn_convolution(call: Call) -> Work | Uncounted:
    return _convolved(call, _kernel(call, "qw"), 0)


@register("quantized::matmul", "qa", kind="MatMul")
def _matmul(call: Call) -> Work:
    return call.work(macs=call.output_elements() * call.shape("qa")[-1])


@register(
    [
        *(f"quantized::batch_norm{form}" for form in ("", "1d", "2d", "3d")),
        *(f"quantized::batch_norm{form}_relu" for form in ("", "1d", "2d", "3d")),
    ],
    "qx",
    kind="Normalization",
)
def _batch_norm(call: Call) -> Work:
    return call.work(other_flops=4 * call.output_elements())


@register(
    ("quantized::layer_norm", "quantized::group_norm", "quantized::instance_norm"),
    "input",
    kind="Normalization",
)
def _norm(call: Call) -> Work:
    return call.work(other_flops=8 * call.output_elements())


@register(
    ("quantized::embedding_byte", "quantized::embedding_4bit"), "weight indices", kind="Embedding"
)
def _embedding(call: Call) -> Work:
    # Each element is scaled and shifted back.
    return call.work(other_flops=2 * call.output_elements())


@register(
    [
        f"{op}_{what}"
        for op in (
            "quantized::linear",
            "quantized::conv1d",
            "quantized::conv2d",
            "quantized::conv3d",
        )
        for what in ("prepack", "unpack")
    ],
    kind="Copy",
)
def _pack(call: Call) -> Work:
    return call.work()
