"""Element-wise operations: one FLOP per element unless stated here.

Integers and booleans count as well, and a function such as `exp` counts once, whatever it takes a
machine to compute it.
"""

from __future__ import annotations

from snapviewer.model.work.registry import (
    Call,
    Formula,
    Work,
    in_namespace,
    register,
    without_traffic,
)
from snapviewer.model.work.sizes import elements_of

ACTIVATIONS = """
    celu elu gelu glu hardshrink hardsigmoid hardswish hardtanh leaky_relu log_sigmoid
    log_sigmoid_forward mish prelu _prelu_kernel relu relu6 rrelu rrelu_with_noise selu sigmoid
    silu softplus softshrink tanh threshold logit
"""
PRIM_ACTIVATIONS = "MKLDNNClamp MKLDNNHardSigmoid MKLDNNHardSwish MKLDNNHardTanh"

ELEMENT_WISE = """
    abs absolute acos acosh add angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin
    asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor ceil clamp clamp_max clamp_min clip complex conj_physical
    _conj_physical copysign cos cosh deg2rad digamma div divide eq erf erfc erfinv exp exp2 expm1
    fix float_power floor floor_divide fmax fmin fmod frac frexp gcd ge greater greater_equal gt
    heaviside hypot i0 igamma igammac isclose isfinite isinf isnan isneginf isposinf isreal lcm
    ldexp le less less_equal lgamma log log10 log1p log2 logaddexp logaddexp2 logical_and
    logical_not logical_or logical_xor lt masked_fill maximum minimum mul multiply mvlgamma
    nan_to_num ne neg negative nextafter not_equal polar polygamma pow rad2deg reciprocal
    remainder round rsqrt rsub sgn sigmoid sign signbit sin sinc sinh sqrt square sub subtract tan
    tril triu true_divide trunc where xlogy
    special_digamma special_entr special_erf special_erfc special_erfcx special_erfinv special_exp2
    special_expit special_expm1 special_gammainc special_gammaincc special_gammaln special_i0
    special_i0e special_i1 special_i1e special_log1p special_log_ndtr special_logit special_ndtr
    special_ndtri special_psi special_round special_sinc special_xlog1py special_xlogy special_zeta
    special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1
    __and__ __or__ __xor__ __lshift__ __rshift__ __iand__ __ior__ __ixor__ __ilshift__ __irshift__
    _add_relu _masked_scale _transform_bias_rescale_qkv dequantize
"""

STATED = {
    2: """
        quantize_per_tensor quantize_per_channel quantize_per_tensor_dynamic
        l1_loss hinge_embedding_loss
    """,
    # A product, its scaling, and the sum; a difference, its scaling, and the sum; ….
    3: "addcmul addcdiv lerp mse_loss linalg_cross cross diff",
    4: """
        fake_quantize_per_tensor_affine fake_quantize_per_channel_affine
        fake_quantize_per_tensor_affine_cachemask fake_quantize_per_channel_affine_cachemask
        _fake_quantize_learnable_per_tensor_affine _fake_quantize_learnable_per_channel_affine
        _fake_quantize_per_tensor_affine_cachemask_tensor_qparams fused_moving_avg_obs_fake_quant
        _fused_moving_avg_obs_fq_helper smooth_l1_loss huber_loss binary_cross_entropy
        kl_div poisson_nll_loss soft_margin_loss
    """,
    6: "binary_cross_entropy_with_logits",
}

QUANTIZED = """
    add add_relu add_scalar add_scalar_relu mul mul_relu mul_scalar mul_scalar_relu
"""
QUANTIZED_ACTIVATIONS = "celu clamp elu hardswish leaky_relu prelu relu6 sigmoid threshold"


def per_element(flops: int) -> Formula:
    """Return a formula of so many FLOPs per element, of the larger of input and output."""

    def formula(call: Call) -> Work:
        # A gated unit and a loss read more than they write, a broadcast writes more.
        read = [elements_of(spec) for spec in call.tensors("self")]
        return call.work(other_flops=flops * max([call.output_elements(), *read]))

    return formula


for _ops, _parameters, _kind in (
    (ACTIVATIONS, "self", "Activation"),
    (in_namespace("prim", PRIM_ACTIVATIONS), "self|a", "Activation"),
    (in_namespace("quantized", QUANTIZED_ACTIVATIONS), "self|qx|input", "Activation"),
    (ELEMENT_WISE, "self|condition|real|abs|n|qkv", "ElementWise"),
    ("prim::MKLDNNScalarMul", "self", "ElementWise"),
    (in_namespace("quantized", QUANTIZED), "self|qa|b", "ElementWise"),
    (in_namespace("onednn", "qadd qadd_relu qmul"), "self", "ElementWise"),
):
    register(_ops, _parameters, kind=_kind)(per_element(1))
for _flops, _ops in STATED.items():
    register(_ops, "self|input", kind="ElementWise")(per_element(_flops))
register("quantized::dropout", "self", kind="Dropout")(without_traffic)


@register(
    "dropout alpha_dropout feature_dropout feature_alpha_dropout", "input p train", kind="Dropout"
)
def _dropout(call: Call) -> Work:
    if not call.integer("train", 0):
        return without_traffic(call)
    # The mask and the scale.
    return call.work(other_flops=2 * call.output_elements())


@register("native_dropout _fused_dropout", "input|self p train|generator", kind="Dropout")
def _native_dropout(call: Call) -> Work:
    is_on = call.value("train") is not False
    return call.work(other_flops=2 * call.output_elements() if is_on else 0)
