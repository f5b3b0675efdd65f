"""The panel Attributes: what a live module keeps, or the plain values of a file."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from snapviewer.checkpoint.values import plain_values
from snapviewer.explorer.formats import format_shape
from snapviewer.explorer.guarded import Refused, asked, said, value_text
from snapviewer.explorer.sources import value_at
from snapviewer.explorer.subject import Subject
from snapviewer.explorer.tree import TensorEntry
from snapviewer.text.sanitize import sanitize, type_name

from .parts import QUIET, WARNING, Column, rows_of, section, sentence, shown, stacked, title

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snapviewer.explorer.subject import Item

_MOST = 60  # rows of a table
_NARROW = 60  # cells, in which there is no room for types
_TABLES = {"_parameters": "Parameters", "_buffers": "Buffers", "_modules": "Modules"}


def content(subject: Subject, item: Item, width: int) -> RenderableType:
    """List the attributes of a module or tensor: as they are kept, no property is asked."""
    if isinstance(item, TensorEntry):
        live, path = subject.tensor_of(item), item.path
    else:
        live, path = subject.module_of(item), item.path
    head = title(path or subject.tree.name, width=width)
    if type(live) is Refused:
        return stacked(head, sentence(f"It cannot be asked {live}.", style=WARNING))
    if live is None:
        return stacked(head, *_in_file(subject, item, width))
    return stacked(head, *_of_object(live, width))


def _of_object(live: Any, width: int) -> list[RenderableType | None]:
    # Not `vars(live)`: `__dict__` may be code of the object's own.
    own = asked(lambda: dict(object.__getattribute__(live, "__dict__")))
    if isinstance(own, Refused):
        own = {}
    names = sorted((name for name in own if type(name) is str), key=_order)
    public = [name for name in names if not name.startswith("_")]
    private = [name for name in names if name.startswith("_") and name not in _TABLES]
    tables = [
        section(heading, _table(_items(own.get(key)), width)) for key, heading in _TABLES.items()
    ]
    return [
        section("Attributes", _table([(name, own[name]) for name in public], width)),
        *tables,
        section("Internal", _internal({name: own[name] for name in private}, width)),
        section("Properties, not asked", _properties(type(live))),
    ]


def _internal(private: dict[str, Any], width: int) -> RenderableType | None:
    """List what a module keeps for itself; of what is empty only the names."""
    empty = [name for name, value in private.items() if _is_empty(value)]
    full = [(name, value) for name, value in private.items() if not _is_empty(value)]
    names = ", ".join(shown(name) for name in empty[:_MOST])
    words = sentence(f"empty: {names}{', …' if len(empty) > _MOST else ''}") if empty else None
    if not private:
        return None
    return stacked(_table(full, width, style=QUIET), words)


def _is_empty(value: Any) -> bool:
    return value is None or (type(value) in (dict, OrderedDict, list, set, tuple) and not value)


def _order(name: str) -> tuple[bool, str]:
    return name.startswith("_"), name


def _items(table: Any) -> list[tuple[str, Any]]:
    found = asked(lambda: [(str(name), value) for name, value in (table or {}).items()])
    return [] if isinstance(found, Refused) else found


def _table(
    items: Iterable[tuple[str, Any]], width: int, *, style: str = ""
) -> RenderableType | None:
    items = list(items)
    rows: list[list[str | Text]] = [
        [shown(name), Text(shown(type_name(value), 20), style=QUIET), told(value)]
        for name, value in items[:_MOST]
    ]
    columns = [
        Column("name", style=style, shrinks=True),
        Column("type", shrinks=True),
        Column("value", style=style, shrinks=True),
    ]
    return _fitting(columns, rows, width, len(items))


def _fitting(
    columns: list[Column], rows: Sequence[Sequence[str | Text]], width: int, total: int
) -> RenderableType | None:
    """Set a table, without the types where there is no room for them."""
    if width < _NARROW:
        columns, rows = columns[::2], [row[::2] for row in rows]
    return rows_of(columns, rows, width, most=_MOST, total=total)


def told(value: Any) -> str:
    """Say a value: a tensor by its shape, a module by its class, others by a short `repr`."""
    kind = type(value)
    if hasattr(kind, "named_children"):
        return f"{type_name(value)}(…)"
    if hasattr(kind, "untyped_storage") or hasattr(kind, "is_contiguous"):
        return said(lambda: _tensor_text(value))
    return value_text(value)


def _tensor_text(tensor: Any) -> str:
    shape = format_shape(tuple(tensor.shape)) or "scalar"
    return f"{shape} {str(tensor.dtype).removeprefix('torch.')} {tensor.device}"


def _properties(kind: type) -> Text | None:
    """Name what would run code if it was looked at."""
    names = asked(
        lambda: sorted(
            {
                name
                for base in kind.__mro__
                for name, value in vars(base).items()
                if isinstance(value, property) and not name.startswith("_")
            }
        )
    )
    if isinstance(names, Refused) or not names:
        return None
    return Text(sanitize(", ".join(names), 1000), style=QUIET)


def _in_file(subject: Subject, item: Item, width: int) -> list[RenderableType | None]:
    """List the plain values beside the tensors, and at the root what a file says of itself."""
    checkpoint = subject.checkpoint
    is_root = not isinstance(item, TensorEntry) and subject.is_root(item)
    value = value_at(checkpoint.root, item.path) if checkpoint is not None else None
    plain = plain_values(value) if value is not None and value.is_container else ()
    metadata = checkpoint.metadata if checkpoint is not None and is_root else {}
    columns = [
        Column("name", shrinks=True),
        Column("type", style=QUIET, shrinks=True),
        Column("value", shrinks=True),
    ]
    rows = [
        [shown(each.name), shown(each.type, 24), sanitize(each.preview, 200)]
        for each in plain[:_MOST]
    ]
    said = [[shown(name), sanitize(text, 200)] for name, text in list(metadata.items())[:_MOST]]
    if not rows and not said:
        return [sentence("Nothing is kept here beside tensors.")]
    return [
        section("Values", _fitting(columns, rows, width, len(plain))),
        section("Metadata", rows_of(columns[::2], said, width, most=_MOST, total=len(metadata))),
    ]
