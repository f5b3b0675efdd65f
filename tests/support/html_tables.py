"""Reads the tables of an HTML page."""

from __future__ import annotations

from html.parser import HTMLParser


class HtmlTables(HTMLParser):
    """The tables of a page, each as rows of cells; the first row has the titles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self._cell: list[str] | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "table":
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self._cell = []

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th") and self._cell is not None:
            self.tables[-1][-1].append("".join(self._cell).strip())
            self._cell = None

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._cell.append(data)

    def cell(self, row: str, column: str) -> str | None:
        """Return the cell of a row whose first cell begins so; None if no table has it."""
        for titles, *rows in self.tables:
            if column in titles:
                for cells in rows:
                    if cells[0] == row or cells[0].startswith(f"{row} "):
                        return cells[titles.index(column)]
        return None
