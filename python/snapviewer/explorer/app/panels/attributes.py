"""The panel Attributes: the attributes of a live module, or the plain values of a file."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from snapviewer.checkpoint.values import plain_values
from snapviewer.explorer import safe_call as safe
from snapviewer.explorer.explored_model import ExploredModel, Item
from snapviewer.explorer.formats import shape_or_scalar
from snapviewer.explorer.sources import value_at
from snapviewer.explorer.tree import TensorEntry
from snapviewer.text.sanitize import sanitize, type_name

from . import ui

if TYPE_CHECKING:
    from rich.console import RenderableType

_MAX_ROWS = 60
_NARROW = 60  # cells, below which types are left out
_TABLES = {"_parameters": "Parameters", "_buffers": "Buffers", "_modules": "Modules"}


def content(explored: ExploredModel, item: Item, width: int) -> RenderableType:
    """List the attributes of a module or tensor as stored; no property is evaluated."""
    if isinstance(item, TensorEntry):
        live, path = explored.tensor_of(item), item.path
    else:
        live, path = explored.module_of(item), item.path
    head = ui.title(path or explored.tree.name, width=width)
    if type(live) is safe.CallFailure:
        return ui.stack(head, ui.sentence(f"It cannot be read {live}.", style=ui.WARNING))
    if live is None:
        return ui.stack(head, *_in_file(explored, item, width))
    return ui.stack(head, *_of_object(live, width))


def _of_object(live: Any, width: int) -> list[RenderableType | None]:
    # Not `vars(live)`: `__dict__` may be code of the object's own.
    own = safe.safe_call(lambda: dict(object.__getattribute__(live, "__dict__")))
    if isinstance(own, safe.CallFailure):
        own = {}
    names = sorted((name for name in own if type(name) is str), key=_order)
    public = [name for name in names if not name.startswith("_")]
    private = [name for name in names if name.startswith("_") and name not in _TABLES]
    tables = [
        ui.section(heading, _table(_items(own.get(key)), width)) for key, heading in _TABLES.items()
    ]
    return [
        ui.section("Attributes", _table([(name, own[name]) for name in public], width)),
        *tables,
        ui.section("Internal", _internal({name: own[name] for name in private}, width)),
        ui.section("Properties, not evaluated", _properties(type(live))),
    ]


def _internal(private: dict[str, Any], width: int) -> RenderableType | None:
    """List private attributes; of empty ones only the names."""
    empty = [name for name, value in private.items() if _is_empty(value)]
    full = [(name, value) for name, value in private.items() if not _is_empty(value)]
    names = ", ".join(ui.short_name(name) for name in empty[:_MAX_ROWS])
    words = (
        ui.sentence(f"empty: {names}{', …' if len(empty) > _MAX_ROWS else ''}") if empty else None
    )
    if not private:
        return None
    return ui.stack(_table(full, width, style=ui.QUIET), words)


def _is_empty(value: Any) -> bool:
    return value is None or (type(value) in (dict, OrderedDict, list, set, tuple) and not value)


def _order(name: str) -> tuple[bool, str]:
    return name.startswith("_"), name


def _items(table: Any) -> list[tuple[str, Any]]:
    found = safe.safe_call(lambda: [(str(name), value) for name, value in (table or {}).items()])
    return [] if isinstance(found, safe.CallFailure) else found


def _table(
    items: Iterable[tuple[str, Any]], width: int, *, style: str = ""
) -> RenderableType | None:
    items = list(items)
    rows: list[list[str | Text]] = [
        [
            ui.short_name(name),
            Text(ui.short_name(type_name(value), 20), style=ui.QUIET),
            describe(value),
        ]
        for name, value in items[:_MAX_ROWS]
    ]
    columns = [
        ui.Column("name", style=style, shrinks=True),
        ui.Column("type", shrinks=True),
        ui.Column("value", style=style, shrinks=True),
    ]
    return _fitting(columns, rows, width, len(items))


def _fitting(
    columns: list[ui.Column], rows: Sequence[Sequence[str | Text]], width: int, total: int
) -> RenderableType | None:
    """Return a table, without the types if it is narrow."""
    if width < _NARROW:
        columns, rows = columns[::2], [row[::2] for row in rows]
    return ui.table(columns, rows, width, max_rows=_MAX_ROWS, total=total)


def describe(value: Any) -> str:
    """Describe a value: a tensor by its shape, a module by its class, others by a short `repr`."""
    kind = type(value)
    if hasattr(kind, "named_children"):
        return f"{type_name(value)}(…)"
    if hasattr(kind, "untyped_storage") or hasattr(kind, "is_contiguous"):
        return safe.safe_text(lambda: _tensor_text(value))
    return safe.safe_repr(value)


def _tensor_text(tensor: Any) -> str:
    shape = shape_or_scalar(tuple(tensor.shape))
    return f"{shape} {str(tensor.dtype).removeprefix('torch.')} {tensor.device}"


def _properties(kind: type) -> Text | None:
    """Return the names of properties, which would run code if they were read."""
    names = safe.safe_call(
        lambda: sorted(
            {
                name
                for base in kind.__mro__
                for name, value in vars(base).items()
                if isinstance(value, property) and not name.startswith("_")
            }
        )
    )
    if isinstance(names, safe.CallFailure) or not names:
        return None
    return Text(sanitize(", ".join(names), 1000), style=ui.QUIET)


def _in_file(explored: ExploredModel, item: Item, width: int) -> list[RenderableType | None]:
    """List the plain values beside the tensors, and at the root the file's metadata."""
    checkpoint = explored.checkpoint
    is_root = not isinstance(item, TensorEntry) and explored.is_root(item)
    value = value_at(checkpoint.root, item.path) if checkpoint is not None else None
    plain = plain_values(value) if value is not None and value.is_container else ()
    metadata = checkpoint.metadata if checkpoint is not None and is_root else {}
    columns = [
        ui.Column("name", shrinks=True),
        ui.Column("type", style=ui.QUIET, shrinks=True),
        ui.Column("value", shrinks=True),
    ]
    rows = [
        [ui.short_name(each.name), ui.short_name(each.type, 24), sanitize(each.preview, 200)]
        for each in plain[:_MAX_ROWS]
    ]
    stated = [
        [ui.short_name(name), sanitize(text, 200)]
        for name, text in list(metadata.items())[:_MAX_ROWS]
    ]
    if not rows and not stated:
        return [ui.sentence("No values here besides tensors.")]
    return [
        ui.section("Values", _fitting(columns, rows, width, len(plain))),
        ui.section(
            "Metadata",
            ui.table(columns[::2], stated, width, max_rows=_MAX_ROWS, total=len(metadata)),
        ),
    ]
