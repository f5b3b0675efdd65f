"""The architecture of a model as a picture: boxes in boxes, and what flows between them."""

from __future__ import annotations

from snapviewer.explorer.timing import ForwardStats
from snapviewer.explorer.tree import Tree
from snapviewer.report.tree.diagram.boxes import Limits, boxes_of
from snapviewer.report.tree.diagram.drawing import drawn

__all__ = ["Limits", "diagram_of"]


def diagram_of(
    tree: Tree, stats: ForwardStats | None = None, *, limits: Limits | None = None
) -> str:
    """Draw a model as SVG.

    Modules stand in the order in which they ran, if a run was recorded, and else as in the model.
    Like ones in a row are drawn once, with how many they are. However large a model is, the picture
    has no more boxes than `limits` says; what is left out is told of.
    """
    return drawn(tree, boxes_of(tree, stats, limits or Limits()))
