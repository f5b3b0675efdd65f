"""The performance overlay as text, for where there is no explorer to show it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TextIO

from snapviewer.explorer.overlay import overlay_lines
from snapviewer.explorer.timing import ForwardStats, ModuleTiming
from snapviewer.explorer.tree import ModuleNode, Tree
from snapviewer.texts import MOST_SHOWN, clean


def performance_overlay(timing: ModuleTiming, node: ModuleNode | None = None) -> list[str]:
    """Return the lines of one module: itself, its forward and backward pass, and its memory.

    Args:
        timing: What was recorded of it. Times are medians.
        node: The module in a tree, for its parameters.
    """
    name = clean(timing.path, MOST_SHOWN) or clean(timing.type_name, MOST_SHOWN)
    return [line.text for line in overlay_lines(name, node, timing)]


def display_timing_in_explorer(
    timing: ForwardStats | None, tree: Tree | None = None, *, file: TextIO | None = None
) -> None:
    """Write the performance overlay of all modules that were called, those with most time first.

    Args:
        timing: What `get_forward_stats` returned; None, where nothing records, is said in words.
        tree: The model's tree, for what it knows of parameters.
        file: Where to; as a rule, to the terminal.
    """
    out = sys.stdout if file is None else file
    if timing is None or not timing.timings:
        out.write("no timings were recorded\n")
    nodes = {} if tree is None else {node.path: node for node in tree.root.walk()}
    notes: Iterable[str] = () if timing is None else timing.notes
    timings = [] if timing is None else list(timing.timings.values())
    for one in sorted(timings, key=lambda one: -one.total.sum_s):
        out.write("\n".join(performance_overlay(one, nodes.get(one.path))) + "\n")
    for note in notes:
        out.write(f"note: {note}\n")
