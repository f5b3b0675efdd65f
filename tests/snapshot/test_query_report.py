"""The table of a query stays small, whatever is in its cells."""

from __future__ import annotations

from snapviewer.report.snapshot.query import as_text


def test_a_long_value_widens_no_other_line_and_is_cut() -> None:
    rows = [(n, "x" * 15_000 if n == 7 else "short", n) for n in range(1000)]

    text = as_text(["n", "name", "again"], rows)

    assert len(text) < 1000 * 150
    assert max(map(len, text.splitlines())) < 1_200
    assert "xxx…xxx" in text


def test_a_value_of_very_many_lines_is_cut() -> None:
    text = as_text(["lines", "wide"], [("\n" * 10**6, "w" * 90)])

    assert len(text.splitlines()) < 600
    assert text.rstrip().endswith("more lines")


def test_the_name_of_a_column_is_sanitized_and_cut() -> None:
    title, *_ = as_text(["\x1b[31m" + "a" * 10**6], [(1,)]).splitlines()

    assert title.startswith("?[31maaa")
    assert len(title) <= 1000
