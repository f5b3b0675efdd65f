"""What a field of a log says: a number of bytes, a time, a duration; or None if it cannot be."""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta, timezone

MIB = 2**20
_MOST = 2**63  # what no counter of bytes reaches

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FIRST_S = (datetime(1, 1, 1, tzinfo=timezone.utc) - _EPOCH).total_seconds()
_LAST_S = (datetime(9999, 12, 31, tzinfo=timezone.utc) - _EPOCH).total_seconds()

_MOST_SECONDS = 1e11

# Python reads ISO 8601 by itself from 3.11 on only.
_ISO = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[Tt ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,12}))?)?"
    r" ?(?:[Zz]|([+-])([0-9]{2}):?([0-9]{2})?)?)?"
)


def number(value: object) -> int | float | None:
    """Return a value that is a number, and one that bytes or seconds may have.

    >>> number(3), number(2.5), number(True), number("3"), number(float("nan")), number(2**63)
    (3, 2.5, None, None, None, None)
    """
    # JSON has no subclasses but bool, which this leaves out.
    if (type(value) is int or type(value) is float) and -_MOST < value < _MOST:
        return value
    return None


def bytes_of(value: object, unit: int = 1) -> int | None:
    """Read a number of bytes, which may be negative and is rounded.

    >>> bytes_of(7), bytes_of(1.5, MIB), bytes_of(-2.6), bytes_of(1e30)
    (7, 1572864, -3, None)
    """
    found = number(value)
    if found is None:
        return None
    count = round(found * unit)
    return count if -_MOST < count < _MOST else None


def peak_of(value: object, unit: int = 1) -> int | None:
    """Read a number of bytes that were in use: never below zero.

    >>> peak_of(7), peak_of(0), peak_of(-0.1)
    (7, 0, None)
    """
    found = number(value)
    return None if found is None or found < 0 else bytes_of(found, unit)


def seconds_of(value: object) -> float | None:
    """Read a duration.

    >>> seconds_of(2), seconds_of(-1), seconds_of("2")
    (2.0, None, None)
    """
    found = number(value)
    return None if found is None or found < 0 else float(found)


def time_of(value: object) -> float | None:
    """Read a moment, as seconds since 1970: a number, or ISO 8601 text; without a zone it is UTC.

    Clocks count in seconds or in smaller units. What would be after the year 5138 is taken for the
    next smaller one.

    >>> time_of(1_751_963_745), time_of(1_751_963_745_250)
    (1751963745.0, 1751963745.25)
    >>> time_of("2025-07-08T08:35:45Z"), time_of("2025-07-08 10:35:45.25+02:00")
    (1751963745.0, 1751963745.25)
    >>> time_of("yesterday")
    """
    if isinstance(value, str):
        return _time_of_text(value)
    found = number(value)
    if found is None:
        return None
    time_s = float(found)
    while time_s > _MOST_SECONDS:
        time_s /= 1000
    return time_s if _FIRST_S <= time_s <= _LAST_S else None


def _time_of_text(text: str) -> float | None:
    found = _ISO.fullmatch(text.strip()) if len(text) < 100 else None
    if not found:
        return None
    *numbers, fraction, sign, hours, minutes = found.groups()
    year, month, day, hour, minute, second = (int(part or 0) for part in numbers)
    try:
        time = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc)
    except ValueError:  # a day that no calendar has
        return None
    east = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    time_s = (time - _EPOCH).total_seconds() + float(f"0.{fraction or 0}")
    time_s += math.copysign(east.total_seconds(), -1 if sign == "+" else 1)
    return time_s if _FIRST_S <= time_s <= _LAST_S else None
