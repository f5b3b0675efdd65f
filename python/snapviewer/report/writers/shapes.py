"""The shapes of a chart, for any writer. Pixels run right and down from the top left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from snapviewer.report.writers.colors import Ink

Anchor: TypeAlias = Literal["start", "middle", "end"]


@dataclass(frozen=True, slots=True)
class Rect:
    """A filled rectangle."""

    x_px: float
    y_px: float
    width_px: float
    height_px: float
    ink: Ink


@dataclass(frozen=True, slots=True)
class Line:
    """A thin straight line: an axis or a grid line."""

    x1_px: float
    y1_px: float
    x2_px: float
    y2_px: float
    ink: Ink


@dataclass(frozen=True, slots=True)
class Polyline:
    """A line of data."""

    points: tuple[tuple[float, float], ...]
    ink: Ink
    is_dashed: bool = False


@dataclass(frozen=True, slots=True)
class Dot:
    """A filled circle."""

    x_px: float
    y_px: float
    radius_px: float
    ink: Ink


@dataclass(frozen=True, slots=True)
class Label:
    """A text on one line; `y_px` is where its letters stand, `x_px` is where its anchor is."""

    x_px: float
    y_px: float
    text: str
    size_px: float
    anchor: Anchor
    ink: Ink


Shape: TypeAlias = Rect | Line | Polyline | Dot | Label


@dataclass(frozen=True, slots=True)
class Drawing:
    """Shapes in a frame, in the order in which they are drawn."""

    width_px: float
    height_px: float
    shapes: tuple[Shape, ...]
