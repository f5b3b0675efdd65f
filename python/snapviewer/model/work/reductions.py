"""Sums, softmax, sorting, transforms and losses: FLOPs per input element, as stated."""

from __future__ import annotations

from collections.abc import Callable
from math import log2, prod

from snapviewer.model.work.attention import SOFTMAX_FLOPS
from snapviewer.model.work.registry import Call, Work, register
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


def _per_input(flops: int) -> Callable[[Call], Work]:
    def _formula(call: Call) -> Work:
        values = (*call.node.arguments, *(value for _, value in call.node.keywords))
        largest = max(elements_of(spec) for spec in tensors_in((*values, *call.node.outputs)))
        return call.work(other_flops=flops * largest)

    return _formula


for _flops, _words in REDUCTIONS.items():
    register([f"aten::{word}" for word in _words.split()], kind="Reduction")(_per_input(_flops))


@register(("aten::scatter_add", "aten::scatter_reduce"), "self dim index src", kind="Reduction")
def _scatter(call: Call) -> Work:
    return call.work(other_flops=call.elements("index"))


@register(("aten::index_add", "aten::index_reduce"), "self dim index source", kind="Reduction")
def _add_at(call: Call) -> Work:
    return call.work(other_flops=call.elements("source"))


@register("aten::searchsorted", "sorted_sequence", kind="Reduction")
def _search(call: Call) -> Work:
    # Halving, for each value.
    levels = _levels(call.shape("sorted_sequence")[-1])
    return call.work(other_flops=round(call.output_elements() * levels))


@register(("aten::bucketize",), "self boundaries", kind="Reduction")
def _bucketize(call: Call) -> Work:
    return call.work(
        other_flops=round(call.output_elements() * _levels(call.elements("boundaries")))
    )


@register("aten::isin", "elements test_elements", kind="Reduction")
def _is_in(call: Call) -> Work:
    return call.work(other_flops=call.elements("elements") * call.elements("test_elements"))


@register(
    (
        "aten::softmax",
        "aten::_softmax",
        "aten::log_softmax",
        "aten::_log_softmax",
        "aten::_safe_softmax",
        "aten::_masked_softmax",
        "aten::special_softmax",
        "aten::special_log_softmax",
        "quantized::softmax",
    ),
    "self|qx",
    kind="Softmax",
)
def _softmax(call: Call) -> Work:
    return call.work(other_flops=SOFTMAX_FLOPS * call.output_elements())


@register(
    ("aten::cross_entropy_loss", "aten::ctc_loss", "aten::_ctc_loss"),
    "self|log_probs",
    kind="Reduction",
)
def _cross_entropy(call: Call) -> Work:
    return call.work(other_flops=(SOFTMAX_FLOPS + 1) * elements_of(call.tensors("self")[0]))


@register(
    (
        "aten::nll_loss",
        "aten::nll_loss_nd",
        "aten::nll_loss_forward",
        "aten::nll_loss2d",
        "aten::nll_loss2d_forward",
    ),
    "self target",
    kind="Reduction",
)
def _picked_losses(call: Call) -> Work:
    return call.work(other_flops=2 * call.elements("target"))


def _levels(size: int) -> float:
    return log2(size) if size > 1 else 1.0


@register(
    ("aten::sort", "aten::argsort", "aten::msort", "aten::unique_dim", "aten::_unique"),
    "self",
    kind="Reduction",
)
def _sort(call: Call) -> Work:
    # n·log₂n comparisons a row; the dimension is the last one nearly always.
    shape = call.shape("self") or (1,)
    return call.work(other_flops=round(prod(shape) * _levels(shape[-1])))


@register(
    ("aten::topk", "aten::kthvalue", "aten::quantile", "aten::nanquantile"),
    "self k|q",
    kind="Reduction",
)
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


def _transform(op: str, flops: float) -> Callable[[Call], Work]:
    def _formula(call: Call) -> Work:
        shape = max(call.shape("self"), tuple(size or 0 for size in call.output().shape), key=prod)
        dims = call.integers("dim") if op.startswith("_fft") else _dims(op, len(shape), call)
        length = prod(shape[dim] for dim in dims)
        return call.work(other_flops=round(flops * prod(shape) * _levels(length)))

    return _formula


def _dims(op: str, rank: int, call: Call) -> tuple[int, ...]:
    given = call.integers("dim")
    if given:
        return given
    if op.endswith("2"):
        return (-2, -1)
    return tuple(range(rank)) if op.endswith("n") else (-1,)


for _words, _cost in ((_COMPLEX, 5.0), (_REAL, 2.5)):
    for _op in _words.split():
        # 5·N·log₂N is the usual measure of a complex transform; a real one is half of it.
        _order = "self dim" if _op.startswith("_fft") else "self n|s dim"
        register(f"aten::{_op}", _order, kind="Transform")(_transform(_op, _cost))


@register(("aten::fft_fftshift", "aten::fft_ifftshift"), "self", kind="Copy")
def _shift(call: Call) -> Work:
    return call.work()


@register("aten::stft", "self n_fft", kind="Transform")
def _short_transforms(call: Call) -> Work:
    length = call.integer("n_fft")
    frames = call.output().shape[-1] or 0
    rows = prod(call.shape("self")[:-1])
    per_frame = 2.5 * length * _levels(length) + length
    return call.work(other_flops=round(rows * frames * per_frame))
