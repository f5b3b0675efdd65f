"""What panels are made of: quiet headings, facts, tables, bars.

All texts are `Text`, so that brackets in a name stay brackets. Colours are the sixteen that a
terminal has, so that they follow its scheme, dark or light.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from rich.cells import cell_len
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from snapviewer.text.sanitize import sanitize, shorten_middle

if TYPE_CHECKING:
    from rich.console import RenderableType

QUIET = "dim"
FAINT = "bright_black"
ACCENT = "blue"
WARNING = "yellow"
BAD = "red"
GOOD = "green"

MOST_ROWS = 20
_MOST_OF_A_NAME = 300  # characters
_NARROWEST = 8  # cells


class Column(NamedTuple):
    """A column of a table: what it is called, where its cells stand, how they look.

    One that `shrinks` gives way where there is no room for all: names are cut in their middle.
    """

    heading: str
    justify: Literal["left", "right"] = "left"
    style: str = ""
    shrinks: bool = False


def stacked(*parts: RenderableType | None) -> Group:
    """Put parts one below the other; what is None is left out."""
    return Group(*(part for part in parts if part is not None))


def title(text: str, more: str = "", width: int = 80) -> Text:
    """Head a panel."""
    head = Text(shown(text, 2 * width), style="bold", overflow="fold")
    return (
        head.append(f"  {sanitize(more, 2 * width)}", style=f"not bold {QUIET}") if more else head
    )


def section(text: str, content: RenderableType | None) -> RenderableType | None:
    """Put a quiet heading above a part, with a line of room; nothing above nothing."""
    if content is None:
        return None
    return Padding(Group(Text(text, style=f"bold {ACCENT}"), content), (1, 0, 0, 0))


def shown(text: str, most: int = _MOST_OF_A_NAME) -> str:
    """Make a name fit to be shown; of a long one the end tells most."""
    # Of a name of a million characters only its ends need to be looked at.
    ends = text if len(text) <= 8 * most else f"{text[: 4 * most]}…{text[-4 * most :]}"
    return shorten_middle(sanitize(ends), most)


def sentence(text: str, style: str = QUIET) -> Text:
    """Say something in words."""
    return Text(sanitize(text, 2000), style=style)


def facts(rows: Iterable[tuple[str, str | Text | None]]) -> Table | None:
    """Set names and values in two columns; what is None or empty is left out."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style=QUIET, no_wrap=True, min_width=11)
    table.add_column(overflow="fold")
    for name, value in rows:
        if value is not None and len(value):
            table.add_row(Text(name), Text(value) if isinstance(value, str) else value)
    return table if table.row_count else None


def rows_of(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str | Text]],
    width: int,
    *,
    most: int = MOST_ROWS,
    total: int | None = None,
) -> RenderableType | None:
    """Set a table without lines; of many rows the first, and how many more there are.

    Args:
        columns: What is in a row.
        rows: The rows; those beyond `most` are not shown.
        width: How many cells there are for a row.
        most: How many are shown.
        total: How many there are, if `rows` has not all of them.
    """
    if not rows:
        return None
    cells = [[_as_text(cell) for cell in row] for row in rows[:most]]
    widths = _widths(columns, cells, width)
    text = Text(no_wrap=True, overflow="ellipsis")
    if any(column.heading for column in columns):
        heads = [Text(column.heading, style=QUIET) for column in columns]
        cells.insert(0, heads)
    for number, row in enumerate(cells):
        text.append("\n" if number else "")
        for place, (column, cell) in enumerate(zip(columns, row, strict=True)):
            text.append("  " if place else "")
            text.append_text(_set(cell, column, widths[place]))
        text.rstrip()
    left = (len(rows) if total is None else total) - min(most, len(rows))
    return Group(text, more(left)) if left else text


def _as_text(cell: str | Text) -> Text:
    return Text(cell) if isinstance(cell, str) else cell.copy()


def _widths(columns: Sequence[Column], cells: list[list[Text]], width: int) -> list[int]:
    """Return the cells of each column: as many as it needs, or fewer where it shrinks."""
    widths = [
        max(cell_len(column.heading), *(row[place].cell_len for row in cells))
        for place, column in enumerate(columns)
    ]
    # The widest gives way first: two sides of a comparison are cut alike.
    shrinking = [place for place, column in enumerate(columns) if column.shrinks]
    for _ in range(sum(widths) + 2 * (len(columns) - 1) - width):
        widest = max(shrinking, key=widths.__getitem__, default=0)
        if not shrinking or widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    return widths


def _set(cell: Text, column: Column, cells: int) -> Text:
    """Make a cell as wide as its column."""
    if cell.cell_len > cells and len(cell.plain) == cell.cell_len:
        cell = Text(shorten_middle(cell.plain, cells), style=cell.style)
    cell.truncate(cells, overflow="ellipsis")  # what has letters of two cells is cut at its end
    cell.style = cell.style or column.style
    cell.align(column.justify, cells)
    return cell


def more(left: int) -> Text:
    """Say how much is not shown."""
    return Text(f"… {left:,} more", style=QUIET)


def bar(share: float, cells: int) -> Text:
    """Draw a share of a whole.

    >>> bar(0.5, 4).plain, bar(0.4, 4).plain, bar(0.001, 4).plain, bar(0.0, 4).plain
    ('━━──', '━╸──', '╸───', '────')
    """
    halves = round(2 * cells * min(1.0, max(0.0, share)))
    if share > 0:
        halves = max(1, halves)
    filled = "━" * (halves // 2) + "╸" * (halves % 2)
    return Text(filled, style=ACCENT).append("─" * (cells - len(filled)), style=FAINT)


def percent(part: float, whole: float) -> str:
    """Say a share.

    >>> percent(1, 3), percent(1, 10**6), percent(0, 1), percent(1, 0)
    ('33.3 %', '< 0.1 %', '0.0 %', '')
    """
    if whole <= 0:
        return ""
    return "< 0.1 %" if 0 < part * 2000 < whole else f"{100 * part / whole:.1f} %"
