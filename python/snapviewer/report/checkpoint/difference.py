"""What changed from one checkpoint to another, as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from snapviewer.checkpoint.difference import Changed, CheckpointDiff, Pair
from snapviewer.checkpoint.values import Leaf, ValuesDiff
from snapviewer.text.sanitize import sanitize
from snapviewer.text.table import format_sections, format_table, label
from snapviewer.text.units import count_of, format_bytes, format_share

from .json import finite, tensor_to_json
from .tensors import alarm_lines, number_text, shape_text
from .values import changed_values

if TYPE_CHECKING:
    from snapviewer._core import Tensor


def to_json(diff: CheckpointDiff, *, before: str, after: str) -> dict[str, Any]:
    """Return the document that `pth --diff --json` prints."""
    return {
        "before": before,
        "after": after,
        "is_equal": diff.is_equal,
        "added": [tensor_to_json(tensor) for tensor in diff.added],
        "removed": [tensor_to_json(tensor) for tensor in diff.removed],
        "reshaped": [_pair(pair) for pair in diff.reshaped],
        "retyped": [_pair(pair) for pair in diff.retyped],
        "changed": [_changed(changed) for changed in diff.changed],
        "uncompared": [
            {"name": item.after.name, "reason": item.reason} for item in diff.uncompared
        ],
        "equal": len(diff.equal),
        "values": _values(diff.values),
    }


def _pair(pair: Pair) -> dict[str, Any]:
    return {"name": pair.after.name, "before": _form(pair.before), "after": _form(pair.after)}


def _form(tensor: Tensor) -> dict[str, Any]:
    return {"dtype": tensor.dtype, "shape": list(tensor.shape)}


def _changed(changed: Changed) -> dict[str, Any]:
    difference = changed.difference
    return {
        "name": changed.after.name,
        **_form(changed.after),
        "changed": difference.changed,
        "count": difference.count,
        "to_nonfinite": difference.to_nonfinite,
        "from_nonfinite": difference.from_nonfinite,
        "max_abs": finite(difference.max_abs),
        "mean_abs": finite(difference.mean_abs),
        "relative_l2": finite(difference.relative_l2),
    }


def _values(diff: ValuesDiff) -> dict[str, Any]:
    def form(leaf: Leaf) -> dict[str, str | None]:
        return {"type": leaf.type, "preview": leaf.preview}

    return {
        "added": {name: leaf.text for name, leaf in diff.added.items()},
        "removed": {name: leaf.text for name, leaf in diff.removed.items()},
        "changed": {
            name: {"before": form(before), "after": form(after)}
            for name, (before, after) in diff.changed.items()
        },
    }


def as_text(
    diff: CheckpointDiff, *, before: str, after: str, top: int = 40, width: int | None = None
) -> str:
    """Return the report on what changed: the counts first, then each tensor.

    Args:
        diff: What changed.
        before: The first file.
        after: The second.
        top: The number of tensors in each list.
        width: The width of a line; None for any.
    """
    parts = {
        "added": diff.added,
        "removed": diff.removed,
        "reshaped": diff.reshaped,
        "retyped": diff.retyped,
        "changed": diff.changed,
        "not compared": diff.uncompared,
        "equal": diff.equal,
    }
    counts = [f"{len(part):,} {name}" for name, part in parts.items() if part]
    sections = [
        [f"{sanitize(before)} → {sanitize(after)}"],
        _alarms(diff.changed),
        [", ".join(counts) or "no tensors in either"],
        _tensors("added", diff.added, top, width),
        _tensors("removed", diff.removed, top, width),
        _pairs("reshaped", diff.reshaped, top, width),
        _pairs("retyped", diff.retyped, top, width),
        _changes(diff.changed, top, width),
        [
            f"not compared: {label(t.after.name)}: {sanitize(t.reason, 300)}"
            for t in diff.uncompared[:top]
        ],
        changed_values(diff.values),
    ]
    return format_sections(sections, width)


def _tensors(title: str, tensors: Sequence[Tensor], top: int, width: int | None) -> list[str]:
    rows = [
        (
            label(tensor.name),
            sanitize(tensor.dtype, 40),
            shape_text(tensor),
            format_bytes(tensor.logical_bytes),
        )
        for tensor in tensors[:top]
    ]
    return _list((title, "dtype", "shape", "size"), rows, len(tensors), {3}, width)


def _pairs(title: str, pairs: Sequence[Pair], top: int, width: int | None) -> list[str]:
    rows = [
        (
            label(after.name),
            _change(sanitize(before.dtype, 40), sanitize(after.dtype, 40)),
            _change(shape_text(before), shape_text(after)),
        )
        for before, after in pairs[:top]
    ]
    return _list((title, "dtype", "shape"), rows, len(pairs), set(), width)


def _change(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _changes(changes: Sequence[Changed], top: int, width: int | None) -> list[str]:
    rows = []
    for _, after, difference in changes[:top]:
        relative = difference.relative_l2
        notes = []
        if difference.to_nonfinite:
            notes.append(f"! {difference.to_nonfinite:,} became NaN or Inf")
        if difference.from_nonfinite:
            notes.append(f"{difference.from_nonfinite:,} no longer NaN or Inf")
        rows.append(
            (
                label(after.name),
                format_share(difference.changed, difference.count or 1),
                number_text(finite(difference.max_abs)),
                number_text(finite(difference.mean_abs)),
                "–" if relative is None else f"{100 * relative:.3g} %",
                ", ".join(notes),
            )
        )
    head = ("changed", "elements", "max |Δ|", "mean |Δ|", "relative L2", "")
    return _list(head, rows, len(changes), {1, 2, 3, 4}, width, has_notes=True)


def _alarms(changes: Sequence[Changed]) -> list[str]:
    """Return which tensors have elements that became NaN or Inf."""
    return alarm_lines(
        "new NaN or Inf",
        [
            f"{label(after.name)}: {difference.to_nonfinite:,} became NaN or Inf, "
            f"of {count_of(difference.count, 'element')}"
            for _, after, difference in changes
            if difference.to_nonfinite
        ],
    )


def _list(
    head: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    count: int,
    right: set[int],
    width: int | None,
    *,
    has_notes: bool = False,
) -> list[str]:
    if not rows:
        return []
    lines = format_table([head, *rows], right=right, width=width, has_notes=has_notes)
    if count > len(rows):
        lines.append(f"  … {count_of(count - len(rows), 'more tensor')} (--top 0 shows all)")
    return lines
