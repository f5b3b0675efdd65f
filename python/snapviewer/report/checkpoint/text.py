"""A checkpoint in words: where its bytes are, what is in it, what is wasted, what it would run."""

from __future__ import annotations

from collections.abc import Iterator

from snapviewer.checkpoint.statistics import Measured
from snapviewer.checkpoint.summary import Advice, Summary, groups_of, order_of
from snapviewer.checkpoint.values import plain_values
from snapviewer.text.columns import fitted, lay_out, named, names_text
from snapviewer.text.sanitize import sanitize
from snapviewer.text.units import count_of, format_bytes, format_share

from .tensors import alarms, group_table, letter, stats_table, tensor_table
from .values import value_table

MOST_TENSORS = 40  # rows, unless somebody asks for another number
_MOST_LINES = 10  # of each list that follows


def as_text(
    summary: Summary,
    *,
    measured: Measured | None = None,
    sort: str | None = None,
    top: int | None = None,
    depth: int | None = None,
    width: int | None = None,
) -> str:
    """Tell of a checkpoint.

    Args:
        summary: The checkpoint.
        measured: The tensors' statistics, if there are any.
        sort: The order of the tensors. If not given, the file's where all tensors are shown, and
            the largest first where not.
        top: How many rows a table of tensors has.
        depth: Add up by so many parts of the names, rather than show each tensor.
        width: How many characters a line may have; None for any.
    """
    checkpoint = summary.checkpoint
    sections = [
        [f"{sanitize(summary.file)}  ({checkpoint.format})"],
        list(_danger(summary)),
        alarms(summary.tensors, measured or {}),
        _ledger(summary),
        _dtypes(summary),
    ]
    most = MOST_TENSORS if top is None else top
    if depth is not None:
        sections.append(group_table(groups_of(summary.tensors, depth), sort, most, width))
    order = order_of(summary.tensors, sort or ("file" if len(summary.tensors) <= most else "size"))
    if depth is None:
        sections.append(tensor_table(summary, order, most, width))
    if measured is not None:
        sections.append(stats_table(summary.tensors, measured, order, most, width))
    sections.append(value_table(plain_values(checkpoint.root), width))
    sections += [_sharing(summary), _advice(summary), _imports(summary), list(_notes(summary))]
    return "\n\n".join("\n".join(fitted(lines, width)) for lines in sections if lines) + "\n"


def _danger(summary: Summary) -> Iterator[str]:
    if flagged := summary.checkpoint.flagged_imports:
        yield f"! it names what torch does not allow by itself: {names_text(flagged, 3)}"
        yield "  weights_only=False would run whatever these names stand for"


def _ledger(summary: Summary) -> list[str]:
    checkpoint, ledger = summary.checkpoint, summary.checkpoint.ledger
    parts = [
        ("tensors", ledger.tensors, ""),
        ("unreferenced", ledger.unreferenced, "in storages, but no tensor reaches it"),
        ("pickle", ledger.pickle, "structure and plain values"),
        ("padding", ledger.padding, ""),
        ("archive", ledger.archive, "headers, names, directories, code"),
    ]
    whole = checkpoint.file_bytes
    rows = [
        (name, format_bytes(size), format_share(size, whole or 1), what if size else "")
        for name, size, what in parts
    ]
    files = f" in {len(checkpoint.files):,} files" if len(checkpoint.files) > 1 else ""
    rows.append(("file", format_bytes(whole), "", f"{whole:,} bytes{files}"))
    lines = lay_out(rows, right={1, 2})
    held = f"{count_of(len(summary.tensors), 'tensor')}, {count_of(summary.elements, 'element')}"
    sizes = format_bytes(checkpoint.logical_bytes)
    if checkpoint.unique_bytes != checkpoint.logical_bytes:
        sizes += f"; they reach {format_bytes(checkpoint.unique_bytes)} of storages"
    lines += ["", f"{held}: {sizes}"]
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
    return lay_out(rows, right={1, 2, 3})


def _sharing(summary: Summary) -> list[str]:
    lines = [
        f"  {letter(place)}  {format_bytes(sharing.storage.bytes)}: "
        + names_text([tensor.name for tensor in sharing.tensors])
        for place, sharing in enumerate(summary.sharing[:_MOST_LINES])
    ]
    if not lines:
        return []
    return ["tensors that share a storage", *lines, *_more(len(summary.sharing), "storage")]


def _advice(summary: Summary) -> list[str]:
    shown = summary.advice[:_MOST_LINES]
    if not shown:
        return []
    lines = [f"  {_advice_text(advice)}" for advice in shown]
    head = f"what would save {format_bytes(summary.checkpoint.wasted_bytes)}"
    more = sum(advice.saved_bytes for advice in summary.advice[_MOST_LINES:])
    if more:
        rest = count_of(len(summary.advice) - len(shown), "more storage")
        lines.append(f"  … {rest}: {format_bytes(more)}")
    if any(advice.tensors for advice in summary.advice):
        lines.append("  (a view is saved with all of its storage; x = x.clone() has its own)")
    return [head, *lines]


def _advice_text(advice: Advice) -> str:
    storage = advice.storage
    if not advice.tensors:
        size = format_bytes(storage.bytes)
        return f"load and save again: storage {named(storage.key)} is no tensor's: {size} → 0 B"
    # Equal names are one tensor in several places.
    names = [f"`{named(name)}`" for name in dict.fromkeys(t.name for t in advice.tensors)]
    what = f"a clone of {names[0]}" if len(names) == 1 else f"clones of {names_text(names)}"
    return f"save {what}: {format_bytes(storage.bytes)} → {format_bytes(storage.clone_bytes)}"


def _imports(summary: Summary) -> list[str]:
    checkpoint = summary.checkpoint
    allowed, flagged = checkpoint.allowed_imports, checkpoint.flagged_imports
    if not flagged:
        count = count_of(len(allowed), "name")
        return [f"loading it would import {count}, all of which torch allows"] if allowed else []
    lines = [f"  ! {named(name)}" for name in flagged[: 2 * _MOST_LINES]]
    lines += _more(len(flagged), "import", 2 * _MOST_LINES)
    harmless = f"  and {count_of(len(allowed), 'import')} that torch allows" if allowed else ""
    return ["what loading it would import", *lines, *([harmless] if harmless else [])]


def _notes(summary: Summary) -> Iterator[str]:
    for key, value in list(summary.checkpoint.metadata.items())[:_MOST_LINES]:
        yield f"metadata {named(key)}: {sanitize(value, 200)}"
    yield from (f"note: {sanitize(warning, 600)}" for warning in summary.checkpoint.warnings)


def _more(count: int, what: str, shown: int = _MOST_LINES) -> list[str]:
    return [f"  … {count_of(count - shown, f'more {what}')}"] if count > shown else []
