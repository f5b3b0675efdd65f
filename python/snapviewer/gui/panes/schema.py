"""The schema for queries: tables, views and their columns; and example queries.

tests/gui/test_queries.py compares this with what a bundle has.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Table:
    """A table or a view: what a row is, and its columns with what is to be known of them."""

    name: str
    what: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A query that answers a question."""

    question: str
    sql: str


def _columns(names: str, **notes: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, notes.get(name, "")) for name in names.split())


_ALLOCATION = _columns(
    "idx device size address stream stack alloc_event lifetime free_pending free_stack flags"
    " free_event free_requested",
    idx="numbered through over all devices",
    size="requested bytes",
    address="printf('%x', address) shows it",
    stack="who made it",
    alloc_event="-1: before the first",
    lifetime="in events",
    free_pending="events from the request to the free",
    free_stack="who freed it",
    flags="1 free lost, 2 in no segment, 4 in segments only",
    free_event="the number of events: never",
)
_LENT = (*_ALLOCATION, ("callstack", "one line a frame, innermost first"))

TABLES = (
    Table("allocations", "every allocation", _ALLOCATION),
    Table("visible", "the allocations in view now", _LENT),
    Table("selection", "the selected allocation", _LENT),
    Table(
        "at_peak",
        "what is alive at each device's peak",
        _columns("device idx size stack alloc_event free_event"),
    ),
    Table(
        "allocs",
        "allocations with their call stacks",
        _columns("idx size start_time end_time callstack", start_time="event", end_time="event"),
    ),
    Table("callstacks", "stacks as text", _columns("stack callstack")),
    Table(
        "events",
        "every event; conditions on device and event are quick",
        _columns(
            "device event action address size stream time_us stack compile_context user_metadata"
            " internal_metadata category pool forward_frames device_free",
            time_us="Unix time",
            device_free="of an OOM: what the device had left",
        ),
    ),
    Table(
        "devices",
        "one a device; -1 is pinned host memory",
        _columns(
            "device first_idx events allocations initial_bytes peak_bytes peak_event final_bytes"
            " reserved_initial_bytes reserved_peak_bytes oom_events reconciles warnings",
            first_idx="idx of its first allocation",
        ),
    ),
    Table(
        "frames",
        "one line of a call stack",
        _columns("frame name filename line fx_op fx_name fx_target fx_trace text"),
    ),
    Table("stacks", "call stacks", _columns("stack frames", frames="JSON list of frames")),
    Table(
        "segments",
        "what was got from the device, at the end",
        _columns(
            "segment device address total_size allocated_size active_size requested_size stream"
            " segment_type pool is_expandable stack"
        ),
    ),
    Table(
        "blocks",
        "parts of segments, at the end",
        _columns("block segment address size requested_size state stack"),
    ),
    Table(
        "history",
        "the past of blocks (torch 2.0)",
        _columns("entry block address real_size stack"),
    ),
    Table(
        "annotations",
        "what the program or the profiler noted",
        _columns("name stage device time_us", stage="START or END"),
    ),
    Table("identities", "names as memory_viz writes them", _columns("idx name")),
    Table("settings", "the allocator's", _columns("name value")),
    Table("source_code", "files that the snapshot has", _columns("filename text")),
    Table("metadata", "where the bundle is from", _columns("key value")),
    Table("actions", "kinds of events", _columns("action name")),
)

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
        "What was made after the warm-up and never freed?",
        """select idx, a.device, size, alloc_event, callstack
from allocations a join devices d using (device) join callstacks using (stack)
where alloc_event > events / 4 and free_event = events
order by size desc limit 1000""",
    ),
    Example(
        "Which large ones live only shortly?",
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
        "What else did the selected one's stack make?",
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
