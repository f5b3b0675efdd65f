"""A rough amount of work, to find the longer of two ways through the code."""

from __future__ import annotations

from math import prod

from snapviewer.model.graph import Node, TensorSpec


def amount_of(node: Node) -> int:
    """Return about how many multiplications an operation takes; sizes not known count as 1.

    >>> from snapviewer.model.graph import TensorSpec
    >>> x = TensorSpec((2, 3), "float32")
    >>> amount_of(Node(0, "aten::relu", "", "", (x,), (), (x,), ()))
    6
    """
    made = sum(_count(output) for output in node.outputs if isinstance(output, TensorSpec))
    name = node.op.partition("::")[2]
    tensors = [value for value in node.arguments if isinstance(value, TensorSpec)]
    if "conv" in name and len(tensors) > 1:
        return made * prod(size or 1 for size in tensors[1].shape[1:])
    if name in ("linear", "matmul", "mm", "bmm", "addmm", "baddbmm") and tensors:
        left = tensors[-2] if name in ("addmm", "baddbmm") and len(tensors) > 1 else tensors[0]
        return made * (left.shape[-1] or 1) if left.shape else made
    return made


def _count(spec: TensorSpec) -> int:
    return prod(1 if size is None else size for size in spec.shape)
