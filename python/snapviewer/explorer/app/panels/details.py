"""The panel Module Details: a module's class, parameters, tensors, children and state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.text import Text

from snapviewer.explorer.explored_model import ExploredModel, Item, is_missing, tensors_once
from snapviewer.explorer.formats import format_param_count, shape_or_scalar
from snapviewer.explorer.labels import label
from snapviewer.explorer.safe_call import CallFailure, safe_call, safe_text
from snapviewer.explorer.tree import ModuleNode, TensorEntry
from snapviewer.text.units import count_of, format_bytes

from . import tensor, ui

if TYPE_CHECKING:
    from rich.console import RenderableType

_MAX_CLASSES = 12
_MAX_TIES = 5
_HOOKS = {
    "_forward_pre_hooks": "before forward",
    "_forward_hooks": "after forward",
    "_backward_pre_hooks": "before backward",
    "_backward_hooks": "after backward",
    "_state_dict_hooks": "of state_dict",
    "_load_state_dict_pre_hooks": "before load_state_dict",
}


def content(explored: ExploredModel, item: Item, width: int) -> RenderableType:
    """Show a module or a tensor, without reading elements."""
    if isinstance(item, TensorEntry):
        return tensor.content(explored, item, width)
    node = explored.node_of(item)
    module = explored.module_of(node)
    return ui.stack(
        ui.title(node.path or explored.tree.name, width=width),
        ui.sentence(label(node), style=ui.ACCENT),
        *(ui.sentence(note, style=ui.WARNING) for note in _notes(explored, node, module)),
        ui.section("Type", _type(node, module)),
        ui.section("Parameters", _amounts(explored, node, width)),
        ui.section("Tensors", tensors(explored, node, width)),
        ui.section("Children", _children(node)),
        ui.section("State", None if is_missing(module) else _state(module)),
    )


def _notes(explored: ExploredModel, node: ModuleNode, module: Any) -> Iterator[str]:
    if type(module) is CallFailure:
        yield f"The live module cannot be read {module}."
    if node.shared_with is not None:
        yield f"The same module as {ui.short_name(node.shared_with or explored.tree.name)}."
    if not explored.has(node) and explored.other is not None:
        yield f"Only in {ui.short_name(explored.other.name)}, the model compared with."
    if explored.is_root(node):
        yield from explored.tree.notes[: ui.MAX_ROWS]


def _type(node: ModuleNode, module: Any) -> RenderableType | None:
    if is_missing(module):
        guess = ", guessed from the names and shapes of its tensors" if node.is_type_guessed else ""
        return ui.key_values(
            [
                (
                    "class",
                    f"{ui.short_name(node.type_name)}{guess}"
                    if node.type_name
                    else "not in the file",
                )
            ]
        )
    kind = type(module)
    bases = safe_call(lambda: [base.__name__ for base in kind.__mro__ if base is not object])
    way = (
        str(bases)
        if isinstance(bases, CallFailure)
        else " → ".join(ui.short_name(base) for base in bases)
    )
    return ui.key_values(
        [
            ("class", ui.short_name(node.type_name)),
            ("inheritance", Text(way, overflow="fold")),
            ("defined in", safe_text(lambda: kind.__module__)),
            ("arguments", safe_text(lambda: module.extra_repr())),  # noqa: PLW0108 (it may have none)
            ("docstring", safe_text(lambda: _first_line(kind.__doc__))),
        ]
    )


def _first_line(text: Any) -> Any:
    """Return the first line of a docstring that is not blank; anything but text as it is."""
    if not issubclass(type(text), str):
        return text
    start = str.__str__(text)[:4000].lstrip()
    return start.split("\n", 1)[0]


def _amounts(explored: ExploredModel, node: ModuleNode, width: int) -> RenderableType | None:
    sums, model = node.sums, explored.tree.root.sums
    own = sum(entry.elements for entry in node.tensors if not entry.is_buffer)
    share = Text(f"{sums.parameters:,}")
    if model.parameters > 0 and not explored.is_root(node):
        share.append(
            f"  {ui.percent(sums.parameters, model.parameters)} of the model  ", style=ui.QUIET
        )
        if width >= 60:
            share.append_text(ui.bar(sums.parameters / model.parameters, 12))
    frozen = sums.parameters - sums.trainable
    dtypes, devices = _kinds(node)
    memory = Text(format_bytes(sums.total_bytes))
    if sums.buffer_bytes:
        memory.append(f"  including {format_bytes(sums.buffer_bytes)} of buffers", style=ui.QUIET)
    return ui.key_values(
        [
            ("total", share),
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
        return Text("none: frozen", style=ui.WARNING)
    text = Text(f"{trainable:,}")
    return text.append(f", {frozen:,} ({format_param_count(frozen)}) frozen", style=ui.WARNING)


def _kinds(node: ModuleNode) -> tuple[str, str]:
    """Return the dtypes and devices of the tensors below, the most frequent first."""
    dtypes: Counter[str] = Counter()
    devices: Counter[str] = Counter()
    for entry in tensors_once(node):
        dtypes[entry.dtype] += 1
        devices[entry.device] += 1
    return _counted(dtypes), _counted(devices)


def _counted(names: Counter[str]) -> str:
    if len(names) <= 1:
        return ui.short_name(next(iter(names), ""))
    parts = [f"{ui.short_name(name)} {count:,}" for name, count in names.most_common(6)]
    return ", ".join(parts) + (", …" if len(names) > 6 else "")


def tensors(explored: ExploredModel, node: ModuleNode, width: int) -> RenderableType | None:
    """Return a table of the module's own tensors, and below it those that share elements."""
    if not node.tensors:
        return None
    columns = [
        ui.Column("name", shrinks=True),
        ui.Column("shape", "right"),
        ui.Column("size", "right"),
    ]
    if width >= 60:
        columns[1:1] = [ui.Column("kind", style=ui.QUIET)]
        columns.append(ui.Column("dtype"))
    if width >= 80:
        columns.append(ui.Column("device"))
    rows = []
    for entry in node.tensors[: ui.MAX_ROWS]:
        cells: dict[str, str | Text] = {
            "name": Text(ui.short_name(entry.name)),
            "kind": kind_of_tensor(entry),
            "shape": shape_or_scalar(entry.shape),
            "size": format_bytes(entry.size_bytes),
            "dtype": ui.short_name(entry.dtype, 24),
            "device": ui.short_name(entry.device, 16),
        }
        rows.append([cells[column.heading] for column in columns])
    table = ui.table(columns, rows, width, total=len(node.tensors))
    return ui.stack(table, _ties(explored, node))


def kind_of_tensor(entry: TensorEntry) -> Text:
    """Return whether a tensor is trainable, frozen, or a buffer."""
    if entry.is_buffer:
        return Text("buffer")
    return Text("trainable") if entry.is_trainable else Text("frozen", style=ui.WARNING)


def _ties(explored: ExploredModel, node: ModuleNode) -> RenderableType | None:
    """Return which tensors share their elements with others."""
    rows = []
    for entry in node.tensors[: ui.MAX_ROWS]:
        text = tensor.tie_text(explored, entry)
        if text is not None:
            rows.append((f"{ui.short_name(entry.name, 24)} ↔", text))
    return ui.key_values(rows[:_MAX_TIES])


def _children(node: ModuleNode) -> RenderableType | None:
    if not node.children:
        return None
    counts = Counter(child.type_name or "(no class)" for child in node.children)
    rows: list[tuple[str, str | Text | None]] = [
        (f"{count:,} ×", ui.short_name(name)) for name, count in counts.most_common(_MAX_CLASSES)
    ]
    if len(counts) > _MAX_CLASSES:
        rows.append(("…", f"{count_of(len(counts) - _MAX_CLASSES, 'more class')}"))
    below = node.sums.modules
    return ui.stack(
        ui.key_values(rows),
        ui.sentence(f"{count_of(below, 'module')} including this one"),
    )


def _state(module: Any) -> RenderableType | None:
    training = safe_call(lambda: module.training)
    mode = Text(str(training)[:200], style=ui.BAD)
    if training is True or training is False:
        mode = Text("training" if training else "evaluation")
    return ui.key_values([("mode", mode), ("hooks", _hooks(module))])


def _count_of_hooks(own: dict[str, Any], key: str) -> int:
    return len(own.get(key) or ())


def _hooks(module: Any) -> str:
    own = safe_call(lambda: vars(module))
    if isinstance(own, CallFailure):
        return str(own)
    counts = {words: safe_call(_count_of_hooks, own, key) for key, words in _HOOKS.items()}
    texts = [f"{count:,} {words}" for words, count in counts.items() if count]
    return ", ".join(texts) or "none"
