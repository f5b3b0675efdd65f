"""A table of known rows, sorted by a click on a heading.

A row is identified by its place in the given rows, whatever order they are shown in.
"""

from __future__ import annotations

import re
import tkinter as tk
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .virtual_table import Column, RowHooks, Rows, VirtualTable


@dataclass(frozen=True, slots=True)
class Sorting:
    """The column to sort by; None keeps the given order."""

    column: int | None = None
    is_down: bool = False

    def clicked(self, column: int, *, is_number: bool) -> Sorting:
        """Return the order after a click on a heading: numbers start with the largest."""
        if column == self.column:
            return Sorting(column, not self.is_down)
        return Sorting(column, is_number)

    def order(self, rows: Sequence[Sequence[Any]]) -> list[int]:
        """Return the places of the rows in this order; the sort is stable.

        Numbers come before texts, and missing values are last either way.

        >>> Sorting(0, is_down=True).order([(1,), (None,), ("a",), (3,)])
        [2, 3, 0, 1]
        """
        if self.column is None:
            return list(range(len(rows)))
        column = self.column
        known = [place for place, row in enumerate(rows) if row[column] is not None]
        unknown = [place for place, row in enumerate(rows) if row[column] is None]
        known.sort(key=lambda place: _key(rows[place][column]), reverse=self.is_down)
        return known + unknown

    def heading(self, column: int, text: str) -> str:
        """Return a heading, with an arrow if it is the sorted column's."""
        if column != self.column:
            return text
        return f"{text} {'▾' if self.is_down else '▴'}"


class SortedTable(VirtualTable):
    """A table; `texts_of` returns the texts of a row, which it and the hooks get by its place."""

    def __init__(
        self,
        parent: tk.Misc,
        columns: Sequence[Column],
        texts_of: Callable[[int], tuple[str, ...]],
        hooks: RowHooks,
        *,
        sorting: Sorting | None = None,
    ) -> None:
        self._order: list[int] = []
        self._values: Sequence[Sequence[Any]] = ()
        self._tail = 0
        self._columns: Sequence[Column] = ()
        self._sorting = sorting or Sorting()
        bar_of, tip_of = hooks.bar_of, hooks.tip_of
        by_row = replace(
            hooks,
            on_select=lambda row: hooks.on_select(self._order[row]),
            on_open=lambda row: hooks.on_open(self._order[row]),
            on_heading=self._sort_by,
            bar_of=bar_of and (lambda row: bar_of(self._order[row])),
            tip_of=tip_of and (lambda row, column: tip_of(self._order[row], column)),
        )

        def rows_of(first: int, last: int) -> Rows:
            return [texts_of(place) for place in self._order[first:last]]

        super().__init__(parent, columns, rows_of, by_row)

    def set_columns(self, columns: Sequence[Column]) -> None:
        self._columns = columns
        super().set_columns(columns)
        self._show_sorting()

    def set_rows(
        self, values: Sequence[Sequence[Any]], *, tail: int = 0, sorting: Sorting | None = None
    ) -> None:
        """Replace the rows.

        Args:
            values: The sort keys of each row, one per column.
            tail: The number of rows that stay at the end, whatever the order.
            sorting: The order; the default is the current one.
        """
        self._values, self._tail = values, tail
        self._sorting = sorting or self._sorting
        self._sort()

    def mark_place(self, place: int | None) -> None:
        """Mark a row and bring it into view, or none; `on_select` is not called."""
        self.mark(self._order.index(place) if place is not None else None)

    def places(self, rows: range) -> list[int]:
        """Return the places of the rows in a range of the table."""
        return self._order[rows.start : rows.stop]

    def _sort_by(self, column: int) -> None:
        is_number = self._columns[column].is_number
        self._sorting = self._sorting.clicked(column, is_number=is_number)
        marked = self.places(self.marked)
        self._sort()
        self.mark_place(marked[0] if marked else None)

    def _sort(self) -> None:
        head = len(self._values) - self._tail
        order = self._sorting.order(self._values[:head])
        self._order = [*order, *range(head, len(self._values))]
        self._show_sorting()
        self.set_count(len(self._order))

    def _show_sorting(self) -> None:
        for place, column in enumerate(self._columns):
            self.set_heading(place, self._sorting.heading(place, column.heading))


def _key(value: Any) -> tuple[int, Any]:
    if isinstance(value, (int, float)):
        return 0, value
    if isinstance(value, str):
        # model.py:41 comes before model.py:150.
        parts = re.split(r"(\d{1,18})", value)
        return 1, [(int(part), "") if part.isdigit() else (0, part) for part in parts]
    return 2, str(value)
