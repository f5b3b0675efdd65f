"""The panels: pure functions from a subject, what is selected and a width to what rich draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from . import attributes, comparison, details, flow, performance, source

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snapviewer.explorer.subject import Item, Subject


class Panel(NamedTuple):
    """A panel: its name, and what is in it."""

    name: str
    content: Callable[[Subject, Item, int], RenderableType]


PANELS = (
    Panel("Module Details", details.content),
    Panel("Performance Stats", performance.content),
    Panel("Source Code", source.content),
    Panel("Tensor Flow", flow.content),
    Panel("Attributes", attributes.content),
    Panel("Comparison", comparison.content),
)
