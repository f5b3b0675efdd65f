"""Recorded operations, found again in a graph that was read from the file.

A ScriptModule does not say which of its modules runs an operation; the graph of its code does.
"""

from __future__ import annotations

from collections.abc import Sequence

from snapviewer.model.graph import Node, TensorSpec, Value

# How many nodes of the graph may have no operation of their own in a row.
_FURTHEST = 64


def matched(nodes: Sequence[Node], graph_nodes: Sequence[Node]) -> tuple[Node | None, ...]:
    """Return for each recorded node the one of the graph that it is, or None.

    Both have the same order, and each may have operations that the other has not.

    # Cost

    At most `_FURTHEST` comparisons for each node.
    """
    found: list[Node | None] = []
    at = 0
    for node in nodes:
        near = range(at, min(at + _FURTHEST, len(graph_nodes)))
        match = next((index for index in near if _is_like(graph_nodes[index], node)), None)
        found.append(None if match is None else graph_nodes[match])
        at = at if match is None else match + 1
    return tuple(found)


def _is_like(one: Node, other: Node) -> bool:
    return one.op.rstrip("_") == other.op.rstrip("_") and _fits(one.outputs, other.outputs)


def _fits(one: Value, other: Value) -> bool:
    """Tell whether two values may be the same: what is not known may be anything."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_fits, one, other))
    if isinstance(one, TensorSpec) and isinstance(other, TensorSpec):
        return len(one.shape) == len(other.shape) and all(
            a is None or b is None or a == b for a, b in zip(one.shape, other.shape, strict=True)
        )
    return True
