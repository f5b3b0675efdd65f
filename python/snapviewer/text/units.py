"""Bytes, shapes, counts, shares and durations as people write them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta, timezone

from snapviewer.text.sanitize import shorten_middle

BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def format_bytes(count: int) -> str:
    """Format a number of bytes in binary units, with three significant digits or more.

    >>> [format_bytes(n) for n in (0, 1023, 1536, 68_194_387_972)]
    ['0 B', '1,023 B', '1.50 KiB', '63.5 GiB']
    """
    size, unit = _in_unit(count, 1023.5)
    return f"{count:,} B" if unit == "B" else f"{three_digits(size)} {unit}"


def _in_unit(count: int, limit: float) -> tuple[float, str]:
    """Return a number of bytes in the first unit in which it is below a limit."""
    size, power = float(count), 0
    while abs(size) >= limit and power < len(BYTE_UNITS) - 1:
        size /= 1024
        power += 1
    return size, BYTE_UNITS[power]


def three_digits(value: float) -> str:
    """Format a number below 1,000 with three significant digits.

    >>> [three_digits(value) for value in (1.234, 62.49, 999.4)]
    ['1.23', '62.5', '999']
    """
    return f"{value:,.{_decimals(value)}f}"


def _decimals(value: float) -> int:
    """Return how many decimals give a number below 1,000 three significant digits."""
    return 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0


def format_size(size_bytes: int) -> str:
    """Format bytes as `pth_analyzer` promises: two decimals, and KB for 1,024 bytes.

    >>> format_size(45), format_size(2048), format_size(169710013)
    ('45 B', '2.00 KB', '161.85 MB')
    >>> format_size(2**20 - 1), format_size(-3 * 2**40)
    ('1.00 MB', '-3.00 TB')
    """
    # 1,023.995 would be written as 1024.00 of the smaller unit.
    size, unit = _in_unit(size_bytes, 1023.995)
    return f"{int(size_bytes)} B" if unit == "B" else f"{size:.2f} {unit.replace('i', '')}"


def format_shape(shape: Sequence[int | None], max_chars: int | None = None) -> str:
    """Format the shape of a tensor; a size that is not known is `?`, and a scalar has none.

    >>> format_shape((3, 224, 224)), format_shape((None, 10)), format_shape(())
    ('3×224×224', '?×10', '')
    """
    text = "×".join("?" if size is None else str(size) for size in shape)
    return text if max_chars is None else shorten_middle(text, max_chars)


def format_share(part: float, whole: float) -> str:
    """Format a share of a whole.

    >>> format_share(1, 3), format_share(1, 10**6), format_share(0, 1)
    ('33.3 %', '< 0.1 %', '0.0 %')
    """
    return "< 0.1 %" if 0 < part * 2000 < whole else f"{100 * part / whole:.1f} %"


def format_count(count: int) -> str:
    """Format a large number with one decimal and the letter of its unit: thousands to trillions.

    A count that would round to 1,000 of its unit uses the next unit.

    >>> [format_count(n) for n in (999, 1000, 1_700_000, 999_960, 100_240_000_000, 2 * 10**15)]
    ['999', '1.0 K', '1.7 M', '1.0 M', '100.2 B', '2,000.0 T']
    """
    if count < 1000:
        return str(count)
    for size, unit in ((1e3, "K"), (1e6, "M"), (1e9, "B")):
        if count < 999.95 * size:
            return f"{count / size:.1f} {unit}"
    return f"{count / 1e12:,.1f} T"


def percentages(parts: Sequence[float], *, decimals: int = 1) -> list[float]:
    """Return the shares of all parts of a whole in percent, rounded so that they add up to 100.

    The largest remainders are rounded up, so the order of the parts stays.

    >>> percentages([1, 1, 1]), percentages([0, 0])
    ([33.4, 33.3, 33.3], [0.0, 0.0])
    """
    whole = sum(parts)
    if not whole:
        return [0.0] * len(parts)
    units = 100 * 10**decimals
    rounded = [int(part * units // whole) for part in parts]
    by_remainder = sorted(range(len(parts)), key=lambda at: -(parts[at] * units % whole))
    for at in by_remainder[: units - sum(rounded)]:
        rounded[at] += 1
    return [share / 10**decimals for share in rounded]


def increased(count: int, percent: float) -> int:
    """Return a number and some percent of it, rounded down, but otherwise exact.

    >>> increased(100, 15), int(100 * 1.15)
    (115, 114)
    """
    from fractions import Fraction

    return int(count * (1 + Fraction(repr(percent)) / 100))


def parse_bytes(text: str) -> int:
    """Read a number of bytes as people write it; 1 KB and 1 KiB are both 1,024 bytes.

    >>> parse_bytes("4GiB"), parse_bytes("512 kb"), parse_bytes("7")
    (4294967296, 524288, 7)
    """
    text = text.strip().lower().removesuffix("b").removesuffix("i").strip()
    for power, prefix in enumerate("kmgtpe", start=1):
        if text.endswith(prefix):
            return round(float(text[:-1]) * float(1024**power))
    return round(float(text))


_MICROSECONDS = {
    "us": 1,
    "µs": 1,
    "ms": 1000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
}


def parse_duration_us(text: str) -> float:
    """Read a duration as people write it, in microseconds; a bare number is seconds.

    >>> parse_duration_us("1.5"), parse_duration_us("20 ms"), parse_duration_us("2min")
    (1500000.0, 20000.0, 120000000.0)
    """
    text = text.strip().lower()
    number = text.rstrip("abcdefghijklmnopqrstuvwxyzµ")
    return float(number) * _MICROSECONDS[text[len(number) :] or "s"]


def format_duration(time_us: float) -> str:
    """Format microseconds with three significant digits or more; whole ones have no decimals.

    >>> [format_duration(us) for us in (0, 7, 7.5, 3100, 12_300_000, 312_000_000, 3.7e9)]
    ['0 µs', '7 µs', '7.50 µs', '3.10 ms', '12.3 s', '5 min 12 s', '1 h 1 min']
    >>> format_duration(0.58)
    '580 ns'
    """
    seconds = round(time_us / 1_000_000)
    if seconds >= 3600:
        return f"{seconds // 3600:,} h {seconds % 3600 // 60} min"
    if seconds >= 120:
        return f"{seconds // 60} min {seconds % 60} s"
    if time_us < 1000 and time_us == int(time_us):
        return f"{time_us:.0f} µs"
    for size, unit in ((1_000_000.0, "s"), (1000.0, "ms"), (1.0, "µs"), (0.001, "ns")):
        if time_us >= size * 0.9995 or unit == "ns":
            break
    value = time_us / size
    return f"{value:.{_decimals(value)}f} {unit}"


def format_unix_us(time_us: int) -> str:
    """Format a Unix time; one that no calendar has, as the number it is.

    >>> format_unix_us(1_758_018_544_634_588), format_unix_us(2**64)
    ('2025-09-16 10:29:04.634588 UTC', '18,446,744,073,709,551,616 µs')
    """
    with suppress(OverflowError):
        time = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=time_us)
        return f"{time:%Y-%m-%d %H:%M:%S.%f} UTC"
    return f"{time_us:,} µs"


def count_of(number: int, what: str) -> str:
    """Format a number of things.

    >>> count_of(1, "event"), count_of(1200, "event")
    ('1 event', '1,200 events')
    """
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
