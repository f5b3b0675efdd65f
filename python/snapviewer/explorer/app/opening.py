"""Opens the explorer on a live module, a checkpoint, a file or a tree.

Without a terminal, in a pipe or a notebook, the tree is written as text instead.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Event
from types import FrameType
from typing import TYPE_CHECKING, Any

from snapviewer import SnapshotError
from snapviewer.explorer.compare import compare_trees
from snapviewer.explorer.explored_model import ExploredModel, Progress, load_model
from snapviewer.explorer.tree import Tree
from snapviewer.report.tree import comparison, text

if TYPE_CHECKING:
    from snapviewer.explorer.app.program import Reading
    from snapviewer.explorer.app.settings import ExplorerConfig


def open_explorer(
    model: Any,
    *,
    name: str = "",
    config: ExplorerConfig | None = None,
    other: Any = None,
) -> None:
    """Open the explorer on a model and wait until it is closed; write text without a terminal.

    Args:
        model: As `load_model` takes it.
        name: The name shown while it is read.
        config: The initial settings; None for those of the last run.
        other: A model to compare it with.

    Raises:
        SnapshotError: It is no model, or Textual is not installed.
        OSError: A file cannot be read.
    """

    def read(progress: Progress | None = None, cancel: Event | None = None) -> ExploredModel:
        explored = load_model(model, progress, cancel)
        if other is None:
            return explored
        second = load_model(other, progress, cancel)
        return replace(explored, other=second.tree, other_checkpoint=second.checkpoint)

    if not is_interactive():
        sys.stdout.write(_as_text(read()))
        return
    with _textual():
        explore(read, config=config, name=name)


def choose_file(directory: str, *, config: ExplorerConfig | None = None) -> str | None:
    """Let the user choose a checkpoint in a directory or below it; None if they leave.

    Raises:
        SnapshotError: Textual is not installed.
    """
    with _textual():
        from snapviewer.explorer.app.chooser import ChooserApp

        app = ChooserApp(directory, config=config)
        with restore_terminal_on_signal(app.exit):
            return app.run()


@contextmanager
def _textual() -> Iterator[None]:
    """Say what to do if Textual is not installed."""
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("textual", "rich"):
            raise
        raise SnapshotError(
            'the explorer needs Textual: `pip install textual`, or `pip install ".[tui]"` from a '
            "clone; without it, `snapviewer explore FILE --export text` prints the tree"
        ) from None


def explore(
    source: ExploredModel | Tree | Reading,
    *,
    config: ExplorerConfig | None = None,
    name: str = "",
) -> None:
    """Open the explorer in the terminal and wait until it is closed.

    Args:
        source: The model; or a function that reads it, called in a thread with a progress callback
            and an event that cancels it, while the program is already on the screen.
        config: The initial settings; None for those of the last run.
        name: The name shown while the model is read.

    Raises:
        ImportError: Textual is not installed.
        Exception: Whatever reading raised, if nothing could be shown.
    """
    from snapviewer.explorer.app.program import ExplorerApp

    explored = ExploredModel(source) if isinstance(source, Tree) else source
    app = ExplorerApp(explored, config=config, name=name)
    with restore_terminal_on_signal(app.quit_soon):
        app.run()
    if app.failure is not None:
        raise app.failure


def _as_text(explored: ExploredModel) -> str:
    if explored.other is None:
        return text.as_text(explored.tree)
    return comparison.as_text(compare_trees(explored.tree, explored.other))


def is_interactive() -> bool:
    """Return whether a user sits at a terminal."""
    try:
        return sys.stdin.isatty() and sys.stdout.isatty()
    except (AttributeError, ValueError):  # no stream at all, or a closed one
        return False


@contextmanager
def restore_terminal_on_signal(leave: Callable[[], object]) -> Iterator[None]:
    """Call `leave` when SIGTERM or SIGHUP arrives, and raise the signal again after the block.

    Textual handles Ctrl+C only: any other signal would leave the terminal on its alternate screen,
    with mouse reports switched on.
    """
    received: list[int] = []

    def end(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        leave()

    before = {}
    if threading.current_thread() is threading.main_thread():
        # Ignored signals stay ignored; None is a handler that was not set from Python.
        handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
        before = {n: one for n, one in handlers.items() if one not in (None, signal.SIG_IGN)}
    for number in before:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if received:
            signal.raise_signal(received[0])
