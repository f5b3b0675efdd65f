"""Which part of a tree is exported, in which order, and what its lines say."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from snapviewer.explorer.labels import label
from snapviewer.explorer.tree import ModuleNode
from snapviewer.text.sanitize import sanitize

Sort: TypeAlias = Literal["order", "name", "params", "memory"]
SORTS: tuple[Sort, ...] = ("order", "name", "params", "memory")

MOST_TIES = 3  # that a line tells of


@dataclass(frozen=True, slots=True)
class Seen:
    """What is seen of a tree.

    `shown` are the paths of the modules that are seen, all if None; `max_depth` is how many levels
    below the root are. What has less than `hide_below` parameters is left out, and told of. `rank`
    orders siblings in any other way than `sort` does.
    """

    max_depth: int | None = None
    hide_below: int = 0
    sort: Sort = "order"
    shown: Container[str] | None = None
    line: Callable[[ModuleNode], str] = label
    rank: Callable[[ModuleNode], int] | None = None

    def children(self, node: ModuleNode, depth: int) -> tuple[list[ModuleNode], int]:
        """Return the children that are seen of a module at a depth, and how many others it has."""
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
        """Return siblings in the order in which they are seen; equals stay as they are."""
        if self.rank is not None:
            return sorted(nodes, key=self.rank)
        match self.sort:
            case "name":
                return sorted(nodes, key=lambda node: node.name)
            case "params":
                return sorted(nodes, key=lambda node: -node.sums.parameters)
            case "memory":
                return sorted(nodes, key=memory_of, reverse=True)
            case _:
                return nodes


EVERYTHING = Seen()


@dataclass(frozen=True, slots=True)
class Row:
    """A module that is seen.

    `guides` tells for each level below the root, its own the last, whether more follows there.
    `below` is how many children are seen, counting what tells of others as one.
    """

    node: ModuleNode
    guides: tuple[bool, ...]
    below: int


@dataclass(frozen=True, slots=True)
class More:
    """In the place of a module's last child: how many others it has that are not seen."""

    count: int
    guides: tuple[bool, ...]


def rows_of(root: ModuleNode, seen: Seen) -> Iterator[Row | More]:
    """Yield what is seen, parents first."""
    waiting: list[tuple[ModuleNode | More, tuple[bool, ...]]] = [(root, ())]
    while waiting:
        node, guides = waiting.pop()
        if isinstance(node, More):
            yield node
            continue
        children, hidden = seen.children(node, len(guides))
        yield Row(node, guides, len(children) + bool(hidden))
        if hidden:
            end = (*guides, False)
            waiting.append((More(hidden, end), end))
        last = len(children) - 1
        for place in range(last, -1, -1):
            waiting.append((children[place], (*guides, place < last or hidden > 0)))


def memory_of(node: ModuleNode) -> int:
    """Return the bytes of all tensors in a module."""
    return node.sums.parameter_bytes + node.sums.buffer_bytes


def remarks(node: ModuleNode) -> str:
    """Say what is special about a module: `(frozen, weight tied to wte.weight)`, or nothing."""
    if node.shared_with is not None:
        return f"(same as {sanitize(node.shared_with, 80) or 'the root'})"
    tied = [entry for entry in node.tensors if entry.tied_to is not None]
    said = ["frozen"] if node.sums.parameters and not node.sums.trainable else []
    said += [
        f"{sanitize(e.name, 40)} tied to {sanitize(e.tied_to or '', 80)}" for e in tied[:MOST_TIES]
    ]
    if len(tied) > MOST_TIES:
        said.append(f"{len(tied) - MOST_TIES} more tied")
    return f"({', '.join(said)})" if said else ""
