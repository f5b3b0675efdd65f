"""The panel Tensor Flow: what goes into a module and comes out, in the order of execution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from snapviewer.explorer.labels import type_text
from snapviewer.explorer.subject import Subject
from snapviewer.explorer.timing import FlowStep, TensorShape
from snapviewer.explorer.tree import ModuleNode
from snapviewer.report.tree.overlay import shapes_text
from snapviewer.text.units import count_of

from .parts import ACCENT, QUIET, more, section, shown, stacked, title
from .recording_hint import recording_hint

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snapviewer.explorer.subject import Item

_MOST_CALLS = 3  # of one module that are drawn
_MOST_STEPS = 100  # lines
_MOST_NESTED = 40  # steps inside, above which only the outer ones are drawn
_MOST_TENSORS = 4
_NOBODY = "no other module"
_MOST_DEPTH = 12  # that is indented


def content(subject: Subject, item: Item, width: int) -> RenderableType:
    """Draw how tensors went through a module in the last recorded run."""
    node = subject.node_of(item)
    flow = subject.stats.flow if subject.stats else ()
    paths = {node.path, node.path if node.shared_with is None else node.shared_with}
    calls = [place for place, step in enumerate(flow) if step.path in paths]
    head = title(node.path or subject.tree.name, type_text(node), width)
    if not calls:
        order = _as_written(node, width)
        return stacked(head, recording_hint(subject), section("Modules as they are written", order))
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
    sources = f"from {_names(subject, step.sources)}"
    targets = f"to {_names(subject, _users(flow, place, end))}"
    if place == 0:
        sources, targets = "from the caller", "to the caller"
    elif targets == f"to {_NOBODY}" and (outer := _ended_by(flow, place, end)) is not None:
        targets = f"to the end of {_names(subject, [outer.path])}"
    lines = [_end_line("in ", sources, step.inputs, width)]
    lines += _steps(inside, step, width)
    lines.append(_end_line("out", targets, step.outputs, width))
    return Text("\n").join(lines)


def _names(subject: Subject, paths: Sequence[str]) -> str:
    """Say which modules; what functions between modules compute has none."""
    if not paths:
        return _NOBODY
    names = [shown(path or subject.tree.name, 40) for path in paths[:_MOST_TENSORS]]
    left = len(paths) - _MOST_TENSORS
    return ", ".join(names) + (f" and {left:,} more" if left > 0 else "")


def _ended_by(flow: Sequence[FlowStep], place: int, end: int) -> FlowStep | None:
    """Return the call that a call is the last one in; None if another one follows in it."""
    depth = flow[place].depth
    if end < len(flow) and flow[end].depth >= depth:
        return None
    return _around(flow, place, flow[0]) if place else None


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


def _end_line(what: str, where: str, tensors: tuple[TensorShape, ...], width: int) -> Text:
    text = Text(overflow="fold")
    text.append(f"{what} ", style=f"bold {ACCENT}").append(shapes_text(tensors))
    gap = "  " if cell_len(text.plain) + cell_len(where) + 2 <= width else "\n    "
    return text.append(f"{gap}{where}", style=QUIET)


def _steps(inside: Sequence[FlowStep], outer: FlowStep, width: int) -> list[Text]:
    """Draw the calls inside, with guides; of many only the outer ones."""
    deepest = outer.depth + (1 if len(inside) > _MOST_NESTED else _MOST_DEPTH)
    chosen = [place for place, step in enumerate(inside) if step.depth <= deepest]
    if not chosen:
        return []
    depths = [inside[place].depth - outer.depth - 1 for place in chosen]
    left, chosen = len(chosen) - _MOST_STEPS, chosen[:_MOST_STEPS]
    names = [
        guide + shown(_within(inside[place].path, _around(inside, place, outer)), 60)
        for place, guide in zip(chosen, _guides([*depths, 0]), strict=False)
    ]
    shapes = [shapes_text(inside[place].outputs) for place in chosen]
    # Below each other, as far as there is room.
    name_cells = min(max(map(cell_len, names)), max(16, width // 2))
    shape_cells = min(max(map(cell_len, shapes)), max(12, width // 3))
    edge = Text("│", style=QUIET)
    lines = [edge]
    for place, name, shape in zip(chosen, names, shapes, strict=True):
        line = Text(f"{_fitted(name, name_cells)}  ", no_wrap=True, overflow="ellipsis")
        line.stylize(QUIET, 0, len(name) - len(name.lstrip("│├└─ ")))
        line.append(_fitted(shape, shape_cells))
        for note in _step_notes(inside, place, outer):
            if line.cell_len + cell_len(note) + 2 <= width:
                line.append(f"  {note}", style=QUIET)
        line.rstrip()
        lines.append(line)
    return [*lines, more(left) if left > 0 else edge]


def _step_notes(inside: Sequence[FlowStep], place: int, outer: FlowStep) -> Iterator[str]:
    """Yield what is said of a step where there is room, the most important first."""
    step = inside[place]
    yield shown(step.type_name, 24)
    places = range(place - 1, -1, -1)
    before = next((inside[one] for one in places if inside[one].depth <= step.depth), outer)
    usual = before.sources if before.depth < step.depth else (before.path,)
    if step.sources and step.sources != usual:
        paths = [_within(path, outer) for path in step.sources[:_MOST_TENSORS]]
        yield f"← {', '.join(shown(path, 30) for path in paths)}"
    calls = _count_inside(inside, place)
    if calls and len(inside) > _MOST_NESTED:
        yield f"{count_of(calls, 'call')} inside"


def _around(inside: Sequence[FlowStep], place: int, outer: FlowStep) -> FlowStep:
    """Return the call that a call is in."""
    depth, before = inside[place].depth, range(place - 1, -1, -1)
    return next((inside[one] for one in before if inside[one].depth < depth), outer)


def _within(path: str, outer: FlowStep) -> str:
    """Return a path without that of the module around it.

    A module may also call one that is not in it, whose path is said as it is.
    """
    return path.removeprefix(f"{outer.path}." if outer.path else "")


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


def _as_written(node: ModuleNode, width: int) -> Text | None:
    """List the children in their order; it need not be that of execution."""
    if not node.children:
        return None
    lines = []
    guides = _guides([0] * min(len(node.children), _MOST_STEPS))
    for guide, child in zip(guides, node.children, strict=False):
        line = Text(no_wrap=True, overflow="ellipsis").append(guide, style=QUIET)
        line.append(shown(child.name, max(12, width // 2)))
        line.append(f"  {shown(type_text(child))}", style=QUIET)
        lines.append(line)
    if len(node.children) > _MOST_STEPS:
        lines.append(more(len(node.children) - _MOST_STEPS))
    return Text("\n").join(lines)
