"""The explorer as a program in the terminal. It needs Textual: `pip install textual`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snapviewer.explorer.subject import Subject
from snapviewer.explorer.tree import Tree

if TYPE_CHECKING:
    from snapviewer.explorer.app.program import Reading
    from snapviewer.explorer.config import ExplorerConfig

__all__ = ["explore"]


def explore(
    source: Subject | Tree | Reading, *, config: ExplorerConfig | None = None, name: str = ""
) -> None:
    """Open the explorer and wait until it is closed.

    Args:
        source: What to show; or what reads it, called aside with a progress and an event that says
            to stop, while the program is already on the screen.
        config: The first choices; those of the last time if there is none.
        name: What is being read.

    Raises:
        ImportError: Textual is not installed.
        Exception: Whatever reading raised, if nothing could be shown.
    """
    from snapviewer.explorer.app.ending import ended_in_order
    from snapviewer.explorer.app.program import ExplorerApp

    subject = Subject(source) if isinstance(source, Tree) else source
    app = ExplorerApp(subject, config=config, name=name)
    with ended_in_order(app.leave_soon):
        app.run()
    if app.failure is not None:
        raise app.failure
