"""The options of a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Axis = Literal["event", "time"]
Coloring = Literal["stack", "size", "stream", "pool", "lifetime", "category"]
Order = Literal["allocation", "stack", "size", "lifetime", "pool", "stream", "category"]
ThemeName = Literal["light", "dark"]

_CORE_COLORS = {"lifetime": "age"}  # where the core has another name

SMALLEST = (400, 300)
LARGEST = (8000, 4000)
_RECORDED = "event>=0"  # a filter


def core_color(color: str) -> str:
    """Return the core's name of what allocations are coloured by."""
    return _CORE_COLORS.get(color, color)


@dataclass(frozen=True, slots=True)
class PictureOptions:
    """The options of a picture.

    Args:
        size: Width and height of the whole picture, before scaling.
        scale: 2 doubles the pixels in each direction, and the size of everything.
        axis: The horizontal axis.
        shorten_idle: Whether long idle times are shortened on an axis of time.
        span: The part of the axis to show: events, or microseconds since the first event. None is
            all of it.
        byte_span: The bytes to show. None is from 0 to a little above the peak.
        color: What allocations are coloured by.
        order: The stacking order.
        filters: Filters, all of which a shown allocation matches.
        dim: Whether allocations that do not match are drawn faintly instead of left out.
        recorded_only: Whether allocations older than the recording are left out.
        theme: Light or dark.
        lines: Whether to draw lines of requested, allocated, active and reserved memory.
        title: The title instead of the name of the file and the device.

    Raises:
        ValueError: The size is too small or too large.
    """

    size: tuple[int, int] = (1600, 900)
    scale: int = 1
    axis: Axis = "event"
    shorten_idle: bool = False
    span: tuple[float, float] | None = None
    byte_span: tuple[int, int] | None = None
    color: Coloring = "stack"
    order: Order = "allocation"
    filters: tuple[str, ...] = ()
    dim: bool = False
    recorded_only: bool = False
    theme: ThemeName = "light"
    lines: bool = False
    title: str | None = None

    def __post_init__(self) -> None:
        width, height = self.size
        if width < SMALLEST[0] or height < SMALLEST[1]:
            least = "{} × {}".format(*SMALLEST)
            raise ValueError(f"the size must be at least {least} pixels, not {width} × {height}")
        width, height = self.size_px
        if width > LARGEST[0] or height > LARGEST[1]:
            most = "{} × {}".format(*LARGEST)
            raise ValueError(f"the size must be at most {most} pixels, not {width} × {height}")

    @property
    def size_px(self) -> tuple[int, int]:
        """Width and height of the picture in pixels."""
        return self.size[0] * self.scale, self.size[1] * self.scale

    @property
    def where(self) -> str | None:
        """The filters as one text for the core, which matches all words of it."""
        return " ".join((*self.filters, *((_RECORDED,) if self.recorded_only else ()))) or None

    @property
    def where_drawn(self) -> str | None:
        """The filter of all drawn allocations, faint ones included."""
        if not self.dim:
            return self.where
        return _RECORDED if self.recorded_only else None
