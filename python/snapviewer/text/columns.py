"""Rows of text in aligned columns, of which the first gives way where there is little room.

Lines that are sentences are wrapped instead, so that nothing is wider than a terminal.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Sequence

from snapviewer.text.sanitize import sanitize, shorten_middle

MOST_NAME = 200  # characters of a name where nothing else limits it
_LEAST_NAME = 16
_EASY_NAME = 32  # as wide as names are left before words beside them go below
_INDENT = "  "


def lay_out(
    rows: Sequence[Sequence[str]],
    *,
    right: Collection[int] = (),
    width: int | None = None,
    has_notes: bool = False,
) -> list[str]:
    """Lay rows out in lines.

    Args:
        rows: Cells; all rows have as many.
        right: The columns that are aligned to the right.
        width: What the first column is shortened for; None leaves it as it is.
        has_notes: Whether the last column is words, which go below where there is no room.

    >>> lay_out([("name", "size"), ("layer.weight", "7 B")], right={1}, width=20)
    ['  name          size', '  layer.weight   7 B']
    """
    if not rows:
        return []
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    if width is not None:
        if has_notes and room_for_names(widths, width) < min(widths[0], _EASY_NAME):
            return _with_notes_below(rows, right, width)
        widths[0] = min(widths[0], max(room_for_names(widths, width), _LEAST_NAME))
    lines = []
    for row in rows:
        cells = [shorten_middle(row[0], widths[0]), *row[1:]]
        padded = [
            cell.rjust(size) if place in right else cell.ljust(size)
            for place, (cell, size) in enumerate(zip(cells, widths, strict=True))
        ]
        lines.append((_INDENT + "  ".join(padded)).rstrip())
    return lines


def room_for_names(widths: Sequence[int], width: int) -> int:
    """Return what columns leave of a line to the first of them."""
    return width - sum(widths[1:]) - 2 * len(widths[1:]) - len(_INDENT)


def _with_notes_below(
    rows: Sequence[Sequence[str]], right: Collection[int], width: int
) -> list[str]:
    table = lay_out([row[:-1] for row in rows], right=right, width=width)
    lines = []
    for line, row in zip(table, rows, strict=True):
        lines.append(line)
        if row[-1]:
            lines += fitted([f"{_INDENT * 2}{row[-1]}"], width)
    return lines


def fitted(lines: Iterable[str], width: int | None) -> list[str]:
    """Wrap what is wider than a line may be; what follows is indented.

    >>> fitted(["  a: one, two", "three"], 8)
    ['  a:', '    one,', '    two', 'three']
    """
    if width is None:
        return list(lines)
    fit = []
    for line in lines:
        if len(line) <= width:
            fit.append(line)
            continue
        indent = line[: len(line) - len(line.lstrip())]
        fit += textwrap.wrap(
            line,
            max(width, _LEAST_NAME // 2),
            subsequent_indent=indent + _INDENT,
            break_on_hyphens=False,
        )
    return fit


def named(name: str) -> str:
    r"""Make a name from a file fit to be shown.

    >>> named("a\x1b[1m"), named("")
    ('a?[1m', '(no name)')
    """
    return shorten_middle(sanitize(name, 4 * MOST_NAME), MOST_NAME) or "(no name)"


def shape_text(shape: Sequence[int]) -> str:
    """Say a shape.

    >>> shape_text((3, 224)), shape_text(())
    ('3 × 224', 'scalar')
    """
    return shorten_middle(" × ".join(map(str, shape)), 48) or "scalar"


def names_text(names: Sequence[str], most: int = 4) -> str:
    """Say some names, and how many more there are.

    >>> names_text(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    shown = [named(name) for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most:,} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)
