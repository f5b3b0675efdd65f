"""The building blocks of panels: headings, key-value lists, tables, bars.

All texts are `Text`, so that brackets in a name are not parsed as markup. Colours are the sixteen
of the terminal, so that they follow its scheme, dark or light.
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
from snapviewer.text.units import format_share

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snapviewer.explorer.explored_model import ExploredModel

QUIET = "dim"
FAINT = "bright_black"
ACCENT = "blue"
WARNING = "yellow"
BAD = "red"
GOOD = "green"

MAX_ROWS = 20
_MAX_NAME_CHARS = 300
_MIN_CELLS = 8  # of a column that shrinks
_RECORDING_EXAMPLE = """\
from snapviewer.explorer import (
    explore_model, record_torch_module_forward_stats
)

with record_torch_module_forward_stats(model):
    model(x)
explore_model(model)"""


class Column(NamedTuple):
    """A column of a table.

    Columns that shrink are cut in the middle of their texts where the table is too wide.
    """

    heading: str
    justify: Literal["left", "right"] = "left"
    style: str = ""
    shrinks: bool = False


def stack(*parts: RenderableType | None) -> Group:
    """Put parts one below the other; None is left out."""
    return Group(*(part for part in parts if part is not None))


def title(text: str, more: str = "", width: int = 80) -> Text:
    """Return the heading of a panel."""
    head = Text(short_name(text, 2 * width), style="bold", overflow="fold")
    return (
        head.append(f"  {sanitize(more, 2 * width)}", style=f"not bold {QUIET}") if more else head
    )


def section(text: str, content: RenderableType | None) -> RenderableType | None:
    """Put a heading and an empty line above a part; None stays None."""
    if content is None:
        return None
    return Padding(Group(Text(text, style=f"bold {ACCENT}"), content), (1, 0, 0, 0))


def short_name(text: str, max_chars: int = _MAX_NAME_CHARS) -> str:
    """Sanitize a name and cut its middle if it is long."""
    # Of a name of a million characters only the ends need to be sanitized.
    limit = 4 * max_chars
    ends = text if len(text) <= 2 * limit else f"{text[:limit]}…{text[-limit:]}"
    return shorten_middle(sanitize(ends), max_chars)


def sentence(text: str, style: str = QUIET) -> Text:
    """Return a sanitized sentence."""
    return Text(sanitize(text, 2000), style=style)


def key_values(rows: Iterable[tuple[str, str | Text | None]]) -> Table | None:
    """Return names and values in two columns; None and empty values are left out."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style=QUIET, no_wrap=True, min_width=11)
    grid.add_column(overflow="fold")
    for name, value in rows:
        if value is not None and len(value):
            grid.add_row(Text(name), Text(value) if isinstance(value, str) else value)
    return grid if grid.row_count else None


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str | Text]],
    width: int,
    *,
    max_rows: int = MAX_ROWS,
    total: int | None = None,
) -> RenderableType | None:
    """Return a table without rules; of many rows the first, and how many more there are.

    Args:
        columns: The columns.
        rows: The rows; those beyond `max_rows` are not shown.
        width: The width of a row in cells.
        max_rows: How many rows are shown.
        total: How many there are, if `rows` does not have all of them.
    """
    if not rows:
        return None
    cells = [[_as_text(cell) for cell in row] for row in rows[:max_rows]]
    widths = _widths(columns, cells, width)
    text = Text(no_wrap=True, overflow="ellipsis")
    if any(column.heading for column in columns):
        heads = [Text(column.heading, style=QUIET) for column in columns]
        cells.insert(0, heads)
    for number, row in enumerate(cells):
        text.append("\n" if number else "")
        for place, (column, cell) in enumerate(zip(columns, row, strict=True)):
            text.append("  " if place else "")
            text.append_text(_fit(cell, column, widths[place]))
        text.rstrip()
    left = (len(rows) if total is None else total) - min(max_rows, len(rows))
    return Group(text, more(left)) if left else text


def _as_text(cell: str | Text) -> Text:
    return Text(cell) if isinstance(cell, str) else cell.copy()


def _widths(columns: Sequence[Column], cells: list[list[Text]], width: int) -> list[int]:
    """Return the width of each column: what it needs, or less if it shrinks."""
    widths = [
        max(cell_len(column.heading), *(row[place].cell_len for row in cells))
        for place, column in enumerate(columns)
    ]
    # The widest shrinks first: two sides of a comparison are cut alike.
    shrinking = [place for place, column in enumerate(columns) if column.shrinks]
    for _ in range(sum(widths) + 2 * (len(columns) - 1) - width):
        widest = max(shrinking, key=widths.__getitem__, default=0)
        if not shrinking or widths[widest] <= _MIN_CELLS:
            break
        widths[widest] -= 1
    return widths


def _fit(cell: Text, column: Column, cells: int) -> Text:
    """Cut or pad a cell to the width of its column."""
    if cell.cell_len > cells and len(cell.plain) == cell.cell_len:
        cell = Text(shorten_middle(cell.plain, cells), style=cell.style)
    cell.truncate(cells, overflow="ellipsis")  # text with wide characters is cut at its end
    cell.style = cell.style or column.style
    cell.align(column.justify, cells)
    return cell


def more(left: int) -> Text:
    """Return how many rows are not shown."""
    return Text(f"… {left:,} more", style=QUIET)


def bar(share: float, cells: int) -> Text:
    """Draw a share as a bar.

    >>> bar(0.5, 4).plain, bar(0.4, 4).plain, bar(0.001, 4).plain, bar(0.0, 4).plain
    ('━━──', '━╸──', '╸───', '────')
    """
    halves = round(2 * cells * min(1.0, max(0.0, share)))
    if share > 0:
        halves = max(1, halves)
    filled = "━" * (halves // 2) + "╸" * (halves % 2)
    return Text(filled, style=ACCENT).append("─" * (cells - len(filled)), style=FAINT)


def percent(part: float, whole: float) -> str:
    """Format a share in percent; empty if there is no whole."""
    return format_share(part, whole) if whole > 0 else ""


def recording_hint(explored: ExploredModel) -> RenderableType:
    """Explain why a module has no recorded times, and how to record them."""
    if explored.stats is not None and explored.stats.timings:
        reason = "This module was not called in the recorded runs."
        return Padding(Text(reason, style=QUIET), (1, 0, 0, 0))
    if explored.find_module is None:
        reason = "Times need a live model."
    else:
        reason = "No run of this model was recorded."
    return Padding(
        Group(
            Text(f"{reason} To record a run:", style=QUIET),
            Padding(Text(_RECORDING_EXAMPLE, style=ACCENT, overflow="fold"), (1, 0, 0, 2)),
        ),
        (1, 0, 0, 0),
    )
