"""The text report on a checkpoint: its bytes, tensors, shared and wasted storages, and imports."""

from __future__ import annotations

from collections.abc import Iterator

from snapviewer.checkpoint.statistics import TensorStats
from snapviewer.checkpoint.summary import (
    USUAL_ROWS,
    RowChoice,
    StorageAdvice,
    Summary,
    groups_of,
    order_of,
)
from snapviewer.checkpoint.values import plain_values
from snapviewer.text.sanitize import sanitize
from snapviewer.text.table import format_sections, format_table, join_labels, label
from snapviewer.text.units import count_of, format_bytes, format_share

from .tensors import alarms, group_table, letter, stats_table, tensor_table
from .values import value_table

MAX_TENSORS = 40  # rows by default
_MAX_LINES = 10  # of each list that follows


def as_text(
    summary: Summary,
    choice: RowChoice = USUAL_ROWS,
    *,
    measured: TensorStats | None = None,
    width: int | None = None,
) -> str:
    """Return the report on a checkpoint, in lines of a width.

    Tensors are in the order of the file by default if all are shown, else the largest first.
    """
    sort, top, depth = choice
    checkpoint, tensors = summary.checkpoint, summary.tensors
    rows = MAX_TENSORS if top is None else top
    order = order_of(tensors, sort or ("file" if len(tensors) <= rows else "size"))
    if depth is None:
        table = tensor_table(summary, order, rows, width)
    else:
        table = group_table(groups_of(tensors, depth), sort, rows, width)
    sections = [
        [f"{sanitize(summary.file)}  ({checkpoint.format})"],
        _unsafe_imports(summary),
        alarms(tensors, measured or {}),
        _ledger(summary),
        _dtypes(summary),
        table,
        [] if measured is None else stats_table(tensors, measured, order, rows, width),
        value_table(plain_values(checkpoint.root), width),
        _sharing(summary),
        _advice(summary),
        _imports(summary),
        _notes(summary),
    ]
    return format_sections(sections, width)


def _unsafe_imports(summary: Summary) -> list[str]:
    if not (flagged := summary.checkpoint.flagged_imports):
        return []
    return [
        f"! imports that torch does not allow by default: {join_labels(flagged, 3)}",
        "  torch.load(weights_only=False) would run them",
    ]


def _ledger(summary: Summary) -> list[str]:
    checkpoint, ledger = summary.checkpoint, summary.checkpoint.ledger
    parts = [
        ("tensors", ledger.tensors, ""),
        ("unreferenced", ledger.unreferenced, "in storages, but in no tensor"),
        ("pickle", ledger.pickle, "structure and plain values"),
        ("padding", ledger.padding, ""),
        ("archive", ledger.archive, "headers, names, directories, code"),
    ]
    total = checkpoint.file_bytes
    rows = [
        (name, format_bytes(size), format_share(size, total or 1), note if size else "")
        for name, size, note in parts
    ]
    files = f" in {len(checkpoint.files):,} files" if len(checkpoint.files) > 1 else ""
    rows.append(("file", format_bytes(total), "", f"{total:,} bytes{files}"))
    lines = format_table(rows, right={1, 2})
    counts = f"{count_of(len(summary.tensors), 'tensor')}, {count_of(summary.elements, 'element')}"
    sizes = format_bytes(checkpoint.logical_bytes)
    if checkpoint.unique_bytes != checkpoint.logical_bytes:
        sizes += f", stored in {format_bytes(checkpoint.unique_bytes)}"
    lines += ["", f"{counts}: {sizes}"]
    if checkpoint.wasted_bytes:
        lines.append(f"wasted: {format_bytes(checkpoint.wasted_bytes)}")
    return lines


def _dtypes(summary: Summary) -> list[str]:
    if not summary.dtypes:
        return []
    rows = [("dtype", "tensors", "elements", "size")]
    rows += [
        (
            sanitize(share.name, 40),
            f"{share.tensors:,}",
            f"{share.elements:,}",
            format_bytes(share.logical_bytes),
        )
        for share in summary.dtypes
    ]
    return format_table(rows, right={1, 2, 3})


def _sharing(summary: Summary) -> list[str]:
    lines = [
        f"  {letter(place)}  {format_bytes(sharing.storage.bytes)}: "
        + join_labels([tensor.name for tensor in sharing.tensors])
        for place, sharing in enumerate(summary.sharing[:_MAX_LINES])
    ]
    if not lines:
        return []
    return ["tensors that share a storage", *lines, *_more(len(summary.sharing), "storage")]


def _advice(summary: Summary) -> list[str]:
    shown = summary.advice[:_MAX_LINES]
    if not shown:
        return []
    lines = [f"  {_advice_text(advice)}" for advice in shown]
    if left_out := summary.advice[_MAX_LINES:]:
        saved = format_bytes(sum(advice.saved_bytes for advice in left_out))
        lines.append(f"  … {count_of(len(left_out), 'more storage')}: {saved}")
    if any(advice.tensors for advice in summary.advice):
        lines.append("  (torch.save writes the whole storage of a view; x.clone() has its own)")
    return [f"possible savings: {format_bytes(summary.checkpoint.wasted_bytes)}", *lines]


def _advice_text(advice: StorageAdvice) -> str:
    storage = advice.storage
    if not advice.tensors:
        size = format_bytes(storage.bytes)
        return f"load and save again: no tensor uses storage {label(storage.key)}: {size} → 0 B"
    # Equal names are one tensor in several places.
    names = [f"`{label(name)}`" for name in dict.fromkeys(t.name for t in advice.tensors)]
    what = f"a clone of {names[0]}" if len(names) == 1 else f"clones of {join_labels(names)}"
    return f"save {what}: {format_bytes(storage.bytes)} → {format_bytes(storage.clone_bytes)}"


def _imports(summary: Summary) -> list[str]:
    allowed = summary.checkpoint.allowed_imports
    flagged = summary.checkpoint.flagged_imports
    if not flagged:
        names = count_of(len(allowed), "name")
        return [f"loading imports {names}, all allowed by torch"] if allowed else []
    lines = [f"  ! {label(name)}" for name in flagged[: 2 * _MAX_LINES]]
    lines += _more(len(flagged), "import", 2 * _MAX_LINES)
    if allowed:
        lines.append(f"  and {count_of(len(allowed), 'import')} that torch allows")
    return ["imports on loading", *lines]


def _notes(summary: Summary) -> Iterator[str]:
    for key, value in list(summary.checkpoint.metadata.items())[:_MAX_LINES]:
        yield f"metadata {label(key)}: {sanitize(value, 200)}"
    yield from (f"note: {sanitize(warning, 600)}" for warning in summary.checkpoint.warnings)


def _more(count: int, what: str, shown: int = _MAX_LINES) -> list[str]:
    return [f"  … {count_of(count - shown, f'more {what}')}"] if count > shown else []
