"""What a picture should show, as somebody asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Axis = Literal["event", "time"]
Coloring = Literal["stack", "size", "stream", "pool", "age", "category"]
Order = Literal["allocation", "stack", "size", "lifetime", "pool", "stream"]
ThemeName = Literal["light", "dark"]

SMALLEST = (400, 300)
LARGEST = (8000, 4000)


@dataclass(frozen=True, slots=True)
class PictureOptions:
    """What to show of a device, and how.

    Args:
        size: Width and height of the whole picture, before scaling.
        scale: 2 doubles the pixels in each direction, and everything with them.
        axis: What goes from left to right.
        shorten_idle: Whether long idle times take little room on an axis of time.
        span: The part of the axis to show: events, or microseconds since the first event. None is
            all of it.
        byte_span: The bytes to show. None is from 0 to a little above the peak.
        color: What the colour of an allocation tells.
        order: In what order they lie on each other.
        filters: Which allocations to show; each has to hold.
        dim: Whether what the filters leave out is drawn faintly rather than left out.
        theme: Dark on light, or light on dark.
        title: Instead of the file's name and the device.

    Raises:
        ValueError: The size cannot be drawn; the message says why.
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
    theme: ThemeName = "light"
    title: str | None = None

    def __post_init__(self) -> None:
        width, height = self.size
        if width < SMALLEST[0] or height < SMALLEST[1]:
            least = "{} × {}".format(*SMALLEST)
            raise ValueError(f"a picture has at least {least} pixels, not {width} × {height}")
        width, height = self.size_px
        if width > LARGEST[0] or height > LARGEST[1]:
            most = "{} × {}".format(*LARGEST)
            raise ValueError(f"a picture has at most {most} pixels, not {width} × {height}")

    @property
    def size_px(self) -> tuple[int, int]:
        """Width and height of the picture in pixels."""
        return self.size[0] * self.scale, self.size[1] * self.scale

    @property
    def where(self) -> str | None:
        """The filters as one text for the core: words of a filter have to hold together."""
        return " ".join(self.filters) or None
