"""How much of a model is convolutions of images, for which the order in memory matters."""

from __future__ import annotations

from collections.abc import Sequence

from snapviewer.model.graph import Node, TensorSpec
from snapviewer.model.work import Uncounted, work_of

# The share of the FLOPs from which convolutions set the pace.
DOMINANT = 0.5
IMAGE_DIMENSIONS = 4


def image_share(nodes: Sequence[Node]) -> float:
    """Return the share of the FLOPs that are convolutions of images."""
    whole = part = 0
    for node in nodes:
        work = work_of(node)
        flops = 0 if isinstance(work, Uncounted) else work.flops
        whole += flops
        part += flops if is_image_convolution(node) else 0
    return part / whole if whole else 0.0


def is_image_convolution(node: Node) -> bool:
    """Tell whether a node is a convolution over two dimensions."""
    first = node.arguments[0] if node.arguments else None
    is_image = isinstance(first, TensorSpec) and len(first.shape) == IMAGE_DIMENSIONS
    return is_image and "conv" in node.op
