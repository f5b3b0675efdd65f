"""The table of promises and their tests in `docs/internals/promises.md`.

Tests carry `@pytest.mark.promise("X19", …)`; the promises are listed in `promises.txt`. Markers are
read from the source, so that the table is the same whatever is installed. After a change, write it:

    python tests/support/promises.py
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
PAGE = TESTS.parent / "docs/internals/promises.md"

_HEAD = """# Promises and their tests

What the documents of the original tools promise, and the tests that fail when a promise breaks.
Written by `tests/support/promises.py` from the tests' markers.
"""


def promises() -> dict[str, dict[str, str]]:
    """Return the titles of all promises by id, under the names of their systems."""
    systems: dict[str, dict[str, str]] = {}
    for line in (TESTS / "support/promises.txt").read_text(encoding="utf-8").splitlines():
        name, _, title = line.partition(" ")
        if len(name) == 1:
            systems[title] = {}
        else:
            next(reversed(systems.values()))[name] = title
    return systems


def marked_tests() -> dict[str, list[tuple[str, str]]]:
    """Return the tests of each promise by its id, as the file below `tests/` and the name."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        if "mark.promise(" not in source:
            continue
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef):
                for promise in dict.fromkeys(_marked(node)):
                    found[promise].append((path.relative_to(TESTS).as_posix(), node.name))
    return found


def _marked(test: ast.FunctionDef) -> Iterator[str]:
    for decorator in test.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.promise":
            yield from map(ast.literal_eval, decorator.args)


def table() -> str:
    """Return the page."""
    tests = marked_tests()
    parts = [_HEAD]
    for system, titles in promises().items():
        parts.append(f"\n## {system}\n\n| | promise | tests |\n|---|---|---|\n")
        parts += [
            f"| {name} | {title} | {_cell(tests[name])} |\n" for name, title in titles.items()
        ]
    return "".join(parts)


def _cell(tests: list[tuple[str, str]]) -> str:
    files: dict[str, list[str]] = defaultdict(list)
    for file, name in tests:
        files[file].append(f"`{name}`")
    return "<br>".join(f"`tests/{file}`: {', '.join(names)}" for file, names in files.items())


if __name__ == "__main__":
    PAGE.write_text(table(), encoding="utf-8")
