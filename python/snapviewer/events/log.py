"""A log of memory events: what a run of a model wrote of its memory, as plain data.

Logs come from many recorders, from killed runs and from hands. What can be read is kept, what is
odd is told, and a field that is missing or cannot be is None, never 0.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from sys import getsizeof, intern
from typing import Any, Literal, TypeAlias

from snapviewer.events.entries import MAX_SHOWN_CHARS, Torn, entries_of
from snapviewer.events.errors import LogError
from snapviewer.events.source import read_text
from snapviewer.events.values import MIB, bytes_of, peak_of, seconds_of, time_of
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize

MOST_ENTRIES = 1_000_000
MOST_WITHOUT_EVENT = 100_000
MOST_KEPT_BYTES = 2**31  # in memory; a million events with ten unknown fields take less
MOST_ODDITIES = 100
MOST_FIELDS = 20  # of those that we do not know

Progress: TypeAlias = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a run, and the memory at it; None is what was not recorded.

    `more` has the fields that we do not know, as text.
    """

    name: str
    peak_bytes: int | None
    incremental_bytes: int | None
    time_s: float | None
    duration_s: float | None
    model_name: str | None
    cuda_peak_bytes: int | None
    pytorch_peak_bytes: int | None
    more: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Oddity:
    """Something in a log that the format does not have: reported, never fatal.

    `place` is the number of the entry, from 1; `field` is empty if it is about the whole entry.
    """

    kind: Literal["not-an-event", "bad-value", "torn-line"]
    place: int
    field: str
    shown: str


@dataclass(frozen=True, slots=True)
class Log:
    """The events of a file, in its order; the first oddities, and how many there are."""

    path: str
    events: tuple[Event, ...]
    oddities: tuple[Oddity, ...]
    odd_count: int


def read_log(path: str | os.PathLike[str], *, progress: Progress | None = None) -> Log:
    """Read a log of memory events.

    Args:
        path: A file with a JSON list of events, an object with a list under `events`, or JSON
            Lines.
        progress: Called now and then with the bytes read so far and all of them.

    Raises:
        LogError: It cannot be read, is no log, or has no events.
    """
    name = os.fsdecode(path)
    events: list[Event] = []
    oddities: list[Oddity] = []
    odd_count = 0
    kept_bytes = 0
    try:
        for place, entry in enumerate(entries_of(name, read_text(name, progress=progress)), 1):
            if place > MOST_ENTRIES:
                zh = f"其中的条目超过 {MOST_ENTRIES:,} 个 (请拆分成几个文件)"
                en = f"there are more than {MOST_ENTRIES:,} entries in it; split it into parts"
                raise LogError(name, zh, en)
            event, odd = event_of(entry, place)
            if event is not None:
                events.append(event)
                kept_bytes += _kept_bytes(event)
                if kept_bytes > MOST_KEPT_BYTES:
                    zh = "内容过多 (请拆分成几个文件)"
                    en = "there is more in it than is good to hold; split it into parts"
                    raise LogError(name, zh, en)
            elif place >= MOST_WITHOUT_EVENT and not events:
                zh = f"前 {MOST_WITHOUT_EVENT:,} 个条目中没有事件"
                en = f"none of its first {MOST_WITHOUT_EVENT:,} entries is an event"
                raise LogError(name, zh, en)
            if odd:
                odd_count += len(odd)
                oddities += odd[: MOST_ODDITIES - len(oddities)]
        if not events:
            raise LogError(name, "其中没有事件", "there are no events in it")
        return Log(name, tuple(events), tuple(oddities), odd_count)
    except MemoryError as error:
        raise LogError(name, "内存不足", "there is not enough memory for this") from error


def _kept_bytes(event: Event) -> int:
    """Say about how much memory an event takes; its texts may be larger than in the file."""
    count = 250 + getsizeof(event.name) + getsizeof(event.model_name)
    for key, text in event.more:
        count += 56 + getsizeof(key) + getsizeof(text)
    return count


def read_entries(
    path: str | os.PathLike[str], *, progress: Progress | None = None
) -> Iterator[object]:
    """Yield the raw JSON values of a log in order; torn lines are left out.

    Raises:
        LogError: It cannot be read or is no log.
    """
    name = os.fsdecode(path)
    for entry in entries_of(name, read_text(name, progress=progress)):
        if not isinstance(entry, Torn):
            yield entry


def event_of(entry: object, place: int) -> tuple[Event | None, list[Oddity]]:
    """Read one entry of a log.

    Args:
        entry: What JSON has there, or `Torn`.
        place: Its number, from 1.

    Returns:
        The event, or None if it is none; and what is odd about it.

    >>> event, odd = event_of({"event": "init", "peak_memory": 0, "duration": -1}, 1)
    >>> event.peak_bytes, event.incremental_bytes, event.duration_s
    (0, None, None)
    >>> odd
    [Oddity(kind='bad-value', place=1, field='duration', shown='-1')]
    """
    if isinstance(entry, Torn):
        return None, [Oddity("torn-line", place, "", entry.shown)]
    name = _name(entry.get("event")) if isinstance(entry, dict) else None
    if not name or not isinstance(entry, dict):
        return None, [Oddity("not-an-event", place, "", _shown(entry))]
    odd: list[Oddity] = []
    found: dict[str, Any] = {}
    used = {"event"}
    for _, key, field, read in sorted([_KNOWN[key] for key in entry if key in _KNOWN]):
        value = entry[key]
        if value is None or field in found:
            continue
        used.add(key)
        said = read(value)
        if said is None:
            odd.append(Oddity("bad-value", place, key, _shown(value)))
        else:
            found[field] = said
    more = _more(entry, used) if len(entry) > len(used) else ()
    event = Event(
        name,
        found.get("peak_bytes"),
        found.get("incremental_bytes"),
        found.get("time_s"),
        found.get("duration_s"),
        found.get("model_name") or None,
        found.get("cuda_peak_bytes"),
        found.get("pytorch_peak_bytes"),
        more,
    )
    return event, odd


def _peak_of_mib(value: object) -> int | None:
    return peak_of(value, MIB)


def _increment_of_mib(value: object) -> int | None:
    return bytes_of(value, MIB)


def _name(value: object) -> str | None:
    """Read a text that names something; an empty one names nothing, but is not odd."""
    return _cleaned(value.strip()) if isinstance(value, str) else None


# The names that fields have in a log, the best first, and what reads their values.
_NAMES: tuple[tuple[str, str, Callable[[object], object]], ...] = (
    ("peak_memory", "peak_bytes", peak_of),
    ("peak_memory_mb", "peak_bytes", _peak_of_mib),
    ("pytorch_tensor_peak_mb", "peak_bytes", _peak_of_mib),
    ("incremental_memory", "incremental_bytes", bytes_of),
    ("incremental_memory_mb", "incremental_bytes", _increment_of_mib),
    ("timestamp", "time_s", time_of),
    ("duration", "duration_s", seconds_of),
    ("model_name", "model_name", _name),
    ("cuda_runtime_peak", "cuda_peak_bytes", _peak_of_mib),
    ("cuda_runtime_peak_mb", "cuda_peak_bytes", _peak_of_mib),
    ("pytorch_runtime_peak", "pytorch_peak_bytes", _peak_of_mib),
    ("pytorch_runtime_peak_mb", "pytorch_peak_bytes", _peak_of_mib),
)
# By name, with the rank, so that the fields of an entry can be sorted.
_KNOWN = {name: (rank, name, field, read) for rank, (name, field, read) in enumerate(_NAMES)}
_SCALARS = (str, int, float)  # a union would be made anew at each use


def _more(entry: Mapping[str, object], used: set[str]) -> tuple[tuple[str, str], ...]:
    """Return the other fields as text; lists and objects are no values of an event."""
    kept: list[tuple[str, str]] = []
    for key, value in entry.items():
        if key not in used and isinstance(value, _SCALARS):
            text = value if isinstance(value, str) else json.dumps(value)
            # Each event has the same keys: one of each is enough.
            kept.append((intern(_cleaned(key)), _cleaned(text)))
            if len(kept) == MOST_FIELDS:
                break
    return tuple(kept)


def _cleaned(text: str, most: int = MAX_NAME_CHARS) -> str:
    """Clean a text; most are clean, and looking at each letter would take most of the time."""
    # No space but the common one is printable.
    if len(text) <= most and text.isprintable() and " ".join(text.split()) == text:
        return text
    return sanitize(text, most)


_as_json = json.JSONEncoder(ensure_ascii=False).encode


def _shown(value: object) -> str:
    """Show the beginning of a value as JSON, whatever its size and depth."""
    if isinstance(value, list):
        value = [_outline(inner) for inner in value[:MAX_SHOWN_CHARS]]
    elif isinstance(value, dict):
        value = {_outline(key): _outline(value[key]) for key in islice(value, MAX_SHOWN_CHARS)}
    else:
        value = _outline(value)
    return _cleaned(_as_json(value), MAX_SHOWN_CHARS)


def _outline(value: object) -> object:
    if isinstance(value, str):
        return value[: 2 * MAX_SHOWN_CHARS]
    if isinstance(value, (dict, list)) and value:
        return {"…": "…"} if isinstance(value, dict) else ["…"]
    return value
