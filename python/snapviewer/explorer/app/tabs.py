"""The panels as tabs: each with its name, and shorter ones for where there is little room.

What panels tell is imported when the first is filled, aside: that takes as long as all the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snapviewer.explorer.subject import Item, Subject


class Tab(NamedTuple):
    """A panel's name and its shorter ones."""

    name: str
    short: str
    shortest: str


COMPARISON = "Comparison"
TABS = (
    Tab("Module Details", "Details", "Details"),
    Tab("Performance Stats", "Performance", "Perf"),
    Tab("Source Code", "Source", "Source"),
    Tab("Tensor Flow", "Flow", "Flow"),
    Tab("Attributes", "Attributes", "Attrs"),
    Tab(COMPARISON, "Compare", "Compare"),
)


def content_of(name: str) -> Callable[[Subject, Item, int], RenderableType]:
    """Return what makes the content of the panel of a name."""
    from snapviewer.explorer.app.panels import PANELS

    return next(panel.content for panel in PANELS if panel.name == name)
