"""The layout of a picture, in whole pixels.

From top to bottom: title, facts, plot, axis, and a legend to the right of the plot or below it.
What has no room is left out: the plot comes first.
"""

from __future__ import annotations

from dataclasses import dataclass

# In pixels at scale 1.
MARGIN = 16
TITLE_SIZE = 18
TEXT_SIZE = 13
LABEL_SIZE = 12
LINE = 19  # from one baseline to the next
TICK = 5
SWATCH = 12
GAP = 24  # between columns

_UNIT = 30  # above the plot, for the unit of bytes
_AXIS = 44  # below it, for the labels and a line that says what they are
_MIN_BESIDE = 900  # wide pictures have the legend on the right
_MIN_PLOT = 150
_MAX_ENTRIES = 18
_COLUMN = 250  # of a legend below the plot


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle, from the left and from the top."""

    left: int
    top: int
    width: int
    height: int

    @property
    def right(self) -> int:
        return self.left + self.width

    @property
    def bottom(self) -> int:
        return self.top + self.height

    def scaled(self, scale: int) -> Box:
        """Return it in pixels."""
        return Box(self.left * scale, self.top * scale, self.width * scale, self.height * scale)


@dataclass(frozen=True, slots=True)
class LegendRoom:
    """The columns and rows that a legend may have, and the width of a column."""

    is_beside: bool
    columns: int
    rows: int
    column_width: int

    @property
    def entries(self) -> int:
        return self.columns * self.rows


@dataclass(frozen=True, slots=True)
class Layout:
    """The boxes of a picture; `plot` includes the labels of bytes on its left."""

    plot: Box
    legend: Box | None


def max_fact_lines(height: int) -> int:
    """Return the number of lines of facts in a picture of this height."""
    return 1 if height < 400 else 2 if height < 600 else 3


def legend_room(size: tuple[int, int], *, fact_lines: int) -> LegendRoom | None:
    """Find room for a legend: beside the plot, below it, or none.

    Args:
        size: The size of the picture, in points.
        fact_lines: The number of lines below the title.
    """
    width, height = size
    plot = layout_of(size, fact_lines=fact_lines).plot
    if width >= _MIN_BESIDE:
        return LegendRoom(True, 1, min(plot.height // LINE, _MAX_ENTRIES), width // 4)
    columns = max(1, (width - 2 * MARGIN) // _COLUMN)
    rows = min((plot.height - max(_MIN_PLOT, height * 2 // 5)) // LINE - 1, _MAX_ENTRIES // columns)
    if rows < 3:
        return None
    return LegendRoom(False, columns, rows, (width - 2 * MARGIN) // columns - GAP)


def layout_of(
    size: tuple[int, int],
    *,
    fact_lines: int,
    room: LegendRoom | None = None,
    entries: int = 0,
    entry_width: int = 0,
) -> Layout:
    """Lay out a picture, in points.

    Args:
        size: The size of the picture.
        fact_lines: The number of lines below the title.
        room: The room for a legend.
        entries: The number of its entries.
        entry_width: The width of the widest entry or heading.
    """
    width, height = size
    top = MARGIN + TITLE_SIZE + fact_lines * LINE + _UNIT
    right, bottom = width - MARGIN, height - MARGIN - _AXIS
    legend = None
    if room is not None and entries and room.is_beside:
        legend_width = min(entry_width, room.column_width)
        right -= legend_width + GAP
        legend = Box(right + GAP, top, legend_width, bottom - top)
    elif room is not None and entries:
        legend_height = -(-entries // room.columns) * LINE
        bottom -= legend_height + LINE
        legend = Box(MARGIN, height - MARGIN - legend_height, width - 2 * MARGIN, legend_height)
    return Layout(Box(MARGIN, top, right - MARGIN, bottom - top), legend)
