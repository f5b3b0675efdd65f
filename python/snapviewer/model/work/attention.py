"""Attention, fused and unfused.

The scores are one product and the weighted values another. A causal mask does not lessen the
count: every score counts, as published numbers have it and as unfused attention computes it.
"""

from __future__ import annotations

from itertools import zip_longest
from math import prod

from snapviewer.model.work.registry import Call, Uncounted, Work, register

SOFTMAX_FLOPS = 5
"""Per element: the maximum, the difference, the exponential, the sum, the quotient."""


def attention_macs(scores: int, key_features: int, value_features: int) -> int:
    """Return the multiply-adds of attention with so many scores.

    >>> attention_macs(8 * 128 * 128, 64, 64)
    16777216
    """
    return scores * (key_features + value_features)


@register(
    (
        "aten::scaled_dot_product_attention",
        "aten::_scaled_dot_product_attention_math",
        "aten::_scaled_dot_product_attention_math_for_mps",
    ),
    "query key value attn_mask",
    kind="Attention",
)
def _attention(call: Call) -> Work:
    return _attend(call, is_masked=call.is_given("attn_mask"))


@register(
    (
        "aten::_scaled_dot_product_flash_attention_for_cpu",
        "aten::_scaled_dot_product_flash_attention",
    ),
    "query key value",
    kind="Attention",
)
def _flash_attention(call: Call) -> Work:
    return _attend(call, is_masked=call.is_given("attn_mask"))


@register(
    (
        "aten::_scaled_dot_product_efficient_attention",
        "aten::_scaled_dot_product_cudnn_attention",
        "aten::_scaled_dot_product_fused_attention_overrideable",
    ),
    "query key value attn_bias",
    kind="Attention",
)
def _biased_attention(call: Call) -> Work:
    return _attend(call, is_masked=call.is_given("attn_bias"))


@register("higher_order::flex_attention", "query key value", kind="Attention")
def _flexible_attention(call: Call) -> Work:
    # Scores that its mask leaves out count too, as in other attention; what changes them does not.
    return _attend(call, is_masked=True)


def _attend(call: Call, *, is_masked: bool) -> Work:
    query, key, value = call.shape("query"), call.shape("key"), call.shape("value")
    # With grouped queries the keys have fewer heads, and with broadcasting either may have more.
    fronts = zip_longest(*(reversed(shape[:-2]) for shape in (query, key, value)), fillvalue=1)
    heads = prod(0 if 0 in sizes else max(sizes) for sizes in fronts)
    return _scored(call, heads * query[-2] * key[-2], query[-1], value[-1], is_masked)


def _scored(
    call: Call, scores: int, key_features: int, value_features: int, is_masked: bool
) -> Work:
    # One multiplication scales a score, one addition masks it.
    per_score = SOFTMAX_FLOPS + 1 + is_masked
    return call.work(
        macs=attention_macs(scores, key_features, value_features), other_flops=per_score * scores
    )


@register(
    "aten::_flash_attention_forward",
    "query key value cum_seq_q",
    kind="Attention",
)
def _flash_forward(call: Call) -> Work | Uncounted:
    return _batch_first(call, is_masked=False, is_packed=call.is_given("cum_seq_q"))


@register(
    ("aten::_efficient_attention_forward", "aten::_cudnn_attention_forward"),
    "query key value bias|attn_bias cu_seqlens_q|cum_seq_q",
    kind="Attention",
)
def _efficient_forward(call: Call) -> Work | Uncounted:
    is_packed = call.is_given("cu_seqlens_q")
    return _batch_first(call, is_masked=call.is_given("bias"), is_packed=is_packed)


def _batch_first(call: Call, *, is_masked: bool, is_packed: bool) -> Work | Uncounted:
    """Count kernels whose tensors are batch × positions × heads × features."""
    if is_packed:
        return Uncounted("the lengths of its packed sequences are not in the graph")
    batch, positions, heads, features = call.shape("query")
    _, key_positions, _, _ = call.shape("key")
    scores = batch * heads * positions * key_positions
    return _scored(call, scores, features, call.shape("value")[-1], is_masked)


@register(
    "aten::_native_multi_head_attention",
    "query key value embed_dim num_head qkv_weight qkv_bias proj_weight proj_bias mask",
    kind="Attention",
)
def _multi_head_attention(call: Call) -> Work:
    batch, positions, features = call.shape("query")
    _, key_positions, _ = call.shape("key")
    heads = call.integer("num_head")
    macs, flops = _multi_head(
        batch, positions, key_positions, features, heads, call.is_given("mask")
    )
    return call.work(macs=macs, other_flops=flops)


@register(
    "aten::_transformer_encoder_layer_fwd",
    "src embed_dim num_heads qkv_weight qkv_bias proj_weight proj_bias use_gelu norm_first eps "
    "norm_weight_1 norm_bias_1 norm_weight_2 norm_bias_2 ffn_weight_1 ffn_bias_1 ffn_weight_2 "
    "ffn_bias_2 mask",
    kind="Attention",
)
def _encoder_layer(call: Call) -> Work:
    batch, positions, features = call.shape("src")
    hidden = call.shape("ffn_weight_1")[0]
    heads = call.integer("num_heads")
    macs, flops = _multi_head(batch, positions, positions, features, heads, call.is_given("mask"))
    rows = batch * positions
    macs += 2 * rows * features * hidden
    # The activation, two additions around, and two layer norms of eight FLOPs an element.
    flops += rows * hidden + 2 * rows * features + 2 * 8 * rows * features
    return call.work(macs=macs, other_flops=flops)


def _multi_head(
    batch: int, positions: int, key_positions: int, features: int, heads: int, is_masked: bool
) -> tuple[int, int]:
    """Return multiply-adds and other FLOPs: four projections around the attention."""
    projections = batch * features * features * (2 * positions + 2 * key_positions)
    macs = projections + 2 * batch * positions * key_positions * features
    scores = batch * heads * positions * key_positions
    return macs, (SOFTMAX_FLOPS + 1 + is_masked) * scores
