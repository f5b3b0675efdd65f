"""Every promise has a test, and the table of them is up to date."""

from __future__ import annotations

from support.promises import PAGE, marked_tests, promises, table


def test_every_promise_has_a_test() -> None:
    known = {name for titles in promises().values() for name in titles}
    tested = set(marked_tests())

    assert len(known) == 158
    assert known <= tested, f"without a test: {sorted(known - tested)}"
    assert tested <= known, "a marker names a promise that promises.txt does not have"


def test_the_table_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == table(), "run: python tests/support/promises.py"
