"""Reductions, softmax, sorting, Fourier transforms and losses, in FLOPs per input element."""

from __future__ import annotations

from math import log2, prod

from snapviewer.model.work.attention import SOFTMAX_FLOPS
from snapviewer.model.work.registry import (
    Call,
    Formula,
    Work,
    per_element_of,
    per_output,
    register,
)
from snapviewer.model.work.sizes import elements_of, tensors_in

REDUCTIONS = {
    1: """
        all amax amin aminmax _aminmax any argmax argmin bincount count_nonzero cummax cummin
        cumprod cumsum _cummax_helper _cummin_helper histc logcumsumexp
        _logcumsumexp max mean median min mode nanmean nanmedian nansum prod sum trace
        sum_to_size segment_reduce _grad_sum_to_size
        cumulative_trapezoid trapezoid trapz
    """,
    2: """
        dist frobenius_norm linalg_matrix_norm linalg_norm linalg_vector_norm nuclear_norm norm
        native_norm norm_except_dim
    """,
    4: "logsumexp std std_mean var var_mean _unique2 unique_consecutive",
    6: "cosine_similarity pairwise_distance",
}


def _per_input(flops: int) -> Formula:
    def formula(call: Call) -> Work:
        values = (*call.node.arguments, *(value for _, value in call.node.keywords))
        largest = max(elements_of(spec) for spec in tensors_in((*values, *call.node.outputs)))
        return call.work(other_flops=flops * largest)

    return formula


for _flops, _ops in REDUCTIONS.items():
    register(_ops, kind="Reduction")(_per_input(_flops))
for _ops, _parameters, _formula in (
    ("scatter_add scatter_reduce", "self dim index src", per_element_of("index", 1)),
    ("index_add index_reduce", "self dim index source", per_element_of("source", 1)),
    (
        "nll_loss nll_loss_nd nll_loss_forward nll_loss2d nll_loss2d_forward",
        "self target",
        per_element_of("target", 2),
    ),
):
    register(_ops, _parameters, kind="Reduction")(_formula)
register(
    "softmax _softmax log_softmax _log_softmax _safe_softmax _masked_softmax special_softmax "
    "special_log_softmax quantized::softmax",
    "self|qx",
    kind="Softmax",
)(per_output(SOFTMAX_FLOPS))


@register("searchsorted", "sorted_sequence", kind="Reduction")
def _search(call: Call) -> Work:
    # Halving, for each value.
    levels = _levels(call.shape("sorted_sequence")[-1])
    return call.work(other_flops=round(call.output_elements() * levels))


@register("bucketize", "self boundaries", kind="Reduction")
def _bucketize(call: Call) -> Work:
    return call.work(
        other_flops=round(call.output_elements() * _levels(call.elements("boundaries")))
    )


@register("isin", "elements test_elements", kind="Reduction")
def _is_in(call: Call) -> Work:
    return call.work(other_flops=call.elements("elements") * call.elements("test_elements"))


@register("cross_entropy_loss ctc_loss _ctc_loss", "self|log_probs", kind="Reduction")
def _cross_entropy(call: Call) -> Work:
    return call.work(other_flops=(SOFTMAX_FLOPS + 1) * elements_of(call.tensors("self")[0]))


def _levels(size: int) -> float:
    return log2(size) if size > 1 else 1.0


@register("sort argsort msort unique_dim _unique", "self", kind="Reduction")
def _sort(call: Call) -> Work:
    # n·log₂n comparisons per row; the dimension is nearly always the last one.
    shape = call.shape("self") or (1,)
    return call.work(other_flops=round(prod(shape) * _levels(shape[-1])))


@register("topk kthvalue quantile nanquantile", "self k|q", kind="Reduction")
def _topk(call: Call) -> Work:
    # n·log₂k comparisons: a heap of the k best.
    wanted = call.value("k")
    size = wanted if isinstance(wanted, int) else (call.shape("self") or (1,))[-1]
    return call.work(other_flops=round(call.elements("self") * _levels(size)))


_COMPLEX = "fft_fft fft_ifft fft_fft2 fft_ifft2 fft_fftn fft_ifftn _fft_c2c"
_REAL = """
    fft_rfft fft_irfft fft_hfft fft_ihfft fft_rfft2 fft_irfft2 fft_rfftn fft_irfftn _fft_r2c
    _fft_c2r fft_hfft2 fft_ihfft2 fft_hfftn fft_ihfftn
"""


def _transform(op: str, flops: float) -> Formula:
    def formula(call: Call) -> Work:
        shape = max(call.shape("self"), tuple(size or 0 for size in call.output().shape), key=prod)
        dims = call.integers("dim") if op.startswith("_fft") else _dims(op, len(shape), call)
        length = prod(shape[dim] for dim in dims)
        return call.work(other_flops=round(flops * prod(shape) * _levels(length)))

    return formula


def _dims(op: str, rank: int, call: Call) -> tuple[int, ...]:
    given = call.integers("dim")
    if given:
        return given
    if op.endswith("2"):
        return (-2, -1)
    return tuple(range(rank)) if op.endswith("n") else (-1,)


for _ops, _cost in ((_COMPLEX, 5.0), (_REAL, 2.5)):
    for _op in _ops.split():
        # 5·N·log₂N is the usual count of a complex transform; a real one takes half of it.
        _order = "self dim" if _op.startswith("_fft") else "self n|s dim"
        register(_op, _order, kind="Transform")(_transform(_op, _cost))


@register("fft_fftshift fft_ifftshift", "self", kind="Copy")
def _shift(call: Call) -> Work:
    return call.work()


@register("stft", "self n_fft", kind="Transform")
def _short_transforms(call: Call) -> Work:
    length = call.integer("n_fft")
    frames = call.output().shape[-1] or 0
    rows = prod(call.shape("self")[:-1])
    per_frame = 2.5 * length * _levels(length) + length
    return call.work(other_flops=round(rows * frames * per_frame))
