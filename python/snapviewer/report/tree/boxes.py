"""Which boxes a diagram has: consecutive identical modules are one, and their number is limited.

# Cost

`O(modules + flow)`, and the picture is bounded by `Limits`, whatever the model.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from snapviewer.explorer.timing import ForwardStats
from snapviewer.explorer.tree import ModuleNode, Tree


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a diagram: boxes in total, boxes in one module, levels."""

    boxes: int = 160
    children: int = 24
    levels: int = 6


@dataclass(slots=True, eq=False)
class Box:
    """Consecutive identical modules: the first of them, and all of them.

    `hidden` is how many direct children are not drawn. `arrows` lead from one of `children` to a
    later one, by position. `has_run` is False if a run was recorded that did not call it.
    """

    node: ModuleNode
    members: Sequence[ModuleNode]
    parent: Box | None = None
    level: int = 0
    place: int = 0
    children: list[Box] = field(default_factory=list)
    hidden: int = 0
    arrows: list[tuple[int, int]] = field(default_factory=list)
    has_run: bool = True


def boxes_of(tree: Tree, stats: ForwardStats | None, limits: Limits) -> Box:
    """Return the root's box with all boxes in it."""
    alike = _signatures(tree.root)
    order = first_calls(stats)
    root = Box(tree.root, (tree.root,))
    by_path = {"": root}
    room = limits.boxes
    waiting = deque([root])
    # Level by level, so that upper levels use the available boxes first.
    while waiting:
        box = waiting.popleft()
        if not box.node.children:
            continue
        groups = _groups(_ordered(box.node.children, order), alike)
        fits = box.level < limits.levels and min(len(groups), limits.children) <= room
        shown = groups[: limits.children] if fits else []
        box.hidden = sum(len(group) for group in groups[len(shown) :])
        room -= len(shown)
        for place, group in enumerate(shown):
            has_run = not order or any(member.path in order for member in group)
            child = Box(group[0], group, box, box.level + 1, place, has_run=has_run)
            box.children.append(child)
            by_path.update((member.path, child) for member in group)
            waiting.append(child)
    _add_arrows(by_path, stats.edges() if stats else ())
    if not order:
        _follow_sequences(root)
    return root


def _signatures(root: ModuleNode) -> dict[int, int]:
    """Return a number for each module by its id; identical modules have the same number."""
    numbers: dict[object, int] = {}
    found: dict[int, int] = {}
    for node in reversed(list(root.walk())):
        signature = (
            node.type_name,
            node.arguments,
            tuple((entry.name, entry.shape, entry.dtype) for entry in node.tensors),
            tuple((child.name, found[id(child)]) for child in node.children),
        )
        found[id(node)] = numbers.setdefault(signature, len(numbers))
    return found


def first_calls(stats: ForwardStats | None) -> dict[str, int]:
    """Return the position of each module's first call in the recorded run, by path.

    A list of blocks, which is never called itself, has the position of its first block.
    """
    first: dict[str, int] = {}
    for step in stats.flow if stats else ():
        path = step.path
        while path not in first:
            first[path] = step.order
            path = path.rpartition(".")[0]
    return first


def _ordered(children: Sequence[ModuleNode], order: Mapping[str, int]) -> list[ModuleNode]:
    """Return modules in the order in which they ran; those that did not run come last."""
    return sorted(children, key=lambda node: order.get(node.path, math.inf))


def _groups(nodes: Sequence[ModuleNode], alike: Mapping[int, int]) -> list[list[ModuleNode]]:
    """Group consecutive identical modules whose names are numbers."""
    groups: list[list[ModuleNode]] = []
    for node in nodes:
        last = groups[-1][-1] if groups else None
        if (
            last is not None
            and alike[id(last)] == alike[id(node)]
            and last.name.isdecimal()
            and node.name.isdecimal()
        ):
            groups[-1].append(node)
        else:
            groups.append([node])
    return groups


def _add_arrows(by_path: Mapping[str, Box], pairs: Iterable[tuple[str, str]]) -> None:
    """Add an arrow for each flow, between the sibling boxes that contain its ends."""
    met = set()
    for source_path, target_path in pairs:
        source, target = _box_at(by_path, source_path), _box_at(by_path, target_path)
        while source.level > target.level and source.parent is not None:
            source = source.parent
        while target.level > source.level and target.parent is not None:
            target = target.parent
        while source.parent is not target.parent:
            if source.parent is None or target.parent is None:
                break
            source, target = source.parent, target.parent
        owner = source.parent
        arrow = (owner, source.place, target.place)
        if owner is not None and source.place < target.place and arrow not in met:
            met.add(arrow)
            owner.arrows.append((source.place, target.place))


def _box_at(by_path: Mapping[str, Box], path: str) -> Box:
    """Return the smallest box that contains a module."""
    while path not in by_path:
        path = path.rpartition(".")[0]
    return by_path[path]


def _follow_sequences(root: Box) -> None:
    """Add arrows in each `Sequential`: without a recorded run, only its order is known."""
    waiting = [root]
    while waiting:
        box = waiting.pop()
        waiting += box.children
        if box.node.type_name == "Sequential":
            box.arrows = [(place - 1, place) for place in range(1, len(box.children))]
