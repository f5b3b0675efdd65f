"""Two trees as one, in which what is new, gone or other is marked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from snapviewer.explorer.compare import (
    MARKS,
    ModuleComparison,
    TensorComparison,
    TreeComparison,
)
from snapviewer.explorer.tree import ModuleNode, TensorEntry
from snapviewer.explorer.view.outline import Outline, outline_of


@dataclass(frozen=True, slots=True)
class Mark:
    """What became of a row: its sign, what is other in words, and whether something below is."""

    sign: str
    words: str = ""
    is_inside: bool = False


def merged(comparison: TreeComparison) -> tuple[Outline, Mapping[int, Mark]]:
    """Put two trees together: all that is in one of them, and a mark by place where they differ.

    What is in both is as it is before; its sums are, too.
    """
    root = comparison.root
    outline = outline_of(replace(comparison.before, root=_joined(root)))
    marks: dict[int, Mark] = {}
    place = 0
    for one in root.walk():
        if one.has_changes:
            is_inside = one.verdict == "equal"
            sign = "~" if is_inside else MARKS[one.verdict]
            marks[place] = Mark(sign, ", ".join(one.changes), is_inside)
        place += 1
        for tensor in one.tensors:
            if tensor.verdict != "equal":
                marks[place] = Mark(MARKS[tensor.verdict], ", ".join(tensor.changes))
            place += 1
    return outline, marks


def _joined(root: ModuleComparison) -> ModuleNode:
    """Build the tree of both, children first: it may be deeper than Python's stack."""
    made: dict[int, ModuleNode] = {}
    for one in reversed(list(root.walk())):
        made[id(one)] = replace(
            one.node,
            tensors=tuple(map(_tensor, one.tensors)),
            children=tuple(made[id(child)] for child in one.children),
        )
    return made[id(root)]


def _tensor(one: TensorComparison) -> TensorEntry:
    entry = one.before or one.after
    assert entry is not None, "one of both is there"
    return entry
