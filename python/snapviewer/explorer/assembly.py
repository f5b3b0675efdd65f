"""Assembles a tree from modules in walk order, with the sums of every subtree.

# Invariants

Every subtree counts a tensor once, however often it occurs there: where the same tensor occurs
again in walk order, it is subtracted at the lowest module that contains both occurrences. A subtree
with k occurrences contains exactly k - 1 of these places. Repeated modules are counted likewise.

# Cost

`O(modules + tensors × log depth)`: an ancestor of the current module contains an earlier occurrence
if it was entered before it, so the lowest is found by bisecting the path from the root.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from .tree import ModuleNode, Sums, TensorEntry

# What most modules add: themselves. The list is shared and never changed, because the lowest module
# that contains two others is no leaf.
_ONE = [1, 0, 0, 0, 0, 0]
_LEAF = Sums(*_ONE)
_NOBODY: list[ModuleNode] = []


@dataclass(slots=True)
class Draft:
    """A module before assembly.

    `tensors` come with their identities, and the module has its own (`key`); None if it is unique.
    `repeats` is the number of the draft whose sums it shows, if its children are shown elsewhere
    only; nothing of it is counted in the modules above.
    """

    name: str
    path: str
    type_name: str
    arguments: str
    tensors: Sequence[tuple[Hashable, TensorEntry]]
    depth: int
    key: Hashable = None
    is_type_guessed: bool = False
    shared_with: str | None = None
    repeats: int | None = None


def assemble(drafts: Sequence[Draft]) -> ModuleNode:
    """Return the root of a tree.

    Args:
        drafts: Parents first, children in order; the first one is the root, at depth 0.
    """
    parents, counts, tensors = _counted(drafts)
    for number in range(len(drafts) - 1, 0, -1):
        count, above = counts[number], counts[parents[number]]
        above[0] += count[0]
        if count is not _ONE:
            for place in range(1, 6):
                above[place] += count[place]
    children: dict[int, list[ModuleNode]] = {}
    for number in range(len(drafts) - 1, -1, -1):
        draft = drafts[number]
        count = counts[number if draft.repeats is None else draft.repeats]
        below = children.pop(number, _NOBODY)
        node = ModuleNode(
            draft.name,
            draft.path,
            draft.type_name,
            draft.arguments,
            tensors[number],
            tuple(reversed(below)) if below else (),  # the last one was made first
            _LEAF if count is _ONE else Sums(*count),
            draft.is_type_guessed,
            draft.shared_with,
        )
        children.setdefault(parents[number], []).append(node)
    return node


def _counted(
    drafts: Sequence[Draft],
) -> tuple[list[int], list[list[int]], list[tuple[TensorEntry, ...]]]:
    """Return the parent of each module, what it adds to all above it, and its tensors.

    What a module adds is in the order of `Sums`; negative where something below occurs twice.
    """
    parents: list[int] = []
    counts: list[list[int]] = []
    tensors: list[tuple[TensorEntry, ...]] = []
    way: list[int] = []  # from the root to the current module
    last: dict[Hashable, int] = {}
    first_path: dict[Hashable, str] = {}
    for number, draft in enumerate(drafts):
        del way[draft.depth :]
        parents.append(way[-1] if way else 0)
        way.append(number)
        is_leaf = number + 1 == len(drafts) or drafts[number + 1].depth <= draft.depth
        is_counted = draft.repeats is None
        is_plain = is_leaf and is_counted and not draft.tensors
        count = _ONE if is_plain else [int(is_counted), 0, 0, 0, 0, 0]
        counts.append(count)
        tensors.append(())
        if not is_counted:
            continue
        if draft.key is not None:
            before = last.get(draft.key)
            if before is not None:
                counts[way[bisect_right(way, before) - 1]][0] -= 1
            last[draft.key] = number
        if not draft.tensors:
            continue
        entries = []
        for key, entry in draft.tensors:
            _add(count, entry, 1)
            before = last.get(key)
            if before is None:
                first_path[key] = entry.path
            else:
                _add(counts[way[bisect_right(way, before) - 1]], entry, -1)
            last[key] = number
            entries.append(entry if before is None else replace(entry, tied_to=first_path[key]))
        tensors[-1] = tuple(entries)
    return parents, counts, tensors


def _add(count: list[int], entry: TensorEntry, sign: int) -> None:
    elements, size_bytes = sign * entry.elements, sign * entry.size_bytes
    if entry.is_buffer:
        count[3] += elements
        count[5] += size_bytes
    else:
        count[1] += elements
        count[4] += size_bytes
        if entry.is_trainable:
            count[2] += elements
