"""Element-wise operations."""

from __future__ import annotations

from collections.abc import Callable

from snapviewer.model.graph import TensorSpec
from snapviewer.model.shapes.dimensions import Shape, ShapeError, axis, broadcast, divide
from snapviewer.model.shapes.dtypes import (
    complex_of,
    dtype_name,
    float_of,
    is_complex,
    is_integral,
    real_of,
    result_type,
)
from snapviewer.model.shapes.registry import Output, ShapeFunction, shape_function


def _stretched(*values: object) -> Shape:
    return broadcast(*(value.shape for value in values if isinstance(value, TensorSpec)))


def _has_tensor(*values: object) -> None:
    if not any(isinstance(value, TensorSpec) for value in values):
        raise ShapeError("no argument is a known tensor")


@shape_function(
    "relu relu6 neg negative positive square ceil floor round trunc fix sign clone detach alias "
    "contiguous hardtanh hardswish hardsigmoid leaky_relu elu selu celu gelu silu mish softplus "
    "softsign softshrink hardshrink threshold dropout feature_dropout alpha_dropout "
    "feature_alpha_dropout logsigmoid log_sigmoid conj resolve_conj resolve_neg conj_physical "
    "bitwise_not zero fill fill_diagonal uniform normal bernoulli exponential cauchy log_normal "
    "geometric random tril triu frac nan_to_num requires_grad "
    "lift_fresh lift lift_fresh_copy detach_copy tanhshrink rrelu _conj "
    "masked_scatter index_fill index_add index_copy scatter scatter_add scatter_reduce put "
    "rrelu_with_noise flip fliplr flipud roll sgn "
    "pin_memory _pin_memory index_put _index_put_impl _unsafe_index_put "
    "renorm channel_shuffle native_channel_shuffle slice_scatter select_scatter "
    "diagonal_scatter as_strided_scatter fake_quantize_per_tensor_affine "
    "fake_quantize_per_channel_affine special_round _conj_physical alias_copy "
    "poisson binomial quantized_batch_norm prelu _prelu_kernel copy to_dense to_padded_tensor "
    "linalg_inv inverse matrix_exp linalg_matrix_exp linalg_cholesky cholesky linalg_matrix_power "
    "matrix_power cholesky_inverse cholesky_solve lu_solve _transformer_encoder_layer_fwd "
    "normalize weight_norm _weight_norm fft_fftshift fft_ifftshift "
    "prim::MKLDNNHardSwish prim::MKLDNNHardSigmoid prim::MKLDNNHardTanh prim::MKLDNNClamp "
    "prim::MKLDNNLayerNorm prim::MKLDNNScalarMul "
    "quantized::relu quantized::relu6 quantized::hardswish quantized::leaky_relu "
    "quantized::sigmoid quantized::elu quantized::celu quantized::layer_norm quantized::dropout "
    "quantized::softmax"
)
def _same(self: TensorSpec, *rest: object, **named: object) -> Output:
    return self


def _binary(dtype_of: Callable[[list[object]], str]) -> ShapeFunction:
    """Return the shape function of operations on two operands, of which one is a tensor."""

    def shape(self: object, other: object, *rest: object, **named: object) -> Output:
        _has_tensor(self, other)
        return TensorSpec(_stretched(self, other), dtype_of([self, other]))

    return shape


for _ops, _dtype_of in (
    (
        "rsub sub subtract add mul multiply fmod remainder maximum minimum fmax fmin bitwise_and "
        "bitwise_or bitwise_xor __and__ __or__ __xor__ __lshift__ __rshift__ bitwise_left_shift "
        "bitwise_right_shift hypot gcd lcm heaviside nextafter floor_divide pow __iand__ __ior__ "
        "__ixor__ logaddexp logaddexp2 __ilshift__ __irshift__",
        result_type,
    ),
    (
        "atan2 arctan2 xlogy copysign special_xlogy special_xlog1py ldexp igamma igammac "
        "special_gammainc special_gammaincc special_zeta",
        lambda values: float_of(result_type(values)),
    ),
    (
        "eq ne lt le gt ge not_equal less less_equal greater greater_equal logical_and logical_or "
        "logical_xor isclose",
        lambda _: "bool",
    ),
    (
        "float_power",
        lambda values: "complex128" if is_complex(result_type(values)) else "float64",
    ),
):
    shape_function(_ops)(_binary(_dtype_of))


@shape_function("div", "true_divide", "divide")
def _divide(self: object, other: object, *, rounding_mode: object = None) -> Output:
    _has_tensor(self, other)
    dtype = result_type([self, other])
    return TensorSpec(
        _stretched(self, other), dtype if isinstance(rounding_mode, str) else float_of(dtype)
    )


_FUNCTIONS = (
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan arcsin arccos "
    "arctan sinh cosh tanh asinh acosh atanh arcsinh arccosh arctanh erf erfc erfinv sigmoid "
    "reciprocal lgamma digamma logit sinc deg2rad rad2deg i0 special_expit special_erf "
    "special_erfc special_log1p special_i1 special_ndtr special_exp2 mvlgamma polygamma "
    "special_gammaln special_psi special_log_ndtr special_digamma special_entr special_erfcx "
    "special_erfinv special_expm1 special_i0 special_i0e special_i1e special_logit special_ndtri "
    "special_sinc special_polygamma special_multigammaln special_bessel_j0 special_bessel_j1 "
    "special_bessel_y0 special_bessel_y1"
)


def _unary(dtype_of: Callable[[str], str]) -> ShapeFunction:
    """Return the shape function of operations on one tensor that change its type."""

    def shape(self: TensorSpec, *rest: object, **named: object) -> Output:
        return TensorSpec(self.shape, dtype_of(self.dtype))

    return shape


def _and_more(dtype: str) -> ShapeFunction:
    """Return the shape function of operations with a second output of the same shape."""

    def shape(self: TensorSpec, *rest: object, **named: object) -> Output:
        return (self, TensorSpec(self.shape, dtype))

    return shape


shape_function(_FUNCTIONS)(_unary(float_of))
shape_function("abs absolute real imag")(_unary(real_of))
shape_function("angle")(_unary(lambda dtype: float_of(real_of(dtype))))
shape_function("logical_not isnan isinf isfinite isneginf isposinf isreal signbit isin")(
    _unary(lambda _: "bool")
)
shape_function("argsort bucketize")(_unary(lambda _: "int64"))
shape_function("cummax cummin sort msort")(_and_more("int64"))
shape_function("frexp")(_and_more("int32"))
shape_function("native_dropout")(_and_more("bool"))


@shape_function("complex", "polar")
def _complex(real: TensorSpec, imag: TensorSpec) -> Output:
    return TensorSpec(_stretched(real, imag), complex_of(real.dtype))


@shape_function("clamp", "clip")
def _clamp(self: TensorSpec, min: object = None, max: object = None) -> Output:  # noqa: A002
    return TensorSpec(_stretched(self, min, max), result_type([self, min, max]))


@shape_function("clamp_min", "clamp_max")
def _clamp_one(self: TensorSpec, bound: object) -> Output:
    return TensorSpec(_stretched(self, bound), result_type([self, bound]))


@shape_function("masked_fill")
def _masked_fill(self: TensorSpec, mask: TensorSpec, value: object) -> Output:
    return TensorSpec(_stretched(self, mask), self.dtype)


@shape_function("where")
def _where(condition: TensorSpec, self: object = None, other: object = None) -> Output:
    if self is None:
        return [TensorSpec((None,), "int64") for _ in condition.shape or (1,)]
    return TensorSpec(_stretched(condition, self, other), result_type([self, other]))


@shape_function("lerp")
def _lerp(self: TensorSpec, end: TensorSpec, weight: object) -> Output:
    return TensorSpec(_stretched(self, end, weight), self.dtype)


@shape_function("addcmul", "addcdiv")
def _addc(self: TensorSpec, one: TensorSpec, two: TensorSpec, *, value: object = 1) -> Output:
    return TensorSpec(_stretched(self, one, two), result_type([self, one, two]))


@shape_function(
    "softmax log_softmax _softmax _log_softmax _safe_softmax special_softmax special_log_softmax "
    "softmin"
)
def _softmax(self: TensorSpec, dim: object, dtype: object = None) -> Output:
    named = "" if isinstance(dtype, bool) else dtype_name(dtype)
    return TensorSpec(self.shape, named or float_of(self.dtype))


@shape_function("cumsum", "cumprod", "logcumsumexp")
def _cumulative(self: TensorSpec, dim: object, *, dtype: object = None) -> Output:
    kept = "int64" if is_integral(self.dtype) else self.dtype
    return TensorSpec(self.shape, dtype_name(dtype) or kept)


@shape_function("glu")
def _glu(self: TensorSpec, dim: object = -1) -> Output:
    place = axis(dim, len(self.shape))
    half = divide(self.shape[place], 2)
    return TensorSpec((*self.shape[:place], half, *self.shape[place + 1 :]), self.dtype)


@shape_function(
    "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy "
    "binary_cross_entropy_with_logits"
)
def _loss(self: TensorSpec, target: TensorSpec, *rest: object, **named: object) -> Output:
    reduction = next((r for r in reversed(rest) if isinstance(r, int)), named.get("reduction", 1))
    return TensorSpec(_stretched(self, target) if reduction == 0 else (), self.dtype)


@shape_function("cosine_similarity", "pairwise_distance")
def _similarity(x1: TensorSpec, x2: TensorSpec, dim: object = 1, *rest: object) -> Output:
    shape = _stretched(x1, x2)
    place = axis(dim, len(shape)) if not isinstance(dim, float) else len(shape) - 1
    return TensorSpec(shape[:place] + shape[place + 1 :], float_of(result_type([x1, x2])))
