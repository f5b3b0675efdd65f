"""The state of the explorer, without a terminal: the visible rows, the cursor, the search.

The program calls these methods and draws `rows` with the cursor at `row`. The cursor stays on its
item; if that is hidden, it moves to the nearest visible module around it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from math import ceil

from snapviewer.explorer.explored_model import Item
from snapviewer.explorer.timing import ForwardStats
from snapviewer.explorer.tree import ModuleNode
from snapviewer.explorer.view import rows as row_rules
from snapviewer.explorer.view.folding import revealed, toggled, unfolded_to_depth, unfolded_to_fit
from snapviewer.explorer.view.outline import Outline, bytes_of, elements_of, parameters_of
from snapviewer.explorer.view.rows import ORDERS, Rows, ViewState, can_unfold, visible_rows
from snapviewer.explorer.view.search import Query, SearchResult, SearchTexts, search, search_texts

# Shares of the model below which modules are hidden; `x` steps through them.
HIDDEN_SHARES = (0.0, 0.001, 0.01, 0.05)


class TreeBrowser:
    """A tree, what is shown of it, and the cursor."""

    def __init__(
        self,
        outline: Outline,
        *,
        stats: ForwardStats | None = None,
        max_depth: int | None = None,
        room: int = 24,
    ) -> None:
        self.outline = outline
        self.stats = stats
        self.seconds: Mapping[str, float] = _seconds(outline, stats) if stats else {}
        unfolded = (
            unfolded_to_fit(outline, room)
            if max_depth is None
            else unfolded_to_depth(outline, max_depth)
        )
        self.view = ViewState(unfolded=unfolded)
        self.rows: Rows = visible_rows(outline, self.view)
        self.row = 0
        self.hidden_level = 0
        self.found = SearchResult(Query(), ())
        self._texts: SearchTexts | None = None

    @property
    def place(self) -> int:
        """The cursor's place in the outline."""
        return self.rows.places[self.row]

    @property
    def item(self) -> Item:
        return self.outline.items[self.place]

    @property
    def texts(self) -> SearchTexts:
        """The texts that are searched; made on first use."""
        if self._texts is None:
            self._texts = search_texts(self.outline)
        return self._texts

    # Moving

    def move_to_row(self, row: int) -> None:
        """Move the cursor to a row, or to the nearest one that exists."""
        self.row = max(0, min(row, len(self.rows.places) - 1))

    def go_to(self, place: int) -> None:
        """Move the cursor to a place, unfolding its ancestors and clearing filters that hide it."""
        if place not in self.rows.places:
            self.change(revealed(self.outline, self.view, place))
        if place not in self.rows.places:
            view = replace(self.view, filter=None, min_elements=0, has_tensors=True)
            self.hidden_level = 0
            self.change(revealed(self.outline, view, place))
        self.row = _row_of(self.rows, place)

    def go_in(self) -> None:
        """Unfold the module under the cursor; if it is unfolded, go to its first child."""
        if not can_unfold(self.outline, self.view, self.place):
            return
        if self.view.is_unfolded(self.place):
            self.row += 1
        else:
            self.fold(toggled)

    def go_out(self) -> None:
        """Fold the module under the cursor; if it is folded, go to its parent."""
        if self.view.is_unfolded(self.place) and can_unfold(self.outline, self.view, self.place):
            self.fold(toggled)
        elif self.outline.parents[self.place] >= 0:
            self.row = _row_of(self.rows, self.outline.parents[self.place])

    # Changing what is shown

    def change(self, view: ViewState) -> None:
        """Replace the view, keeping the cursor on its item."""
        place = self.place
        self.view = view
        self.rows = visible_rows(self.outline, view, self.seconds)
        self._put_cursor(place)

    def fold(self, operation: Callable[[Outline, ViewState, int], ViewState]) -> None:
        """Apply an operation of `folding` at the cursor."""
        self.change(operation(self.outline, self.view, self.place))

    def next_order(self) -> None:
        """Sort by the next key; by time only if times were recorded."""
        orders = [order for order in ORDERS if order != "time" or self.seconds]
        order = orders[(orders.index(self.view.order) + 1) % len(orders)]
        self.change(replace(self.view, order=order, is_reversed=False))

    def reverse(self) -> None:
        self.change(replace(self.view, is_reversed=not self.view.is_reversed))

    def hide_small(self) -> None:
        """Hide more of the small modules; after the last step, none."""
        self.hidden_level = (self.hidden_level + 1) % len(HIDDEN_SHARES)
        whole = elements_of(self.outline.items[0])
        minimum = max(ceil(HIDDEN_SHARES[self.hidden_level] * whole), 1) if self.hidden_level else 0
        self.change(replace(self.view, min_elements=minimum))

    def toggle_tensors(self) -> None:
        self.change(replace(self.view, has_tensors=not self.view.has_tensors))

    # Searching

    def search(self, query: Query) -> None:
        """Filter by a query while it is typed; an incomplete regex leaves the rows as they are."""
        before = self.found
        self.found = search(self.texts, query, before if before.query.text else None)
        if self.found.error and not self.found.matches:
            self.found = replace(before, error=self.found.error)
            return
        if not query.text.strip():
            self.clear()
        else:
            self.change(row_rules.filtered(self.outline, self.view, self.found.matches))
            if self.view.filter and self.place not in self.view.filter.matches:
                self.next_match(1)

    def clear(self) -> None:
        """Remove the filter, keeping the cursor's item visible. The matches stay for n and N."""
        if self.view.filter is not None:
            place = self.place
            view = replace(self.view, filter=None)
            self.change(revealed(self.outline, view, place))
            self._put_cursor(place)

    def next_match(self, step: int) -> bool:
        """Go to the next or previous match; return whether there is one."""
        matches = self.view.filter.matches if self.view.filter else frozenset(self.found.matches)
        return self.go_to_next(matches, step)

    def go_to_next(self, wanted: Collection[int], step: int) -> bool:
        """Go to the next of some places, wrapping around; return whether there is one."""
        if not wanted:
            return False
        row = row_rules.neighbour(self.rows.places, wanted, self.row, step)
        if row is None or (self.view.filter is None and self.view.order == "order"):
            # Some may be folded: take the next in the model's order.
            ordered = sorted(wanted)
            after = [place for place in ordered if (place - self.place) * step > 0]
            around = ordered[0] if step > 0 else ordered[-1]
            self.go_to((after[0] if step > 0 else after[-1]) if after else around)
        else:
            self.row = row
        return True

    # Shares

    def share(self, place: int) -> float | None:
        """Return a row's share of the parameters; of time or memory if sorted by these."""
        items, order = self.outline.items, self.view.order
        if order == "time":
            whole = self.seconds.get(items[0].path, 0.0)
            part = self.seconds.get(items[place].path)
            return None if part is None or not whole else part / whole
        if order == "memory":
            total = bytes_of(items[0])
            return bytes_of(items[place]) / total if total else None
        total = parameters_of(items[0])
        return parameters_of(items[place]) / total if total else None

    def _put_cursor(self, place: int) -> None:
        for candidate in (place, *self.outline.ancestors(place)):
            if candidate in self.rows.places:
                self.row = _row_of(self.rows, candidate)
                return
        self.row = 0


def _seconds(outline: Outline, stats: ForwardStats) -> dict[str, float]:
    """Return the time of all calls of each module by path, so that parts add up to the whole.

    A list of modules, which is never called itself, took as long as those in it.
    """
    seconds: dict[str, float] = {}
    below: dict[int, float] = {}
    for place in range(len(outline.items) - 1, -1, -1):
        item = outline.items[place]
        if not isinstance(item, ModuleNode):
            continue
        timing = stats.timing_of(item)
        spent = timing.total.sum_s if timing else below.get(place)
        if spent is not None:
            seconds[item.path] = spent
            if item.shared_with is None:
                parent = outline.parents[place]
                below[parent] = below.get(parent, 0.0) + spent
    return seconds


def _row_of(rows: Rows, place: int) -> int:
    return rows.places.index(place)
