"""The words of strangers, made fit to be shown.

Names in a file may have any length, lines without end, and characters that a terminal obeys.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator

MOST_SHOWN = 300  # characters of a name


def clean(text: str, most: int | None = None) -> str:
    r"""Put a text on one line, without anything that a terminal would obey.

    Args:
        text: Whatever a file says.
        most: How many characters are enough.

    >>> clean("a\n\tb\x1b[31m"), clean("abcdef", 4)
    ('a b?[31m', 'abc…')
    """
    if most is not None:
        # Cut first: the rest of a megabyte need not be looked at.
        text = text if len(text) <= 4 * most else f"{text[: 4 * most]}…"
    text = " ".join(text.split())
    if not text.isprintable():  # most are: told forty times as fast as each letter by itself
        text = "".join(c if c.isprintable() else "?" for c in text)
    return text if most is None or len(text) <= most else f"{text[: most - 1]}…"


def shortened(text: str, most: int) -> str:
    r"""Cut a text of several lines, keeping its lines; very many lines are cut, too.

    >>> shortened("ab\ncd", 100), shortened("abcdef", 4)
    ('ab\ncd', 'abc…')
    """
    lines = text[:most].splitlines()[: most // 20 + 2]
    kept = "\n".join(lines)
    return kept if kept == text else f"{kept[: most - 1]}…"


def shortened_in_middle(text: str, most: int) -> str:
    """Cut a text in its middle, so that its beginning stays, and more of its end, which tells most.

    >>> shortened_in_middle("model.layers.0.attention.weight", 16)
    'model…ion.weight'
    """
    if len(text) <= most:
        return text
    end = 2 * most // 3
    return f"{text[: most - end - 1]}…{text[len(text) - end :]}"


# What terminals obey or hide, and JSON allows as it is.
_OBEYED = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def json_text(document: object, *, indent: int | None = 2) -> str:
    """Return a JSON document as it can be printed; without indent on one line, and far quicker."""
    is_ascii = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    text = json.dumps(document, indent=indent, ensure_ascii=is_ascii, default=bytes.hex)
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def json_outline(document: object, *, levels: int = 4) -> str:
    r"""Return a JSON document with a line for each entry of the upper levels, and one for the rest.

    Far quicker than to indent everything, shorter, and as easy to read.

    >>> print(json_outline({"a": {"b": [1, 2]}, "c": []}, levels=2))
    {
      "a": {
        "b": [1, 2]
      },
      "c": []
    }
    """
    text = "".join(_outlined(document, levels, "\n"))
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _outlined(value: object, levels: int, line: str) -> Iterator[str]:
    inner = f"{line}  "
    if levels and value and isinstance(value, dict):
        for place, (key, held) in enumerate(value.items()):
            yield f"{',' if place else '{'}{inner}{_dumped(str(key))}: "
            yield from _outlined(held, levels - 1, inner)
        yield f"{line}}}"
    elif levels and value and isinstance(value, list):
        for place, held in enumerate(value):
            yield f"{',' if place else '['}{inner}"
            yield from _outlined(held, levels - 1, inner)
        yield f"{line}]"
    else:
        yield _dumped(value)


def _dumped(value: object) -> str:
    is_ascii = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    return json.dumps(value, ensure_ascii=is_ascii, allow_nan=False)
