"""Tables as text: aligned columns, of which the first is shortened where there is little room.

Sentences are wrapped instead, so that nothing is wider than a terminal.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Sequence

from snapviewer.text.sanitize import sanitize, shorten_middle

MAX_LABEL_CHARS = 200
_MIN_LABEL = 16
_EASY_LABEL = 32  # characters of the first column below which notes go to a line of their own
_INDENT = "  "


def format_table(
    rows: Sequence[Sequence[str]],
    *,
    right: Collection[int] = (),
    width: int | None = None,
    has_notes: bool = False,
    indent: str = _INDENT,
    max_padding: int | None = None,
) -> list[str]:
    """Return the lines of a table.

    Args:
        rows: Cells; all rows have the same number.
        right: The columns that are aligned to the right.
        width: The width of a line, for which the first column is shortened; None for any.
        has_notes: Whether the last column is prose, which goes below where there is no room.
        indent: What each line begins with.
        max_padding: The width to which cells are padded at most; wider ones move what follows, so
            that one long cell does not widen every line.

    >>> format_table([("name", "size"), ("layer.weight", "7 B")], right={1}, width=20)
    ['  name          size', '  layer.weight   7 B']
    """
    if not rows:
        return []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if width is not None:
        room = first_column_room(widths, width)
        if has_notes and room < min(widths[0], _EASY_LABEL):
            return _with_notes_below(rows, right, width)
        widths[0] = min(widths[0], max(room, _MIN_LABEL))
    if max_padding is not None:
        widths = [min(size, max_padding) for size in widths]
    lines = []
    for row in rows:
        first = row[0] if width is None else shorten_middle(row[0], widths[0])
        cells = [first, *row[1:]]
        padded = [
            cell.rjust(size) if place in right else cell.ljust(size)
            for place, (cell, size) in enumerate(zip(cells, widths, strict=True))
        ]
        lines.append((indent + "  ".join(padded)).rstrip())
    return lines


def first_column_room(widths: Sequence[int], width: int) -> int:
    """Return what the other columns leave of a line to the first one."""
    return width - sum(widths[1:]) - 2 * len(widths[1:]) - len(_INDENT)


def _with_notes_below(
    rows: Sequence[Sequence[str]], right: Collection[int], width: int
) -> list[str]:
    table = format_table([row[:-1] for row in rows], right=right, width=width)
    lines = []
    for line, row in zip(table, rows, strict=True):
        lines.append(line)
        if row[-1]:
            lines += wrap_lines([f"{_INDENT * 2}{row[-1]}"], width)
    return lines


def format_sections(sections: Iterable[Iterable[str]], width: int | None = None) -> str:
    """Join sections with a blank line between; empty ones are left out, long lines wrapped."""
    texts = ("\n".join(wrap_lines(lines, width)) for lines in sections)
    return "\n\n".join(text for text in texts if text) + "\n"


def wrap_lines(lines: Iterable[str], width: int | None) -> list[str]:
    """Wrap lines that are too wide; what follows is indented.

    >>> wrap_lines(["  a: one, two", "three"], 8)
    ['  a:', '    one,', '    two', 'three']
    """
    if width is None:
        return list(lines)
    wrapped = []
    for line in lines:
        if len(line) <= width:
            wrapped.append(line)
            continue
        indent = line[: len(line) - len(line.lstrip())]
        wrapped += textwrap.wrap(
            line,
            max(width, _MIN_LABEL // 2),
            subsequent_indent=indent + _INDENT,
            break_on_hyphens=False,
        )
    return wrapped


def label(name: str) -> str:
    r"""Return a name from a file as a label.

    >>> label("a\x1b[1m"), label("")
    ('a?[1m', '(no name)')
    """
    return shorten_middle(sanitize(name, 4 * MAX_LABEL_CHARS), MAX_LABEL_CHARS) or "(no name)"


def join_labels(names: Sequence[str], max_names: int = 4) -> str:
    """Join names from a file, and say how many more there are.

    >>> join_labels(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    shown = [label(name) for name in names[:max_names]]
    if len(names) > max_names:
        shown.append(f"{len(names) - max_names:,} more")
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)
