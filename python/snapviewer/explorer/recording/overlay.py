"""The performance overlay: what recorded calls showed, as lines of text."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TextIO

from snapviewer.explorer.formats import format_memory, format_param_count, format_shape, format_time
from snapviewer.explorer.timing import ForwardStats, ModuleTiming, TensorShape
from snapviewer.explorer.tree import ModuleNode, Tree
from snapviewer.texts import MOST_SHOWN, clean


def performance_overlay(timing: ModuleTiming, node: ModuleNode | None = None) -> list[str]:
    """Return the lines of one module: itself, its forward and backward pass, and its memory.

    Args:
        timing: What was recorded of it. Times are medians.
        node: The module in a tree, for its parameters.
    """
    backward = timing.backward
    seconds = timing.total.median_s + (0.0 if backward is None else backward.median_s)
    head = [clean(timing.path, MOST_SHOWN) or clean(timing.type_name, MOST_SHOWN)]
    if node is not None:
        head.append(f"{format_param_count(node.sums.parameters)} params")
        if weight := next((one for one in node.tensors if not one.is_buffer), None):
            head.append(f"Shape: {format_shape(weight.shape)}")
    head.append(f"Time: {format_time(seconds)}")
    if node is not None:
        head.append(f"Mem: {format_memory(node.sums.parameter_bytes)}")
    forward = [f"Input: {_shapes(timing.inputs)}", f"Output: {_shapes(timing.outputs)}"]
    rows = [("forward()", f"⚡ {format_time(timing.total.median_s)}", *forward)]
    if backward is None:
        rows.append(("backward()", "–", "Gradient: not computed"))
    else:
        rows.append(("backward()", f"⚡ {format_time(backward.median_s)}", "Gradient: computed"))
    rows.append(("memory", *_memory(timing, node)))
    guides = ["├─"] * (len(rows) - 1) + ["└─"]
    body = [
        f"{guide} {name:<14} {value:<12}  {'   '.join(rest)}".rstrip()
        for guide, (name, value, *rest) in zip(guides, rows, strict=True)
    ]
    return ["   ".join(head), *body]


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


def _shapes(tensors: tuple[TensorShape, ...]) -> str:
    return ", ".join(format_shape(one.shape) or "scalar" for one in tensors) or "–"


def _memory(timing: ModuleTiming, node: ModuleNode | None) -> list[str]:
    activations = f"Activations: {format_memory(timing.activation_bytes)}"
    if node is None or not node.sums.parameters:
        return [f"📊 {format_memory(timing.activation_bytes)}", activations]
    sums = node.sums
    each = sums.parameter_bytes / sums.parameters
    parameters = f"Parameters: {sums.parameters:,} × {each:g} bytes"
    return [f"📊 {format_memory(sums.parameter_bytes)}", parameters, activations]
