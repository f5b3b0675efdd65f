"""The performance overlay: what a module costs, in four lines.

    layer1.0.conv1    36.9K params   Shape: 64×64×3×3   Time: 1.23ms   Mem: 147KB
    ├─ forward()      ⚡ 850.00μs   Input: 1×64×56×56   Output: 1×64×56×56
    ├─ backward()     ⚡ 380.00μs   Gradient: computed
    └─ memory         📊 147KB      Parameters: 36,864 × 4 bytes

Times are medians. What was not recorded has no line.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TextIO

from snapviewer.explorer.formats import format_memory, format_param_count, format_shape, format_time
from snapviewer.explorer.subject import tensors_once
from snapviewer.explorer.timing import ForwardStats, ModuleTiming, TensorShape
from snapviewer.explorer.tree import ModuleNode, Tree
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize
from snapviewer.text.units import count_of

GAP = "   "  # between parts
_NAME_CELLS = 18
_VALUE_CELLS = 14
_MOST_SHAPES = 4


@dataclass(frozen=True, slots=True)
class OverlayLine:
    """A line: its guide, what it is about, its value, and more about it in parts."""

    guide: str
    what: str
    value: str
    parts: tuple[str, ...]

    @property
    def padding(self) -> tuple[str, str]:
        """The blanks behind `what` and behind `value`, so that lines stand below each other."""
        after_what = " " * max(2, _NAME_CELLS - len(self.guide + self.what))
        # The sign in front of a value is one letter, and takes two cells.
        after_value = " " * max(2, _VALUE_CELLS - len(self.value) - 1)
        return after_what, after_value if self.value else ""

    @property
    def text(self) -> str:
        """The line, however long it is."""
        after_what, after_value = self.padding
        head = f"{self.guide}{self.what}{after_what}{self.value}{after_value}"
        return head + GAP.join(self.parts)


def overlay_lines(
    name: str, node: ModuleNode | None, timing: ModuleTiming | None
) -> tuple[OverlayLine, ...]:
    """Return the lines of a module.

    Args:
        name: What it is called.
        node: The module in its tree, for its parameters.
        timing: What was recorded of it.
    """
    lines = [OverlayLine("", name, "", tuple(_head(node, timing)))]
    if timing is not None:
        lines.append(_forward(timing))
        lines.append(_backward(timing))
    return (*lines, _memory(node, timing))


def _head(node: ModuleNode | None, timing: ModuleTiming | None) -> Iterator[str]:
    if node is not None:
        yield f"{format_param_count(node.sums.parameters)} params"
        shape = next((entry.shape for entry in node.tensors if not entry.is_buffer), ())
        if shape:
            yield f"Shape: {format_shape(shape)}"
    if timing is not None:
        backward_s = timing.backward.median_s if timing.backward else 0.0
        yield f"Time: {format_time(timing.total.median_s + backward_s)}"
    if node is not None:
        yield f"Mem: {format_memory(node.sums.parameter_bytes)}"


def _forward(timing: ModuleTiming) -> OverlayLine:
    parts = (f"Input: {shapes_text(timing.inputs)}", f"Output: {shapes_text(timing.outputs)}")
    return OverlayLine("├─ ", "forward()", f"⚡ {format_time(timing.total.median_s)}", parts)


def _backward(timing: ModuleTiming) -> OverlayLine:
    time = "–" if timing.backward is None else format_time(timing.backward.median_s)
    return OverlayLine("├─ ", "backward()", f"⚡ {time}", (f"Gradient: {gradient_text(timing)}",))


def _memory(node: ModuleNode | None, timing: ModuleTiming | None) -> OverlayLine:
    if timing is not None and (node is None or not node.sums.parameters):
        size = format_memory(timing.activation_bytes)
        return OverlayLine("└─ ", "memory", f"📊 {size}", (f"Activations: {size} a call",))
    size = format_memory(node.sums.parameter_bytes if node else 0)
    return OverlayLine("└─ ", "memory", f"📊 {size}", (f"Parameters: {_element_sizes(node)}",))


def _element_sizes(node: ModuleNode | None) -> str:
    """Say how many parameters there are of which size: `36,864 × 4 bytes`."""
    counts: Counter[int] = Counter()
    for entry in tensors_once(node) if node else ():
        if not entry.is_buffer and entry.elements:
            counts[entry.size_bytes // entry.elements] += entry.elements
    parts = [f"{count:,} × {count_of(size, 'byte')}" for size, count in counts.most_common(4)]
    return " + ".join(parts) or "none"


def gradient_text(timing: ModuleTiming) -> str:
    """Say whether a backward pass went through a module."""
    return "computed" if timing.has_gradient else "not computed"


def shapes_text(tensors: tuple[TensorShape, ...]) -> str:
    """Say the shapes of what went in or came out; of many the first."""
    if not tensors:
        return "no tensor"
    parts = [format_shape(tensor.shape) or "scalar" for tensor in tensors[:_MOST_SHAPES]]
    left = len(tensors) - _MOST_SHAPES
    return ", ".join(parts) + (f" and {left:,} more" if left > 0 else "")


def performance_overlay(timing: ModuleTiming, node: ModuleNode | None = None) -> list[str]:
    """Return the lines of one module: itself, its forward and backward pass, and its memory.

    Args:
        timing: What was recorded of it. Times are medians.
        node: The module in a tree, for its parameters.
    """
    name = sanitize(timing.path, MAX_NAME_CHARS) or sanitize(timing.type_name, MAX_NAME_CHARS)
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
