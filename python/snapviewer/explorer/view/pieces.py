"""What stands behind a module's name in its row: pieces that can be switched and reordered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from snapviewer.explorer.formats import (
    format_memory,
    format_param_count,
    format_shape,
    format_time,
)
from snapviewer.explorer.timing import ForwardStats, TensorShape
from snapviewer.explorer.tree import ModuleNode, TensorEntry
from snapviewer.explorer.view.outline import Item, Outline, bytes_of, shown

MOST_SHAPES = 3  # of a module's tensors, or of a call's inputs


@dataclass(frozen=True, slots=True)
class Facts:
    """What pieces are made of beside the row's own item: recorded runs, and dtypes by place."""

    stats: ForwardStats | None = None
    kinds: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece: how settings name it, its key, what it is, and what it says of an item."""

    name: str
    letter: str
    title: str
    text: Callable[[Item, int, Facts], str] = field(repr=False)


def _params(item: Item, _place: int, _facts: Facts) -> str:
    if isinstance(item, TensorEntry):
        return f"[{format_param_count(item.elements)}]"
    return f"[{format_param_count(item.sums.parameters)} params]"


def _shapes(item: Item, _place: int, _facts: Facts) -> str:
    if isinstance(item, TensorEntry):
        return format_shape(item.shape) or "scalar"
    if item.children:
        return ""
    shapes = [format_shape(one.shape) or "scalar" for one in item.tensors if not one.is_buffer]
    return _joined(shapes, " · ")


def _memory(item: Item, _place: int, _facts: Facts) -> str:
    count = bytes_of(item)
    return format_memory(count) if count else ""


def _kind(_item: Item, place: int, facts: Facts) -> str:
    return facts.kinds[place] if facts.kinds else ""


def _time(item: Item, _place: int, facts: Facts) -> str:
    if facts.stats is None or isinstance(item, TensorEntry):
        return ""
    timing = facts.stats.timings.get(item.path)
    if timing is None:
        return ""
    times = f" ×{timing.calls}" if timing.calls > 1 else ""
    shapes = " → ".join(filter(None, (_of(timing.inputs), _of(timing.outputs))))
    return f"{format_time(timing.total.median_s)}{times}{'  ' if shapes else ''}{shapes}"


def _of(tensors: Sequence[TensorShape]) -> str:
    return _joined([format_shape(one.shape) or "scalar" for one in tensors], ", ")


def _joined(texts: Sequence[str], between: str) -> str:
    more = between + "…" if len(texts) > MOST_SHAPES else ""
    return between.join(texts[:MOST_SHAPES]) + more


PIECES: Mapping[str, Piece] = {
    piece.name: piece
    for piece in (
        Piece("params", "p", "parameter counts", _params),
        Piece("memory", "b", "memory", _memory),
        Piece("time", "f", "forward time and shapes", _time),
        Piece("shapes", "t", "shapes of tensors", _shapes),
        Piece("kind", "d", "dtype and device", _kind),
    )
}


def sorted_first(names: tuple[str, ...], order: str) -> tuple[str, ...]:
    """Put what rows are sorted by right behind the parameters, where there is room for it.

    >>> sorted_first(("params", "memory", "time"), "time")
    ('params', 'time', 'memory')
    >>> sorted_first(("memory", "shapes"), "time")
    ('memory', 'shapes')
    """
    if order not in names:
        return names
    return tuple(sorted(names, key=lambda name: (name != "params", name != order)))


def kinds_of(outline: Outline) -> list[str]:
    """Say by place of which types and where the tensors are, those of the whole subtree."""
    found: list[frozenset[tuple[str, str]]] = [frozenset()] * len(outline.items)
    for place in range(len(outline.items) - 1, -1, -1):
        item = outline.items[place]
        if isinstance(item, TensorEntry):
            found[place] = frozenset({(item.dtype, item.device)})
        parent = outline.parents[place]
        if parent >= 0 and not found[place] <= found[parent]:
            found[parent] = found[parent] | found[place]
    said = {kinds: _say_kinds(kinds) for kinds in set(found)}
    return [said[kinds] for kinds in found]


def _say_kinds(kinds: frozenset[tuple[str, str]]) -> str:
    dtypes = sorted({dtype for dtype, _ in kinds})
    devices = sorted({device for _, device in kinds if device})
    return " ".join(filter(None, ("+".join(dtypes), "+".join(devices))))


def notes_on(item: Item) -> list[str]:
    """Say in words what is special about a row: tied, shared, frozen, a buffer."""
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
    elif any(one.tied_to is not None for one in item.tensors):
        notes.append("tied")
    return notes


def words_of(item: Item, tree_name: str = "") -> tuple[str, str, str]:
    """Return a row's name, its class and what is in the parentheses, as they are in the tree."""
    name = shown(item.name)
    if not isinstance(item, ModuleNode):
        return name or "(no name)", "", ""
    type_name = shown(item.type_name)
    if not name and not type_name:
        name = shown(tree_name) or "(no name)"
    return name, type_name, shown(item.arguments)
