"""Fourier transforms: the sizes of their outputs, and whether these are complex."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from snapviewer.model.graph import TensorSpec, Unknown
from snapviewer.model.shapes.dimensions import (
    Shape,
    ShapeError,
    Size,
    add,
    axes,
    divide,
    multiply,
    whole,
)
from snapviewer.model.shapes.dtypes import complex_of, dtype_name, float_of, real_of
from snapviewer.model.shapes.dtypes import is_complex as is_complex_type
from snapviewer.model.shapes.registry import Output, shape_function


def _resized(spec: TensorSpec, lengths: object, dims: object) -> tuple[list[Size], tuple[int, ...]]:
    """Return the sizes after padding or cutting to the given lengths, and the dimensions."""
    shape: list[Size] = list(spec.shape)
    if isinstance(lengths, Unknown) or isinstance(dims, Unknown):
        raise ShapeError("the length of the transform is unknown")
    given: Sequence[object] = (
        lengths if isinstance(lengths, (list, tuple)) else [] if lengths is None else [lengths]
    )
    if dims is None and given:
        dims = list(range(len(shape) - len(given), len(shape)))
    places = axes(dims, len(shape))
    if not places:
        raise ShapeError("there is no dimension to transform")
    for place, length in zip(places, given, strict=False):
        size = whole(length)
        shape[place] = shape[place] if size == -1 else size
    return shape, places


def _fourier(dims: object, finish: Callable[[TensorSpec, list[Size], int, bool], str]) -> Any:
    """Return the shape function of transforms.

    Args:
        dims: The dimensions that are transformed by default.
        finish: Changes the size of the last of them, and returns the dtype.
    """

    def transform(
        self: TensorSpec,
        n: object = None,
        dim: object = dims,
        norm: object = None,
        *,
        s: object = None,
    ) -> Output:
        lengths = s if n is None else n
        shape, places = _resized(self, lengths, dim)
        dtype = finish(self, shape, places[-1], lengths is not None)
        return TensorSpec(tuple(shape), dtype)

    return transform


def _to_complex(spec: TensorSpec, shape: list[Size], last: int, is_sized: bool) -> str:
    return complex_of(float_of(spec.dtype))


def _from_real(spec: TensorSpec, shape: list[Size], last: int, is_sized: bool) -> str:
    size = shape[last]
    shape[last] = None if size is None else size // 2 + 1
    return complex_of(float_of(spec.dtype))


def _to_real(spec: TensorSpec, shape: list[Size], last: int, is_sized: bool) -> str:
    size = shape[last]
    if not is_sized:
        shape[last] = None if size is None else 2 * (size - 1)
    return real_of(float_of(spec.dtype))


for _ending, _dims in (("", -1), ("2", (-2, -1)), ("n", None)):
    for _ops, _finish in (
        ("fft ifft", _to_complex),
        ("rfft ihfft", _from_real),
        ("irfft hfft", _to_real),
    ):
        shape_function(*(f"fft_{op}{_ending}" for op in _ops.split()))(_fourier(_dims, _finish))


@shape_function("fft_fftfreq")
def _all_frequencies(n: object, *rest: object, dtype: object = None, **named: object) -> Output:
    return TensorSpec((whole(n),), dtype_name(dtype) or "float32")


@shape_function("fft_rfftfreq")
def _half_frequencies(n: object, *rest: object, dtype: object = None, **named: object) -> Output:
    size = whole(n)
    return TensorSpec((None if size is None else size // 2 + 1,), dtype_name(dtype) or "float32")


@shape_function("stft")
def _stft(
    self: TensorSpec,
    n_fft: object,
    hop_length: object = None,
    win_length: object = None,
    window: object = None,
    *rest: object,
    **named: object,
) -> Output:
    # The overload with `center` and `pad_mode` has them before the others.
    has_centre = len(rest) > 1 and isinstance(rest[1], str)
    centre = rest[0] if has_centre else named.get("center", False)
    _, one_sided, is_complex, *_ = (*(rest[2:] if has_centre else rest), None, None, None)
    one_sided, is_complex = (
        named.get("onesided", one_sided),
        named.get("return_complex", is_complex),
    )
    width = whole(n_fft)
    hop = divide(width, 4) if hop_length is None else whole(hop_length)
    length = add(self.shape[-1], 2 * (width // 2) if width and centre is True else 0)
    if width is None or length is None or not hop:
        raise ShapeError("the length of the signal or of a window is unknown")
    rows = width if one_sided is False or is_complex_type(self.dtype) else width // 2 + 1
    shape: Shape = (*self.shape[:-1], rows, 1 + (length - width) // hop)
    multiply(shape)
    if is_complex is False:
        return TensorSpec((*shape, 2), float_of(self.dtype))
    return TensorSpec(shape, complex_of(float_of(self.dtype)))


@shape_function("istft")
def _istft(
    self: TensorSpec,
    n_fft: object,
    hop_length: object = None,
    win_length: object = None,
    window: object = None,
    center: object = True,
    normalized: object = False,
    onesided: object = None,
    length: object = None,
    *rest: object,
    **named: object,
) -> Output:
    width = whole(n_fft)
    hop = divide(width, 4) if hop_length is None else whole(hop_length)
    is_real = not is_complex_type(self.dtype)
    frames = self.shape[-2 if is_real else -1]
    made = whole(length)
    if length is None and frames is not None and width is not None and hop is not None:
        made = hop * (frames - 1) + (0 if center is True else width)
    return TensorSpec((*self.shape[: -3 if is_real else -2], made), real_of(self.dtype))
