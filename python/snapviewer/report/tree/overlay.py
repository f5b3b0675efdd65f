"""The performance overlay: the cost of a module in four lines.

    layer1.0.conv1    36.9K params   Shape: 64×64×3×3   Time: 1.23ms   Mem: 147KB
    ├─ forward()      ⚡ 850.00μs   Input: 1×64×56×56   Output: 1×64×56×56
    ├─ backward()     ⚡ 380.00μs   Gradient: computed
    └─ memory         📊 147KB      Parameters: 36,864 × 4 bytes

Times are medians. Sizes are decimal, as promised (X25). What was not recorded has no line.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TextIO

from snapviewer.explorer import formats
from snapviewer.explorer.explored_model import tensors_once
from snapviewer.explorer.timing import ForwardStats, ModuleTiming, TensorShape
from snapviewer.explorer.tree import ModuleNode, Tree
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize
from snapviewer.text.units import count_of

GAP = "   "  # between parts
_NAME_CELLS, _VALUE_CELLS = 18, 14
_MAX_SHAPES = 4


class OverlayLine(NamedTuple):
    """A line: its guide, its subject, its value, and further parts."""

    guide: str
    what: str
    value: str
    parts: tuple[str, ...]

    @property
    def padding(self) -> tuple[str, str]:
        """The spaces behind `what` and `value` that align the lines."""
        after_what = " " * max(2, _NAME_CELLS - len(self.guide + self.what))
        # The emoji in front of a value is one character and takes two cells.
        after_value = " " * max(2, _VALUE_CELLS - len(self.value) - 1)
        return after_what, after_value if self.value else ""

    @property
    def text(self) -> str:
        """The whole line."""
        after_what, after_value = self.padding
        head = f"{self.guide}{self.what}{after_what}{self.value}{after_value}"
        return head + GAP.join(self.parts)


def overlay_lines(
    name: str, node: ModuleNode | None, timing: ModuleTiming | None
) -> tuple[OverlayLine, ...]:
    """Return the lines of a module.

    Args:
        name: The name to show.
        node: The module in its tree, for its parameters.
        timing: Its recorded times.
    """
    lines = [OverlayLine("", name, "", tuple(_head(node, timing)))]
    if timing is not None:
        lines.append(_forward(timing))
        lines.append(_backward(timing))
    return (*lines, _memory(node, timing))


def _head(node: ModuleNode | None, timing: ModuleTiming | None) -> Iterator[str]:
    if node is not None:
        yield f"{formats.format_param_count(node.sums.parameters)} params"
        shape = next((entry.shape for entry in node.tensors if not entry.is_buffer), ())
        if shape:
            yield f"Shape: {formats.format_shape(shape)}"
    if timing is not None:
        backward_s = timing.backward.median_s if timing.backward else 0.0
        yield f"Time: {formats.format_time(timing.total.median_s + backward_s)}"
    if node is not None:
        yield f"Mem: {formats.format_memory(node.sums.parameter_bytes)}"


def _forward(timing: ModuleTiming) -> OverlayLine:
    parts = (f"Input: {shapes_text(timing.inputs)}", f"Output: {shapes_text(timing.outputs)}")
    time = formats.format_time(timing.total.median_s)
    return OverlayLine("├─ ", "forward()", f"⚡ {time}", parts)


def _backward(timing: ModuleTiming) -> OverlayLine:
    time = "–" if timing.backward is None else formats.format_time(timing.backward.median_s)
    return OverlayLine("├─ ", "backward()", f"⚡ {time}", (f"Gradient: {gradient_text(timing)}",))


def _memory(node: ModuleNode | None, timing: ModuleTiming | None) -> OverlayLine:
    if timing is not None and (node is None or not node.sums.parameters):
        size = formats.format_memory(timing.activation_bytes)
        return OverlayLine("└─ ", "memory", f"📊 {size}", (f"Activations: {size} a call",))
    size = formats.format_memory(node.sums.parameter_bytes if node else 0)
    return OverlayLine("└─ ", "memory", f"📊 {size}", (f"Parameters: {_element_sizes(node)}",))


def _element_sizes(node: ModuleNode | None) -> str:
    """Return the number of parameters by element size: `36,864 × 4 bytes`."""
    counts: Counter[int] = Counter()
    for entry in tensors_once(node) if node else ():
        if not entry.is_buffer and entry.elements:
            counts[entry.size_bytes // entry.elements] += entry.elements
    parts = [f"{count:,} × {count_of(size, 'byte')}" for size, count in counts.most_common(4)]
    return " + ".join(parts) or "none"


def gradient_text(timing: ModuleTiming) -> str:
    """Return whether a backward pass went through a module."""
    return "computed" if timing.has_gradient else "not computed"


def shapes_text(tensors: tuple[TensorShape, ...]) -> str:
    """Return the shapes of inputs or outputs; of many the first."""
    if not tensors:
        return "no tensor"
    parts = [formats.shape_or_scalar(tensor.shape) for tensor in tensors[:_MAX_SHAPES]]
    left = len(tensors) - _MAX_SHAPES
    return ", ".join(parts) + (f" and {left:,} more" if left > 0 else "")


def performance_overlay(timing: ModuleTiming, node: ModuleNode | None = None) -> list[str]:
    """Return the lines of one module: itself, its forward and backward pass, and its memory.

    Args:
        timing: Its recorded times, shown as medians.
        node: The module in a tree, for its parameters.
    """
    name = sanitize(timing.path, MAX_NAME_CHARS) or sanitize(timing.type_name, MAX_NAME_CHARS)
    return [line.text for line in overlay_lines(name, node, timing)]


def display_timing_in_explorer(
    timing: ForwardStats | None, tree: Tree | None = None, *, file: TextIO | None = None
) -> None:
    """Write the performance overlay of all called modules, the slowest first.

    Args:
        timing: What `get_forward_stats` returned; None if nothing was recorded.
        tree: The model's tree, for its parameters; None for that of the stats.
        file: Where to write; None for standard output.
    """
    out = sys.stdout if file is None else file
    if timing is None or not timing.timings:
        out.write("no timings were recorded\n")
    if tree is None and timing is not None:
        tree = timing.tree
    nodes = {} if tree is None else {node.path: node for node in tree.root.walk()}
    notes: Iterable[str] = () if timing is None else timing.notes
    timings = [] if timing is None else list(timing.timings.values())
    for one in sorted(timings, key=lambda one: -one.total.sum_s):
        out.write("\n".join(performance_overlay(one, nodes.get(one.path))) + "\n")
    for note in notes:
        out.write(f"note: {note}\n")
