"""Which rows of a tree are visible, and in which order.

A `ViewState` holds everything that a user chose: what is unfolded, the order, what is hidden as too
small, the search filter. It is immutable; `folding.py` makes new ones.

A search filter overrides the rest: matches are shown with their ancestors, and an unfolded module
shows the children that lead to a match, or all of them if none does.

# Cost

Linear in the rows and in the children of unfolded modules, whatever else the tree holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from snapviewer.explorer.view.outline import Outline, bytes_of, elements_of, parameters_of

Order = Literal["order", "name", "params", "memory", "time"]
ORDERS: tuple[Order, ...] = get_args(Order)
# Deeper modules are not indented further: guides of a chain of n modules would take n² cells.
MAX_GUIDE_CELLS = 48
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """The result of a search: the matches, these with their ancestors, and what is unfolded."""

    matches: frozenset[int]
    visible: frozenset[int]
    unfolded: frozenset[int]


@dataclass(frozen=True, slots=True)
class ViewState:
    """What is shown. Names and the model's order ascend, sizes and times descend."""

    unfolded: frozenset[int] = frozenset({0})
    order: Order = "order"
    is_reversed: bool = False
    min_elements: int = 0
    has_tensors: bool = True
    filter: SearchFilter | None = None

    def is_unfolded(self, place: int) -> bool:
        return place in (self.filter.unfolded if self.filter else self.unfolded)


@dataclass(frozen=True, slots=True)
class Rows:
    """Visible places of the outline, and the guide lines in front of each."""

    places: Sequence[int]
    guides: Sequence[str]


def visible_rows(
    outline: Outline, view: ViewState, seconds: Mapping[str, float] | None = None
) -> Rows:
    """List the visible rows.

    Args:
        outline: The tree.
        view: What is shown.
        seconds: The time of each module by path, to sort by.
    """
    key = _key(outline, view.order, seconds or {})
    is_descending = view.is_reversed != (view.order in ("params", "memory", "time"))
    unfolded = view.filter.unfolded if view.filter else view.unfolded
    places: list[int] = []
    guides: list[str] = []
    waiting = [(0, "", "")]
    while waiting:
        place, guide, below = waiting.pop()
        places.append(place)
        guides.append(guide)
        if place not in unfolded:
            continue
        children = shown_children(outline, view, place)
        if not children:
            continue
        if key is not None:
            children.sort(key=key, reverse=is_descending)
        elif is_descending:
            children.reverse()
        below = below[-MAX_GUIDE_CELLS:]
        if unfolded.isdisjoint(children):
            places.extend(children)
            guides.extend([f"{below}├─"] * (len(children) - 1))
            guides.append(f"{below}└─")
            continue
        waiting.append((children.pop(), f"{below}└─", f"{below}  "))
        guide, below = f"{below}├─", f"{below}│ "
        waiting.extend([(child, guide, below) for child in reversed(children)])
    return Rows(places, guides)


def shown_children(outline: Outline, view: ViewState, place: int) -> list[int]:
    """Return the children that an unfolded module shows, in the model's order."""
    children = outline.children(place)
    if view.filter is not None:
        visible = [child for child in children if child in view.filter.visible]
        return visible or children
    items = outline.items
    if not view.has_tensors:
        end = place + 1 + len(items[place].tensors)  # type: ignore[union-attr]
        children = [child for child in children if child >= end]
    if view.min_elements:
        minimum = view.min_elements
        children = [child for child in children if elements_of(items[child]) >= minimum]
    return children


def can_unfold(outline: Outline, view: ViewState, place: int) -> bool:
    """Return whether a place has visible children."""
    return outline.has_children(place) and bool(shown_children(outline, view, place))


def filtered(outline: Outline, view: ViewState, matches: Collection[int]) -> ViewState:
    """Return a view of the matches and their ancestors only."""
    parents = outline.parents
    above: set[int] = {0}
    for match in matches:
        place = parents[match]
        while place > 0 and place not in above:
            above.add(place)
            place = parents[place]
    unfolded = frozenset(above if matches else ())
    matched = frozenset(matches)
    return replace(view, filter=SearchFilter(matched, matched | above, unfolded))


def neighbour(places: Sequence[int], wanted: Collection[int], start: int, step: int) -> int | None:
    """Return the next wanted row after `start`, wrapping around; backwards if step is -1."""
    count = len(places)
    for distance in range(1, count + 1):
        row = (start + step * distance) % count
        if places[row] in wanted:
            return row
    return None


def _key(
    outline: Outline, order: Order, seconds: Mapping[str, float]
) -> Callable[[int], Any] | None:
    items = outline.items
    if order == "name":
        return lambda place: natural_key(items[place].name)
    if order == "params":
        return lambda place: (parameters_of(items[place]), elements_of(items[place]))
    if order == "memory":
        return lambda place: bytes_of(items[place])
    if order == "time":
        return lambda place: seconds.get(items[place].path, -1.0)
    return None


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key for names that orders the numbers in them by value.

    >>> sorted(["layer10", "Layer2", "head"], key=natural_key)
    ['head', 'Layer2', 'layer10']
    """
    parts = _DIGITS.split(name.lower())
    return [
        # Digits that int() refuses (a name of thousands of them, say) sort as text.
        (0, int(part), "") if at % 2 and len(part) < 19 else (1, 0, part)
        for at, part in enumerate(parts)
    ]
