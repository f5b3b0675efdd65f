"""How an answer's values are written: for eyes in a table, and as they are for other programs."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

from snapviewer.units import format_bytes

_BYTES = re.compile(r"(?<![a-z])(size|bytes|device_free)(?![a-z])", re.IGNORECASE)
_COUNT = re.compile(r"\s*count\s*\(", re.IGNORECASE)
_MOST_LETTERS = 300


def is_bytes(column: str) -> bool:
    """Tell by its name whether a column has bytes.

    >>> [is_bytes(name) for name in ("size", "sum(a.size)", "peak_bytes", "resize", "count(size)")]
    [True, True, True, False, False]
    """
    return _BYTES.search(column) is not None and _COUNT.match(column) is None


def cell_text(column: str, value: object) -> str:
    r"""Say a value in one short line.

    >>> cell_text("size", 1536), cell_text("idx", 12345), cell_text("address", -1)
    ('1.50 KiB', '12,345', '0xffffffffffffffff')
    >>> cell_text("callstack", "f (a.py:1)\ng (b.py:2)"), cell_text("x", None)
    ('f (a.py:1)  ·  g (b.py:2)', '')
    """
    if value is None:
        return ""
    if isinstance(value, bytes):
        return f"{len(value):,} bytes of data"
    if isinstance(value, int):
        if column.lower() == "address":
            return f"0x{value % 2**64:x}"
        return format_bytes(value) if is_bytes(column) else f"{value:,}"
    if isinstance(value, float):
        return format_bytes(round(value)) if is_bytes(column) else f"{value:,.6g}"
    return "  ·  ".join(str(value)[:_MOST_LETTERS].splitlines())


def cell_tip(column: str, value: object) -> str:
    """Say what a cell has no room for; nothing if it says all."""
    if isinstance(value, int):
        return f"{value:,} bytes" if is_bytes(column) else str(value)
    return str(value) if isinstance(value, (str, float)) else ""


def is_number_column(place: int, rows: Iterable[Sequence[Any]]) -> bool:
    """Tell whether a column has numbers: at least one, and no text."""
    values = [row[place] for row in rows if row[place] is not None]
    return bool(values) and all(isinstance(value, (int, float)) for value in values)


def table_text(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, delimiter: str) -> str:
    r"""Write rows with a heading, with the values as they are.

    >>> table_text(["size", "name"], [(1536, "a,b"), (None, "c")], delimiter=",")
    'size,name\n1536,"a,b"\n,c\n'
    """
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([value.hex() if isinstance(value, bytes) else value for value in row])
    return out.getvalue()
