"""The call tree as a table: the heaviest nodes, indented below those above them."""

from __future__ import annotations

import tkinter as tk

from snapviewer import Tree, TreeNode
from snapviewer.gui.panes.virtual_table import Bar, Column, RowHooks, Rows, VirtualTable
from snapviewer.gui.state import State
from snapviewer.gui.theme import hex_of, palette_of
from snapviewer.report.call_tree.names import format_weight, heaviest, node_text
from snapviewer.report.call_tree.text import tooltip
from snapviewer.text.units import format_share

MAX_ROWS = 300
_DEEPEST = 30  # indented; deeper nodes stay there
_COLUMNS = (
    Column("Total", "1,023 MiB·s", is_number=True),
    Column("Share", "< 0.1 %", is_number=True),
    Column("Own", "1,023 MiB·s", is_number=True),
    Column("Count", "100,000", is_number=True),
    Column("Node", "model.py:77 attention", grows=True),
)


class TreeTable(VirtualTable):
    """The rows of a tree; a click selects a node, a double click gives it the focus."""

    def __init__(self, parent: tk.Misc, state: State) -> None:
        self._state = state
        self._tree: Tree | None = None
        self.nodes: list[TreeNode] = []
        hooks = RowHooks(
            on_select=lambda row: state.call_tree.select(self.nodes[row].index),
            on_open=lambda row: state.call_tree.set_focus(self.nodes[row].index),
            bar_of=self._bar,
            tip_of=lambda row, _: self._described(row),
        )
        super().__init__(parent, _COLUMNS, self._rows, hooks)

    def show(self, tree: Tree | None) -> None:
        """Show the heaviest nodes of a tree, and mark the selected one."""
        if tree is not self._tree:
            self._tree = tree
            self.nodes = [] if tree is None else heaviest(tree, MAX_ROWS)
            self.set_count(len(self.nodes))
        selected = self._state.call_tree.selected
        places = (row for row, node in enumerate(self.nodes) if node.index == selected)
        self.mark(next(places, None))

    def _rows(self, first: int, last: int) -> Rows:
        return [self._texts(node) for node in self.nodes[first:last]]

    def _texts(self, node: TreeNode) -> tuple[str, ...]:
        tree = self._tree
        assert tree is not None
        return (
            format_weight(tree, node.weight),
            format_share(node.weight, max(tree.total, 1)),
            format_weight(tree, node.own) if node.own else "",
            f"{node.count:,}",
            f"{'    ' * min(node.depth, _DEEPEST)}{node_text(node)}",
        )

    def _bar(self, row: int) -> Bar:
        node, tree = self.nodes[row], self._tree
        assert tree is not None
        color = None if node.largest is None else self._state.color_of(node.largest)
        none = palette_of(self._state.look.theme).border
        return Bar(node.weight / max(tree.total, 1), none if color is None else hex_of(color))

    def _described(self, row: int) -> str:
        return "" if self._tree is None else "\n".join(tooltip(self._tree, self.nodes[row]))
