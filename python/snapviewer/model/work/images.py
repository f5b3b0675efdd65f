"""Operations on images: pooling, resampling, and those of torchvision.

A pooled output costs the size of its window: as many comparisons, or as many additions and a
division. A resampled output costs two FLOPs for each input that it is computed from.
"""

from __future__ import annotations

from math import ceil, gcd, prod

from snapviewer.model.work.registry import Call, Formula, Uncounted, Work, per_output, register
from snapviewer.model.work.sizes import bytes_of, whole_shape

_POOLS = """
    avg_pool1d avg_pool2d avg_pool3d max_pool1d max_pool2d max_pool3d max_pool1d_with_indices
    max_pool2d_with_indices max_pool3d_with_indices mkldnn_max_pool2d mkldnn_max_pool3d
    quantized_max_pool1d quantized_max_pool2d quantized_max_pool3d fractional_max_pool2d
    fractional_max_pool3d
"""
_ADAPTIVE = """
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool2d adaptive_max_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d
    mkldnn_adaptive_avg_pool2d
"""


def _pool(dimensions: int) -> Formula:
    def formula(call: Call) -> Work:
        kernel = call.integers("kernel_size")
        window = kernel[0] ** dimensions if len(kernel) == 1 else prod(kernel)
        return call.work(other_flops=window * call.output_elements())

    return formula


def _dimensions(op: str) -> int:
    return next(int(letter) for letter in op if letter in "123")


for _name in (*_POOLS.split(), "quantized::max_pool1d", "quantized::max_pool2d"):
    register(_name, "self|qx kernel_size", kind="Pooling")(_pool(_dimensions(_name)))


def windows(inputs: int, outputs: int) -> int:
    """Return the sum of the sizes of the windows of adaptive pooling in one dimension.

    Window i reaches from ⌊i·inputs/outputs⌋ to ⌈(i+1)·inputs/outputs⌉; these sum up to this.

    >>> windows(7, 7), windows(7, 1), windows(10, 3)
    (7, 7, 12)
    """
    return inputs + outputs - gcd(inputs, outputs)


def _adaptive_pool(dimensions: int) -> Formula:
    def formula(call: Call) -> Work:
        before, after = call.shape("self"), whole_shape(call.output())
        pairs = zip(before[-dimensions:], after[-dimensions:], strict=True)
        taken = [windows(old, new) for old, new in pairs]
        return call.work(other_flops=prod(before[:-dimensions]) * prod(taken))

    return formula


for _name in _ADAPTIVE.split():
    register(_name, "self", kind="Pooling")(_adaptive_pool(_dimensions(_name)))


_TAPS = {"linear": 2, "bilinear": 4, "trilinear": 8, "bicubic": 16}
for _count, _ops in {
    2: "upsample_linear1d",
    4: "upsample_bilinear2d __upsample_bilinear",
    8: "upsample_trilinear3d",
    16: "upsample_bicubic2d",
}.items():
    register(_ops, "self|input", kind="Resampling")(per_output(2 * _count))
register("cudnn_grid_sampler", "self grid", kind="Resampling")(per_output(2 * 4))


@register("__interpolate __upsample", "input size scale_factor mode", kind="Resampling")
def _interpolate(call: Call) -> Work:
    mode = call.value("mode")
    count = _TAPS.get(mode, 0) if isinstance(mode, str) else 0
    return call.work(other_flops=2 * count * call.output_elements())


@register("__upsample_nearest", "input", kind="Resampling")
def _nearest(call: Call) -> Work:
    written = bytes_of(call.output())
    return call.work(read_bytes=written, written_bytes=written)


def _smooth(support: int) -> Formula:
    def formula(call: Call) -> Work:
        before, after = call.shape("self"), call.output().shape
        sizes = zip(before[-2:], after[-2:], strict=True)
        taps = prod(2 * ceil(support * max(old / max(new or 1, 1), 1)) for old, new in sizes)
        return call.work(other_flops=2 * taps * call.output_elements())

    return formula


# A smaller output is computed from all inputs below it, at most this many.
for _support, _mode in enumerate(("bilinear", "bicubic", "lanczos"), start=1):
    register(f"_upsample_{_mode}2d_aa", "self", kind="Resampling")(_smooth(_support))


@register(
    "grid_sampler grid_sampler_2d grid_sampler_3d _grid_sampler_2d_cpu_fallback",
    "input grid interpolation_mode",
    kind="Resampling",
)
def _grid_sample(call: Call) -> Work:
    corners = 2 ** (len(call.shape("input")) - 2)
    # 0 is linear, 1 nearest, 2 cubic.
    taps = {0: corners, 1: 0, 2: corners**2}[call.integer("interpolation_mode", 0)]
    return call.work(other_flops=2 * taps * call.output_elements())


@register("affine_grid_generator cudnn_affine_grid_generator", "theta", kind="Resampling")
def _affine_grid(call: Call) -> Work:
    # Each coordinate is a product with a row of the matrix.
    return call.work(macs=call.output_elements() * call.shape("theta")[-1])


_OVERLAP_FLOPS = 14
"""For a pair of boxes: four extremes, two differences clamped, the areas, the quotient, a test."""


@register("torchvision::deform_conv2d", "input weight offset mask bias", kind="Convolution")
def _deformable(call: Call) -> Work:
    batch, channels = call.shape("input")[:2]
    weight = call.shape("weight")
    outputs = call.output_elements()
    places = prod(size or 0 for size in call.output().shape[-2:])
    samples = batch * channels * prod(weight[2:]) * places
    # Each sample is interpolated from four corners, and weighted by the mask.
    per_sample = 8 + bool(call.tensors("mask"))
    return call.work(macs=outputs * prod(weight[1:]), other_flops=per_sample * samples)


@register("torchvision::nms torchvision::qnms", "dets", kind="Detection")
def _suppression(call: Call) -> Work:
    # At most: every pair of boxes is compared if none is suppressed.
    boxes = call.shape("dets")[0]
    return call.work(other_flops=_OVERLAP_FLOPS * boxes * (boxes - 1) // 2)


register("torchvision::box_iou_rotated", "boxes1", kind="Detection")(per_output(_OVERLAP_FLOPS))


@register(
    "torchvision::roi_align torchvision::ps_roi_align",
    "input rois spatial_scale pooled_height pooled_width sampling_ratio",
    kind="Pooling",
)
def _roi_align(call: Call) -> Work | Uncounted:
    ratio = call.integer("sampling_ratio", -1)
    if ratio <= 0:
        return Uncounted("the number of samples of a region depends on the data")
    # Each sample is interpolated from four corners and added up; then the mean.
    return call.work(other_flops=(9 * ratio * ratio + 1) * call.output_elements())


@register("torchvision::roi_pool torchvision::ps_roi_pool", "input", kind="Pooling")
def _roi_pool(call: Call) -> Uncounted:
    return Uncounted("the number of elements of a region depends on the data")
