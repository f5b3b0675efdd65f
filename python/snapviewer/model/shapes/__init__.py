"""Shape functions: the shapes and types of an operation's outputs, from those of its inputs."""

from __future__ import annotations

from importlib import import_module

from snapviewer.model.shapes.dimensions import ShapeError
from snapviewer.model.shapes.registry import (
    Output,
    UnknownNumber,
    is_known,
    outputs_of,
    shape_function,
)

__all__ = ["Output", "ShapeError", "UnknownNumber", "is_known", "outputs_of", "shape_function"]

# Importing a module registers its functions.
for _name in (
    *("convolution", "elementwise", "factories", "indexing", "matrices", "normalization"),
    *("parts", "recurrent", "reductions", "special", "transforms", "views"),
):
    import_module(f"{__name__}.{_name}")
