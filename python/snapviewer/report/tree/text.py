"""The tree as text, with guide lines."""

from __future__ import annotations

from collections.abc import Iterator

from snapviewer.explorer.formats import format_param_count
from snapviewer.explorer.labels import MAX_NAME_CHARS, type_text
from snapviewer.explorer.tree import ModuleNode, Tree
from snapviewer.report.tree.selection import WHOLE_TREE, HiddenRows, TreeSelection, remarks, rows_of
from snapviewer.text.sanitize import sanitize
from snapviewer.text.units import format_bytes

MAX_GUIDES = 60  # levels that are drawn; deeper ones are numbered


def as_text(tree: Tree, selection: TreeSelection = WHOLE_TREE) -> str:
    """Render the selected part of a tree as text.

    ```text
    ResNet(
    ├── 25.6M parameters
    ├── conv1: Conv2d(3→64, 7×7) [9.4K params]
    └── fc: Linear(2048→1000) [2.0M params]
    ```
    """
    return "".join(f"{line}\n" for line in _lines(tree, selection))


def _lines(tree: Tree, selection: TreeSelection) -> Iterator[str]:
    for row in rows_of(tree.root, selection):
        if isinstance(row, HiddenRows):
            yield f"{guides_text(row.guides)}... {row.count:,} more"
        elif row.guides:
            yield f"{guides_text(row.guides)}{line_text(row.node, selection)}"
        else:
            yield from _head(tree, has_more=row.below > 0)
    yield from (f"Note: {sanitize(note, 300)}" for note in tree.notes)


def _head(tree: Tree, *, has_more: bool) -> Iterator[str]:
    """Yield the root: its class, and its sums in the place of its first children."""
    root, sums = tree.root, tree.root.sums
    yield f"{type_text(root) or sanitize(tree.name, MAX_NAME_CHARS)}("
    facts = [f"{format_param_count(sums.parameters)} parameters"]
    frozen = sums.parameters - sums.trainable
    if frozen:
        facts.append(f"{format_param_count(frozen)} of them frozen")
    if sums.parameters or sums.buffers:
        buffers = f", {format_bytes(sums.buffer_bytes)} of buffers" if sums.buffers else ""
        facts.append(f"{format_bytes(sums.parameter_bytes)} of parameters{buffers}")
    for place, fact in enumerate(facts):
        yield f"{guides_text((has_more or place < len(facts) - 1,))}{fact}"


def line_text(node: ModuleNode, selection: TreeSelection) -> str:
    """Return the line of a module, with its remarks."""
    remark = remarks(node)
    return f"{selection.line(node)} {remark}" if remark else selection.line(node)


def guides_text(guides: tuple[bool, ...]) -> str:
    """Return the guide lines before a line.

    >>> guides_text((True, False)), guides_text(())
    ('│   └── ', '')
    """
    if not guides:
        return ""
    far = ""
    if len(guides) > MAX_GUIDES:
        far = f"(level {len(guides)}) "
        guides = guides[-MAX_GUIDES:]
    lines = ("│   " if more else "    " for more in guides[:-1])
    return f"{''.join(lines)}{'├── ' if guides[-1] else '└── '}{far}"
