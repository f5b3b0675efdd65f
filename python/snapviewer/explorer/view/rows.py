"""Which rows of a tree are to be seen, and in which order.

A `View` is all that a person chose: what is unfolded, the order, what is too small, what was
searched for. It is never changed; `folding.py` makes new ones.

While something is searched for, the filter alone decides: what matches is shown with the modules
that it is in, and an unfolded module shows its children that lead to a match, or all of them where
none does.

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
# Deeper modules are not indented any more: guides of a chain of n modules would take n² cells.
MOST_GUIDE = 48
_DIGITS = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Filter:
    """What a search leaves: its matches, these with all that they are in, and what is unfolded."""

    matches: frozenset[int]
    kept: frozenset[int]
    unfolded: frozenset[int]


@dataclass(frozen=True, slots=True)
class View:
    """What a person chose to see. Names and the model's order go up, sizes and times down."""

    unfolded: frozenset[int] = frozenset({0})
    order: Order = "order"
    is_reversed: bool = False
    fewest_elements: int = 0
    has_tensors: bool = True
    filter: Filter | None = None

    def is_unfolded(self, place: int) -> bool:
        return place in (self.filter.unfolded if self.filter else self.unfolded)


@dataclass(frozen=True, slots=True)
class Rows:
    """What is to be seen: places of the outline, and the lines that lead to each."""

    places: Sequence[int]
    guides: Sequence[str]


def visible_rows(outline: Outline, view: View, seconds: Mapping[str, float] | None = None) -> Rows:
    """List what is to be seen.

    Args:
        outline: The tree.
        view: What was chosen.
        seconds: How long each module took, by its path; the order by time needs it.
    """
    key = _key(outline, view.order, seconds or {})
    falls = view.is_reversed != (view.order in ("params", "memory", "time"))
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
            children.sort(key=key, reverse=falls)
        elif falls:
            children.reverse()
        below = below[-MOST_GUIDE:]
        if unfolded.isdisjoint(children):
            places.extend(children)
            guides.extend([f"{below}├─"] * (len(children) - 1))
            guides.append(f"{below}└─")
            continue
        waiting.append((children.pop(), f"{below}└─", f"{below}  "))
        guide, below = f"{below}├─", f"{below}│ "
        waiting.extend([(child, guide, below) for child in reversed(children)])
    return Rows(places, guides)


def shown_children(outline: Outline, view: View, place: int) -> list[int]:
    """Return the children that an unfolded module shows, in the model's order."""
    children = outline.children(place)
    if view.filter is not None:
        kept = [child for child in children if child in view.filter.kept]
        return kept or children
    items = outline.items
    if not view.has_tensors:
        end = place + 1 + len(items[place].tensors)  # type: ignore[union-attr]
        children = [child for child in children if child >= end]
    if view.fewest_elements:
        fewest = view.fewest_elements
        children = [child for child in children if elements_of(items[child]) >= fewest]
    return children


def can_unfold(outline: Outline, view: View, place: int) -> bool:
    """Tell whether there is anything to see below a place."""
    return outline.has_children(place) and bool(shown_children(outline, view, place))


def filtered(outline: Outline, view: View, matches: Collection[int]) -> View:
    """Return a view of nothing but what matches and what that is in, unfolded so far."""
    parents = outline.parents
    above: set[int] = {0}
    for match in matches:
        place = parents[match]
        while place > 0 and place not in above:
            above.add(place)
            place = parents[place]
    unfolded = frozenset(above if matches else ())
    matched = frozenset(matches)
    return replace(view, filter=Filter(matched, matched | above, unfolded))


def neighbour(places: Sequence[int], wanted: Collection[int], start: int, step: int) -> int | None:
    """Return the next row after `start` that is wanted, around the end; backwards if step is -1."""
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
    """Return by what names are sorted, with the numbers in them in their order.

    >>> sorted(["layer10", "Layer2", "head"], key=natural_key)
    ['head', 'Layer2', 'layer10']
    """
    parts = _DIGITS.split(name.lower())
    return [
        # Digits that int() refuses (a name of thousands of them, say) sort as text.
        (0, int(part), "") if at % 2 and len(part) < 19 else (1, 0, part)
        for at, part in enumerate(parts)
    ]
