"""The panels: pure functions from a model, the selected item and a width to what rich draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from . import attributes, comparison, details, flow, performance, source

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snapviewer.explorer.explored_model import ExploredModel, Item

PANELS: Mapping[str, Callable[[ExploredModel, Item, int], RenderableType]] = {
    "Module Details": details.content,
    "Performance Stats": performance.content,
    "Source Code": source.content,
    "Tensor Flow": flow.content,
    "Attributes": attributes.content,
    "Comparison": comparison.content,
}
