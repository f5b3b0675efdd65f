"""The shapes of a chart, for any writer. Pixels run right and down from the top left."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from snapviewer.report.writers.colors import Ink

Anchor: TypeAlias = Literal["start", "middle", "end"]


class Rect(NamedTuple):
    """A filled rectangle."""

    x_px: float
    y_px: float
    width_px: float
    height_px: float
    ink: Ink


class Line(NamedTuple):
    """A thin straight line: an axis or a grid line."""

    x1_px: float
    y1_px: float
    x2_px: float
    y2_px: float
    ink: Ink


class Polyline(NamedTuple):
    """A line of data."""

    points: tuple[tuple[float, float], ...]
    ink: Ink
    is_dashed: bool = False


class Dot(NamedTuple):
    """A filled circle."""

    x_px: float
    y_px: float
    radius_px: float
    ink: Ink


class Label(NamedTuple):
    """A text on one line; `y_px` is its baseline, `x_px` the place of its anchor."""

    x_px: float
    y_px: float
    text: str
    size_px: float
    anchor: Anchor
    ink: Ink


Shape: TypeAlias = Rect | Line | Polyline | Dot | Label


class Drawing(NamedTuple):
    """Shapes in a frame, in drawing order."""

    width_px: float
    height_px: float
    shapes: tuple[Shape, ...]
