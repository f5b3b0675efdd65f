"""What is painted onto a timeline's picture: grid, peak and where memory ran out.

By themselves marks are painted on the background only, so that every pixel of an allocation is the
engine's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from snapviewer.report.theme import Color, Theme


class PixelMark(NamedTuple):
    """A rectangle, in pixels from the picture's top left; what lies outside is cut off."""

    x: int
    y: int
    width: int
    height: int
    color: Color
    alpha: int = 255
    """Up to 255, which hides what is below."""
    over: bool = False
    """Whether it is painted on allocations, too."""


Size = tuple[int, int]


def grid(
    size: Size, rows: Iterable[int], columns: Iterable[int], width: int, theme: Theme
) -> list[PixelMark]:
    """Return the grid's lines in a picture of a size.

    >>> from snapviewer.report.theme import THEMES
    >>> [mark[:4] for mark in grid((200, 100), [10], [30, 60], 1, THEMES["light"])]
    [(0, 10, 200, 1), (30, 0, 1, 100), (60, 0, 1, 100)]
    """
    across = [PixelMark(0, row, size[0], width, theme.grid) for row in rows]
    return across + [PixelMark(column, 0, width, size[1], theme.grid) for column in columns]


def peak_line(size: Size, row: int, width: int, theme: Theme) -> list[PixelMark]:
    """Return a dashed line above the highest point."""
    starts = range(0, size[0], 10 * width)
    return [PixelMark(start, row, 6 * width, width, theme.peak) for start in starts]


def oom_lines(size: Size, columns: Iterable[int], width: int, theme: Theme) -> list[PixelMark]:
    """Return lines from the top down to the timeline."""
    return [PixelMark(column, 0, width, size[1], theme.oom) for column in columns]
