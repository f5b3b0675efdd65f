"""The panel Tensor Flow: what goes into a module and comes out, in the order of execution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from snapviewer.explorer.formats import format_shape
from snapviewer.explorer.labels import type_text
from snapviewer.explorer.subject import Subject
from snapviewer.explorer.timing import FlowStep, TensorShape
from snapviewer.explorer.tree import ModuleNode
from snapviewer.units import count_of

from .parts import ACCENT, QUIET, more, section, shown, stacked, title
from .recording_hint import recording_hint

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snapviewer.explorer.subject import Item

_MOST_CALLS = 3  # of one module that are drawn
_MOST_STEPS = 100  # lines
_MOST_NESTED = 40  # steps inside, above which only the outer ones are drawn
_MOST_TENSORS = 4
_MOST_DEPTH = 12  # that is indented
_INPUT = "the model's input"
_OUTPUT = "the model's output"


def content(subject: Subject, item: Item, width: int) -> RenderableType:
    """Draw how tensors went through a module in the last recorded run."""
    node = subject.node_of(item)
    flow = subject.stats.flow if subject.stats else ()
    paths = {node.path, node.path if node.shared_with is None else node.shared_with}
    calls = [place for place, step in enumerate(flow) if step.path in paths]
    head = title(node.path or subject.tree.name, type_text(node), width)
    if not calls:
        order = _as_written(node, width)
        return stacked(
            head, recording_hint(subject, node), section("Modules as they are written", order)
        )
    drawn = [
        section(
            f"Call {number} of {len(calls)}" if len(calls) > 1 else "Call",
            _call(subject, flow, place, width),
        )
        for number, place in enumerate(calls[:_MOST_CALLS], 1)
    ]
    left = len(calls) - len(drawn)
    return stacked(head, *drawn, section("", more(left)) if left else None)


def _call(subject: Subject, flow: Sequence[FlowStep], place: int, width: int) -> Text:
    """Draw one call: where its inputs come from, what it calls, where its outputs go."""
    step = flow[place]
    end = place + 1
    while end < len(flow) and flow[end].depth > step.depth:
        end += 1
    inside = flow[place + 1 : end]
    sources = ", ".join(_name(subject, path) for path in step.sources[:_MOST_TENSORS])
    users = _users(flow, place, end)
    targets = ", ".join(_name(subject, path) for path in users[:_MOST_TENSORS])
    lines = [_end_line("in ", "from", sources or _INPUT, step.inputs, width)]
    lines += _steps(inside, step, width)
    lines.append(_end_line("out", "to", targets or _OUTPUT, step.outputs, width))
    return Text("\n").join(lines)


def _name(subject: Subject, path: str) -> str:
    return shown(path or subject.tree.name, 40)


def _users(flow: Sequence[FlowStep], place: int, end: int) -> list[str]:
    """Return which later calls took what this one returned, the outermost of nested ones."""
    users: list[str] = []
    path, skip = flow[place].path, -1
    for later in flow[end:]:
        if skip >= 0 and later.depth > skip:
            continue  # inside of one that is told of already
        skip = -1
        if path in later.sources:
            skip = later.depth
            if later.path not in users:
                users.append(later.path)
    return users


def _end_line(
    what: str, way: str, where: str, tensors: tuple[TensorShape, ...], width: int
) -> Text:
    text = Text(overflow="fold")
    text.append(f"{what} ", style=f"bold {ACCENT}").append(_shapes(tensors))
    if cell_len(text.plain) + cell_len(where) + len(way) + 3 > width:
        return text.append("\n    ").append(f"{way} {where}", style=QUIET)
    return text.append(f"  {way} {where}", style=QUIET)


def _steps(inside: Sequence[FlowStep], outer: FlowStep, width: int) -> list[Text]:
    """Draw the calls inside, with guides; of many only the outer ones."""
    deepest = None if len(inside) <= _MOST_NESTED else outer.depth + 1
    chosen = [
        (place, step)
        for place, step in enumerate(inside)
        if deepest is None or step.depth <= deepest
    ]
    guides = _guides([step.depth - outer.depth - 1 for _, step in chosen[: _MOST_STEPS + 1]])
    lines = [Text("│", style=QUIET)] if chosen else []
    names = [_inner_name(step, outer) for _, step in chosen[:_MOST_STEPS]]
    pairs = list(zip(guides, names, strict=False))
    room = max((cell_len(guide + name) for guide, name in pairs), default=0)
    room = min(room, max(16, width // 2))
    for (place, step), guide, name in zip(chosen, guides, names, strict=False):
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(guide, style=QUIET)
        # So that the shapes below each other stay so.
        name_cells = max(8, room - cell_len(guide))
        line.append(_fitted(name, name_cells))
        line.append(f"  {_shapes(step.outputs)}")
        kind = shown(step.type_name, 24)
        hidden = _count_inside(inside, place) if deepest is not None else 0
        note = f"{kind}, {count_of(hidden, 'call')} inside" if hidden else kind
        if cell_len(line.plain) + cell_len(note) + 2 <= width:
            line.append(f"  {note}", style=QUIET)
        lines.append(line)
    if len(chosen) > _MOST_STEPS:
        lines.append(more(len(chosen) - _MOST_STEPS))
    if chosen:
        lines.append(Text("│", style=QUIET))
    return lines


def _inner_name(step: FlowStep, outer: FlowStep) -> str:
    """Return a path without that of the module in which it was called."""
    start = f"{outer.path}." if outer.path else ""
    return shown(step.path.removeprefix(start), 60)


def _fitted(name: str, cells: int) -> str:
    text = Text(name)
    text.truncate(cells, overflow="ellipsis", pad=True)
    return text.plain


def _count_inside(steps: Sequence[FlowStep], place: int) -> int:
    end = place + 1
    while end < len(steps) and steps[end].depth > steps[place].depth:
        end += 1
    return end - place - 1


def _guides(depths: Sequence[int]) -> list[str]:
    """Return the lines in front of nested steps.

    >>> _guides([0, 1, 1, 0])
    ['├─ ', '│  ├─ ', '│  └─ ', '└─ ']
    """
    guides = []
    open_below: set[int] = set()  # depths at which something follows
    for depth in (max(0, min(depth, _MOST_DEPTH)) for depth in reversed(depths)):
        start = "".join("│  " if level in open_below else "   " for level in range(depth))
        guides.append(start + ("├─ " if depth in open_below else "└─ "))
        open_below = {level for level in open_below if level < depth} | {depth}
    return guides[::-1]


def _shapes(tensors: tuple[TensorShape, ...]) -> str:
    if not tensors:
        return "no tensor"
    parts = [format_shape(tensor.shape) or "scalar" for tensor in tensors[:_MOST_TENSORS]]
    left = len(tensors) - _MOST_TENSORS
    return ", ".join(parts) + (f" and {left:,} more" if left > 0 else "")


def _as_written(node: ModuleNode, width: int) -> Text | None:
    """List the children in their order; it need not be that of execution."""
    if not node.children:
        return None
    lines = []
    guides = _guides([0] * min(len(node.children), _MOST_STEPS))
    for guide, child in zip(guides, node.children, strict=False):
        line = Text(no_wrap=True, overflow="ellipsis").append(guide, style=QUIET)
        line.append(shown(child.name, max(12, width // 2)))
        line.append(f"  {type_text(child)}", style=QUIET)
        lines.append(line)
    if len(node.children) > _MOST_STEPS:
        lines.append(more(len(node.children) - _MOST_STEPS))
    return Text("\n").join(lines)
