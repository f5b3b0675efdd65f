"""What changed from one checkpoint to another, in words and as a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from snapviewer.checkpoint.difference import Changed, CheckpointDiff, Pair
from snapviewer.text.columns import fitted, lay_out, named, shape_text
from snapviewer.text.sanitize import sanitize
from snapviewer.text.units import count_of, format_bytes, format_share

from .json import number, tensor_dict
from .values import changed_values, changes_dict

if TYPE_CHECKING:
    from snapviewer._core import Tensor

_MOST_ALARMS = 10


def to_json(diff: CheckpointDiff, *, before: str, after: str) -> dict[str, Any]:
    """Return the document that `pth --diff --json` prints."""
    return {
        "before": before,
        "after": after,
        "is_equal": diff.is_equal,
        "added": [tensor_dict(tensor) for tensor in diff.added],
        "removed": [tensor_dict(tensor) for tensor in diff.removed],
        "reshaped": [_pair_dict(pair) for pair in diff.reshaped],
        "retyped": [_pair_dict(pair) for pair in diff.retyped],
        "changed": [_changed_dict(changed) for changed in diff.changed],
        "uncompared": [
            {"name": item.after.name, "reason": item.reason} for item in diff.uncompared
        ],
        "equal": len(diff.equal),
        "values": changes_dict(diff.values),
    }


def _pair_dict(pair: Pair) -> dict[str, Any]:
    return {"name": pair.after.name, "before": _form(pair.before), "after": _form(pair.after)}


def _form(tensor: Tensor) -> dict[str, Any]:
    return {"dtype": tensor.dtype, "shape": list(tensor.shape)}


def _changed_dict(changed: Changed) -> dict[str, Any]:
    difference = changed.difference
    return {
        "name": changed.after.name,
        **_form(changed.after),
        "changed": difference.changed,
        "count": difference.count,
        "to_nonfinite": difference.to_nonfinite,
        "from_nonfinite": difference.from_nonfinite,
        "max_abs": number(difference.max_abs),
        "mean_abs": number(difference.mean_abs),
        "relative_l2": number(difference.relative_l2),
    }


def as_text(
    diff: CheckpointDiff, *, before: str, after: str, top: int = 40, width: int | None = None
) -> str:
    """Tell what changed: how much first, then each tensor.

    Args:
        diff: What changed.
        before: The first file.
        after: The second.
        top: How many tensors each list has.
        width: How many characters a line may have; None for any.
    """
    counts = [
        f"{len(part):,} {name}"
        for name, part in (
            ("added", diff.added),
            ("removed", diff.removed),
            ("reshaped", diff.reshaped),
            ("retyped", diff.retyped),
            ("changed", diff.changed),
            ("not compared", diff.uncompared),
            ("equal", diff.equal),
        )
        if part
    ]
    sections = [
        [f"{sanitize(before)} → {sanitize(after)}"],
        _alarms(diff.changed),
        [", ".join(counts) or "no tensors in either"],
        _plain("added", diff.added, top, width),
        _plain("removed", diff.removed, top, width),
        _pairs("reshaped", diff.reshaped, top, width),
        _pairs("retyped", diff.retyped, top, width),
        _changes(diff.changed, top, width),
        [
            f"not compared: {named(t.after.name)}: {sanitize(t.reason, 300)}"
            for t in diff.uncompared[:top]
        ],
        changed_values(diff.values),
    ]
    return "\n\n".join("\n".join(fitted(lines, width)) for lines in sections if lines) + "\n"


def _plain(what: str, tensors: Sequence[Tensor], top: int, width: int | None) -> list[str]:
    rows = [
        (
            named(tensor.name),
            sanitize(tensor.dtype, 40),
            shape_text(tensor.shape),
            format_bytes(tensor.logical_bytes),
        )
        for tensor in tensors[:top]
    ]
    return _list((what, "dtype", "shape", "size"), rows, len(tensors), {3}, width)


def _pairs(what: str, pairs: Sequence[Pair], top: int, width: int | None) -> list[str]:
    rows = [
        (
            named(pair.after.name),
            _turn(sanitize(pair.before.dtype, 40), sanitize(pair.after.dtype, 40)),
            _turn(shape_text(pair.before.shape), shape_text(pair.after.shape)),
        )
        for pair in pairs[:top]
    ]
    return _list((what, "dtype", "shape"), rows, len(pairs), set(), width)


def _turn(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _changes(changes: Sequence[Changed], top: int, width: int | None) -> list[str]:
    rows = []
    for item in changes[:top]:
        difference = item.difference
        relative = difference.relative_l2
        rows.append(
            (
                named(item.after.name),
                format_share(difference.changed, difference.count or 1),
                _number(difference.max_abs),
                _number(difference.mean_abs),
                "–" if relative is None else f"{100 * relative:.3g} %",
                _nonfinite(item),
            )
        )
    head = ("changed", "elements", "max |Δ|", "mean |Δ|", "relative L2", "")
    return _list(head, rows, len(changes), {1, 2, 3, 4}, width, has_notes=True)


def _alarms(changes: Sequence[Changed]) -> list[str]:
    """Say which tensors have elements that became NaN or Inf, before anything else."""
    bad = [item for item in changes if item.difference.to_nonfinite]
    lines = [
        f"  ! {named(item.after.name)}: {item.difference.to_nonfinite:,} became NaN or Inf, "
        f"of {count_of(item.difference.count, 'element')}"
        for item in bad[:_MOST_ALARMS]
    ]
    if len(bad) > _MOST_ALARMS:
        lines.append(f"  … {count_of(len(bad) - _MOST_ALARMS, 'more tensor')}")
    return [f"! new NaN or Inf in {count_of(len(bad), 'tensor')}", *lines] if bad else []


def _nonfinite(item: Changed) -> str:
    parts = []
    if item.difference.to_nonfinite:
        parts.append(f"! {item.difference.to_nonfinite:,} became NaN or Inf")
    if item.difference.from_nonfinite:
        parts.append(f"{item.difference.from_nonfinite:,} no longer NaN or Inf")
    return ", ".join(parts)


def _number(value: float | None) -> str:
    return "–" if number(value) is None else f"{value:.4g}"


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
    lines = lay_out([head, *rows], right=right, width=width, has_notes=has_notes)
    if count > len(rows):
        lines.append(f"  … {count_of(count - len(rows), 'more tensor')} (--top 0 shows all)")
    return lines
