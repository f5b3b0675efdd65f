"""The call tree in a terminal, and as JSON."""

from __future__ import annotations

from typing import Any

from snapviewer import Device, Tree, TreeNode
from snapviewer.report.snapshot.info import device_name, moment_of
from snapviewer.text.sanitize import sanitize, shorten_middle
from snapviewer.text.table import format_table
from snapviewer.text.units import count_of, format_share

from .names import format_weight, heaviest, node_text, place_text, walk

_DEEPEST = 40  # indented; deeper nodes are numbered
_HEADINGS = ("total", "share", "own", "count")


def as_text(
    device: Device, tree: Tree, *, file: str, top: int, width: int | None = None, note: str = ""
) -> str:
    """Return the heaviest nodes as an indented table.

    Args:
        device: The device.
        tree: A tree of it.
        file: The file's name.
        top: How many nodes to list.
        width: The width of a line, to which names are shortened; None for any.
        note: What the tree leaves out, such as a filter.
    """
    lines = [sanitize(file), "", f"{heading(device, tree)}{note}"]
    if not tree.count:
        return "\n".join(lines) + "\n"
    shown = heaviest(tree, top)
    cells = [_HEADINGS, *(_cells(tree, node) for node in shown)]
    heading_line, *lefts = format_table(cells, right=range(len(_HEADINGS)))
    lines += ["", heading_line]
    for node, left in zip(shown, lefts, strict=True):
        line = f"{left}  {_indent(node.depth)}"
        name = node_text(node)
        if width is not None:
            name = shorten_middle(name, max(width - len(line), 12))
        lines.append(f"{line}{name}")
    if left_out := _count(tree) - len(shown):
        lines += ["", f"  {count_of(left_out, 'lighter node')} not listed; `--top 0` lists all"]
    return "\n".join(lines) + "\n"


def heading(device: Device, tree: Tree) -> str:
    """Return what the tree weighs in all, and when."""
    held = f"{format_weight(tree, tree.total)} in {count_of(tree.count, 'allocation')}"
    return f"{device_name(device)}: {held}, {_moment(device, tree)}"


def to_json(device: Device, tree: Tree, *, file: str, limit: int | None) -> dict[str, Any]:
    """Return the document that `tree --json` prints: nodes, each after the one above it."""
    nodes = walk(tree) if limit is None else heaviest(tree, limit)
    return {
        "file": file,
        "device": device.index,
        "event": tree.event,
        "events": None if tree.events is None else list(tree.events),
        "unit": tree.unit,
        "duration": tree.duration,
        "total": tree.total,
        "allocations": tree.count,
        "nodes": [
            {
                "node": node.index,
                "parent": node.parent,
                "depth": node.depth,
                "kind": node.kind,
                "text": node_text(node),
                "function": sanitize(node.name, 1000),
                "file": sanitize(node.filename, 1000),
                "line": node.line,
                "weight": node.weight,
                "own": node.own,
                "allocations": node.count,
                "largest": node.largest,
            }
            for node in nodes
        ],
    }


def tooltip(tree: Tree, node: TreeNode) -> list[str]:
    """Return the lines that describe a node beside the pointer."""
    share = format_share(node.weight, max(tree.total, 1))
    lines = [
        node_text(node),
        f"{format_weight(tree, node.weight)} · {share} · {count_of(node.count, 'allocation')}",
    ]
    if node.own and node.own != node.weight:
        lines.append(f"{format_weight(tree, node.own)} allocated here directly")
    if place := place_text(node):
        lines.append(place)
    return lines


def _cells(tree: Tree, node: TreeNode) -> tuple[str, ...]:
    own = format_weight(tree, node.own) if node.own else ""
    share = format_share(node.weight, max(tree.total, 1))
    return format_weight(tree, node.weight), share, own, f"{node.count:,} ×"


def _indent(depth: int) -> str:
    if depth > _DEEPEST:
        return f"{'  ' * _DEEPEST}[{depth}] "
    return "  " * depth


def _count(tree: Tree) -> int:
    return sum(1 for _ in walk(tree))


def _moment(device: Device, tree: Tree) -> str:
    if tree.event is not None:
        return moment_of(device, tree.event)
    first, last = tree.events or (0, 0)
    what = "allocated" if tree.unit == "bytes" else "held"
    return f"{what} by events {first:,} to {max(last - 1, first):,}"
