"""What panels say where nothing was recorded: the lines that record it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from .parts import ACCENT, QUIET

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snapviewer.explorer.subject import Subject

_LINES = """\
from snapviewer.explorer import (
    explore_model, record_torch_module_forward_stats
)

with record_torch_module_forward_stats(model):
    model(x)
explore_model(model)"""


def recording_hint(subject: Subject) -> RenderableType:
    """Say why there is nothing recorded of a module, and what to write."""
    if subject.stats is not None and subject.stats.timings:
        reason = "This module was not called in the recorded runs."
        return Padding(Text(reason, style=QUIET), (1, 0, 0, 0))
    if subject.find_module is None:
        reason = "A file has no times: they are recorded of a live model that runs."
    else:
        reason = "No run of this model was recorded."
    return Padding(
        Group(
            Text(reason, style=QUIET),
            Text("To record one, write:", style=QUIET),
            Padding(Text(_LINES, style=ACCENT, overflow="fold"), (1, 0, 0, 2)),
        ),
        (1, 0, 0, 0),
    )
