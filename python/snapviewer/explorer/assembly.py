"""Puts a tree together from modules in walk order, with the sums of every subtree.

# Invariants

Every subtree counts a tensor once, however often it occurs there: where the same tensor occurs
again in walk order, it is taken off at the lowest module that holds both occurrences. A subtree
with k occurrences holds exactly k - 1 of these places. Modules that occur twice are counted so too.

# Cost

`O(modules + tensors × log depth)`: a module above the present one holds an earlier occurrence if it
was entered before it, so the lowest is found by bisection of the way from the root.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from .tree import ModuleNode, Sums, TensorEntry

# What most modules add: themselves. They share it, and nothing is ever taken off there, because the
# lowest module that holds two others is no leaf.
_ONE = [1, 0, 0, 0, 0, 0]
_LEAF = Sums(*_ONE)
_NOBODY: list[ModuleNode] = []


@dataclass(slots=True)
class Draft:
    """A module on its way into the tree.

    `tensors` come with what tells whether two are the same, and so does the module itself (`key`);
    None if it is like no other. `repeats` is the number of the draft whose sums it shows, where a
    module's children are shown elsewhere only; nothing of it is counted in the modules above.
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


def assembled(drafts: Sequence[Draft]) -> ModuleNode:
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

    What a module adds is in the order of `Sums`; less than nothing where something below occurs
    twice.
    """
    parents: list[int] = []
    counts: list[list[int]] = []
    tensors: list[tuple[TensorEntry, ...]] = []
    way: list[int] = []  # from the root to the present module
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
