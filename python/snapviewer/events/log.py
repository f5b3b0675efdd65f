"""A log of memory events as plain data.

Logs come from many recorders, from killed runs, or are edited by hand. What can be read is kept,
anything unusual is reported, and a field that is missing or has an impossible value is None,
never 0.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from sys import getsizeof, intern
from typing import Any, Literal

from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize

from .reader import MAX_SHOWN_CHARS, LogError, Progress, Torn, read_entries

MAX_ENTRIES = 1_000_000
MAX_ENTRIES_WITHOUT_EVENT = 100_000
MAX_KEPT_BYTES = 2**31  # in memory; a million events with ten unknown fields take less
MAX_ODDITIES = 100
MAX_UNKNOWN_FIELDS = 20

_MIB = 2**20
_MAX_NUMBER = 2**63  # no counter of bytes or nanoseconds reaches it
_MAX_SECONDS = 1e11


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a run, and the memory at that time; None is "not recorded".

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
    """Something in a log that the format does not allow: reported, never fatal.

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
        progress: Called now and then with the bytes read so far and the size of the file.

    Raises:
        LogError: It cannot be read, is not a log, or has no events.
    """
    return log_of(read_entries(path, progress=progress), os.fsdecode(path))


def log_of(entries: Iterable[object], path: str) -> Log:
    """Make a log of its entries.

    Raises:
        LogError: There are no events, or too many entries.
    """
    events: list[Event] = []
    oddities: list[Oddity] = []
    odd_count = kept_bytes = 0
    try:
        for place, entry in enumerate(entries, 1):
            event, odd = event_of(entry, place)
            if event is not None:
                events.append(event)
                kept_bytes += _kept_bytes(event)
            odd_count += len(odd)
            oddities += odd[: MAX_ODDITIES - len(oddities)]
            if place > MAX_ENTRIES:
                zh = f"其中的条目超过 {MAX_ENTRIES:,} 个 (请拆分成几个文件)"
                en = f"there are more than {MAX_ENTRIES:,} entries in it; split it into parts"
                raise LogError(path, zh, en)
            if kept_bytes > MAX_KEPT_BYTES:
                zh = "内容过多 (请拆分成几个文件)"
                en = f"its events need more than {MAX_KEPT_BYTES / 2**30:g} GiB of memory; "
                raise LogError(path, zh, f"{en}split it into parts")
            if place >= MAX_ENTRIES_WITHOUT_EVENT and not events:
                zh = f"前 {MAX_ENTRIES_WITHOUT_EVENT:,} 个条目中没有事件"
                en = f"none of its first {MAX_ENTRIES_WITHOUT_EVENT:,} entries is an event"
                raise LogError(path, zh, en)
        if not events:
            raise LogError(path, "其中没有事件", "there are no events in it")
        return Log(path, tuple(events), tuple(oddities), odd_count)
    except MemoryError as error:
        raise LogError(path, "内存不足", "there is not enough memory for this") from error


def _kept_bytes(event: Event) -> int:
    """Return about how much memory an event takes; its texts may be larger than in the file."""
    texts = sum(56 + getsizeof(key) + getsizeof(text) for key, text in event.more)
    return 250 + getsizeof(event.name) + getsizeof(event.model_name) + texts


def event_of(entry: object, place: int) -> tuple[Event | None, list[Oddity]]:
    """Interpret one entry of a log.

    Args:
        entry: A JSON value, or `Torn`.
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
    for _, key, field, read in sorted([_FIELDS[key] for key in entry if key in _FIELDS]):
        value = entry[key]
        if value is None or field in found:
            continue
        used.add(key)
        known = read(value)
        if known is None:
            odd.append(Oddity("bad-value", place, key, _shown(value)))
        else:
            found[field] = known
    event = Event(
        name,
        found.get("peak_bytes"),
        found.get("incremental_bytes"),
        found.get("time_s"),
        found.get("duration_s"),
        found.get("model_name") or None,
        found.get("cuda_peak_bytes"),
        found.get("pytorch_peak_bytes"),
        _more(entry, used) if len(entry) > len(used) else (),
    )
    return event, odd


def _number(value: object) -> int | float | None:
    """Return a value that is a number of bytes or seconds; None if it is not, as a bool is not."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value if -_MAX_NUMBER < value < _MAX_NUMBER else None
    return None


def _bytes(value: object, unit: int = 1) -> int | None:
    number = _number(value)
    if number is None:
        return None
    count = round(number * unit)
    return count if -_MAX_NUMBER < count < _MAX_NUMBER else None


def _peak(value: object, unit: int = 1) -> int | None:
    number = _number(value)
    return None if number is None or number < 0 else _bytes(number, unit)


def _seconds(value: object) -> float | None:
    number = _number(value)
    return None if number is None or number < 0 else float(number)


def _time(value: object) -> float | None:
    """Return seconds since 1970, of a number or of ISO 8601 text, which is UTC without a zone.

    Clocks count in seconds or in smaller units: a time after the year 5138 is taken to be in the
    next smaller one.

    >>> _time(1_751_963_745), _time(1_751_963_745_250)
    (1751963745.0, 1751963745.25)
    >>> _time("2025-07-08T08:35:45Z"), _time("2025-07-08 10:35:45.25+0200"), _time("yesterday")
    (1751963745.0, 1751963745.25, None)
    """
    if isinstance(value, str):
        return _iso_time(value)
    number = _number(value)
    if number is None:
        return None
    time_s = float(number)
    while time_s > _MAX_SECONDS:
        time_s /= 1000
    return time_s


_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)"
    r"(?:[Tt ](\d\d:\d\d)(:\d\d)?(?:[.,](\d{1,12}))? ?(?:[Zz]|([+-]\d\d):?(\d\d)?)?)?",
    re.ASCII,
)


def _iso_time(text: str) -> float | None:
    # Before Python 3.11 `fromisoformat` reads only what `isoformat` writes.
    found = _ISO.fullmatch(text.strip()) if len(text) < 100 else None
    if not found:
        return None
    day, minute, second, fraction, hours_east, minutes_east = found.groups("")
    time = f"{minute or '00:00'}{second or ':00'}.{fraction[:6]:0<6}"
    try:
        zone = f"{hours_east or '+00'}:{minutes_east or '00'}"
        return datetime.fromisoformat(f"{day}T{time}{zone}").timestamp()
    except ValueError:  # a day that no calendar has
        return None


def _name(value: object) -> str | None:
    """Return a text that names something; an empty one names nothing, but is not odd."""
    return sanitize(value, MAX_NAME_CHARS) if isinstance(value, str) else None


def _in_mib(read: Callable[[object, int], object]) -> Callable[[object], object]:
    return lambda value: read(value, _MIB)


# The fields by their names in a log, the best first, with what reads their values; their ranks let
# the fields of an entry be sorted.
_FIELDS: dict[str, tuple[int, str, str, Callable[[object], object]]] = {
    name: (rank, name, field, read)
    for rank, (name, field, read) in enumerate(
        [
            ("peak_memory", "peak_bytes", _peak),
            ("peak_memory_mb", "peak_bytes", _in_mib(_peak)),
            ("pytorch_tensor_peak_mb", "peak_bytes", _in_mib(_peak)),
            ("incremental_memory", "incremental_bytes", _bytes),
            ("incremental_memory_mb", "incremental_bytes", _in_mib(_bytes)),
            ("timestamp", "time_s", _time),
            ("duration", "duration_s", _seconds),
            ("model_name", "model_name", _name),
            ("cuda_runtime_peak", "cuda_peak_bytes", _in_mib(_peak)),
            ("cuda_runtime_peak_mb", "cuda_peak_bytes", _in_mib(_peak)),
            ("pytorch_runtime_peak", "pytorch_peak_bytes", _in_mib(_peak)),
            ("pytorch_runtime_peak_mb", "pytorch_peak_bytes", _in_mib(_peak)),
        ]
    )
}


def _more(entry: Mapping[str, object], used: set[str]) -> tuple[tuple[str, str], ...]:
    """Return the other fields as text; lists and objects are not values of an event."""
    kept: list[tuple[str, str]] = []
    for key, value in entry.items():
        if key not in used and isinstance(value, (str, int, float)):
            text = value if isinstance(value, str) else json.dumps(value)
            # Events have the same keys: one copy of each is enough.
            kept.append((intern(sanitize(key, MAX_NAME_CHARS)), sanitize(text, MAX_NAME_CHARS)))
            if len(kept) == MAX_UNKNOWN_FIELDS:
                break
    return tuple(kept)


def _shown(value: object) -> str:
    """Return the beginning of a value as JSON."""
    try:
        return sanitize(json.dumps(value, ensure_ascii=False), MAX_SHOWN_CHARS)
    except RecursionError:  # it was just shallow enough to be read
        return "…"
