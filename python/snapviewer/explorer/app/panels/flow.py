"""The panel Tensor Flow: the inputs, inner calls and outputs of a module, in execution order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from snapviewer.explorer.explored_model import ExploredModel, Item
from snapviewer.explorer.labels import type_text
from snapviewer.explorer.timing import FlowStep, TensorShape
from snapviewer.explorer.tree import ModuleNode
from snapviewer.report.tree.overlay import shapes_text
from snapviewer.text.units import count_of

from . import ui

if TYPE_CHECKING:
    from rich.console import RenderableType

_MAX_CALLS = 3  # of one module
_MAX_STEPS = 100  # lines
_MAX_NESTED = 40  # inner steps, above which only the outer ones are drawn
_MAX_TENSORS = 4
_NOBODY = "no other module"
_MAX_DEPTH = 12  # of indentation


def content(explored: ExploredModel, item: Item, width: int) -> RenderableType:
    """Draw the flow of tensors through a module in the last recorded run."""
    node = explored.node_of(item)
    flow = explored.stats.flow if explored.stats else ()
    paths = {node.path, node.path if node.shared_with is None else node.shared_with}
    calls = [place for place, step in enumerate(flow) if step.path in paths]
    head = ui.title(node.path or explored.tree.name, type_text(node), width)
    if not calls:
        order = _as_written(node, width)
        return ui.stack(
            head, ui.recording_hint(explored), ui.section("Modules in definition order", order)
        )
    drawn = [
        ui.section(
            f"Call {number} of {len(calls)}" if len(calls) > 1 else "Call",
            _call(explored, flow, place, width),
        )
        for number, place in enumerate(calls[:_MAX_CALLS], 1)
    ]
    left = len(calls) - len(drawn)
    return ui.stack(head, *drawn, ui.section("", ui.more(left)) if left else None)


def _call(explored: ExploredModel, flow: Sequence[FlowStep], place: int, width: int) -> Text:
    """Draw one call: where its inputs come from, what it calls, where its outputs go."""
    step = flow[place]
    end = place + 1
    while end < len(flow) and flow[end].depth > step.depth:
        end += 1
    inside = flow[place + 1 : end]
    sources = f"from {_names(explored, step.sources)}"
    targets = f"to {_names(explored, _users(flow, place, end))}"
    if place == 0:
        sources, targets = "from the caller", "to the caller"
    elif targets == f"to {_NOBODY}" and (outer := _ended_by(flow, place, end)) is not None:
        targets = f"to the end of {_names(explored, [outer.path])}"
    lines = [_end_line("in ", sources, step.inputs, width)]
    lines += _steps(inside, step, width)
    lines.append(_end_line("out", targets, step.outputs, width))
    return Text("\n").join(lines)


def _names(explored: ExploredModel, paths: Sequence[str]) -> str:
    """Name modules; tensors computed by functions between modules have none."""
    if not paths:
        return _NOBODY
    names = [ui.short_name(path or explored.tree.name, 40) for path in paths[:_MAX_TENSORS]]
    left = len(paths) - _MAX_TENSORS
    return ", ".join(names) + (f" and {left:,} more" if left > 0 else "")


def _ended_by(flow: Sequence[FlowStep], place: int, end: int) -> FlowStep | None:
    """Return the call whose last inner call this is; None if another one follows."""
    depth = flow[place].depth
    if end < len(flow) and flow[end].depth >= depth:
        return None
    return _around(flow, place, flow[0]) if place else None


def _users(flow: Sequence[FlowStep], place: int, end: int) -> list[str]:
    """Return the later calls that took this one's outputs, the outermost of nested ones."""
    users: list[str] = []
    path, skip = flow[place].path, -1
    for later in flow[end:]:
        if skip >= 0 and later.depth > skip:
            continue  # inside a call that is listed already
        skip = -1
        if path in later.sources:
            skip = later.depth
            if later.path not in users:
                users.append(later.path)
    return users


def _end_line(what: str, where: str, tensors: tuple[TensorShape, ...], width: int) -> Text:
    text = Text(overflow="fold")
    text.append(f"{what} ", style=f"bold {ui.ACCENT}").append(shapes_text(tensors))
    gap = "  " if cell_len(text.plain) + cell_len(where) + 2 <= width else "\n    "
    return text.append(f"{gap}{where}", style=ui.QUIET)


def _steps(inside: Sequence[FlowStep], outer: FlowStep, width: int) -> list[Text]:
    """Draw the inner calls, with guides; of many only the outer ones."""
    deepest = outer.depth + (1 if len(inside) > _MAX_NESTED else _MAX_DEPTH)
    chosen = [place for place, step in enumerate(inside) if step.depth <= deepest]
    if not chosen:
        return []
    depths = [inside[place].depth - outer.depth - 1 for place in chosen]
    left, chosen = len(chosen) - _MAX_STEPS, chosen[:_MAX_STEPS]
    names = [
        guide + ui.short_name(_within(inside[place].path, _around(inside, place, outer)), 60)
        for place, guide in zip(chosen, _guides([*depths, 0]), strict=False)
    ]
    shapes = [shapes_text(inside[place].outputs) for place in chosen]
    # In columns, as far as they fit.
    name_cells = min(max(map(cell_len, names)), max(16, width // 2))
    shape_cells = min(max(map(cell_len, shapes)), max(12, width // 3))
    edge = Text("│", style=ui.QUIET)
    lines = [edge]
    for place, name, shape in zip(chosen, names, shapes, strict=True):
        line = Text(f"{_fitted(name, name_cells)}  ", no_wrap=True, overflow="ellipsis")
        line.stylize(ui.QUIET, 0, len(name) - len(name.lstrip("│├└─ ")))
        line.append(_fitted(shape, shape_cells))
        for note in _step_notes(inside, place, outer):
            if line.cell_len + cell_len(note) + 2 <= width:
                line.append(f"  {note}", style=ui.QUIET)
        line.rstrip()
        lines.append(line)
    return [*lines, ui.more(left) if left > 0 else edge]


def _step_notes(inside: Sequence[FlowStep], place: int, outer: FlowStep) -> Iterator[str]:
    """Yield notes about a step, the most important first."""
    step = inside[place]
    yield ui.short_name(step.type_name, 24)
    places = range(place - 1, -1, -1)
    before = next((inside[one] for one in places if inside[one].depth <= step.depth), outer)
    usual = before.sources if before.depth < step.depth else (before.path,)
    if step.sources and step.sources != usual:
        paths = [_within(path, outer) for path in step.sources[:_MAX_TENSORS]]
        yield f"← {', '.join(ui.short_name(path, 30) for path in paths)}"
    calls = _count_inside(inside, place)
    if calls and len(inside) > _MAX_NESTED:
        yield f"{count_of(calls, 'call')} inside"


def _around(inside: Sequence[FlowStep], place: int, outer: FlowStep) -> FlowStep:
    """Return the call around a call."""
    depth, before = inside[place].depth, range(place - 1, -1, -1)
    return next((inside[one] for one in before if inside[one].depth < depth), outer)


def _within(path: str, outer: FlowStep) -> str:
    """Return a path without that of the module around it.

    A module may also call one that is not inside it; that path stays as it is.
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
    """Return the guide lines in front of nested steps.

    >>> _guides([0, 1, 1, 0])
    ['├─ ', '│  ├─ ', '│  └─ ', '└─ ']
    """
    guides = []
    open_below: set[int] = set()  # depths at which something follows
    for depth in (max(0, min(depth, _MAX_DEPTH)) for depth in reversed(depths)):
        start = "".join("│  " if level in open_below else "   " for level in range(depth))
        guides.append(start + ("├─ " if depth in open_below else "└─ "))
        open_below = {level for level in open_below if level < depth} | {depth}
    return guides[::-1]


def _as_written(node: ModuleNode, width: int) -> Text | None:
    """List the children in definition order, which need not be that of execution."""
    if not node.children:
        return None
    lines = []
    guides = _guides([0] * min(len(node.children), _MAX_STEPS))
    for guide, child in zip(guides, node.children, strict=False):
        line = Text(no_wrap=True, overflow="ellipsis").append(guide, style=ui.QUIET)
        line.append(ui.short_name(child.name, max(12, width // 2)))
        line.append(f"  {ui.short_name(type_text(child))}", style=ui.QUIET)
        lines.append(line)
    if len(node.children) > _MAX_STEPS:
        lines.append(ui.more(len(node.children) - _MAX_STEPS))
    return Text("\n").join(lines)
