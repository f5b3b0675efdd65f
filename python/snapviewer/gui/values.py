"""The values that the state is made of. All are frozen; listeners subscribe to topics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from snapviewer.report.picture.options import Coloring, Order, ThemeName

from .document import Axis

Topic = Literal[
    "picture",  # another device's picture, to be drawn before anything else
    "document",  # another file, or none
    "device",  # another device of the file, or its times
    "timeline",  # the stacked allocations: their order, or which are shown
    "view",  # the part in view
    "look",  # axis, colours, stacking order, theme
    "selection",  # the selected allocation
    "details",  # the selected allocation's details
    "cursor",  # the cursor's event
    "alive",  # the live allocations at the cursor
    "pointer",  # the allocation under the mouse
    "filter",  # its text, mode and matches
    "bundle",  # whether queries can be answered
    "query",  # a query's answer
    "jobs",  # a job started or ended
    "notice",  # a message for the user
    "replay",  # the replayed allocator, or why there is none
    "map",  # the scale and order of the memory map
    "growth",  # the growth that was clicked
    "tree",  # what the call tree shows, and its selected node
    "marked",  # the allocations of a selected node, which are not dimmed
    "answers",  # steps, leaks and categories of the device
    "panes",  # which panes are shown
    "recent",  # recent files
]
FilterMode = Literal["highlight", "only"]
Pane = Literal["side", "minimap", "lanes", "legend", "dock", "lines"]
Tab = Literal["details", "cursor", "sql", "events"]
TABS: tuple[Tab, ...] = ("details", "cursor", "sql", "events")
DockTab = Literal["map", "growth", "tree", "steps", "leaks"]
# The title and the key of each tab below the timeline; `dock/dock.py` has their widgets.
DOCK_TABS: dict[DockTab, tuple[str, str]] = {
    "map": ("Memory map", "F5"),
    "growth": ("Growth", "F4"),
    "tree": ("Call tree", "F3"),
    "steps": ("Steps", "F11"),
    "leaks": ("Leaks", "F12"),
}

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Look:
    """How the timeline is shown."""

    axis: Axis = "event"
    color: Coloring = "stack"
    order: Order = "allocation"
    theme: ThemeName = "light"


LookPart = Literal["axis", "color", "order", "theme"]


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """The allocations that match a filter, their number, and their total size."""

    mask: Mask
    count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Filter:
    """Which allocations to show or to highlight.

    Args:
        text: What was typed.
        mode: Whether the other allocations are dimmed or hidden.
        recorded_only: Whether allocations older than the recording are hidden, whatever the mode.
        matches: The matches of the text; None while they are not known, or without a text.
        error: Why the text is not valid.
    """

    text: str = ""
    mode: FilterMode = "highlight"
    recorded_only: bool = False
    matches: Matches | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pixel of the plot under the mouse, and what it stands for."""

    x_px: int
    y_px: int
    event: int
    byte: int
    allocation: int | None


@dataclass(frozen=True, slots=True)
class Notice:
    """A message for the user."""

    text: str
    is_error: bool = True
