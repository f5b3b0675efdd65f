"""The values that the state is made of: frozen, and told of by topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from snapviewer.report.picture.options import Coloring, Order, ThemeName

from .document import Axis

Topic = Literal[
    "picture",  # all of it is another one, and is to be seen before anything else is done
    "document",  # another file, or none
    "device",  # another device of it
    "timeline",  # what is stacked: the order, or what a filter leaves
    "view",  # which part is shown
    "look",  # axis, colour, theme
    "selection",  # the selected allocation
    "facts",  # what is known of it
    "cursor",  # the event that panes tell of
    "moment",  # what is alive there
    "pointer",  # what is under the mouse
    "filter",  # its text, mode, and what matches
    "bundle",  # queries can be answered, or why not
    "query",  # a query's answer
    "jobs",  # work began or ended
    "notice",  # something to tell
    "panes",  # which are shown
    "recent",  # the files opened lately
]
FilterMode = Literal["highlight", "only"]
Pane = Literal["side", "minimap", "lanes"]
Tab = Literal["details", "cursor", "sql", "events"]
TABS: tuple[Tab, ...] = ("details", "cursor", "sql", "events")

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Look:
    """How things are shown."""

    axis: Axis = "event"
    color: Coloring = "stack"
    order: Order = "allocation"
    theme: ThemeName = "light"


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """What a filter lets through: which allocations, how many, their bytes."""

    mask: Mask
    count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Filter:
    """What was typed. `matches` is None until it is known; `error` says what is not understood."""

    text: str = ""
    mode: FilterMode = "highlight"
    matches: Matches | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Pointer:
    """What is under the mouse: a pixel of the plot, and what that stands for."""

    x_px: int
    y_px: int
    event: int
    byte: int
    allocation: int | None


@dataclass(frozen=True, slots=True)
class Notice:
    """Something to tell: what happened, and what to do."""

    text: str
    is_error: bool = True
