"""What comes out of an operation: the shapes and types of its results, from those it is given."""

from __future__ import annotations

from snapviewer.model.shapes import (
    convolution,
    elementwise,
    factories,
    indexing,
    matrices,
    normalization,
    parts,
    recurrent,
    reductions,
    special,
    transforms,
    views,
)
from snapviewer.model.shapes.dimensions import ShapeError
from snapviewer.model.shapes.registry import (
    Output,
    UnknownNumber,
    is_known,
    outputs_of,
    shape_function,
)

__all__ = ["Output", "ShapeError", "UnknownNumber", "is_known", "outputs_of", "shape_function"]

# Importing them registers their functions.
_REGISTERED = (
    convolution,
    elementwise,
    factories,
    indexing,
    matrices,
    normalization,
    parts,
    recurrent,
    reductions,
    special,
    transforms,
    views,
)
