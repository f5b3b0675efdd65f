"""Values of a query's result: formatted for a table, and unformatted for other programs."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

from snapviewer import Frame
from snapviewer.snapshot.frames import frame_text, own_frame
from snapviewer.text.units import format_bytes

_BYTES = re.compile(r"(?<![a-z])(size|bytes|device_free)(?![a-z])", re.IGNORECASE)
_COUNT = re.compile(r"\s*count\s*\(", re.IGNORECASE)
_FRAME = re.compile(r"^(.*) \((.*):(\d{1,30})\)$", re.MULTILINE)
_MOST = 2**64 - 1  # lines of a file
_MAX_CHARS = 300


def is_bytes(column: str) -> bool:
    """Return whether a column contains bytes, judging by its name.

    >>> [is_bytes(name) for name in ("size", "sum(a.size)", "peak_bytes", "resize", "count(size)")]
    [True, True, True, False, False]
    """
    return _BYTES.search(column) is not None and _COUNT.match(column) is None


def cell_text(column: str, value: object) -> str:
    r"""Format a value in one short line.

    >>> cell_text("size", 1536), cell_text("idx", 12345), cell_text("address", -1)
    ('1.50 KiB', '12,345', '0xffffffffffffffff')
    >>> cell_text("callstack", "at::empty() (??:0)\nf (/home/a/b.py:2)"), cell_text("x", None)
    ('b.py:2 f', '')
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
        is_size = is_bytes(column) and math.isfinite(value)
        return format_bytes(round(value)) if is_size else f"{value:,.6g}"
    text = str(value)
    if column.lower() == "callstack":
        text = _own_line(text)
    return "  ·  ".join(text[:_MAX_CHARS].splitlines())


def _own_line(callstack: str) -> str:
    """Return the line of a call stack that is most likely the user's own."""
    frames = [
        Frame(found[1], found[2], min(int(found[3]), _MOST)) for found in _FRAME.finditer(callstack)
    ]
    own = own_frame(frames)
    return callstack if own is None else frame_text(own)


def cell_tip(column: str, value: object) -> str:
    """Return what a cell may have no room for; empty if it shows everything."""
    if isinstance(value, int) and is_bytes(column):
        return f"{value:,} bytes"
    return value if isinstance(value, str) and len(value) > 20 else ""


def is_number_column(place: int, rows: Iterable[Sequence[Any]]) -> bool:
    """Return whether a column contains numbers: at least one, and no text."""
    values = [row[place] for row in rows if row[place] is not None]
    return bool(values) and all(isinstance(value, (int, float)) for value in values)


def table_text(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, delimiter: str) -> str:
    r"""Write rows with a heading as CSV, unformatted.

    >>> table_text(["size", "name"], [(1536, "a,b"), (None, "c")], delimiter=",")
    'size,name\n1536,"a,b"\n,c\n'
    """
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([value.hex() if isinstance(value, bytes) else value for value in row])
    return out.getvalue()
