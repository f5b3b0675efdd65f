"""A user's own rules for categories, from a TOML file.

Each rule names a category and, as a filter, the allocations that it is for; the first that matches
counts:

    [[category]]
    name = "parameter"
    filter = "load_weights size>=1MiB"
"""

from __future__ import annotations

import sys
from pathlib import Path

from snapviewer._core import CATEGORIES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_rules(path: Path) -> tuple[tuple[str, str], ...]:
    """Return the rules of a file: the name of a category, and a filter.

    Raises:
        ValueError: The file is not understood; the message is one sentence that says why.
        OSError: The file cannot be read.
    """
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"not a TOML file: {error}") from None
    if unknown := set(document) - {"category"}:
        raise ValueError(f"there is no table {sorted(unknown)[0]!r}; rules are [[category]]")
    rules = document.get("category", [])
    if not isinstance(rules, list):
        raise ValueError("rules are written [[category]], with two brackets")
    return tuple(_rule(rule, place) for place, rule in enumerate(rules, 1))


def _rule(rule: object, place: int) -> tuple[str, str]:
    if not isinstance(rule, dict):
        raise ValueError("rules are written [[category]], with two brackets")
    name, text = rule.get("name"), rule.get("filter")
    if name not in CATEGORIES:
        raise ValueError(f"rule {place}: name is one of {', '.join(CATEGORIES)}")
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"rule {place}: filter is missing, such as filter = 'load_weights'")
    return name, text
