"""Inputs to run a model with, made from what its graph says of them."""

from __future__ import annotations

import math
from typing import Any

from snapviewer import SnapshotError
from snapviewer.model.graph import Graph, TensorSpec, Unknown, Value
from snapviewer.model.inference.loading import torch_for
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize

_MOST_ELEMENTS = 2**31
# Small enough to be an index into nearly everything.
_SMALL = 10


def example_inputs(graph: Graph, *, seed: int = 0, device: str = "cpu") -> tuple[Any, ...]:
    """Make inputs of the shapes that a graph has: the same ones for the same seed.

    Floating-point numbers are normally distributed, whole ones small and less than the rows of the
    smallest embedding, truth values false.

    Args:
        graph: Whose inputs.
        seed: Which numbers.
        device: Where they go.

    Raises:
        SnapshotError: torch is not installed, or an input has no known shape or is too large.
    """
    torch = torch_for("making inputs")
    generator = torch.Generator().manual_seed(seed)
    below = _index_limit(graph)

    def made(value: Value) -> Any:
        if isinstance(value, TensorSpec):
            try:
                return _tensor(torch, value, generator, below).to(device)
            except (RuntimeError, MemoryError) as error:
                raise SnapshotError(
                    f"an input could not be made: {sanitize(str(error), MAX_NAME_CHARS)}"
                ) from None
        if isinstance(value, Unknown):
            raise SnapshotError(f"an input is not known: {sanitize(value.why, MAX_NAME_CHARS)}")
        return tuple(made(item) for item in value) if isinstance(value, tuple) else value

    return tuple(made(value) for value in graph.inputs)


def _index_limit(graph: Graph) -> int:
    """Return how many rows the smallest embedding has, if that is less than a small number."""
    rows = [
        node.arguments[0].shape[0]
        for node in graph.nodes
        if node.op in ("aten::embedding", "aten::embedding_bag")
        and node.arguments
        and isinstance(node.arguments[0], TensorSpec)
        and node.arguments[0].shape
    ]
    return max(1, min([_SMALL, *(row for row in rows if row is not None)]))


def _tensor(torch: Any, spec: TensorSpec, generator: Any, below: int) -> Any:
    if any(size is None for size in spec.shape):
        raise SnapshotError("an input needs all of its sizes to run a model")
    shape = [int(size) for size in spec.shape if size is not None]
    if min(shape, default=0) < 0 or math.prod(shape) > _MOST_ELEMENTS:
        raise SnapshotError(f"an input of the shape {sanitize(str(shape), 80)} is not made")
    dtype = getattr(torch, spec.dtype or "float32", None)
    if not isinstance(dtype, torch.dtype):
        raise SnapshotError(f"{sanitize(spec.dtype, 40)!r} is no type of torch")
    if dtype == torch.bool:
        return torch.zeros(shape, dtype=dtype)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, generator=generator).to(dtype)
    return torch.randint(0, below, shape, generator=generator).to(dtype)
