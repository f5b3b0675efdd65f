"""The promised short formats, at the limits of their units."""

from __future__ import annotations

import pytest

from snapviewer.explorer.formats import (
    format_memory,
    format_param_count,
    format_time,
    shape_or_scalar,
)


@pytest.mark.promise("X08")
@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.0ns"),
        (0.9876e-6, "987.6ns"),
        (1e-6, "1.00μs"),
        (9.9999e-4, "999.99μs"),
        (1e-3, "1.00ms"),
        (0.99999, "999.99ms"),
        (1.0, "1.0000s"),
        (9.9999, "9.9999s"),
        (10.0, "10.00s"),
        (59.99, "59.99s"),
        (60.0, "1.0min"),
        (3594.0, "59.9min"),
        (3600.0, "1.0h"),
        (9_000_000.0, "2500.0h"),
    ],
)
def test_a_time_is_in_the_unit_of_its_size(seconds: float, text: str) -> None:
    assert format_time(seconds) == text


@pytest.mark.promise("X07")
def test_a_count_that_would_round_to_a_thousand_uses_the_next_unit() -> None:
    counts = (0, 999, 1000, 999_949, 999_950, 999_949_999, 999_950_000, 1_250_000_000)

    found = [format_param_count(count) for count in counts]

    assert found == ["0", "999", "1.0K", "999.9K", "1.0M", "999.9M", "1.0B", "1.2B"]


@pytest.mark.promise("X25")
@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0B"),
        (999, "999B"),
        (1000, "1.0KB"),
        (99_949, "99.9KB"),
        (99_950, "100KB"),
        (100_400, "100KB"),
        (999_499, "999KB"),
        (999_500, "1.0MB"),
        (98_700_000, "98.7MB"),
        (2_300_000_000, "2.3GB"),
        (3_400_000_000_000, "3.4TB"),
        (4_500_000_000_000_000, "4.5PB"),
        (12_345_000_000_000_000_000, "12345PB"),
    ],
)
def test_bytes_have_three_digits_and_a_decimal_unit(count: int, text: str) -> None:
    assert format_memory(count) == text


@pytest.mark.promise("X06")
def test_a_shape_without_dimensions_is_called_scalar() -> None:
    assert (shape_or_scalar((3, 4)), shape_or_scalar(())) == ("3×4", "scalar")
