"""Which part of a tree is exported, in which order, and the text of its lines."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from snapviewer.explorer.labels import label
from snapviewer.explorer.tree import ModuleNode
from snapviewer.text.sanitize import sanitize

Sort: TypeAlias = Literal["order", "name", "params", "memory"]
SORTS: tuple[Sort, ...] = ("order", "name", "params", "memory")

MAX_TIES = 3  # named in a line


@dataclass(frozen=True, slots=True)
class TreeSelection:
    """The exported part of a tree.

    `shown` contains the paths of the exported modules, None for all; `max_depth` limits the levels
    below the root. Modules with fewer than `hide_below` parameters are left out and counted. `rank`
    orders siblings instead of `sort`.
    """

    max_depth: int | None = None
    hide_below: int = 0
    sort: Sort = "order"
    shown: Container[str] | None = None
    line: Callable[[ModuleNode], str] = label
    rank: Callable[[ModuleNode], int] | None = None

    def children(self, node: ModuleNode, depth: int) -> tuple[list[ModuleNode], int]:
        """Return the selected children of a module at a depth, and how many others it has."""
        if self.max_depth is not None and depth >= self.max_depth:
            return [], len(node.children)
        kept = [
            child
            for child in node.children
            if (self.shown is None or child.path in self.shown)
            and child.sums.parameters >= self.hide_below
        ]
        return self.ordered(kept), len(node.children) - len(kept)

    def ordered(self, nodes: list[ModuleNode]) -> list[ModuleNode]:
        """Return siblings in the selected order; the sort is stable."""
        if self.rank is not None:
            return sorted(nodes, key=self.rank)
        match self.sort:
            case "name":
                return sorted(nodes, key=lambda node: node.name)
            case "params":
                return sorted(nodes, key=lambda node: -node.sums.parameters)
            case "memory":
                return sorted(nodes, key=lambda node: -node.sums.total_bytes)
            case _:
                return nodes


WHOLE_TREE = TreeSelection()


@dataclass(frozen=True, slots=True)
class TreeRow:
    """A selected module.

    `guides` is, for each level below the root, its own last, whether more rows follow there.
    `below` is how many rows its children take, counting hidden ones as one.
    """

    node: ModuleNode
    guides: tuple[bool, ...]
    below: int


@dataclass(frozen=True, slots=True)
class HiddenRows:
    """In the place of a module's last child: how many others are hidden."""

    count: int
    guides: tuple[bool, ...]


def rows_of(root: ModuleNode, selection: TreeSelection) -> Iterator[TreeRow | HiddenRows]:
    """Yield the rows of a selection, parents first."""
    waiting: list[tuple[ModuleNode | HiddenRows, tuple[bool, ...]]] = [(root, ())]
    while waiting:
        node, guides = waiting.pop()
        if isinstance(node, HiddenRows):
            yield node
            continue
        children, hidden = selection.children(node, len(guides))
        yield TreeRow(node, guides, len(children) + bool(hidden))
        if hidden:
            end = (*guides, False)
            waiting.append((HiddenRows(hidden, end), end))
        last = len(children) - 1
        for place in range(last, -1, -1):
            waiting.append((children[place], (*guides, place < last or hidden > 0)))


def remarks(node: ModuleNode) -> str:
    """Return what is special about a module: `(frozen, weight tied to wte.weight)`, or nothing."""
    if node.shared_with is not None:
        return f"(same as {sanitize(node.shared_with, 80) or 'the root'})"
    tied = [entry for entry in node.tensors if entry.tied_to is not None]
    words = ["frozen"] if node.sums.parameters and not node.sums.trainable else []
    words += [
        f"{sanitize(e.name, 40)} tied to {sanitize(e.tied_to or '', 80)}" for e in tied[:MAX_TIES]
    ]
    if len(tied) > MAX_TIES:
        words.append(f"{len(tied) - MAX_TIES} more tied")
    return f"({', '.join(words)})" if words else ""
