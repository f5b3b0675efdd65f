"""The panel Comparison: a module in both models, with the differences marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from snapviewer.explorer.compare import (
    DIFF_SIGNS,
    ModuleComparison,
    TensorComparison,
    TreeComparison,
    Verdict,
)
from snapviewer.explorer.explored_model import ExploredModel, Item
from snapviewer.explorer.formats import shape_or_scalar
from snapviewer.explorer.labels import title, type_text
from snapviewer.explorer.tree import ModuleNode, TensorEntry
from snapviewer.report.tree.comparison import difference_text
from snapviewer.text.units import count_of, format_bytes

from . import ui

if TYPE_CHECKING:
    from rich.console import RenderableType


_STYLES: dict[Verdict, str] = {
    "added": ui.GOOD,
    "removed": ui.BAD,
    "changed": ui.WARNING,
    "equal": ui.QUIET,
}
_ABSENT = "–"


def content(explored: ExploredModel, item: Item, width: int) -> RenderableType:
    """Show a module beside its counterpart."""
    node = explored.node_of(item)
    head = ui.title(node.path or explored.tree.name, width=width)
    compared = explored.compared.get(node.path)
    if explored.comparison is None or compared is None:
        return ui.stack(head, *_hint())
    is_root = explored.is_root(node)
    return ui.stack(
        head,
        _verdict(compared, has_values=explored.comparison.has_values),
        ui.section("Total", _counts(explored.comparison, width) if is_root else None),
        ui.section("Module", _sides(compared, explored.comparison, width)),
        ui.section("Tensors", _tensors(compared.tensors, explored.comparison, width)),
        ui.section("Values", _values(compared.tensors, explored.value_changes or {})),
        ui.section("Children", _children(compared.children, width)),
    )


def _hint() -> tuple[Text, Text]:
    return (
        ui.sentence("No second model. To compare two checkpoints:"),
        Text("snapviewer explore FILE --compare OTHER", style=ui.ACCENT),
    )


def _verdict(compared: ModuleComparison, *, has_values: bool) -> Text:
    if compared.verdict == "equal" and compared.has_changes:
        text = Text("equal, with changes below", style=ui.WARNING)
    else:
        text = Text(compared.verdict, style=_STYLES[compared.verdict])
    if has_values or compared.before is None or compared.after is None:
        return text
    return text.append("  by names, shapes and types; V compares values", style=ui.QUIET)


def _counts(comparison: TreeComparison, width: int) -> RenderableType | None:
    rows: list[list[str | Text]] = [
        [
            Text(verdict, style=_STYLES[verdict]),
            f"{comparison.modules[verdict]:,}",
            f"{comparison.tensors[verdict]:,}",
        ]
        for verdict in DIFF_SIGNS
    ]
    columns = [ui.Column(""), ui.Column("modules", "right"), ui.Column("tensors", "right")]
    return ui.table(columns, rows, width)


def _sides(
    compared: ModuleComparison, comparison: TreeComparison, width: int
) -> RenderableType | None:
    here, there = _properties(compared.before), _properties(compared.after)
    rows = [
        _pair(name, here.get(name, _ABSENT), there.get(name, _ABSENT))
        for name in here or there
        if here.get(name) or there.get(name)
    ]
    sides = [ui.Column(name, "right", shrinks=True) for name in _names(comparison)]
    return ui.table([ui.Column(""), ui.Column(""), *sides], rows, width)


def _names(comparison: TreeComparison) -> list[str]:
    names = [ui.short_name(tree.name, 24) for tree in (comparison.before, comparison.after)]
    return ["before", "after"] if names[0] == names[1] else names


def _pair(name: str, here: str, there: str) -> list[str | Text]:
    """Return a row of both sides, marked if they differ."""
    if here == there:
        return ["", Text(name, style=ui.QUIET), here, there]
    mark = Text(DIFF_SIGNS["changed"], style=ui.WARNING)
    return [mark, Text(name), Text(here, style=ui.WARNING), Text(there, style=ui.WARNING)]


def _properties(node: ModuleNode | None) -> dict[str, str]:
    if node is None:
        return {}
    sums = node.sums
    return {
        "class": ui.short_name(type_text(node)) or _ABSENT,
        "modules": f"{sums.modules:,}",
        "parameters": f"{sums.parameters:,}",
        "trainable": f"{sums.trainable:,}",
        "buffers": f"{sums.buffers:,}",
        "memory": format_bytes(sums.total_bytes),
    }


def _tensors(
    tensors: Sequence[TensorComparison], comparison: TreeComparison, width: int
) -> RenderableType | None:
    if not tensors:
        return None
    # Differences first: there may be ten thousand tensors.
    order = sorted(tensors, key=lambda each: each.verdict == "equal")
    rows: list[list[str | Text]] = []
    for each in order[: ui.MAX_ROWS]:
        rows.append(
            [
                Text(DIFF_SIGNS[each.verdict], style=_STYLES[each.verdict]),
                ui.short_name(each.entry.name),
                Text(_tensor(each.before), style=_STYLES[each.verdict]),
                Text(_tensor(each.after), style=_STYLES[each.verdict]),
            ]
        )
    columns = [
        ui.Column(""),
        ui.Column("name", shrinks=True),
        *(ui.Column(name, shrinks=True) for name in _names(comparison)),
    ]
    return ui.table(columns, rows, width, total=len(tensors))


def _values(
    tensors: Sequence[TensorComparison], changes: Mapping[str, str]
) -> RenderableType | None:
    """Return how the elements of the module's own tensors differ."""
    found = [each for each in tensors if each.entry.path in changes]
    lines = [
        Text(f"{ui.short_name(each.entry.name)}: {changes[each.entry.path]}", style=ui.WARNING)
        for each in found[: ui.MAX_ROWS]
    ]
    left = len(found) - len(lines)
    return ui.stack(*lines, ui.more(left) if left else None) if lines else None


def _tensor(entry: TensorEntry | None) -> str:
    if entry is None:
        return _ABSENT
    words = [shape_or_scalar(entry.shape), ui.short_name(entry.dtype, 20)]
    if entry.is_buffer or not entry.is_trainable:
        words.append("buffer" if entry.is_buffer else "frozen")
    if entry.tied_to is not None:
        words.append(f"tied to {ui.short_name(entry.tied_to)}")
    return " ".join(words)


def _children(children: Sequence[ModuleComparison], width: int) -> RenderableType | None:
    other = [child for child in children if child.has_changes]
    if not children:
        return None
    equal = len(children) - len(other)
    lines = []
    for child in other[: ui.MAX_ROWS]:
        verdict: Verdict = "changed" if child.verdict == "equal" else child.verdict
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f"{DIFF_SIGNS[verdict]} ", style=_STYLES[verdict])
        line.append(ui.short_name(title(child.node)))
        if child.more_parameters or child.more_bytes:
            line.append(f"  {difference_text(child)}", style=ui.QUIET)
        lines.append(line)
    return ui.stack(
        *lines,
        ui.more(len(other) - ui.MAX_ROWS) if len(other) > ui.MAX_ROWS else None,
        ui.sentence(f"{count_of(equal, 'child') if equal == 1 else f'{equal:,} children'} equal")
        if equal
        else None,
    )
