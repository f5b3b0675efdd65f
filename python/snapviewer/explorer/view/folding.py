"""Folding and unfolding: from one view to the next.

An operation on several modules toggles the chosen one and gives all others its new state. On a
tensor it applies to the tensor's module.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from snapviewer.explorer.tree import ModuleNode
from snapviewer.explorer.view.outline import Outline
from snapviewer.explorer.view.rows import ViewState


def toggled(outline: Outline, view: ViewState, place: int) -> ViewState:
    """Fold or unfold one module."""
    return _flipped(outline, view, place, [place])


def subtree_toggled(outline: Outline, view: ViewState, place: int) -> ViewState:
    """Fold or unfold a module with everything below it."""
    return _flipped(outline, view, place, [place], has_descendants=True)


def all_toggled(outline: Outline, view: ViewState, _place: int = 0) -> ViewState:
    """Unfold the whole tree; if anything but the root is unfolded, fold all but the root."""
    below = range(1, outline.ends[0])
    is_folding = any(view.is_unfolded(place) for place in below)
    return _set(outline, view, below, not is_folding)


def siblings_toggled(
    outline: Outline, view: ViewState, place: int, *, has_descendants: bool = False
) -> ViewState:
    """Fold or unfold a module and its siblings, optionally with everything below them."""
    parent = outline.parents[place]
    siblings = outline.children(parent) if parent >= 0 else [place]
    return _flipped(outline, view, place, siblings, has_descendants=has_descendants)


def class_toggled(
    outline: Outline, view: ViewState, place: int, *, has_descendants: bool = False
) -> ViewState:
    """Fold or unfold all modules of a class, optionally with everything below them."""
    return _flipped(
        outline, view, place, same_class(outline, place), has_descendants=has_descendants
    )


def same_class(outline: Outline, place: int) -> list[int]:
    """Return the places of all modules of the class of the one at `place`; itself if unknown."""
    item = outline.items[place]
    if not isinstance(item, ModuleNode) or not item.type_name:
        return [place]
    name = item.type_name
    return [
        at
        for at, other in enumerate(outline.items)
        if isinstance(other, ModuleNode) and other.type_name == name
    ]


def revealed(outline: Outline, view: ViewState, place: int) -> ViewState:
    """Unfold the ancestors of a place."""
    return _set(outline, view, outline.ancestors(place), True)


def unfolded_to_depth(outline: Outline, depth: int) -> frozenset[int]:
    """Return the places to unfold to show modules down to a depth; the root is at 0."""
    return frozenset(place for level in _levels(outline, depth) for place in level)


def unfolded_to_fit(outline: Outline, room: int) -> frozenset[int]:
    """Return the places to unfold, level by level, as long as the rows fit.

    Modules that hold only tensors stay folded; the root never does.
    """
    unfolded = {0}
    count = 1 + len(outline.children(0))
    level = [place for place in outline.children(0) if _has_modules(outline, place)]
    while level:
        children = [outline.children(place) for place in level]
        count += sum(map(len, children))
        if count > room:
            break
        unfolded.update(level)
        level = [child for found in children for child in found if _has_modules(outline, child)]
    return frozenset(unfolded)


def _levels(outline: Outline, depth: int) -> Iterable[list[int]]:
    level = [0]
    for _ in range(depth):
        if not level:
            return
        yield level
        level = [
            child
            for place in level
            for child in outline.children(place)
            if _has_modules(outline, child)
        ]


def _has_modules(outline: Outline, place: int) -> bool:
    item = outline.items[place]
    return isinstance(item, ModuleNode) and bool(item.children)


def _flipped(
    outline: Outline,
    view: ViewState,
    place: int,
    places: Iterable[int],
    *,
    has_descendants: bool = False,
) -> ViewState:
    is_unfolding = not view.is_unfolded(outline.module_at(place))
    chosen = {outline.module_at(at) for at in places}
    if has_descendants:
        chosen.update([below for at in chosen for below in range(at, outline.ends[at])])
    return _set(outline, view, chosen, is_unfolding)


def _set(outline: Outline, view: ViewState, places: Iterable[int], is_unfolded: bool) -> ViewState:
    chosen = [place for place in places if outline.has_children(place)]
    before = view.filter.unfolded if view.filter else view.unfolded
    after = before.union(chosen) if is_unfolded else before.difference(chosen)
    if view.filter:
        return replace(view, filter=replace(view.filter, unfolded=after))
    return replace(view, unfolded=after)
