"""The operations of torchvision."""

from __future__ import annotations

from math import prod

from snapviewer.model.work.registry import Call, Uncounted, Work, register

_OVERLAP_FLOPS = 14
"""For a pair of boxes: four extremes, two differences clamped, the areas, the quotient, a test."""


@register("torchvision::deform_conv2d", "input weight offset mask bias", kind="Convolution")
def _deformable(call: Call) -> Work:
    batch, channels = call.shape("input")[:2]
    weight = call.shape("weight")
    outputs = call.output_elements()
    places = prod(size or 0 for size in call.output().shape[-2:])
    samples = batch * channels * prod(weight[2:]) * places
    # Each sample is made of four corners, and weighted by the mask.
    per_sample = 8 + bool(call.tensors("mask"))
    return call.work(macs=outputs * prod(weight[1:]), other_flops=per_sample * samples)


@register(("torchvision::nms", "torchvision::qnms"), "dets", kind="Detection")
def _suppression(call: Call) -> Work:
    # At most: every pair of boxes is compared where none is suppressed.
    boxes = call.shape("dets")[0]
    return call.work(other_flops=_OVERLAP_FLOPS * boxes * (boxes - 1) // 2)


@register("torchvision::box_iou_rotated", "boxes1", kind="Detection")
def _overlaps(call: Call) -> Work:
    return call.work(other_flops=_OVERLAP_FLOPS * call.output_elements())


@register(
    ("torchvision::roi_align", "torchvision::ps_roi_align"),
    "input rois spatial_scale pooled_height pooled_width sampling_ratio",
    kind="Pooling",
)
def _roi_align(call: Call) -> Work | Uncounted:
    ratio = call.integer("sampling_ratio", -1)
    if ratio <= 0:
        return Uncounted("how many samples a region gets depends on its size in the data")
    # Each sample is made of four corners and added up; then the mean.
    return call.work(other_flops=(9 * ratio * ratio + 1) * call.output_elements())


@register(("torchvision::roi_pool", "torchvision::ps_roi_pool"), "input", kind="Pooling")
def _roi_pool(call: Call) -> Uncounted:
    return Uncounted("how many elements a region has depends on its size in the data")
