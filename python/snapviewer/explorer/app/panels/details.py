"""The panel Module Details: what a module is, what it holds, and how much of the model that is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.text import Text

from snapviewer.explorer.formats import format_memory, format_param_count, format_shape
from snapviewer.explorer.guarded import Refused, asked, said
from snapviewer.explorer.labels import label
from snapviewer.explorer.subject import Subject, is_missing, tensors_once
from snapviewer.explorer.tree import ModuleNode, TensorEntry
from snapviewer.text.units import count_of

from . import tensor
from .parts import (
    ACCENT,
    BAD,
    MOST_ROWS,
    QUIET,
    WARNING,
    Column,
    bar,
    facts,
    percent,
    rows_of,
    section,
    sentence,
    shown,
    stacked,
    title,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snapviewer.explorer.subject import Item

_MOST_CLASSES = 12
_MOST_TIES = 5
_HOOKS = {
    "_forward_pre_hooks": "before forward",
    "_forward_hooks": "after forward",
    "_backward_pre_hooks": "before backward",
    "_backward_hooks": "after backward",
    "_state_dict_hooks": "of state_dict",
    "_load_state_dict_pre_hooks": "before load_state_dict",
}


def content(subject: Subject, item: Item, width: int) -> RenderableType:
    """Tell all that is known of a module or a tensor without reading elements."""
    if isinstance(item, TensorEntry):
        return tensor.content(subject, item, width)
    node = subject.node_of(item)
    module = subject.module_of(node)
    return stacked(
        title(node.path or subject.tree.name, width=width),
        sentence(label(node), style=ACCENT),
        *(sentence(note, style=WARNING) for note in _notes(subject, node, module)),
        section("Type", _type(node, module)),
        section("Parameters", _amounts(subject, node, width)),
        section("Tensors", tensors(subject, node, width)),
        section("Children", _children(node)),
        section("State", None if is_missing(module) else _state(module)),
    )


def _notes(subject: Subject, node: ModuleNode, module: Any) -> Iterator[str]:
    if type(module) is Refused:
        yield f"The live module cannot be asked {module}."
    if node.shared_with is not None:
        yield f"The same module as {shown(node.shared_with or subject.tree.name)}."
    if not subject.has(node) and subject.other is not None:
        yield f"Only in {shown(subject.other.name)}, which this is compared with."
    if subject.is_root(node):
        yield from subject.tree.notes[:MOST_ROWS]


def _type(node: ModuleNode, module: Any) -> RenderableType | None:
    if is_missing(module):
        guess = ", by the names and shapes of its tensors" if node.is_type_guessed else ""
        return facts(
            [("class", f"{shown(node.type_name)}{guess}" if node.type_name else "not in the file")]
        )
    kind = type(module)
    bases = asked(lambda: [base.__name__ for base in kind.__mro__ if base is not object])
    way = str(bases) if isinstance(bases, Refused) else " → ".join(shown(base) for base in bases)
    return facts(
        [
            ("class", shown(node.type_name)),
            ("inheritance", Text(way, overflow="fold")),
            ("defined in", said(lambda: kind.__module__)),
            ("made with", said(lambda: module.extra_repr())),  # noqa: PLW0108 (it may have none)
            ("about", said(lambda: _first_line(kind.__doc__))),
        ]
    )


def _first_line(text: Any) -> Any:
    """Return the first line of a docstring that says something; what is no text, as it is."""
    if not issubclass(type(text), str):
        return text
    start = str.__str__(text)[:4000].lstrip()
    return start.split("\n", 1)[0]


def _amounts(subject: Subject, node: ModuleNode, width: int) -> RenderableType | None:
    sums, model = node.sums, subject.tree.root.sums
    own = sum(entry.elements for entry in node.tensors if not entry.is_buffer)
    share = Text(f"{sums.parameters:,}")
    if model.parameters > 0 and not subject.is_root(node):
        share.append(f"  {percent(sums.parameters, model.parameters)} of the model  ", style=QUIET)
        if width >= 60:
            share.append_text(bar(sums.parameters / model.parameters, 12))
    frozen = sums.parameters - sums.trainable
    dtypes, devices = _kinds(node)
    memory = Text(format_memory(sums.parameter_bytes + sums.buffer_bytes))
    if sums.buffer_bytes:
        memory.append(f"  with {format_memory(sums.buffer_bytes)} of buffers", style=QUIET)
    return facts(
        [
            ("in all", share),
            ("own", f"{own:,}" if node.children and own else None),
            ("trainable", _trainable(sums.trainable, frozen)),
            ("buffers", f"{sums.buffers:,}" if sums.buffers else None),
            ("memory", memory),
            ("dtypes", dtypes),
            ("devices", devices),
        ]
    )


def _trainable(trainable: int, frozen: int) -> Text | None:
    if not trainable and not frozen:
        return None
    if not frozen:
        return Text("all")
    if not trainable:
        return Text("none: frozen", style=WARNING)
    text = Text(f"{trainable:,}")
    return text.append(f", {frozen:,} ({format_param_count(frozen)}) frozen", style=WARNING)


def _kinds(node: ModuleNode) -> tuple[str, str]:
    """Say which dtypes and devices the tensors below have, the most frequent first."""
    dtypes: Counter[str] = Counter()
    devices: Counter[str] = Counter()
    for entry in tensors_once(node):
        dtypes[entry.dtype] += 1
        devices[entry.device] += 1
    return _counted(dtypes), _counted(devices)


def _counted(names: Counter[str]) -> str:
    if len(names) <= 1:
        return shown(next(iter(names), ""))
    parts = [f"{shown(name)} {count:,}" for name, count in names.most_common(6)]
    return ", ".join(parts) + (", …" if len(names) > 6 else "")


def tensors(subject: Subject, node: ModuleNode, width: int) -> RenderableType | None:
    """Set the module's own tensors in a table, and what they share elements with below it."""
    if not node.tensors:
        return None
    columns = [Column("name", shrinks=True), Column("shape", "right"), Column("size", "right")]
    if width >= 60:
        columns[1:1] = [Column("kind", style=QUIET)]
        columns.append(Column("dtype"))
    if width >= 80:
        columns.append(Column("device"))
    rows = []
    for entry in node.tensors[:MOST_ROWS]:
        cells: dict[str, str | Text] = {
            "name": Text(shown(entry.name)),
            "kind": kind_of_tensor(entry),
            "shape": shape_text(entry),
            "size": format_memory(entry.size_bytes),
            "dtype": shown(entry.dtype, 24),
            "device": shown(entry.device, 16),
        }
        rows.append([cells[column.heading] for column in columns])
    table = rows_of(columns, rows, width, total=len(node.tensors))
    return stacked(table, _ties(subject, node))


def kind_of_tensor(entry: TensorEntry) -> Text:
    """Say whether a tensor is learned, frozen, or kept."""
    if entry.is_buffer:
        return Text("buffer")
    return Text("trainable") if entry.is_trainable else Text("frozen", style=WARNING)


def shape_text(entry: TensorEntry) -> str:
    """Say a tensor's shape, and that there is none."""
    return format_shape(entry.shape) or "scalar"


def _ties(subject: Subject, node: ModuleNode) -> RenderableType | None:
    """Say which of the tensors are the same as others."""
    rows = []
    for entry in node.tensors[:MOST_ROWS]:
        text = tensor.tie_text(subject, entry)
        if text is not None:
            rows.append((f"{shown(entry.name, 24)} ↔", text))
    return facts(rows[:_MOST_TIES])


def _children(node: ModuleNode) -> RenderableType | None:
    if not node.children:
        return None
    counts = Counter(child.type_name or "(no class)" for child in node.children)
    rows: list[tuple[str, str | Text | None]] = [
        (f"{count:,} ×", shown(name)) for name, count in counts.most_common(_MOST_CLASSES)
    ]
    if len(counts) > _MOST_CLASSES:
        rows.append(("…", f"{count_of(len(counts) - _MOST_CLASSES, 'more class')}"))
    below = node.sums.modules
    return stacked(facts(rows), sentence(f"{count_of(below, 'module')} in all, this one included"))


def _state(module: Any) -> RenderableType | None:
    training = asked(lambda: module.training)
    mode = Text(str(training)[:200], style=BAD)
    if training is True or training is False:
        mode = Text("training" if training else "evaluation")
    return facts([("mode", mode), ("hooks", _hooks(module))])


def _count_of_hooks(own: dict[str, Any], key: str) -> int:
    return len(own.get(key) or ())


def _hooks(module: Any) -> str:
    own = asked(lambda: vars(module))
    if isinstance(own, Refused):
        return str(own)
    counts = {words: asked(_count_of_hooks, own, key) for key, words in _HOOKS.items()}
    told = [f"{count:,} {words}" for words, count in counts.items() if count]
    return ", ".join(told) or "none"
