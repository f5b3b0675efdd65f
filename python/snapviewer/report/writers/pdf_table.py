"""Tables on pages: cells are broken into lines, and the head is there again on each page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from snapviewer.report.blocks import Span, Table, Text
from snapviewer.report.writers.colors import Ink
from snapviewer.report.writers.pages import BOTTOM, HEIGHT, LEADING, PAGE_ROOM, ROOM, SIDE, Pages
from snapviewer.report.writers.typesetting import TextLine, column_widths

_SIZE, _HEAD_SIZE = 9.5, 8.5
_PAD_X, _PAD_Y = 6.0, 4.0

LEAST_HEIGHT = 4 * (_SIZE * LEADING + 2 * _PAD_Y)
"""Room for the head and a few rows: with less, a table begins on the next page."""


@dataclass(frozen=True, slots=True)
class _Row:
    """The lines of each cell, and how they are set."""

    cells: tuple[tuple[TextLine, ...], ...]
    size: float
    ink: Ink

    @property
    def line_count(self) -> int:
        return max(len(cell) for cell in self.cells)

    def height(self, lines: int) -> float:
        return lines * self.size * LEADING + 2 * _PAD_Y


def write_table(pages: Pages, table: Table) -> None:
    """Write a table, over as many pages as it needs."""
    head_texts: list[Text] = [(Span(column.title),) for column in table.columns]
    bodies = [_texts(table, index) for index in range(len(table.rows))]
    widths = column_widths(
        [
            2 * _PAD_X
            + max(
                _natural(pages, head_texts[index], _HEAD_SIZE),
                *(_natural(pages, body[index], _SIZE) for body in bodies),
                0.0,
            )
            for index in range(len(table.columns))
        ],
        ROOM,
    )
    head = _row(pages, head_texts, widths, _HEAD_SIZE, "secondary")
    pages.make_room(LEAST_HEIGHT)
    _write_head(pages, table, head, widths)
    for body in bodies:
        row = _row(pages, body, widths, _SIZE, "text")
        _write_row(pages, table, row, head, widths)
    pages.y += 12


def _texts(table: Table, index: int) -> list[Text]:
    """Return the cells of a row, as many as there are columns; those of a sum are strong."""
    cells = [*table.rows[index][: len(table.columns)]]
    cells += [()] * (len(table.columns) - len(cells))
    if not (table.has_total and index == len(table.rows) - 1):
        return cells
    return [
        tuple(Span(span.text, "strong") if span.style == "plain" else span for span in cell)
        for cell in cells
    ]


def _natural(pages: Pages, text: Text, size: float) -> float:
    # A hair more, so that adding up in another order does not break the line.
    return pages.width("".join(pages.readable(span.text) for span in text), size) + 0.1


def _row(
    pages: Pages, texts: Sequence[Text], widths: Sequence[float], size: float, ink: Ink
) -> _Row:
    cells = (
        pages.lines(text, width - 2 * _PAD_X, size)
        for text, width in zip(texts, widths, strict=True)
    )
    return _Row(tuple(cells), size, ink)


def _head_lines(head: _Row) -> int:
    """Count the lines of the head; if it took more than half a page, rows would have no room."""
    return min(head.line_count, int(PAGE_ROOM / 2 / (head.size * LEADING)))


def _write_head(pages: Pages, table: Table, head: _Row, widths: Sequence[float]) -> None:
    _set_cells(pages, table, head, widths, 0, _head_lines(head))
    pages.rule(pages.y, "axis")


def _write_row(pages: Pages, table: Table, row: _Row, head: _Row, widths: Sequence[float]) -> None:
    """Write a row on one page; one that is higher than a page goes on on the next."""
    page_room = PAGE_ROOM - head.height(_head_lines(head))
    first = 0
    while first < row.line_count:
        left = row.line_count - first
        if pages.make_room(row.height(left if row.height(left) <= page_room else 3)):
            _write_head(pages, table, head, widths)
        shown = max(1, min(left, _fitting(pages, row)))
        _set_cells(pages, table, row, widths, first, shown)
        pages.rule(pages.y, "grid")
        first += shown


def _fitting(pages: Pages, row: _Row) -> int:
    """Count the lines that fit on what is left of the page."""
    return int((HEIGHT - BOTTOM - pages.y - 2 * _PAD_Y + 0.01) / (row.size * LEADING))


def _set_cells(
    pages: Pages, table: Table, row: _Row, widths: Sequence[float], first: int, count: int
) -> None:
    x = SIDE
    for cell, width, column in zip(row.cells, widths, table.columns, strict=True):
        for index, line in enumerate(cell[first : first + count]):
            top = pages.y + _PAD_Y + index * row.size * LEADING
            left = x + width - _PAD_X - line.width if column.is_number else x + _PAD_X
            pages.set_line(line, left, top, row.size, ink=row.ink)
        x += width
    pages.y += row.height(count)
