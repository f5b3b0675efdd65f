"""Rows of text in aligned columns, of which the first gives way where there is little room."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from snapviewer.texts import clean, shortened_in_middle

MOST_NAME = 200  # characters of a name where nothing else limits it
_LEAST_NAME = 16
_INDENT = "  "


def lay_out(
    rows: Sequence[Sequence[str]], *, right: Collection[int] = (), width: int | None = None
) -> list[str]:
    """Lay rows out in lines.

    Args:
        rows: Cells; all rows have as many.
        right: The columns that are aligned to the right.
        width: What the first column is shortened for; None leaves it as it is.

    >>> lay_out([("name", "size"), ("layer.weight", "7 B")], right={1}, width=20)
    ['  name          size', '  layer.weight   7 B']
    """
    if not rows:
        return []
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    if width is not None:
        others = sum(widths[1:]) + 2 * len(widths[1:]) + len(_INDENT)
        widths[0] = min(widths[0], max(width - others, _LEAST_NAME))
    lines = []
    for row in rows:
        cells = [shortened_in_middle(row[0], widths[0]), *row[1:]]
        padded = [
            cell.rjust(size) if place in right else cell.ljust(size)
            for place, (cell, size) in enumerate(zip(cells, widths, strict=True))
        ]
        lines.append((_INDENT + "  ".join(padded)).rstrip())
    return lines


def named(name: str) -> str:
    r"""Make a name from a file fit to be shown.

    >>> named("a\x1b[1m"), named("")
    ('a?[1m', '(no name)')
    """
    return shortened_in_middle(clean(name, 4 * MOST_NAME), MOST_NAME) or "(no name)"


def shape_text(shape: Sequence[int]) -> str:
    """Say a shape.

    >>> shape_text((3, 224)), shape_text(())
    ('3 × 224', 'scalar')
    """
    return shortened_in_middle(" × ".join(map(str, shape)), 48) or "scalar"


def names_text(names: Sequence[str], most: int = 4) -> str:
    """Say some names, and how many more there are.

    >>> names_text(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    shown = [named(name) for name in names[:most]]
    if len(names) > most:
        return f"{', '.join(shown)} and {len(names) - most:,} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)
