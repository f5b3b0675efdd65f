"""Marks on the image of a timeline: grid, peak line and out-of-memory lines.

By default marks are painted on the background only, so that allocations keep all their pixels.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from snapviewer.report.theme import Color, Theme


class PixelMark(NamedTuple):
    """A rectangle in pixels from the top left of the image; what is outside is cut off."""

    x: int
    y: int
    width: int
    height: int
    color: Color
    alpha: int = 255
    """Up to 255, which is opaque."""
    over: bool = False
    """Whether it also covers allocations."""


Size = tuple[int, int]


def grid(
    size: Size, rows: Iterable[int], columns: Iterable[int], width: int, theme: Theme
) -> list[PixelMark]:
    """Return the lines of a grid.

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
    """Return vertical lines where memory ran out."""
    return [PixelMark(column, 0, width, size[1], theme.oom) for column in columns]
