"""A checkpoint's plain values in words: those near the top of a file, and those that changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from snapviewer.checkpoint.values import Leaf, Plain, ValuesDiff
from snapviewer.text.columns import lay_out, named
from snapviewer.text.sanitize import sanitize
from snapviewer.text.units import count_of, format_bytes

_MOST_VALUES = 12
_MOST_CHANGES = 20
_MOST_PREVIEW = 80  # characters
_LEAST_PREVIEW = 16


def value_table(values: Sequence[Plain], width: int | None) -> list[str]:
    """Lay the first plain values out: name, type and the value, shortened."""
    if not values:
        return []
    shown = values[:_MOST_VALUES]
    rows = [("value", "type", "")]
    rows += [(named(value.name), sanitize(value.type, 30), value.preview) for value in shown]
    most = _MOST_PREVIEW
    if width is not None:
        # Names and values share the room about equally.
        names, kinds = (max(len(row[place]) for row in rows) for place in (0, 1))
        most = max(width - min(names, 2 * width // 5) - kinds - 6, _LEAST_PREVIEW)
        most = min(most, _MOST_PREVIEW)
    lines = lay_out([(name, kind, sanitize(text, most)) for name, kind, text in rows], width=width)
    if more := len(values) - len(shown):
        lines.append(f"  … {more:,} more (python -m snapviewer.pth_analyzer shows all)")
    return lines


def values_dict(values: Sequence[Plain]) -> dict[str, str]:
    """Return plain values as a part of a document."""
    return {value.name: value.preview for value in values}


def changed_values(diff: ValuesDiff) -> list[str]:
    """Say which plain values changed, and how."""
    lines = [f"  {named(name)}: {_turn(*pair)}" for name, pair in diff.changed.items()]
    lines += [f"  {named(name)}: {_short(leaf)} (added)" for name, leaf in diff.added.items()]
    lines += [f"  {named(name)}: {_short(leaf)} (removed)" for name, leaf in diff.removed.items()]
    if not lines:
        return []
    shown = lines[:_MOST_CHANGES]
    if more := len(lines) - len(shown):
        shown.append(f"  … {count_of(more, 'more value')} (--json shows all)")
    return ["values", *shown]


def _turn(before: Leaf, after: Leaf) -> str:
    old, new = _short(before), _short(after)
    if before.preview == after.preview and before.type == after.type:
        # Long texts: what they begin with is the same.
        old, new = (
            f"{text} ({format_bytes(leaf.size_bytes)})"
            for text, leaf in ((old, before), (new, after))
        )
    elif before.type != after.type and not (before.is_opened and after.is_opened):
        old, new = f"{sanitize(before.type, 30)} {old}", f"{sanitize(after.type, 30)} {new}"
    return f"{old} → {new}"


def _short(leaf: Leaf) -> str:
    return sanitize(leaf.text, _MOST_PREVIEW)


def changes_dict(diff: ValuesDiff) -> dict[str, Any]:
    """Return changed values as a part of a document."""
    return {
        "added": {name: leaf.text for name, leaf in diff.added.items()},
        "removed": {name: leaf.text for name, leaf in diff.removed.items()},
        "changed": {
            name: {"before": _form(before), "after": _form(after)}
            for name, (before, after) in diff.changed.items()
        },
    }


def _form(leaf: Leaf) -> dict[str, str | None]:
    return {"type": leaf.type, "preview": leaf.preview}
