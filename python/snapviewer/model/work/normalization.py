"""Normalisations, in FLOPs per element.

The statistics of an element cost 4 (a sum for the mean; a difference, a square and a sum for the
variance), the normalisation 2, and a weight and a bias 2 more. Root mean squares cost 2, then
1, and 1 for a weight.
"""

from __future__ import annotations

from collections.abc import Callable

from snapviewer.model.work.registry import Call, Formula, Work, per_element_of, register

STATISTICS_FLOPS, SCALING_FLOPS, AFFINE_FLOPS = 4, 2, 2


def _normalized(has_statistics: Callable[[Call], bool]) -> Formula:
    def formula(call: Call) -> Work:
        per_element = SCALING_FLOPS
        per_element += STATISTICS_FLOPS if has_statistics(call) else 0
        per_element += AFFINE_FLOPS if call.is_given("weight") else 0
        return call.work(other_flops=per_element * call.elements("input"))

    return formula


def _batch_has_statistics(call: Call) -> bool:
    # The overload without running statistics takes them from the batch, and has `training` there.
    is_of_batch = isinstance(call.value("running_mean"), bool | int)
    return is_of_batch or bool(call.integer("training", 0))


_BATCH = "input weight bias running_mean running_var"
for _ops, _parameters, _has_statistics in (
    (
        "batch_norm native_batch_norm _batch_norm_impl_index _native_batch_norm_legit "
        "_native_batch_norm_legit_functional cudnn_batch_norm miopen_batch_norm",
        f"{_BATCH} training",
        _batch_has_statistics,
    ),
    (
        "_native_batch_norm_legit_no_training _batch_norm_no_update",
        f"{_BATCH} momentum",
        lambda _: False,
    ),
    (
        "_batch_norm_with_update _batch_norm_with_update_functional",
        f"{_BATCH} momentum",
        lambda _: True,
    ),
    (
        "instance_norm",
        f"{_BATCH} use_input_stats",
        lambda call: bool(call.integer("use_input_stats", 1)),
    ),
    (
        "layer_norm native_layer_norm prim::MKLDNNLayerNorm",
        "input normalized_shape weight bias",
        lambda _: True,
    ),
    ("group_norm", "input num_groups weight bias", lambda _: True),
    ("native_group_norm", "input weight bias", lambda _: True),
):
    register(_ops, _parameters, kind="Normalization")(_normalized(_has_statistics))


@register("rms_norm _fused_rms_norm", "input normalized_shape weight", kind="Normalization")
def _rms_norm(call: Call) -> Work:
    return call.work(other_flops=(3 + call.is_given("weight")) * call.elements("input"))


register("renorm", "self", kind="Normalization")(per_element_of("self", 4))
# A square, a sum, and the scaling.
register("_weight_norm _weight_norm_interface", "v g", kind="Normalization")(per_element_of("v", 3))
