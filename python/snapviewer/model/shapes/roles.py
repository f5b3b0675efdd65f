"""What the dimensions of an input stand for, as far as its shape and type show."""

from __future__ import annotations

from snapviewer.model.graph import TensorSpec

BATCH, CHANNELS, SIDES, LENGTH = "batch", "channels", "height and width", "length"


def role_of(spec: TensorSpec, dimension: int) -> str:
    """Return the role of a dimension: images and tokens have named ones.

    >>> [role_of(TensorSpec((1, 3, 224, 224), "float32"), n) for n in range(4)]
    ['batch', 'channels', 'height and width', 'height and width']
    >>> role_of(TensorSpec((1, 128), "int64"), 1), role_of(TensorSpec((1, 8), "float32"), 1)
    ('length', 'dimension 1')
    """
    if len(spec.shape) == 4 and "int" not in spec.dtype:
        return (BATCH, CHANNELS, SIDES, SIDES)[dimension]
    if len(spec.shape) == 2 and "int" in spec.dtype:
        return (BATCH, LENGTH)[dimension]
    return f"dimension {dimension}"


_LENGTHS = (128, 512, 1024, 2048)


def suggested_lengths(most: int | None) -> tuple[int, ...]:
    """Return usual lengths of sequences up to a limit, and the limit.

    >>> suggested_lengths(None), suggested_lengths(77), suggested_lengths(1024)
    ((128, 512, 1024, 2048), (77,), (128, 512, 1024))
    """
    if most is None:
        return _LENGTHS
    return (*(length for length in _LENGTHS if length < most), most)
