"""Blocks as lines of plain text, for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator

from snapviewer.report import blocks
from snapviewer.text.sanitize import sanitize
from snapviewer.text.table import format_table

_MAX_CELL_CHARS = 200


def text_lines(content: Iterable[blocks.Block], width: int | None = None) -> Iterator[str]:
    """Render blocks as lines, with an empty line between blocks.

    Args:
        content: The blocks.
        width: The width to which they are fitted; None leaves lines as long as they are.
    """
    is_first = True
    for block in content:
        if not is_first:
            yield ""
        is_first = False
        yield from _lines(block, width)


def _lines(block: blocks.Block, width: int | None) -> Iterator[str]:
    match block:
        case blocks.Heading(_, title):
            yield from _wrapped(sanitize(title), width)
        case blocks.Paragraph(text, _):
            yield from _wrapped(_plain(text), width)
        case blocks.Listing(items, is_ordered):
            for place, item in enumerate(items, start=1):
                mark = f"{place}." if is_ordered else "-"
                yield from _wrapped(_plain(item), width, f"  {mark} ")
        case blocks.Table(columns):
            head = [sanitize(column.title, _MAX_CELL_CHARS) for column in columns]
            cells = [[_plain(cell)[:_MAX_CELL_CHARS] for cell in row] for row in block.full_rows()]
            right = {place for place, column in enumerate(columns) if column.is_number}
            has_notes = len(columns) - 1 not in right
            yield from format_table([head, *cells], right=right, width=width, has_notes=has_notes)
        case blocks.BarChart(title, unit, bars):
            yield from _wrapped(f"{sanitize(title)} ({unit})", width)
            rows = [(sanitize(bar.label), f"{bar.value:,.4g}", sanitize(bar.note)) for bar in bars]
            if all(value == note for _, value, note in rows):
                rows = [(label, value, "") for label, value, _ in rows]
            yield from format_table(rows, right={1}, width=width)
        case blocks.LineChart(title, x_title, unit, series):
            yield from _wrapped(f"{sanitize(title)} ({unit}) by {sanitize(x_title)}", width)
            for line in series:
                points = ", ".join(f"{x:g}: {y:,.4g}" for x, y in line.points)
                yield from _wrapped(points, width, f"  {sanitize(line.name)}: ")


def _wrapped(text: str, width: int | None, start: str = "") -> Iterator[str]:
    """Yield a text that begins with a mark, under which further lines are indented."""
    if width is None or len(start) + len(text) <= width:
        yield f"{start}{text}"
    else:
        yield from textwrap.wrap(
            text,
            max(width, 20),
            initial_indent=start,
            subsequent_indent=" " * min(len(start), 8),
            break_on_hyphens=False,
        )


def _plain(text: blocks.Text) -> str:
    return sanitize("".join(span.text for span in text))
