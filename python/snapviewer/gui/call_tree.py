"""The call tree at the cursor or over the events in view, and its selected node. Without Tk.

Paths are made by a job when the tab is first shown; a tree of another moment then takes a few
milliseconds, so it is found where it is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt

from snapviewer import Device, Tree
from snapviewer.report.call_tree.names import format_weight
from snapviewer.text.units import count_of, format_share

from .jobs import Job

if TYPE_CHECKING:
    from .state import State
    from .values import Mask

Measure = Literal["alive", "allocated", "time"]
By = Literal["line", "function", "file"]
Frames = Literal["folded", "own", "all"]
MEASURES: dict[Measure, str] = {
    "alive": "alive at cursor",
    "allocated": "allocated in view",
    "time": "bytes × time",
}
BYS: dict[By, str] = {"line": "line", "function": "function", "file": "file"}
FRAMES: dict[Frames, str] = {"folded": "fold torch", "own": "only my code", "all": "all frames"}


class CallTree:
    """What the tab shows, and which of its nodes is in focus, selected or found."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.measure: Measure = "alive"
        self.by: By = "line"
        self.frames: Frames = "folded"
        self.is_callers = False
        self.is_table = False
        self.focus = 0
        self.word = ""
        self.error = ""
        self._node: int | None = None
        self._largest: int | None = None
        self._tree: tuple[object, Tree] | None = None
        self._shown: Mask | None = None
        self._ready: object = None
        self._found: tuple[object, npt.NDArray[np.uint32], int] | None = None
        state.on(self._reset, "document")
        state.on(self._selection_changed, "selection")
        state.on(self._marked_changed, "marked")
        state.on(self._start, "panes", "device")

    # The tree

    @property
    def is_shown(self) -> bool:
        return self._state.is_docked("tree")

    def _way(self) -> tuple[object, ...]:
        return self._state.document, self.by, self.frames, self.is_callers

    def _start(self) -> None:
        """Make the paths aside: those of a long file take longer than a frame."""
        state, device, way = self._state, self._state.device, self._way()
        if device is None or not self.is_shown or self._ready == way:
            return
        by, frames, callers = self.by, self.frames, self.is_callers

        def work(_: Job) -> None:
            device.tree(-1, by=by, frames=frames, callers=callers)

        def done(_: None) -> None:
            self._ready, self.error = way, ""
            state.changed("tree")

        def failed(error: Exception) -> None:
            self.error = f"Could not make the call tree: {error}"
            state.changed("tree")

        state.start(Job("call tree", "making the call tree"), work, done, failed)

    def tree(self) -> Tree | None:
        """Return the tree of the cursor or of the events in view; None while it is not ready."""
        state, device = self._state, self._state.device
        if device is None or state.cursor is None or self._ready != self._way():
            return None
        event = min(max(state.cursor, -1), int(device.events) - 1)
        events = None if self.measure == "alive" else state.visible_events()
        shown = state.shown_mask
        key = (device, self.measure, event if events is None else events, self._way())
        if self._tree is None or self._tree[0] != key or self._shown is not shown:
            self._tree, self._shown = (key, self._made(device, event, events, shown)), shown
        return self._tree[1]

    def _made(
        self, device: Device, event: int, events: tuple[int, int] | None, shown: Mask | None
    ) -> Tree:
        return device.tree(
            event,
            events=events,
            measure=self.measure,
            by=self.by,
            frames=self.frames,
            callers=self.is_callers,
            where=shown,
        )

    def about(self) -> str:
        """Return what the tree weighs, or the search finds, in words."""
        tree = self.tree()
        if self.error or tree is None:
            return self.error
        if self.word:
            nodes, weight = self.found() or (np.zeros(0, np.uint32), 0)
            share = format_share(weight, max(tree.total, 1))
            return f"{count_of(len(nodes), 'node')} · {format_weight(tree, weight)} · {share}"
        return f"{format_weight(tree, tree.total)} in {count_of(tree.count, 'allocation')}"

    # How it is shown

    def set_way(
        self,
        *,
        measure: Measure | None = None,
        by: By | None = None,
        frames: Frames | None = None,
        is_callers: bool | None = None,
    ) -> None:
        """Change what is shown; what is not given stays."""
        before = self._way()
        self.measure = measure or self.measure
        self.by, self.frames = by or self.by, frames or self.frames
        self.is_callers = self.is_callers if is_callers is None else is_callers
        if self._way() != before:
            # Nodes have other numbers.
            self.focus = 0
            if self._node is not None:
                self._state.mark(None)
            self._start()
        self._state.changed("tree")

    def next_frames(self) -> None:
        """Fold PyTorch's frames, show only the user's code, or show all."""
        choices = get_args(Frames)
        self.set_way(frames=choices[(choices.index(self.frames) + 1) % len(choices)])

    def toggle_table(self) -> None:
        """Show a table of the heaviest nodes, or the icicle."""
        self.is_table = not self.is_table
        self._state.changed("tree")

    def turn(self) -> None:
        """Show callers first, or last."""
        self.set_way(is_callers=not self.is_callers)

    def set_focus(self, node: int) -> None:
        """Give the whole width to a node."""
        if node != self.focus:
            self.focus = node
            self._state.changed("tree")

    def leave_focus(self) -> None:
        """Give the whole width to the node above the one in focus."""
        tree = self.tree()
        if tree is not None:
            self.set_focus(tree.node(self.focus).parent or 0)

    def search(self, word: str) -> None:
        """Find nodes by a regular expression; an empty one finds none."""
        self.word = word.strip()
        self._state.changed("tree")

    def found(self) -> tuple[npt.NDArray[np.uint32], int] | None:
        """Return the nodes found and their weight; None if nothing is searched for."""
        tree = self.tree()
        if tree is None or not self.word:
            return None
        if self._found is None or self._found[0] != (tree, self.word):
            try:
                nodes, weight = tree.search(self.word)
            except ValueError:  # an expression that is not finished
                nodes, weight = np.zeros(0, np.uint32), 0
            self._found = (tree, self.word), nodes, weight
        return self._found[1:]

    # Selecting

    @property
    def selected(self) -> int | None:
        """The node that was selected, or that of the selected allocation."""
        tree, selection = self.tree(), self._state.selection
        if self._node is not None or tree is None or selection is None:
            return self._node
        return tree.node_of(selection)

    def select(self, node: int) -> None:
        """Select a node: the plot highlights its allocations and selects the largest."""
        tree = self.tree()
        if tree is None:
            return
        self._node, self._largest = node, tree.node(node).largest
        if not node:  # everything is no selection
            self._forget_node()
        self._state.select(self._largest)
        self._state.mark(tree.mask(node) if node else None)
        self._state.changed("tree")

    def _forget_node(self) -> None:
        self._node = self._largest = None

    def _selection_changed(self) -> None:
        """Follow a selection that was made elsewhere."""
        if self._state.selection != self._largest:
            self._forget_node()
            self._state.mark(None)

    def _marked_changed(self) -> None:
        if self._state.marked is None and self._node is not None:
            self._forget_node()
            self._state.changed("tree")

    def _reset(self) -> None:
        self.focus, self._tree, self._found = 0, None, None
        self._forget_node()
