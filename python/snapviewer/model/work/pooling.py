"""Pooling and resampling.

A pooled output costs the size of its window: as many comparisons, or as many additions and a
division. A resampled output costs two FLOPs for each input it is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, gcd, prod

from snapviewer.model.work.registry import Call, Work, register
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


def _register_pool(op: str, dimensions: int) -> None:
    @register(op, "self|qx kernel_size", kind="Pooling")
    def _formula(call: Call) -> Work:
        kernel = call.integers("kernel_size")
        window = kernel[0] ** dimensions if len(kernel) == 1 else prod(kernel)
        return call.work(other_flops=window * call.output_elements())


def _dimensions(op: str) -> int:
    return next(int(letter) for letter in op if letter in "123")


for _name in _POOLS.split():
    _register_pool(f"aten::{_name}", _dimensions(_name))
for _name in ("max_pool1d", "max_pool2d"):
    _register_pool(f"quantized::{_name}", _dimensions(_name))


def windows(inputs: int, outputs: int) -> int:
    """Return the sum of the sizes of the windows of adaptive pooling in one dimension.

    Window i reaches from ⌊i·inputs/outputs⌋ to ⌈(i+1)·inputs/outputs⌉; these sum up to this.

    >>> windows(7, 7), windows(7, 1), windows(10, 3)
    (7, 7, 12)
    """
    return inputs + outputs - gcd(inputs, outputs)


def _register_adaptive(op: str, dimensions: int) -> None:
    @register(op, "self", kind="Pooling")
    def _formula(call: Call) -> Work:
        before, after = call.shape("self"), whole_shape(call.output())
        pairs = zip(before[-dimensions:], after[-dimensions:], strict=True)
        taken = [windows(old, new) for old, new in pairs]
        return call.work(other_flops=prod(before[:-dimensions]) * prod(taken))


for _name in _ADAPTIVE.split():
    _register_adaptive(f"aten::{_name}", _dimensions(_name))


def _taps(count: int) -> Callable[[Call], Work]:
    def _formula(call: Call) -> Work:
        return call.work(other_flops=2 * count * call.output_elements())

    return _formula


for _count, _ops in {
    2: ("aten::upsample_linear1d",),
    4: ("aten::upsample_bilinear2d", "aten::__upsample_bilinear"),
    8: ("aten::upsample_trilinear3d",),
    16: ("aten::upsample_bicubic2d",),
}.items():
    register(_ops, "self|input", kind="Resampling")(_taps(_count))


@register(
    ("aten::__interpolate", "aten::__upsample"), "input size scale_factor mode", kind="Resampling"
)
def _interpolate(call: Call) -> Work:
    taps = {"linear": 2, "bilinear": 4, "trilinear": 8, "bicubic": 16}
    mode = call.value("mode")
    count = taps.get(mode, 0) if isinstance(mode, str) else 0
    return call.work(other_flops=2 * count * call.output_elements())


@register("aten::__upsample_nearest", "input", kind="Resampling")
def _nearest(call: Call) -> Work:
    written = bytes_of(call.output())
    return call.work(read_bytes=written, written_bytes=written)


def _smooth(support: int) -> Callable[[Call], Work]:
    def _formula(call: Call) -> Work:
        before, after = call.shape("self"), call.output().shape
        sizes = zip(before[-2:], after[-2:], strict=True)
        taps = prod(2 * ceil(support * max(old / max(new or 1, 1), 1)) for old, new in sizes)
        return call.work(other_flops=2 * taps * call.output_elements())

    return _formula


# What is made smaller takes all the inputs under its output, at most this many.
register("aten::_upsample_bilinear2d_aa", "self", kind="Resampling")(_smooth(1))
register("aten::_upsample_bicubic2d_aa", "self", kind="Resampling")(_smooth(2))
register("aten::_upsample_lanczos2d_aa", "self", kind="Resampling")(_smooth(3))


@register(
    (
        "aten::grid_sampler",
        "aten::grid_sampler_2d",
        "aten::grid_sampler_3d",
        "aten::_grid_sampler_2d_cpu_fallback",
    ),
    "input grid interpolation_mode",
    kind="Resampling",
)
def _grid_sample(call: Call) -> Work:
    corners = 2 ** (len(call.shape("input")) - 2)
    # 0 is linear, 1 the nearest, 2 cubic.
    taps = {0: corners, 1: 0, 2: corners**2}[call.integer("interpolation_mode", 0)]
    return call.work(other_flops=2 * taps * call.output_elements())


@register("aten::cudnn_grid_sampler", "self grid", kind="Resampling")
def _linear_grid_sample(call: Call) -> Work:
    return call.work(other_flops=2 * 4 * call.output_elements())


@register(
    ("aten::affine_grid_generator", "aten::cudnn_affine_grid_generator"), "theta", kind="Resampling"
)
def _affine_grid(call: Call) -> Work:
    # Each coordinate is a product with a row of the matrix.
    return call.work(macs=call.output_elements() * call.shape("theta")[-1])
