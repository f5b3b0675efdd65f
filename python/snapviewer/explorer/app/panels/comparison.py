"""The panel Comparison: a module here and in the other model, with what differs marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from snapviewer.explorer.compare import (
    MARKS,
    ModuleComparison,
    TensorComparison,
    TreeComparison,
)
from snapviewer.explorer.formats import format_memory, format_shape
from snapviewer.explorer.labels import title as label_without_sums
from snapviewer.explorer.labels import type_text
from snapviewer.explorer.subject import Subject
from snapviewer.explorer.tree import ModuleNode, TensorEntry
from snapviewer.report.tree.comparison import difference_text
from snapviewer.text.units import count_of

from .parts import (
    ACCENT,
    BAD,
    GOOD,
    MOST_ROWS,
    QUIET,
    WARNING,
    Column,
    more,
    rows_of,
    section,
    sentence,
    shown,
    stacked,
    title,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snapviewer.explorer.compare import Verdict
    from snapviewer.explorer.subject import Item

_STYLES: dict[Verdict, str] = {
    "added": GOOD,
    "removed": BAD,
    "changed": WARNING,
    "equal": QUIET,
}
_WORDS: dict[Verdict, str] = {
    "added": "added",
    "removed": "removed",
    "changed": "changed",
    "equal": "equal",
}
_ABSENT = "–"


def content(subject: Subject, item: Item, width: int) -> RenderableType:
    """Set a module and its counterpart beside each other."""
    node = subject.node_of(item)
    head = title(node.path or subject.tree.name, width=width)
    compared = subject.compared.get(node.path)
    if subject.comparison is None or compared is None:
        return stacked(head, *_hint())
    is_root = subject.is_root(node)
    return stacked(
        head,
        _verdict(compared, has_values=subject.comparison.has_values),
        section("In all", _counts(subject.comparison, width) if is_root else None),
        section("Module", _sides(compared, subject.comparison, width)),
        section("Tensors", _tensors(compared.tensors, subject.comparison, width)),
        section("Values", _values(compared.tensors, subject.value_changes or {})),
        section("Children", _children(compared.children, width)),
    )


def _hint() -> tuple[Text, Text]:
    return (
        sentence("There is nothing to compare with. For a second checkpoint, start with:"),
        Text("snapviewer explore FILE --compare OTHER", style=ACCENT),
    )


def _verdict(compared: ModuleComparison, *, has_values: bool) -> Text:
    if compared.verdict == "equal" and compared.has_changes:
        text = Text("equal itself, changed below", style=WARNING)
    else:
        text = Text(_WORDS[compared.verdict], style=_STYLES[compared.verdict])
    if has_values or compared.before is None or compared.after is None:
        return text
    return text.append("  as far as names, shapes and types tell; V compares values", style=QUIET)


def _counts(comparison: TreeComparison, width: int) -> RenderableType | None:
    rows: list[list[str | Text]] = [
        [
            Text(_WORDS[verdict], style=_STYLES[verdict]),
            f"{comparison.modules[verdict]:,}",
            f"{comparison.tensors[verdict]:,}",
        ]
        for verdict in MARKS
    ]
    columns = [Column(""), Column("modules", "right"), Column("tensors", "right")]
    return rows_of(columns, rows, width)


def _sides(
    compared: ModuleComparison, comparison: TreeComparison, width: int
) -> RenderableType | None:
    here, there = _facts(compared.before), _facts(compared.after)
    rows = [
        _pair(name, here.get(name, _ABSENT), there.get(name, _ABSENT))
        for name in here or there
        if here.get(name) or there.get(name)
    ]
    sides = [Column(name, "right", shrinks=True) for name in _names(comparison)]
    return rows_of([Column(""), Column(""), *sides], rows, width)


def _names(comparison: TreeComparison) -> list[str]:
    names = [shown(tree.name, 24) for tree in (comparison.before, comparison.after)]
    return ["before", "after"] if names[0] == names[1] else names


def _pair(name: str, here: str, there: str) -> list[str | Text]:
    """Return a row of both sides, marked where they differ."""
    if here == there:
        return ["", Text(name, style=QUIET), here, there]
    mark = Text(MARKS["changed"], style=WARNING)
    return [mark, Text(name), Text(here, style=WARNING), Text(there, style=WARNING)]


def _facts(node: ModuleNode | None) -> dict[str, str]:
    if node is None:
        return {}
    sums = node.sums
    return {
        "class": shown(type_text(node)) or _ABSENT,
        "modules": f"{sums.modules:,}",
        "parameters": f"{sums.parameters:,}",
        "trainable": f"{sums.trainable:,}",
        "buffers": f"{sums.buffers:,}",
        "memory": format_memory(sums.parameter_bytes + sums.buffer_bytes),
    }


def _tensors(
    tensors: Sequence[TensorComparison], comparison: TreeComparison, width: int
) -> RenderableType | None:
    if not tensors:
        return None
    # What differs first: of ten thousand, the one that is looked for may be the last.
    order = sorted(tensors, key=lambda each: each.verdict == "equal")
    rows: list[list[str | Text]] = []
    for each in order[:MOST_ROWS]:
        entry = each.before or each.after
        rows.append(
            [
                Text(MARKS[each.verdict], style=_STYLES[each.verdict]),
                shown(entry.name if entry else ""),
                Text(_tensor(each.before), style=_STYLES[each.verdict]),
                Text(_tensor(each.after), style=_STYLES[each.verdict]),
            ]
        )
    columns = [
        Column(""),
        Column("name", shrinks=True),
        *(Column(name, shrinks=True) for name in _names(comparison)),
    ]
    return rows_of(columns, rows, width, total=len(tensors))


def _values(
    tensors: Sequence[TensorComparison], changes: Mapping[str, str]
) -> RenderableType | None:
    """Say how the elements of the module's own tensors differ."""
    found = [each for each in tensors if each.path in changes]
    lines = [
        Text(f"{shown(each.path.rpartition('.')[2])}: {changes[each.path]}", style=WARNING)
        for each in found[:MOST_ROWS]
    ]
    left = len(found) - len(lines)
    return stacked(*lines, more(left) if left else None) if lines else None


def _tensor(entry: TensorEntry | None) -> str:
    if entry is None:
        return _ABSENT
    said = [format_shape(entry.shape) or "scalar", shown(entry.dtype, 20)]
    if entry.is_buffer or not entry.is_trainable:
        said.append("buffer" if entry.is_buffer else "frozen")
    if entry.tied_to is not None:
        said.append(f"tied to {shown(entry.tied_to)}")
    return " ".join(said)


def _children(children: Sequence[ModuleComparison], width: int) -> RenderableType | None:
    other = [child for child in children if child.has_changes]
    if not children:
        return None
    equal = len(children) - len(other)
    lines = []
    for child in other[:MOST_ROWS]:
        verdict: Verdict = "changed" if child.verdict == "equal" else child.verdict
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(f"{MARKS[verdict]} ", style=_STYLES[verdict])
        line.append(shown(label_without_sums(child.node)))
        if child.more_parameters or child.more_bytes:
            line.append(f"  {difference_text(child)}", style=QUIET)
        lines.append(line)
    return stacked(
        *lines,
        more(len(other) - MOST_ROWS) if len(other) > MOST_ROWS else None,
        sentence(f"{count_of(equal, 'child') if equal == 1 else f'{equal:,} children'} equal")
        if equal
        else None,
    )
