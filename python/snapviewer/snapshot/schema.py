"""The tables and views that SQL queries see, as the core's schema describes them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from snapviewer._core import SCHEMA

_STATEMENT = re.compile(
    r"(?P<comment>(?:^-- [^\n]*\n)+)^create (?P<kind>table|view) (?P<name>\w+)(?P<body>.*?);$",
    re.M | re.S,
)
_NOTE = re.compile(r"(?P<column>\w+)(?: (?:integer|text)\b[^-\n]*)?,? -- (?P<note>.+)$", re.M)


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table or a view.

    Attributes:
        summary: What a row is.
        about: What else there is to know.
        notes: Columns that need more than their name.
        view: The statement that creates a view; empty for a table.
    """

    summary: str
    about: str
    notes: dict[str, str]
    view: str


def described_tables() -> dict[str, DatabaseTable]:
    """Return all tables and views by their names.

    >>> tables = described_tables()
    >>> tables["allocations"].summary, tables["allocations"].notes["alloc_event"]
    ('every allocation', '-1: before the first')
    >>> tables["allocs"].view.splitlines()[0]
    'create view allocs as'
    """
    tables = {}
    for found in _STATEMENT.finditer(SCHEMA):
        summary, *about = found["comment"].replace("-- ", "").splitlines()
        notes = {note["column"]: note["note"] for note in _NOTE.finditer(found["body"])}
        is_view = found["kind"] == "view"
        view = f"create view {found['name']}{found['body']}" if is_view else ""
        tables[found["name"]] = DatabaseTable(summary, " ".join(about), notes, view)
    return tables
