"""Widths of text, estimated without a font, and text shortened to a width."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from snapviewer.text.sanitize import sanitize

MAX_SPAN_CHARS = 2000  # a name in a log may have megabytes

_NARROW = frozenset(" !'(),./:;I[\\]`fijlrt{|}")
_BROAD = frozenset("%&@GMOQWmw—…")


@lru_cache(maxsize=4096)
def _em(character: str) -> float:
    """Estimate the width of a character in em, rather too wide than too narrow."""
    if character in _NARROW:
        return 0.36
    if character in _BROAD:
        return 0.95
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0.0
    if unicodedata.east_asian_width(character) in "WFA":
        return 1.3 if unicodedata.category(character) == "So" else 1.0
    return 0.7 if character.isupper() else 0.58


def width_px(text: str, size_px: float) -> float:
    """Estimate the width of a text; Chinese characters are one em wide, others about half of it.

    >>> width_px("显存", 10), round(width_px("GB", 10))
    (20.0, 16)
    """
    return size_px * sum(map(_em, text))


def columns(text: str) -> int:
    """Count the columns of a text in a monospaced font, where Chinese characters take two.

    >>> columns("GB"), columns("显存")
    (2, 4)
    """
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    none = sum(unicodedata.category(character) in ("Mn", "Me") for character in text)
    return len(text) + wide - none


def fitted(text: str, room_px: float, size_px: float) -> str:
    """Shorten a text in its middle until it fits, keeping more of its end.

    >>> fitted("model.layers.0.attention.weight", 100, 10)
    'model.…ion.weight'
    >>> fitted("short", 100, 10), fitted("none", 0, 10)
    ('short', '')
    """
    text = sanitize(text, 400, strip=False)
    if width_px(text, size_px) <= room_px:
        return text
    room = room_px - width_px("…", size_px)
    if room < 0:
        return ""
    beginning = _as_much(text, room * 0.4, size_px)
    end = _as_much(text[::-1], room - width_px(beginning, size_px), size_px)[::-1]
    return f"{beginning}…{end}"


def _as_much(text: str, room_px: float, size_px: float) -> str:
    """Return as much of the beginning of a text as fits."""
    used = 0.0
    for index, character in enumerate(text):
        used += size_px * _em(character)
        if used > room_px:
            return text[:index]
    return text
