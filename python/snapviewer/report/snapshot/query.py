"""The rows that a query returns, as a table and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from snapviewer.text.sanitize import replace_unprintable, shorten_middle
from snapviewer.text.table import format_table

_MAX_TERMINAL_CHARS = 100  # of a line of a value
_MAX_CHARS = 1000  # the same elsewhere
_MAX_LINES = 500  # of a value
_MAX_PADDING = 100


def to_json(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], *, is_truncated: bool
) -> dict[str, Any]:
    """Return the document that `query --json` prints."""
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
    r"""Return a table: numbers are aligned to the right, and values may have several lines.

    Long values are cut: the JSON has all of them.

    >>> print(as_text(["size", "callstack"], [(512, "f\ng"), (7, None)]), end="")
    size  callstack
    ----  ---------
     512  f
          g
       7
    """
    max_chars = _MAX_TERMINAL_CHARS if is_terminal else _MAX_CHARS
    body = [
        line
        for row in rows
        for line in zip_longest(*(_lines(value, max_chars) for value in row), fillvalue="")
    ]
    titles = [shorten_middle(replace_unprintable(column), max_chars) for column in columns]
    widths = [
        min(_MAX_PADDING, max(map(len, column))) for column in zip(titles, *body, strict=True)
    ]
    numbers = {place for row in rows for place, value in enumerate(row) if _is_number(value)}
    table = [titles, ["-" * width for width in widths], *body]
    lines = format_table(table, right=numbers, indent="", max_padding=_MAX_PADDING)
    return "".join(f"{line}\n" for line in lines)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _lines(value: object, max_chars: int) -> list[str]:
    if value is None:
        return [""]
    text = value.hex() if isinstance(value, bytes) else str(value)
    lines = text.split("\n", _MAX_LINES)
    if len(lines) > _MAX_LINES:
        lines[_MAX_LINES] = f"… {lines[_MAX_LINES].count(chr(10)) + 1:,} more lines"
    return [replace_unprintable(shorten_middle(line, max_chars)) for line in lines]
