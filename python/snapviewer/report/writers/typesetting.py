"""Breaks texts into lines, in both languages, for a page that cannot do so itself.

A line ends at a space, between Chinese letters, or after a sign that joins words such as a slash.
Punctuation never begins a line, an opening bracket never ends one. A word that is wider than the
page is broken where it must be: nothing is ever cut off.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from snapviewer.report.blocks import Span, Style, Text

EmOf: TypeAlias = Callable[[str], float]
"""How wide one letter is, in heights of its line."""

Letter: TypeAlias = tuple[str, Style]
"""A letter and its style."""

_NEVER_FIRST = frozenset("，。：；、！？）】》」』”…%,.:;!?)]}")
_NEVER_LAST = frozenset("（【《「『“([{")
_JOINING = frozenset("/\\_-.=")


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line: its stretches of one style each, and its width."""

    spans: Text
    width: float


def broken(text: Text, room: float, size: float, em_of: EmOf) -> tuple[TextLine, ...]:
    """Break a text into lines.

    Args:
        text: What to break.
        room: How wide a line may be.
        size: How high the letters are.
        em_of: How wide a letter is.

    >>> lines = broken((Span("one two 显存，峰"),), 3, 1, lambda letter: 1.0)
    >>> [line.spans[0].text for line in lines]
    ['one', 'two', '显存，', '峰']
    """
    letters = [(letter, span.style) for span in text for letter in span.text]
    lines: list[list[Letter]] = [[]]
    used = 0.0
    for piece in _pieces(letters):
        wide = sum(size * em_of(letter) for letter, _ in _trimmed(piece))
        if lines[-1] and used + wide > room:
            lines.append([])
            used = 0.0
        for letter in piece:
            advance = size * em_of(letter[0])
            if not lines[-1] and letter[0] == " ":
                continue
            # Only a piece that is wider than a line gets here with no room left.
            if lines[-1] and used + advance > room and letter[0] != " ":
                lines.append([])
                used = 0.0
            lines[-1].append(letter)
            used += advance
    return tuple(_line(_trimmed(line), size, em_of) for line in lines)


def _pieces(letters: Sequence[Letter]) -> Iterator[Sequence[Letter]]:
    """Split letters where a line may end; a piece keeps the spaces at its end."""
    start = 0
    for index in range(1, len(letters)):
        before = letters[index - 2][0] if index > 1 else " "
        if _may_break(before, letters[index - 1][0], letters[index][0]):
            yield letters[start:index]
            start = index
    if letters:
        yield letters[start:]


def _may_break(before: str, last: str, first: str) -> bool:
    """Tell whether a line may end between two letters, given the one before them."""
    if first == " " or first in _NEVER_FIRST:
        return False
    if last == " ":
        return True
    if last in _NEVER_LAST:
        return False
    if _is_wide(last) or _is_wide(first):
        return True
    # `a/b` may be broken, `-3` and `.py` may not.
    return last in _JOINING and before.isalnum() and first.isalpha()


def _is_wide(letter: str) -> bool:
    return unicodedata.east_asian_width(letter) in "WF"


def _trimmed(letters: Sequence[Letter]) -> Sequence[Letter]:
    end = len(letters)
    while end and letters[end - 1][0] == " ":
        end -= 1
    return letters[:end]


def _line(letters: Sequence[Letter], size: float, em_of: EmOf) -> TextLine:
    spans = tuple(
        Span("".join(letter for letter, _ in group), style)
        for style, group in groupby(letters, key=lambda letter: letter[1])
    )
    return TextLine(spans, sum(size * em_of(letter) for letter, _ in letters))


def column_widths(naturals: Sequence[float], room: float) -> list[float]:
    """Share the width of a table among its columns.

    Narrow columns get what they need, and the wide ones the rest, in equal parts; what is left
    over widens all.

    Args:
        naturals: How wide each would be with nothing broken, a point or more.
        room: How wide they are together.

    >>> column_widths([10, 20, 300], 130), column_widths([10, 20], 60)
    ([10, 20, 100.0], [20.0, 40.0])
    """
    total = sum(naturals)
    if total <= room:
        return [natural * room / total for natural in naturals]
    widths = [0.0] * len(naturals)
    left = room
    order = sorted(range(len(naturals)), key=lambda index: naturals[index])
    for place, index in enumerate(order):
        widths[index] = min(naturals[index], left / (len(naturals) - place))
        left -= widths[index]
    return widths
