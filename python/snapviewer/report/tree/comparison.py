"""A comparison of two trees as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from snapviewer.explorer.compare import (
    DIFF_SIGNS,
    ModuleComparison,
    TensorComparison,
    TreeComparison,
    Verdict,
)
from snapviewer.explorer.formats import format_param_count, shape_or_scalar
from snapviewer.explorer.labels import label, title
from snapviewer.explorer.tree import Tree, walk
from snapviewer.text.sanitize import sanitize
from snapviewer.text.units import count_of, format_bytes

from .text import MAX_GUIDES, guides_text


def as_text(comparison: TreeComparison, *, max_depth: int | None = None) -> str:
    """Render a comparison as text: the differences, in their place in the tree.

    Lines begin with `+` for added, `-` for removed, `~` for changed. Equal modules are left out and
    counted.
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
                {"path": one.entry.path, "verdict": one.verdict, "changes": list(one.changes)}
                for one in item.tensors
                if one.verdict != "equal"
            ],
        }
        for item in walk(comparison.root)
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
        yield from _value_note(comparison)
        return
    waiting: list[tuple[ModuleComparison, tuple[bool, ...]]] = [(comparison.root, ())]
    while waiting:
        item, guides = waiting.pop()
        yield f"{DIFF_SIGNS[item.verdict]} {guides_text(guides)}{line_text(item)}"
        below = [child for child in item.children if child.has_changes]
        if max_depth is not None and len(guides) >= max_depth:
            below = []
        if item.verdict in ("added", "removed"):
            below = []  # its line covers all of it
        elif item.verdict == "changed":
            lead = "".join("│   " if more else "    " for more in guides[-MAX_GUIDES:])
            lead += "│ " if below else "  "
            for tensor in item.tensors:
                if tensor.verdict != "equal":
                    yield f"{DIFF_SIGNS[tensor.verdict]} {lead}{tensor_text(tensor)}"
        last = len(below) - 1
        waiting += [(below[i], (*guides, i < last)) for i in range(last, -1, -1)]
    yield ""
    yield f"Modules: {_counts(comparison.modules)}"
    yield f"Tensors: {_counts(comparison.tensors)}"
    yield f"Parameters: {difference_text(comparison.root)}"
    yield from _value_note(comparison)


def _value_note(comparison: TreeComparison) -> Iterator[str]:
    if not comparison.has_values:
        yield "Values were not compared; `snapviewer pth BEFORE --compare AFTER` compares them."


def line_text(item: ModuleComparison) -> str:
    """Return the line of a module: its title, its changes, the difference in parameters."""
    if item.verdict in ("added", "removed"):
        return label(item.node)
    words = [title(item.node), *item.changes]
    if item.more_parameters or item.more_bytes:
        words.append(difference_text(item))
    return "  ".join(words)


def tensor_text(tensor: TensorComparison) -> str:
    """Return the line of a tensor."""
    entry = tensor.entry
    kind = f"{shape_or_scalar(entry.shape)} {sanitize(entry.dtype, 80)}"
    return f"{sanitize(entry.name, 80)}: {', '.join(tensor.changes) or kind}"


def difference_text(item: ModuleComparison) -> str:
    """Return the difference of a module in parameters and memory."""
    count, size = item.more_parameters, item.more_bytes
    sign = "+" if count >= 0 else "−"
    memory = f"{'+' if size >= 0 else '−'}{format_bytes(abs(size))}"
    return f"{sign}{format_param_count(abs(count))} params ({memory})"


def _counts(counts: dict[Verdict, int]) -> str:
    return ", ".join(f"{count:,} {verdict}" for verdict, count in counts.items() if count) or "none"


def _source(tree: Tree) -> str:
    return (
        f"{sanitize(tree.name, 80)} ({sanitize(tree.source, 80)})"
        if tree.source != tree.name
        else tree.name
    )
