"""Two compared trees as text: what differs, in its place in the tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from snapviewer.explorer.compare import (
    MARKS,
    ModuleComparison,
    TensorComparison,
    TreeComparison,
    Verdict,
    shape_text,
)
from snapviewer.explorer.formats import format_memory, format_param_count
from snapviewer.explorer.labels import label, title
from snapviewer.explorer.tree import Tree
from snapviewer.text.sanitize import sanitize
from snapviewer.text.units import count_of

from .text import MOST_GUIDES, guides_text


def as_text(comparison: TreeComparison, *, max_depth: int | None = None) -> str:
    """Render a comparison as text: what differs, in its place in the tree.

    Lines begin with `+` for what is new, `-` for what is gone, `~` for what is other. Modules in
    which nothing differs are left out, and how many they are is told.
    """
    return "".join(f"{line}\n" for line in _lines(comparison, max_depth))


def to_json(comparison: TreeComparison) -> dict[str, Any]:
    """Return a comparison as JSON has it: the modules and tensors that differ, with their paths."""
    changed = [
        {
            "path": item.node.path,
            "verdict": item.verdict,
            "changes": list(item.changes),
            "more_parameters": item.more_parameters,
            "more_bytes": item.more_bytes,
            "tensors": [
                {"path": one.path, "verdict": one.verdict, "changes": list(one.changes)}
                for one in item.tensors
                if one.verdict != "equal"
            ],
        }
        for item in comparison.root.walk()
        if item.verdict != "equal"
    ]
    return {
        "before": comparison.before.source,
        "after": comparison.after.source,
        "is_equal": comparison.is_equal,
        "has_values": comparison.has_values,
        "modules": comparison.modules,
        "tensors": comparison.tensors,
        "more_parameters": comparison.root.more_parameters,
        "more_bytes": comparison.root.more_bytes,
        "changed": changed,
    }


def _lines(comparison: TreeComparison, max_depth: int | None) -> Iterator[str]:
    before, after = comparison.before, comparison.after
    yield f"before  {_source(before)}"
    yield f"after   {_source(after)}"
    yield ""
    if comparison.is_equal:
        what = "equal" if comparison.has_values else "of the same shapes and types"
        yield f"All {count_of(comparison.modules['equal'], 'module')} are {what}."
        yield from _what_is_not_known(comparison)
        return
    waiting: list[tuple[ModuleComparison, tuple[bool, ...]]] = [(comparison.root, ())]
    while waiting:
        item, guides = waiting.pop()
        yield f"{MARKS[item.verdict]} {guides_text(guides)}{line_text(item)}"
        below = [child for child in item.children if child.has_changes]
        if max_depth is not None and len(guides) >= max_depth:
            below = []
        if item.verdict in ("added", "removed"):
            below = []  # its line tells of all of it
        elif item.verdict == "changed":
            lead = "".join("│   " if more else "    " for more in guides[-MOST_GUIDES:])
            lead += "│ " if below else "  "
            for tensor in item.tensors:
                if tensor.verdict != "equal":
                    yield f"{MARKS[tensor.verdict]} {lead}{tensor_text(tensor)}"
        last = len(below) - 1
        waiting += [(below[i], (*guides, i < last)) for i in range(last, -1, -1)]
    yield ""
    yield f"Modules: {_counts(comparison.modules)}"
    yield f"Tensors: {_counts(comparison.tensors)}"
    yield f"Parameters: {difference_text(comparison.root)}"
    yield from _what_is_not_known(comparison)


def _what_is_not_known(comparison: TreeComparison) -> Iterator[str]:
    if not comparison.has_values:
        yield "Values are not compared here: `snapviewer pth BEFORE --diff AFTER` does that."


def line_text(item: ModuleComparison) -> str:
    """Say a module of a comparison: what it is, what is other, how much more it has."""
    if item.verdict in ("added", "removed"):
        return label(item.node)
    said = [title(item.node), *item.changes]
    if item.more_parameters or item.more_bytes:
        said.append(difference_text(item))
    return "  ".join(said)


def tensor_text(tensor: TensorComparison) -> str:
    """Say a tensor of a comparison."""
    entry = tensor.before or tensor.after
    assert entry is not None, "one of both is there"
    said = ", ".join(tensor.changes) or f"{shape_text(entry)} {sanitize(entry.dtype, 80)}"
    return f"{sanitize(entry.name, 80)}: {said}"


def difference_text(item: ModuleComparison) -> str:
    """Say how many parameters a module has more or less, and how much memory they take."""
    count, size = item.more_parameters, item.more_bytes
    sign = "+" if count >= 0 else "−"
    memory = f"{'+' if size >= 0 else '−'}{format_memory(abs(size))}"
    return f"{sign}{format_param_count(abs(count))} params ({memory})"


def _counts(counts: dict[Verdict, int]) -> str:
    return ", ".join(f"{count:,} {verdict}" for verdict, count in counts.items() if count) or "none"


def _source(tree: Tree) -> str:
    return (
        f"{sanitize(tree.name, 80)} ({sanitize(tree.source, 80)})"
        if tree.source != tree.name
        else tree.name
    )
