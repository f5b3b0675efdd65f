"""Opens the explorer on whatever is handed in: a live module, a checkpoint, a file, a tree.

Where nobody can press a key, in a pipe or a notebook, the tree is written as text instead.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from threading import Event
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from snapviewer import Checkpoint, SnapshotError, read_checkpoint
from snapviewer.explorer.checkpoint import tree_of_checkpoint
from snapviewer.explorer.compare import compare_trees
from snapviewer.explorer.live import tree_of_module
from snapviewer.explorer.subject import Subject, finder_in
from snapviewer.explorer.tree import Tree
from snapviewer.report.tree.comparison import as_text as comparison_text
from snapviewer.report.tree.text import as_text

if TYPE_CHECKING:
    from snapviewer.explorer.config import ExplorerConfig

Progress: TypeAlias = Callable[[int, int], object]


def subject_of(
    model: Any, progress: Progress | None = None, cancel: Event | None = None
) -> Subject:
    """Look at a model.

    Args:
        model: A live module or what holds some; the path of a checkpoint, or what
            `snapviewer.read_checkpoint` returned; a tree or a subject that is there already.
        progress: Called with (done, total) now and then.
        cancel: Asked now and then whether to stop.

    Raises:
        SnapshotError: It cannot be read, or is no model; the message says why.
        OSError: The file cannot be read.
        CancelledError: `cancel` was set.
    """
    # Not `isinstance`, which asks the model itself for its class; a module may raise anything.
    if issubclass(type(model), Subject):
        return cast("Subject", model)
    if issubclass(type(model), Tree):
        return Subject(model)
    if issubclass(type(model), str | os.PathLike):
        model = read_checkpoint(model, progress=progress, cancel=cancel)
    if issubclass(type(model), Checkpoint):
        tree = tree_of_checkpoint(model, progress=progress, cancel=cancel)
        return Subject(tree, checkpoint=model)
    tree = tree_of_module(model, progress=progress, cancel=cancel)
    return Subject(tree, find_module=finder_in(model), stats=_recorded(model))


def _recorded(model: Any) -> Any:
    """Return what was recorded of a model's runs; None if nothing was."""
    from snapviewer.explorer.recording import get_forward_stats

    try:
        stats = get_forward_stats(model)
    except Exception:  # noqa: BLE001 (no module that could have been recorded, or its own code)
        return None
    return stats if stats.timings else None


def tree_of(model: Any) -> Tree:
    """Return the tree of a model, of whatever kind; see `subject_of`."""
    return subject_of(model).tree


def open_explorer(
    model: Any,
    *,
    name: str = "",
    config: ExplorerConfig | None = None,
    other: Any = None,
) -> None:
    """Open the explorer on a model and wait until it is closed; write text without a terminal.

    Args:
        model: As `subject_of` takes it.
        name: What it is called while it is read.
        config: What it shows at first; None for the choices of the last time.
        other: A model to compare it with.

    Raises:
        SnapshotError: It is no model, or Textual is not installed.
        OSError: A file cannot be read.
    """

    def read(progress: Progress | None = None, cancel: Event | None = None) -> Subject:
        subject = subject_of(model, progress, cancel)
        if other is None:
            return subject
        beside = subject_of(other, progress, cancel)
        return replace(subject, other=beside.tree, other_checkpoint=beside.checkpoint)

    if not is_watched():
        sys.stdout.write(_told(read()))
        return
    try:
        from . import explore

        explore(read, config=config, name=name)
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("textual", "rich"):
            raise
        raise SnapshotError(
            "the explorer needs Textual: pip install textual; "
            "without it, `snapviewer explore FILE --export text` shows the tree"
        ) from None


def _told(subject: Subject) -> str:
    """Say in text what the program would show."""
    if subject.other is None:
        return as_text(subject.tree)
    return comparison_text(compare_trees(subject.tree, subject.other))


def is_watched() -> bool:
    """Tell whether there is a terminal with someone at it."""
    try:
        return sys.stdin.isatty() and sys.stdout.isatty()
    except (AttributeError, ValueError):  # no stream at all, or a closed one
        return False
