"""The panel Attributes: what a live module keeps, or the plain values of a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.text import Text

from snapviewer.checkpoint_values import plain_values
from snapviewer.texts import clean

from ..formats import format_shape
from ..guarded import Refused, asked, kind_of, said, value_text
from ..subject import Subject
from ..tree import ModuleNode, TensorEntry
from .parts import QUIET, WARNING, Column, rows_of, section, sentence, shown, stacked, title

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..subject import Item

_MOST = 60  # rows of a table
_MOST_KEYS = 10_000  # attributes that are sorted
_TABLES = {"_parameters": "Parameters", "_buffers": "Buffers", "_modules": "Modules"}


def content(subject: Subject, item: Item, width: int) -> RenderableType:
    """List the attributes of a module or tensor: as they are kept, no property is asked."""
    if isinstance(item, TensorEntry):
        live, path = subject.tensor_of(item), item.path
    else:
        live, path = subject.module_of(item), item.path
    head = title(path or subject.tree.name, width=width)
    if isinstance(live, Refused):
        return stacked(head, sentence(f"It cannot be asked {live}.", style=WARNING))
    if live is None:
        return stacked(head, *_in_file(subject, item, width))
    return stacked(head, *_of_object(live, width))


def _of_object(live: Any, width: int) -> list[RenderableType | None]:
    # Not `vars(live)`: `__dict__` may be code of the object's own.
    own = asked(lambda: dict(object.__getattribute__(live, "__dict__")))
    if isinstance(own, Refused):
        own = {}
    names = sorted((name for name in list(own)[:_MOST_KEYS] if type(name) is str), key=_order)
    public = [name for name in names if not name.startswith("_")]
    private = [name for name in names if name.startswith("_") and name not in _TABLES]
    tables = [
        section(heading, _table(_items(own.get(key)), width)) for key, heading in _TABLES.items()
    ]
    return [
        section("Attributes", _table([(name, own[name]) for name in public], width)),
        *tables,
        section("Internal", _table([(name, own[name]) for name in private], width, style=QUIET)),
        section("Properties, not asked", _properties(type(live))),
    ]


def _order(name: str) -> tuple[bool, str]:
    return name.startswith("_"), name


def _items(table: Any) -> list[tuple[str, Any]]:
    found = asked(lambda: [(str(name), value) for name, value in (table or {}).items()])
    return [] if isinstance(found, Refused) else found


def _table(
    items: Iterable[tuple[str, Any]], width: int, *, style: str = ""
) -> RenderableType | None:
    items = list(items)
    room = max(10, width // 3)
    rows = [
        [Text(shown(name, room)), Text(shown(kind_of(value), room), style=QUIET), told(value)]
        for name, value in items[:_MOST]
    ]
    columns = [Column("name", style=style), Column("type"), Column("value", style=style)]
    return rows_of(columns, rows, most=_MOST, total=len(items))


def told(value: Any) -> str:
    """Say a value: a tensor by its shape, a module by its class, others by a short `repr`."""
    kind = type(value)
    if hasattr(kind, "named_children"):
        return f"{kind_of(value)}(…)"
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
    return Text(clean(", ".join(names), 1000), style=QUIET)


def _in_file(subject: Subject, item: Item, width: int) -> list[RenderableType | None]:
    checkpoint = subject.checkpoint
    if checkpoint is None or not isinstance(item, ModuleNode) or item is not subject.tree.root:
        where = "the plain values of the file are at the root" if checkpoint else "no live module"
        return [sentence(f"Nothing is kept here beside tensors: {where}.")]
    room = max(10, width // 3)
    columns = [Column("name"), Column("type", style=QUIET), Column("value")]
    values = asked(lambda: plain_values(checkpoint.root))
    plain = () if isinstance(values, Refused) else values
    rows = [
        [shown(value.name, room), shown(value.type, 24), clean(value.preview, 200)]
        for value in plain[:_MOST]
    ]
    metadata = checkpoint.metadata
    said_rows = [
        [shown(name, room), clean(text, 200)] for name, text in list(metadata.items())[:_MOST]
    ]
    parts = [
        section("Values", rows_of(columns, rows, most=_MOST, total=len(plain))),
        section(
            "Metadata",
            rows_of(columns[::2], said_rows, most=_MOST, total=len(metadata)),
        ),
    ]
    if not any(parts):
        return [sentence("The file has nothing beside its tensors.")]
    return parts
