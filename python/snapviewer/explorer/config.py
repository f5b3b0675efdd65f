"""What the explorer shows when it opens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ExplorerConfig:
    """The first choices; a person changes them with keys, and the explorer remembers.

    `max_depth` is how deep the tree is unfolded at first, None for as deep as there is room.
    """

    show_parameter_counts: bool = True
    show_shapes: bool = True
    show_timing: bool = True
    show_memory: bool = True
    compact_view: bool = False
    color_scheme: Literal["dark", "light"] = "dark"
    max_depth: int | None = None
