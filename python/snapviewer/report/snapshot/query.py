"""The rows that a query returns, as a table and as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from snapviewer.text.sanitize import replace_unprintable
from snapviewer.text.table import format_table

_MAX_TERMINAL_CHARS = 100  # of a line of a value


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

    >>> print(as_text(["size", "callstack"], [(512, "f\ng"), (7, None)]), end="")
    size  callstack
    ----  ---------
     512  f
          g
       7
    """
    body = [
        line
        for row in rows
        for line in zip_longest(*(_lines(value, is_cut=is_terminal) for value in row), fillvalue="")
    ]
    widths = [max(map(len, column)) for column in zip(columns, *body, strict=True)]
    numbers = {place for row in rows for place, value in enumerate(row) if _is_number(value)}
    table = [columns, ["-" * width for width in widths], *body]
    return "".join(f"{line}\n" for line in format_table(table, right=numbers, indent=""))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _lines(value: object, *, is_cut: bool) -> list[str]:
    if value is None:
        return [""]
    text = value.hex() if isinstance(value, bytes) else str(value)
    lines = [replace_unprintable(line) for line in text.split("\n")]
    return [_cut(line) for line in lines] if is_cut else lines


def _cut(line: str) -> str:
    """Shorten a line in the middle: a frame's function, its file and its line stay."""
    half = _MAX_TERMINAL_CHARS // 2
    return line if len(line) <= 2 * half else f"{line[: half - 1]}…{line[-half:]}"
