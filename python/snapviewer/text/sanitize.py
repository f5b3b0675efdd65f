"""Untrusted text made safe to show: names and values from files, models and other programs.

Such text may have any length, any number of lines, and characters that a terminal interprets.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator

MAX_NAME_CHARS = 300


def sanitize(text: str, max_chars: int | None = None, *, strip: bool = True) -> str:
    r"""Return a text on one line, without anything that a terminal would interpret.

    Args:
        text: Untrusted text.
        max_chars: The limit beyond which it is cut.
        strip: Whether to remove spaces at both ends.

    >>> sanitize("a\n\tb\x1b[31m "), sanitize("abcdef", 4), sanitize(" a\n", strip=False)
    ('a b?[31m', 'abc…', ' a ')
    """
    if max_chars is not None and len(text) > 4 * max_chars:
        text = f"{text[: 4 * max_chars]}…"  # the rest of a megabyte need not be looked at
    # Of all white space only a plain space is printable. Most text passes here.
    if not text.isprintable() or "  " in text or (strip and text != text.strip()):
        words = " ".join(text.split())
        if words and not strip:
            words = f"{' ' * text[:1].isspace()}{words}{' ' * text[-1:].isspace()}"
        text = replace_unprintable(words or (" " if text and not strip else ""))
    return text if max_chars is None or len(text) <= max_chars else f"{text[: max_chars - 1]}…"


def replace_unprintable(text: str, *, keep_undecoded: bool = False) -> str:
    r"""Replace each character that a terminal would interpret, line breaks included, with `?`.

    Args:
        text: Untrusted text.
        keep_undecoded: Whether bytes of a file name that are not text stay as they are: standard
            output and standard error write these as escapes.

    >>> replace_unprintable("a\x1b[31m\udc80"), replace_unprintable("\udc80", keep_undecoded=True)
    ('a?[31m?', '\udc80')
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or (keep_undecoded and "\ud800" <= c <= "\udfff") else "?"
        for c in text
    )


# Read from `type` itself: `type(value).__name__` may run code of the type's own type.
_name_of_type = type.__dict__["__name__"].__get__


def type_name(value: object) -> str:
    """Return the name of a value's type, without running code of either.

    >>> type_name(1.5)
    'float'
    """
    return sanitize(_name_of_type(type(value)), MAX_NAME_CHARS)


def error_message(error: BaseException) -> str:
    """Return the message of an error on one line; empty if its own code raises."""
    try:
        return sanitize(str(error), MAX_NAME_CHARS)
    except Exception:  # noqa: BLE001 - whatever the error's own code raises
        return ""


def truncate_lines(text: str, max_chars: int) -> str:
    r"""Cut a text of several lines, keeping its line breaks; very many lines are cut, too.

    >>> truncate_lines("ab\ncd", 100), truncate_lines("abcdef", 4)
    ('ab\ncd', 'abc…')
    """
    lines = text[:max_chars].splitlines()[: max_chars // 20 + 2]
    kept = "\n".join(lines)
    return kept if kept == text else f"{kept[: max_chars - 1]}…"


def shorten_middle(text: str, max_chars: int) -> str:
    """Cut a text in its middle, keeping more of its end: names that begin alike differ there.

    >>> shorten_middle("model.layers.0.attention.weight", 16)
    'model…ion.weight'
    """
    if len(text) <= max_chars:
        return text
    end = 2 * max_chars // 3
    return f"{text[: max_chars - end - 1]}…{text[len(text) - end :]}"


# What terminals and browsers interpret or hide, and JSON allows as it is: C1 controls, marks of the
# direction, separators of lines, what has no width.
_HIDDEN = (
    "\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f"
)
_CONTROLS = re.compile(f"[\x00-\x08\x0b-\x1f{_HIDDEN}]")
_IN_JSON = re.compile(f"[{_HIDDEN}\ud800-\udfff]")


def replace_controls(text: str) -> str:
    r"""Replace what a terminal or a browser would interpret or hide, in a text of several lines.

    Every text that leaves the program passes here, on its way to a stream or to a file. It is no
    substitute for `sanitize`, which also bounds the length and keeps a name on its line.

    >>> replace_controls("a\n\tb\x1b[31m\r\u202e")
    'a\n\tb?[31m??'
    """
    return _CONTROLS.sub("?", text)


def json_text(document: object, *, indent: int | None = 2, is_ascii: bool | None = None) -> str:
    """Return a JSON document that is safe to print.

    Args:
        document: What can be written as JSON.
        indent: None for one line, which is faster.
        is_ascii: Whether to escape all other letters; None for what standard output can encode.
    """
    ascii_only = _is_ascii() if is_ascii is None else is_ascii
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only, default=bytes.hex)
    return _escape_controls(text)


def json_outline(document: object, *, levels: int = 4) -> str:
    r"""Return a JSON document with a line for each entry of the upper levels, and one for the rest.

    Much faster than indenting everything, shorter, and as easy to read.

    >>> print(json_outline({"a": {"b": [1, 2]}, "c": []}, levels=2))
    {
      "a": {
        "b": [1, 2]
      },
      "c": []
    }
    """
    encode = json.JSONEncoder(ensure_ascii=_is_ascii(), allow_nan=False).encode
    return _escape_controls("".join(_outlined(document, levels, "\n", encode)))


def _outlined(
    value: object, levels: int, line: str, encode: Callable[[object], str]
) -> Iterator[str]:
    inner = f"{line}  "
    if levels and value and isinstance(value, dict):
        for place, (key, held) in enumerate(value.items()):
            yield f"{',' if place else '{'}{inner}{encode(str(key))}: "
            yield from _outlined(held, levels - 1, inner, encode)
        yield f"{line}}}"
    elif levels and value and isinstance(value, list):
        for place, held in enumerate(value):
            yield f"{',' if place else '['}{inner}"
            yield from _outlined(held, levels - 1, inner, encode)
        yield f"{line}]"
    else:
        yield encode(value)


def _is_ascii() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"


def _escape_controls(text: str) -> str:
    return _IN_JSON.sub(lambda found: json.dumps(found[0])[1:-1], text)
