"""The plot's pixels: the timeline, and marks that never cover it.

Grid, peak and out-of-memory marks are drawn over the background only, so that every pixel of an
allocation is the engine's.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from snapviewer._core import Image
from snapviewer.report.theme import Color, Theme

BACKGROUND = 2**32 - 1

Pixels = npt.NDArray[np.uint8]


class Plot:
    """A drawing area with a timeline in it; row 0 is on top."""

    def __init__(self, image: Image, theme: Theme) -> None:
        self.pixels: Pixels = image.rgb.copy()
        self.is_free: npt.NDArray[np.bool_] = image.ids == BACKGROUND
        self.theme = theme

    def grid(self, rows: Iterable[int], columns: Iterable[int], width: int) -> None:
        """Draw the grid's lines."""
        for row in rows:
            self._paint(slice(row, row + width), slice(None), self.theme.grid)
        for column in columns:
            self._paint(slice(None), slice(column, column + width), self.theme.grid)

    def peak_line(self, row: int, width: int) -> None:
        """Draw a dashed line above the highest point."""
        length = self.pixels.shape[1]
        for start in range(0, length, 10 * width):
            self._paint(slice(row, row + width), slice(start, start + 6 * width), self.theme.peak)

    def oom_line(self, column: int, width: int) -> None:
        """Draw a line from the top down to the timeline."""
        self._paint(slice(None), slice(column, column + width), self.theme.oom)

    def _paint(self, rows: slice, columns: slice, color: Color) -> None:
        rows = slice(max(rows.start, 0), rows.stop) if rows.start is not None else rows
        self.pixels[rows, columns][self.is_free[rows, columns]] = color
