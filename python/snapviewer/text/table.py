"""Tables of a query's rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from snapviewer.text.sanitize import replace_unprintable

_MAX_WIDTH = 100
"""Of a value on a terminal; elsewhere nothing is cut."""


def to_json(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], *, is_truncated: bool
) -> dict[str, Any]:
    """Return a query's answer as the document that `query --json` prints."""
    return {
        "columns": list(columns),
        "rows": [[_json_value(value) for value in row] for row in rows],
        "truncated": is_truncated,
    }


def _json_value(value: object) -> object:
    # JSON has no infinities, and SQL makes them.
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def as_text(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], *, is_terminal: bool = False
) -> str:
    r"""Lay a table out in columns: numbers to the right, a value of several lines over several.

    >>> print(as_text(["size", "callstack"], [(512, "f\ng"), (7, None)]), end="")
    size  callstack
    ----  ---------
     512  f
          g
       7
    """
    cells = [[_lines(value, is_cut=is_terminal) for value in row] for row in rows]
    widths = [
        max([len(name), *(len(line) for row in cells for line in row[place])])
        for place, name in enumerate(columns)
    ]
    is_number = [
        any(isinstance(row[place], int | float) for row in rows) for place in range(len(columns))
    ]
    table = [columns, ["-" * width for width in widths]]
    for row in cells:
        height = max((len(lines) for lines in row), default=1)
        for line in range(height):
            table.append([lines[line] if line < len(lines) else "" for lines in row])
    return "".join(
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, is_number, strict=True)
        ).rstrip()
        + "\n"
        for line in table
    )


def _lines(value: object, *, is_cut: bool) -> list[str]:
    if value is None:
        return [""]
    text = value.hex() if isinstance(value, bytes) else str(value)
    lines = [replace_unprintable(line) for line in text.split("\n")]
    return [_cut(line) for line in lines] if is_cut else lines


def _cut(line: str) -> str:
    """Shorten a line in the middle: a frame's function and its file and line stay."""
    if len(line) <= _MAX_WIDTH:
        return line
    half = _MAX_WIDTH // 2
    return f"{line[: half - 1]}…{line[-half:]}"
