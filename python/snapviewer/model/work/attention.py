"""Attention, fused and unfused.

The scores are one product and the weighted values another. A causal mask does not reduce the
count: every score counts, as in published numbers and in unfused attention.
"""

from __future__ import annotations

from itertools import zip_longest
from math import prod

from snapviewer.model.work.registry import Call, Formula, Uncounted, Work, register

SOFTMAX_FLOPS = 5
"""Per element: the maximum, the difference, the exponential, the sum, the quotient."""


def attention_macs(scores: int, key_features: int, value_features: int) -> int:
    """Return the multiply-adds of attention with so many scores.

    >>> attention_macs(8 * 128 * 128, 64, 64)
    16777216
    """
    return scores * (key_features + value_features)


def _attention(mask: str) -> Formula:
    """Return the formula of attention whose mask is the argument of this name."""

    def formula(call: Call) -> Work:
        query, key, value = call.shape("query"), call.shape("key"), call.shape("value")
        # Grouped queries have fewer heads of keys, and with broadcasting either may have more.
        fronts = zip_longest(*(reversed(shape[:-2]) for shape in (query, key, value)), fillvalue=1)
        heads = prod(0 if 0 in sizes else max(sizes) for sizes in fronts)
        scores = heads * query[-2] * key[-2]
        return _scored(call, scores, query[-1], value[-1], is_masked=call.is_given(mask))

    return formula


register(
    "scaled_dot_product_attention _scaled_dot_product_attention_math "
    "_scaled_dot_product_attention_math_for_mps",
    "query key value attn_mask",
    kind="Attention",
)(_attention("attn_mask"))
# Their fourth argument is not the mask.
register(
    "_scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu",
    "query key value",
    kind="Attention",
)(_attention("attn_mask"))
register(
    "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention "
    "_scaled_dot_product_fused_attention_overrideable",
    "query key value attn_bias",
    kind="Attention",
)(_attention("attn_bias"))
# Scores that its mask leaves out count too, as in other attention; modifying scores does not.
register("higher_order::flex_attention", "query key value", kind="Attention")(_attention("query"))


def _scored(
    call: Call, scores: int, key_features: int, value_features: int, *, is_masked: bool
) -> Work:
    # One multiplication scales a score, one addition masks it.
    per_score = SOFTMAX_FLOPS + 1 + is_masked
    return call.work(
        macs=attention_macs(scores, key_features, value_features), other_flops=per_score * scores
    )


def _batch_first(lengths: str) -> Formula:
    """Return the formula of kernels with tensors of batch × positions × heads × features.

    Args:
        lengths: The argument that is given if sequences are packed.
    """

    def formula(call: Call) -> Work | Uncounted:
        if call.is_given(lengths):
            return Uncounted("the lengths of its packed sequences are not in the graph")
        batch, positions, heads, features = call.shape("query")
        _, key_positions, _, _ = call.shape("key")
        scores = batch * heads * positions * key_positions
        is_masked = call.is_given("bias")
        return _scored(call, scores, features, call.shape("value")[-1], is_masked=is_masked)

    return formula


register("_flash_attention_forward", "query key value cum_seq_q", kind="Attention")(
    _batch_first("cum_seq_q")
)
register(
    "_efficient_attention_forward _cudnn_attention_forward",
    "query key value bias|attn_bias cu_seqlens_q|cum_seq_q",
    kind="Attention",
)(_batch_first("cu_seqlens_q"))


@register(
    "_native_multi_head_attention",
    "query key value embed_dim num_head qkv_weight qkv_bias proj_weight proj_bias mask",
    kind="Attention",
)
def _multi_head_attention(call: Call) -> Work:
    batch, positions, features = call.shape("query")
    _, key_positions, _ = call.shape("key")
    heads = call.integer("num_head")
    macs, flops = _multi_head(
        batch, positions, key_positions, features, heads, is_masked=call.is_given("mask")
    )
    return call.work(macs=macs, other_flops=flops)


@register(
    "_transformer_encoder_layer_fwd",
    "src embed_dim num_heads qkv_weight qkv_bias proj_weight proj_bias use_gelu norm_first eps "
    "norm_weight_1 norm_bias_1 norm_weight_2 norm_bias_2 ffn_weight_1 ffn_bias_1 ffn_weight_2 "
    "ffn_bias_2 mask",
    kind="Attention",
)
def _encoder_layer(call: Call) -> Work:
    batch, positions, features = call.shape("src")
    hidden = call.shape("ffn_weight_1")[0]
    heads = call.integer("num_heads")
    macs, flops = _multi_head(
        batch, positions, positions, features, heads, is_masked=call.is_given("mask")
    )
    rows = batch * positions
    macs += 2 * rows * features * hidden
    # The activation, two additions around, and two layer norms of eight FLOPs an element.
    flops += rows * hidden + 2 * rows * features + 2 * 8 * rows * features
    return call.work(macs=macs, other_flops=flops)


def _multi_head(
    batch: int, positions: int, key_positions: int, features: int, heads: int, *, is_masked: bool
) -> tuple[int, int]:
    """Return multiply-adds and other FLOPs: four projections around the attention."""
    projections = batch * features * features * (2 * positions + 2 * key_positions)
    macs = projections + 2 * batch * positions * key_positions * features
    scores = batch * heads * positions * key_positions
    return macs, (SOFTMAX_FLOPS + 1 + is_masked) * scores
