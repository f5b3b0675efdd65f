"""Normalisations, in FLOPs per element.

The statistics of an element cost 4 (a sum for the mean; a difference, a square and a sum for the
variance), the normalisation 2, and a weight and a bias 2 more. Root mean squares cost 2, then
1, and 1 for a weight.
"""

from __future__ import annotations

from snapviewer.model.work.registry import Call, Work, register

STATISTICS_FLOPS, SCALING_FLOPS, AFFINE_FLOPS = 4, 2, 2


def _normalized(call: Call, name: str, *, has_statistics: bool) -> Work:
    per_element = SCALING_FLOPS
    per_element += STATISTICS_FLOPS if has_statistics else 0
    per_element += AFFINE_FLOPS if call.is_given("weight") else 0
    return call.work(other_flops=per_element * call.elements(name))


_BATCH = "input weight bias running_mean running_var training"
_BATCH_OF_KNOWN_MODE = "input weight bias running_mean running_var momentum"


@register(
    (
        "aten::batch_norm",
        "aten::native_batch_norm",
        "aten::_batch_norm_impl_index",
        "aten::_native_batch_norm_legit",
        "aten::_native_batch_norm_legit_functional",
        "aten::cudnn_batch_norm",
        "aten::miopen_batch_norm",
    ),
    _BATCH,
    kind="Normalization",
)
def _batch_norm(call: Call) -> Work:
    # The overload without running statistics takes them from the batch, and has `training` there.
    if isinstance(call.value("running_mean"), bool | int):
        return _normalized(call, "input", has_statistics=True)
    return _normalized(call, "input", has_statistics=bool(call.integer("training", 0)))


@register(
    ("aten::_native_batch_norm_legit_no_training", "aten::_batch_norm_no_update"),
    _BATCH_OF_KNOWN_MODE,
    kind="Normalization",
)
def _batch_norm_of_inference(call: Call) -> Work:
    return _normalized(call, "input", has_statistics=False)


@register(
    ("aten::_batch_norm_with_update", "aten::_batch_norm_with_update_functional"),
    _BATCH_OF_KNOWN_MODE,
    kind="Normalization",
)
def _batch_norm_of_training(call: Call) -> Work:
    return _normalized(call, "input", has_statistics=True)


@register(
    "aten::instance_norm",
    "input weight bias running_mean running_var use_input_stats",
    kind="Normalization",
)
def _instance_norm(call: Call) -> Work:
    return _normalized(call, "input", has_statistics=bool(call.integer("use_input_stats", 1)))


@register(
    ("aten::layer_norm", "aten::native_layer_norm", "prim::MKLDNNLayerNorm"),
    "input normalized_shape weight bias",
    kind="Normalization",
)
def _layer_norm(call: Call) -> Work:
    return _normalized(call, "input", has_statistics=True)


@register("aten::group_norm", "input num_groups weight bias", kind="Normalization")
def _group_norm(call: Call) -> Work:
    return _normalized(call, "input", has_statistics=True)


@register("aten::native_group_norm", "input weight bias", kind="Normalization")
def _native_group_norm(call: Call) -> Work:
    return _normalized(call, "input", has_statistics=True)


@register(
    ("aten::rms_norm", "aten::_fused_rms_norm"),
    "input normalized_shape weight",
    kind="Normalization",
)
def _rms_norm(call: Call) -> Work:
    return call.work(other_flops=(3 + call.is_given("weight")) * call.elements("input"))


@register("aten::renorm", "self", kind="Normalization")
def _renorm(call: Call) -> Work:
    return call.work(other_flops=4 * call.elements("self"))


@register(("aten::_weight_norm", "aten::_weight_norm_interface"), "v g", kind="Normalization")
def _weight_norm(call: Call) -> Work:
    # A square, a sum, and the scaling.
    return call.work(other_flops=3 * call.elements("v"))
