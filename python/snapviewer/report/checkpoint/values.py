"""The plain values of a checkpoint, and how they changed, as text."""

from __future__ import annotations

from collections.abc import Sequence

from snapviewer.checkpoint.values import Leaf, PlainValue, ValuesDiff
from snapviewer.text.sanitize import sanitize
from snapviewer.text.table import format_table, label
from snapviewer.text.units import count_of, format_bytes

_MAX_VALUES = 12
_MAX_CHANGES = 20
_MAX_PREVIEW = 80  # characters
_MIN_PREVIEW = 16


def value_table(values: Sequence[PlainValue], width: int | None) -> list[str]:
    """Return the first plain values as a table: name, type and the value, shortened."""
    if not values:
        return []
    shown = values[:_MAX_VALUES]
    names = [label(value.name) for value in shown]
    kinds = [sanitize(value.type, 30) for value in shown]
    room = _MAX_PREVIEW
    if width is not None:
        # Names and values share the line about equally.
        name_width = min(max(map(len, names)), 2 * width // 5)
        room = width - name_width - max(4, *map(len, kinds)) - 6
        room = min(max(room, _MIN_PREVIEW), _MAX_PREVIEW)
    previews = [sanitize(value.preview, room) for value in shown]
    rows = [("value", "type", ""), *zip(names, kinds, previews, strict=True)]
    lines = format_table(rows, width=width)
    if more := len(values) - len(shown):
        lines.append(f"  … {more:,} more (python -m snapviewer.pth_analyzer shows all)")
    return lines


def changed_values(diff: ValuesDiff) -> list[str]:
    """Return a line for each plain value that changed."""
    lines = [f"  {label(name)}: {_change(*pair)}" for name, pair in diff.changed.items()]
    lines += [f"  {label(name)}: {_preview(leaf)} (added)" for name, leaf in diff.added.items()]
    lines += [f"  {label(name)}: {_preview(leaf)} (removed)" for name, leaf in diff.removed.items()]
    if not lines:
        return []
    shown = lines[:_MAX_CHANGES]
    if more := len(lines) - len(shown):
        shown.append(f"  … {count_of(more, 'more value')} (--json shows all)")
    return ["values", *shown]


def _change(before: Leaf, after: Leaf) -> str:
    old, new = _preview(before), _preview(after)
    if before.preview == after.preview and before.type == after.type:
        # Long texts that begin alike.
        old, new = (
            f"{text} ({format_bytes(leaf.size_bytes)})"
            for text, leaf in ((old, before), (new, after))
        )
    elif before.type != after.type and not (before.is_opened and after.is_opened):
        old, new = f"{sanitize(before.type, 30)} {old}", f"{sanitize(after.type, 30)} {new}"
    return f"{old} → {new}"


def _preview(leaf: Leaf) -> str:
    return sanitize(leaf.text, _MAX_PREVIEW)
