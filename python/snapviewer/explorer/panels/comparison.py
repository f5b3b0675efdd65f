"""The panel Comparison: a module here and in the other model, with what differs marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from snapviewer.explorer.subject import Subject

from .parts import sentence, stacked, title

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snapviewer.explorer.subject import Item


def content(subject: Subject, item: Item, width: int) -> RenderableType:
    """Set both sides beside each other."""
    node = subject.node_of(item)
    head = title(node.path or subject.tree.name, width=width)
    return stacked(head, sentence("There is nothing to compare with."))
