"""Each library that the core uses is known in one place of `src/` only.

Python's imports are checked by import-linter: see the contracts in `pyproject.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

RUST = Path(__file__).resolve().parents[1] / "src"


def _in_py(path: Path) -> bool:
    return path.parts[0] == "py"


def _in_store(path: Path) -> bool:
    return path.parts[0].startswith("store")


def _in_filter(path: Path) -> bool:
    return path.parts[0] == "filter"


def _in_screen(path: Path) -> bool:
    return path.parts[0] == "screen"


def _may_be_unsafe(path: Path) -> bool:
    """Where files and memory are mapped, NumPy is lent a column, and SQLite is limited and shown
    the events."""
    return path.as_posix() in {
        "mapped.rs",
        "screen/shared_memory.rs",
        "py/columns.rs",
        "store/events.rs",
        "store/limits.rs",
    }


@pytest.mark.parametrize(
    ("pattern", "is_home"),
    [
        (r"\b(pyo3|use numpy|(?<!super::)numpy::(Py|ndarray|Element))", _in_py),
        (r"\brusqlite\b", _in_store),
        (r"\bregex::", _in_filter),
        (r"\bx11rb\b", _in_screen),
        (r"allow\(unsafe_code\)", _may_be_unsafe),
    ],
)
def test_the_core_keeps_libraries_at_home_too(
    pattern: str, is_home: Callable[[Path], bool]
) -> None:
    strays = [
        f"src/{path.relative_to(RUST)}:{number}: {line.strip()}"
        for path in sorted(RUST.rglob("*.rs"))
        if not is_home(path.relative_to(RUST))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(pattern, line.split("//")[0])
    ]

    assert strays == []
