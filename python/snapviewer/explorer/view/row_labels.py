"""The labels behind a module's name in its row; each can be switched on and off and reordered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from snapviewer.explorer import formats
from snapviewer.explorer.explored_model import Item
from snapviewer.explorer.timing import ForwardStats, TensorShape
from snapviewer.explorer.tree import ModuleNode, TensorEntry
from snapviewer.explorer.view.outline import Outline, bytes_of, display_name
from snapviewer.text.units import format_bytes

MAX_SHAPES = 3  # of a module's tensors, or of a call's inputs


@dataclass(frozen=True, slots=True)
class RowData:
    """What labels show beside the row's own item.

    `kinds` are dtypes and devices by place.
    """

    stats: ForwardStats | None = None
    kinds: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RowLabel:
    """A label: its name in the settings, its key, its title, and its text for an item."""

    name: str
    letter: str
    title: str
    text: Callable[[Item, int, RowData], str] = field(repr=False)


def _params(item: Item, _place: int, _data: RowData) -> str:
    if isinstance(item, TensorEntry):
        return f"[{formats.format_param_count(item.elements)}]"
    return f"[{formats.format_param_count(item.sums.parameters)} params]"


def _shapes(item: Item, _place: int, _data: RowData) -> str:
    if isinstance(item, TensorEntry):
        return formats.shape_or_scalar(item.shape)
    if item.children:
        return ""
    return _shapes_text([entry for entry in item.tensors if not entry.is_buffer], " · ")


def _memory(item: Item, _place: int, _data: RowData) -> str:
    count = bytes_of(item)
    return format_bytes(count) if count else ""


def _kind(_item: Item, place: int, data: RowData) -> str:
    return data.kinds[place] if data.kinds else ""


def _time(item: Item, _place: int, data: RowData) -> str:
    """Return the median time of a call, and its shapes."""
    if data.stats is None or isinstance(item, TensorEntry):
        return ""
    timing = data.stats.timing_of(item)
    if timing is None:
        return ""
    calls = f" ×{timing.calls}" if timing.calls > 1 else ""
    shapes = [_shapes_text(tensors, ", ") for tensors in (timing.inputs, timing.outputs)]
    time = f"{formats.format_time(timing.total.median_s)}{calls}"
    return "  ".join(filter(None, (time, " → ".join(filter(None, shapes)))))


def _shapes_text(tensors: Sequence[TensorEntry | TensorShape], separator: str) -> str:
    shapes = [formats.shape_or_scalar(tensor.shape) for tensor in tensors[:MAX_SHAPES]]
    return separator.join([*shapes, "…"] if len(tensors) > MAX_SHAPES else shapes)


ROW_LABELS: Mapping[str, RowLabel] = {
    label.name: label
    for label in (
        RowLabel("params", "p", "parameter counts", _params),
        RowLabel("memory", "b", "memory", _memory),
        RowLabel("time", "f", "forward time and shapes", _time),
        RowLabel("shapes", "t", "tensor shapes", _shapes),
        RowLabel("kind", "d", "dtype and device", _kind),
    )
}


def sort_value(item: Item, order: str, seconds: Mapping[str, float]) -> str | None:
    """Return the value that a row is sorted by; None for orders without a column of their own.

    Args:
        item: The row.
        order: The order of the view.
        seconds: The time of all calls of each module, by path.
    """
    if order == "time":
        return formats.format_time(seconds[item.path]) if item.path in seconds else ""
    return format_bytes(bytes_of(item)) if order == "memory" else None


def kinds_of(outline: Outline) -> list[str]:
    """Return the dtypes and devices of each subtree's tensors, by place."""
    found: list[frozenset[tuple[str, str]]] = [frozenset()] * len(outline.items)
    for place in range(len(outline.items) - 1, -1, -1):
        item = outline.items[place]
        if isinstance(item, TensorEntry):
            found[place] = frozenset({(item.dtype, item.device)})
        parent = outline.parents[place]
        if parent >= 0 and not found[place] <= found[parent]:
            found[parent] = found[parent] | found[place]
    texts = {kinds: _kinds_text(kinds) for kinds in set(found)}
    return [texts[kinds] for kinds in found]


def _kinds_text(kinds: frozenset[tuple[str, str]]) -> str:
    dtypes = sorted({dtype for dtype, _ in kinds})
    devices = sorted({device for _, device in kinds if device})
    return " ".join(filter(None, ("+".join(dtypes), "+".join(devices))))


def notes_on(item: Item) -> list[str]:
    """Return what is special about a row: tied, shared, frozen, a buffer."""
    if isinstance(item, TensorEntry):
        notes = ["buffer"] if item.is_buffer else [] if item.is_trainable else ["frozen"]
        return [*notes, f"tied to {item.tied_to}"] if item.tied_to is not None else notes
    notes = []
    if item.sums.parameters and not item.sums.trainable:
        notes.append("frozen")
    elif item.sums.trainable < item.sums.parameters:
        notes.append(f"{100 * item.sums.trainable / item.sums.parameters:.0f} % trainable")
    if item.shared_with is not None:
        notes.append(f"same module as {item.shared_with or 'the root'}")
    elif any(entry.tied_to is not None for entry in item.tensors):
        notes.append("tied")
    return notes


def title_parts(item: Item, tree_name: str = "") -> tuple[str, str, str]:
    """Return a row's name, its class and its arguments, as they are shown."""
    name = display_name(item.name)
    if not isinstance(item, ModuleNode):
        return name or "(no name)", "", ""
    type_name = display_name(item.type_name)
    if not name and not type_name:
        name = display_name(tree_name) or "(no name)"
    return name, type_name, display_name(item.arguments)
