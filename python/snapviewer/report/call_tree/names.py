"""What nodes of a call tree are called, what their weights are, and walks over the tree."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from snapviewer import Tree, TreeNode
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize
from snapviewer.text.units import format_bytes


def node_text(node: TreeNode) -> str:
    """Return a short text for a node: `model.py:77 attention`."""
    return sanitize(node.text, MAX_NAME_CHARS) or "??"


def place_text(node: TreeNode) -> str:
    """Return the whole path and the line of a node; empty if it has none."""
    file = sanitize(node.filename, MAX_NAME_CHARS)
    return f"{file}:{node.line}" if node.line else file


def format_weight(tree: Tree, weight: int) -> str:
    """Format a weight in the tree's unit."""
    if tree.unit == "bytes":
        return format_bytes(weight)
    if tree.unit == "byte-events":
        return f"{format_bytes(weight)}·events"
    return f"{format_bytes(weight // 1_000_000)}·s"


def heaviest(tree: Tree, limit: int) -> list[TreeNode]:
    """Return the heaviest nodes, each after the one above it; of siblings, the heaviest first.

    A node is never heavier than the one above it, so that the heaviest ones are a tree, too.
    """
    root = tree.node(0)
    chosen: set[int] = set()
    waiting = [(-root.weight, root.index)]
    while waiting and len(chosen) < limit:
        _, index = heapq.heappop(waiting)
        chosen.add(index)
        for child in tree.node(index).children:
            heapq.heappush(waiting, (-tree.node(child).weight, child))
    return list(walk(tree, chosen))


def walk(tree: Tree, chosen: set[int] | None = None) -> Iterator[TreeNode]:
    """Return the nodes that have allocations, each before those below it; the heaviest first."""
    waiting = [tree.node(0)]
    while waiting:
        node = waiting.pop()
        yield node
        below = [tree.node(child) for child in node.children if chosen is None or child in chosen]
        waiting += sorted(below, key=lambda one: (one.weight, -one.index))


def own_paths(tree: Tree, *, callers: bool) -> Iterator[tuple[list[TreeNode], TreeNode]]:
    """Return the path of each node with a weight of its own, from the outermost call inwards.

    The root is in no path. In a tree of callers, the innermost call is next to the root.
    """
    path: list[TreeNode] = []
    for node in walk(tree):
        del path[max(node.depth - 1, 0) :]
        if node.parent is not None:
            path.append(node)
        if node.own:
            yield (path[::-1] if callers else list(path)), node
