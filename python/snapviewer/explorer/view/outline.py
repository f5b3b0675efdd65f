"""A tree as one list: each module, then its tensors, then its children, as they would be read.

Folding, searching, sorting and moving all work on positions in that list, called places.

# Invariants

The descendants of the module at `place` have the places from `place + 1` to before `ends[place]`.

# Cost

Building is linear in modules and tensors: about a microsecond each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from snapviewer.explorer.compare import DIFF_SIGNS, ModuleComparison, TreeComparison
from snapviewer.explorer.explored_model import ExploredModel, Item
from snapviewer.explorer.tree import ModuleNode, TensorEntry, Tree, walk
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize


@dataclass(frozen=True, slots=True)
class DiffMark:
    """How a row differs from the other tree: `+`, `-` or `~`, and what changed in words.

    `is_inside` if the row itself is equal and only something below it differs.
    """

    sign: str
    words: str = ""
    is_inside: bool = False


@dataclass(frozen=True, slots=True)
class Outline:
    """A tree's modules and tensors by place; the root has place 0 and no parent (-1).

    `diff_marks` are the rows that differ, by place; None if nothing is compared.
    """

    tree: Tree
    items: Sequence[Item]
    parents: Sequence[int]
    ends: Sequence[int]
    diff_marks: Mapping[int, DiffMark] | None = None

    def children(self, place: int) -> list[int]:
        """Return the places of a module's tensors and children, in order."""
        ends, found = self.ends, []
        child, end = place + 1, ends[place]
        while child < end:
            found.append(child)
            child = ends[child]
        return found

    def has_children(self, place: int) -> bool:
        return self.ends[place] > place + 1

    def ancestors(self, place: int) -> Iterator[int]:
        """Yield the places of the modules around a place, innermost first."""
        place = self.parents[place]
        while place >= 0:
            yield place
            place = self.parents[place]

    def module_at(self, place: int) -> int:
        """Return the place itself, or for a tensor that of its module."""
        return place if isinstance(self.items[place], ModuleNode) else self.parents[place]


def outline_of_model(explored: ExploredModel) -> Outline:
    """List a model's tree, merged with the one that it is compared with."""
    comparison = explored.comparison
    return outline_of(explored.tree) if comparison is None else merged_outline(comparison)


def outline_of(tree: Tree) -> Outline:
    """List a tree."""
    items: list[Item] = []
    parents: list[int] = []
    waiting: list[tuple[ModuleNode, int]] = [(tree.root, -1)]
    while waiting:
        node, parent = waiting.pop()
        place = len(items)
        items.append(node)
        parents.append(parent)
        items.extend(node.tensors)
        parents.extend([place] * len(node.tensors))
        waiting.extend([(child, place) for child in reversed(node.children)])
    ends = list(range(1, len(items) + 1))
    for place in range(len(items) - 1, 0, -1):
        parent = parents[place]
        ends[parent] = max(ends[parent], ends[place])
    return Outline(tree, items, parents, ends)


def merged_outline(comparison: TreeComparison) -> Outline:
    """List everything that is in one of two trees, with a mark where they differ.

    What is in both is listed as it is in the first tree, with the sums of that tree.
    """
    root = comparison.root
    marks: dict[int, DiffMark] = {}
    place = 0
    for module in walk(root):
        if module.has_changes:
            is_inside = module.verdict == "equal"
            sign = "~" if is_inside else DIFF_SIGNS[module.verdict]
            marks[place] = DiffMark(sign, ", ".join(module.changes), is_inside)
        place += 1
        for tensor in module.tensors:
            if tensor.verdict != "equal":
                marks[place] = DiffMark(DIFF_SIGNS[tensor.verdict], ", ".join(tensor.changes))
            place += 1
    tree = replace(comparison.before, root=_merged_tree(root))
    return replace(outline_of(tree), diff_marks=marks)


def _merged_tree(root: ModuleComparison) -> ModuleNode:
    """Build the tree of both, children first: it may be deeper than Python's stack."""
    made: dict[int, ModuleNode] = {}
    for module in reversed(list(walk(root))):
        made[id(module)] = replace(
            module.node,
            tensors=tuple(tensor.entry for tensor in module.tensors),
            children=tuple(made[id(child)] for child in module.children),
        )
    return made[id(root)]


def display_name(text: str) -> str:
    """Return untrusted text as it is shown on the screen."""
    return sanitize(text, MAX_NAME_CHARS)


def elements_of(item: Item) -> int:
    """Return how many elements a module or a tensor has, buffers included."""
    if isinstance(item, TensorEntry):
        return item.elements
    return item.sums.parameters + item.sums.buffers


def parameters_of(item: Item) -> int:
    """Return how many of the elements are parameters."""
    if isinstance(item, TensorEntry):
        return 0 if item.is_buffer else item.elements
    return item.sums.parameters


def bytes_of(item: Item) -> int:
    """Return the bytes of a module's parameters and buffers, or of a tensor."""
    return item.size_bytes if isinstance(item, TensorEntry) else item.sums.total_bytes
