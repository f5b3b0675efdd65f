"""The promised short formats of shapes, counts, times and bytes (X06 to X08, and X25's sizes).

Other sizes and times are written with `format_bytes` and `format_duration` of `text.units`.
"""

from __future__ import annotations

from collections.abc import Sequence

from snapviewer.text.units import format_count
from snapviewer.text.units import format_shape as format_shape  # noqa: PLC0414 - a promised name


def shape_or_scalar(shape: Sequence[int]) -> str:
    """Format a shape; the empty shape is called scalar."""
    return format_shape(shape) or "scalar"


def format_param_count(count: int) -> str:
    """Format a number of parameters, with one decimal from a thousand on.

    A count that would round to 1,000 of its unit uses the next unit.

    >>> [format_param_count(n) for n in (999, 1000, 1_700_000, 999_960, 5_400_000_000)]
    ['999', '1.0K', '1.7M', '1.0M', '5.4B']
    """
    return format_count(count).replace(" ", "")


def format_time(seconds: float) -> str:
    """Format a duration.

    >>> [format_time(s) for s in (5e-7, 1.5e-5, 0.00123, 2.5, 12.345, 90, 7200)]
    ['500.0ns', '15.00μs', '1.23ms', '2.5000s', '12.35s', '1.5min', '2.0h']
    """
    for limit, scale, digits, unit in (
        (1e-6, 1e9, 1, "ns"),
        (1e-3, 1e6, 2, "μs"),
        (1.0, 1e3, 2, "ms"),
        (10.0, 1.0, 4, "s"),
        (60.0, 1.0, 2, "s"),
        (3600.0, 1 / 60, 1, "min"),
    ):
        if seconds < limit:
            return f"{seconds * scale:.{digits}f}{unit}"
    return f"{seconds / 3600:.1f}h"


def format_memory(count: int) -> str:
    """Format a number of bytes in decimal units, as the performance overlay does: 1 KB is 1,000.

    >>> [format_memory(n) for n in (0, 147_456, 1_500, 102_228_128)]
    ['0B', '147KB', '1.5KB', '102MB']
    """
    size, units = float(count), ("B", "KB", "MB", "GB", "TB", "PB")
    unit = 0
    while size >= 999.5 and unit < len(units) - 1:
        size /= 1000
        unit += 1
    digits = 0 if unit == 0 or size >= 99.95 else 1
    return f"{size:.{digits}f}{units[unit]}"
