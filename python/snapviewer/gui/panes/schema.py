"""The tables and views of a bundle, described in a few words; and example queries.

Their columns are read from the database itself (`Queries.load_schema`).
"""

from __future__ import annotations

from dataclasses import dataclass

from snapviewer.snapshot.schema import described_tables

_DESCRIBED = described_tables()
_HIDDEN = ("event_columns", "extras")  # how events are packed

TABLES = {
    "visible": "the allocations in view now",
    "selection": "the selected allocation",
    **{name: table.summary for name, table in _DESCRIBED.items() if name not in _HIDDEN},
}
"""What a row is. `visible` and `selection` are lent by the window."""

NOTES = {column: note for table in _DESCRIBED.values() for column, note in table.notes.items()}
"""Columns that need more than their name."""


@dataclass(frozen=True, slots=True)
class Example:
    """A query that answers a question."""

    question: str
    sql: str


EXAMPLES = (
    Example(
        "What holds the most at the peak?",
        """select count(*) as count, sum(size) as bytes, callstack
from at_peak join callstacks using (stack)
group by stack order by bytes desc limit 100""",
    ),
    Example(
        "Which stacks allocate the most over time?",
        """select count(*) as count, sum(size) as bytes, avg(lifetime) as mean_lifetime, callstack
from allocations join callstacks using (stack)
group by stack order by bytes desc limit 100""",
    ),
    Example(
        "What was allocated after the warm-up and never freed?",
        """select idx, a.device, size, alloc_event, callstack
from allocations a join devices d using (device) join callstacks using (stack)
where alloc_event > events / 4 and free_event = events
order by size desc limit 1000""",
    ),
    Example(
        "Which large allocations are short-lived?",
        """select idx, size, lifetime, alloc_event, callstack
from allocations join callstacks using (stack)
where size >= 1048576 and alloc_event >= 0 and lifetime <= 10
order by size desc limit 1000""",
    ),
    Example(
        "What is in view?",
        """select count(*) as count, sum(size) as bytes, max(size) as largest_size, callstack
from visible group by stack order by bytes desc""",
    ),
    Example(
        "What else has the call stack of the selection?",
        """select idx, size, alloc_event, free_event, lifetime
from allocations where stack in (select stack from selection)
order by alloc_event""",
    ),
    Example(
        "When did memory run out?",
        """select device, event, size, device_free as device_free_bytes, callstack
from events left join callstacks using (stack)
where action = 'oom'""",
    ),
    Example(
        "How many events of each kind are there?",
        """select device, action, count(*) as count, sum(size) as bytes
from events group by device, action order by device, count desc""",
    ),
)
