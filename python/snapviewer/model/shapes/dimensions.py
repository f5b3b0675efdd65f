"""Arithmetic with sizes, of which some are unknown (None)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from snapviewer.model.graph import TensorSpec

Size: TypeAlias = "int | None"
Shape: TypeAlias = "tuple[int | None, ...]"

_MAX_DIMENSIONS = 64  # the limit of torch
MAX_ELEMENTS = 1 << 62


class ShapeError(Exception):
    """Arguments that do not fit an operation; the message is a clause that says why.

    `sizes` are two that should have been equal, if that is the reason.
    """

    def __init__(self, message: str, sizes: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.sizes = sizes


def whole(value: object) -> Size:
    """Return an integer, or None if the value is not one."""
    return int(value) if isinstance(value, int) else None


def add(*sizes: Size) -> Size:
    """Add sizes.

    >>> add(1, 2), add(1, None)
    (3, None)
    """
    return None if None in sizes else sum(size for size in sizes if size is not None)


def multiply(sizes: Iterable[Size]) -> Size:
    """Multiply sizes; the empty product is 1, and the product with a zero is 0.

    >>> multiply((2, 3)), multiply((2, None)), multiply(())
    (6, None, 1)
    """
    product: Size = 1
    for size in sizes:
        if size == 0:
            return 0
        product = None if product is None or size is None else product * size
        if product is not None and product > MAX_ELEMENTS:
            raise ShapeError("it would have more elements than a tensor can have")
    return product


def divide(size: Size, by: Size) -> Size:
    """Divide, rounding down; None if a size is unknown or the divisor is 0."""
    return None if size is None or not by else size // by


def same(one: Size, other: Size, what: str = "sizes differ") -> Size:
    """Return the size that both have, or raise a ShapeError."""
    if one is None or other is None:
        return one if other is None else other
    if one != other:
        raise ShapeError(f"{what}: {one} and {other}", (one, other))
    return one


def axis(dim: object, rank: int) -> int:
    """Return the index of a dimension, counted from the front.

    >>> axis(-1, 3)
    2
    """
    number = whole(dim)
    if number is None:
        raise ShapeError("the dimension is unknown")
    span = max(rank, 1)
    if not -span <= number < span:
        raise ShapeError(f"there is no dimension {number} among {rank}")
    return number % span


def axes(dims: object, rank: int) -> tuple[int, ...]:
    """Return the indices of dimensions, counted from the front; all if none are named."""
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return tuple(range(rank))
    return tuple(axis(dim, rank) for dim in (dims if isinstance(dims, (list, tuple)) else [dims]))


def sizes_of(value: object, count: int) -> Shape:
    """Return as many sizes as there are dimensions, from a list or one number for all.

    >>> sizes_of([1, 2], 2), sizes_of(3, 2), sizes_of([3], 2)
    ((1, 2), (3, 3), (3, 3))
    """
    if isinstance(value, (list, tuple)):
        listed = tuple(whole(item) for item in value)
        if len(listed) == 1:
            return listed * count
        if len(listed) != count:
            raise ShapeError(f"{len(listed)} numbers were given for {count} dimensions")
        return listed
    return (whole(value),) * count


def shape_of(sizes: object) -> Shape:
    """Return the shape of a list of sizes."""
    if not isinstance(sizes, (list, tuple)):
        sizes = [sizes]
    if len(sizes) > _MAX_DIMENSIONS:
        raise ShapeError(f"{len(sizes)} dimensions are more than a tensor can have")
    shape = tuple(whole(size) for size in sizes)
    if any(size is not None and size < 0 for size in shape):
        raise ShapeError(f"a size is negative: {list(shape)}")
    multiply(shape)
    return shape


def broadcast(*shapes: Sequence[Size]) -> Shape:
    """Return the shape to which all shapes broadcast.

    >>> broadcast((3, 1), (4,)), broadcast((None, 2), (1, 1))
    ((3, 4), (None, 2))
    """
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[Size] = []
    for place in range(-rank, 0):
        sizes = [shape[place] for shape in shapes if len(shape) >= -place]
        wide = {size for size in sizes if size is not None and size != 1}
        if len(wide) > 1:
            differing = tuple(sorted(wide))
            raise ShapeError(f"sizes {list(differing)} cannot be broadcast", differing)
        result.append(wide.pop() if wide else None if None in sizes else 1)
    return tuple(result)


def tensors_in(value: object) -> list[TensorSpec]:
    """Return the tensors of a list, or raise a ShapeError if one is unknown."""
    if not isinstance(value, (list, tuple)):
        raise ShapeError("a list of tensors is unknown")
    tensors = [item for item in value if isinstance(item, TensorSpec)]
    if len(tensors) != len(value):
        raise ShapeError("a tensor of a list is unknown")
    return tensors
