"""Tables of vectors: what is read of them is what is written, not the whole table."""

from __future__ import annotations

from snapviewer.model.work.registry import Call, Work, register
from snapviewer.model.work.sizes import bits_of, bytes_of


@register("aten::embedding", "weight indices", kind="Embedding")
def _embedding(call: Call) -> Work:
    return call.work(read_bytes=bytes_of(call.output()) + bytes_of(call.tensor("indices")))


@register(
    ("aten::embedding_bag", "aten::_embedding_bag", "aten::_embedding_bag_forward_only"),
    "weight indices offsets scale_grad_by_freq mode sparse per_sample_weights",
    kind="Embedding",
)
def _embedding_bag(call: Call) -> Work:
    weight = call.tensor("weight")
    rows, width = call.elements("indices"), call.shape("weight")[-1]
    read = rows * width * (bits_of(weight.dtype) or 32) // 8 + bytes_of(call.tensor("indices"))
    # An addition for each element read, and a product where the samples have weights.
    per_element = 1 + call.is_given("per_sample_weights")
    return call.work(other_flops=per_element * rows * width, read_bytes=read)


@register("aten::one_hot", "self", kind="Embedding")
def _one_hot(call: Call) -> Work:
    return call.work()


@register("aten::embedding_renorm", "self indices", kind="Embedding")
def _embedding_renorm(call: Call) -> Work:
    return call.work(other_flops=3 * call.elements("indices") * call.shape("self")[-1])
