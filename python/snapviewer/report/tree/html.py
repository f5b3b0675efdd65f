"""The tree as a foldable page of HTML without scripts: each module is a `<details>`."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from snapviewer.explorer.formats import format_param_count, shape_or_scalar
from snapviewer.explorer.labels import type_text
from snapviewer.explorer.tree import ModuleNode, TensorEntry, Tree
from snapviewer.report.tree.selection import (
    WHOLE_TREE,
    HiddenRows,
    TreeRow,
    TreeSelection,
    remarks,
    rows_of,
)
from snapviewer.report.writers.html import page_of
from snapviewer.text.sanitize import sanitize
from snapviewer.text.units import format_bytes, format_share

# Browsers nest only a few hundred elements; deeper modules stay at this level.
_MAX_NESTED = 120
_OPEN_DEPTH = 1
_OPEN_ROWS = 60  # models with fewer modules are unfolded

_STYLE = """
main { max-width: 1100px; }
.facts { display: flex; flex-wrap: wrap; gap: 8px 40px; margin: 0 0 28px; padding: 0; }
.facts div { margin: 0; }
.facts dt { color: var(--secondary); font-size: 13px; }
.facts dd { margin: 0; font-size: 20px; font-weight: 650; }
.tree, .tree ul { list-style: none; margin: 0; padding: 0; }
.tree ul { margin-left: 9px; padding-left: 17px; border-left: 1px solid var(--grid); }
.tree li { margin: 0; }
.tree summary, .tree .leaf {
  display: flex; align-items: baseline; gap: 10px; padding: 3px 8px; border-radius: 5px;
  font-size: 14px;
}
.tree summary { cursor: pointer; list-style: none; }
.tree summary::-webkit-details-marker { display: none; }
.tree summary::before {
  content: ""; flex: none; width: 0; height: 0; margin: 0 1px; align-self: center;
  border: 4px solid transparent; border-left: 6px solid var(--axis); border-right: 0;
}
.tree details[open] > summary::before { transform: rotate(90deg); }
.tree .leaf { padding-left: 26px; }
.tree summary:hover, .tree .leaf:hover { background: var(--panel); }
.tree summary:focus-visible { outline: 2px solid var(--plain); }
.tree .name { font-weight: 600; }
.tree .type { color: var(--plain); }
.tree .remark, .tree .more, .tree .memory { color: var(--secondary); }
.tree .guessed { font-style: italic; }
.tree .sum { margin-left: auto; white-space: nowrap; }
.tree .memory { flex: none; width: 5em; text-align: right; font-size: 13px; }
.tree .share { flex: none; width: 90px; height: 6px; align-self: center; }
.tree table { width: auto; margin: 2px 0 10px 34px; font-size: 12.5px; }
.tree td, .tree th { min-width: 0; padding: 3px 14px 3px 0; }
.tree td:not(.number) { min-width: 0; }
@media (max-width: 600px) { .tree .share { display: none; } }
"""


def as_html(tree: Tree, selection: TreeSelection = WHOLE_TREE) -> str:
    """Render the selected part of a tree as a page of HTML."""
    body = "\n".join(_body(tree, selection))
    return page_of(type_text(tree.root) or tree.name, body, more_style=_STYLE)


def _body(tree: Tree, selection: TreeSelection) -> Iterator[str]:
    sums = tree.root.sums
    facts = [
        ("Parameters", f"{sums.parameters:,}"),
        ("Trainable", f"{sums.trainable:,}"),
        ("Memory", format_bytes(sums.parameter_bytes)),
        ("Buffers", format_bytes(sums.buffer_bytes)),
        ("Modules", f"{sums.modules:,}"),
    ]
    yield '<dl class="facts">'
    yield from (f"<div><dt>{what}</dt><dd>{value}</dd></div>" for what, value in facts)
    yield "</dl>"
    yield from (f'<p class="box warning">{_words(note)}</p>' for note in tree.notes)
    yield from _tree(tree, selection)
    yield f"<footer>{_words(tree.source)}</footer>"


def _tree(tree: Tree, selection: TreeSelection) -> Iterator[str]:
    rows = list(rows_of(tree.root, selection))
    open_depth = _MAX_NESTED if len(rows) <= _OPEN_ROWS else _OPEN_DEPTH
    whole = max(1, tree.root.sums.parameters)
    ends: list[str] = []  # what closes each level that is open
    yield '<ul class="tree">'
    for row in rows:
        depth = min(len(row.guides), _MAX_NESTED)
        while len(ends) > depth:
            yield ends.pop()
        if isinstance(row, HiddenRows):
            yield f'<li><div class="leaf more">{row.count:,} more</div></li>'
            continue
        line = _line(row, selection, whole)
        if not row.below and not row.node.tensors:
            yield f'<li><div class="leaf">{line}</div></li>'
            continue
        is_open = " open" if row.below and depth < open_depth else ""
        yield f"<li><details{is_open}><summary>{line}</summary>"
        if row.node.tensors:
            yield from _tensors(row.node.tensors)
        if row.below and depth < _MAX_NESTED:
            yield "<ul>"
            ends.append("</ul></details></li>")
        else:
            yield "</details></li>"
    yield from reversed(ends)
    yield "</ul>"


def _line(row: TreeRow, selection: TreeSelection, whole: int) -> str:
    node = row.node
    guess = ' guessed" title="guessed from names and shapes' if node.is_type_guessed else ""
    what = _words(type_text(node))
    name = _words(node.name) if node.name or not what else ""
    parts = [
        f'<span class="name">{name or "(no name)"}</span>' if name or not what else "",
        f'<span class="type{guess}">{what}</span>' if what else "",
        f'<span class="remark">{_words(remarks(node))}</span>' if remarks(node) else "",
    ]
    return "".join(parts) + _sums(node, whole)


def _sums(node: ModuleNode, whole: int) -> str:
    """Return a module's sums, and a bar of its share of all parameters."""
    count = node.sums.parameters
    share = format_share(count, whole) if count else ""
    memory = format_bytes(node.sums.total_bytes) if node.sums.total_bytes else ""
    text = (
        f'<span class="sum">{format_param_count(count)} params</span>'
        f'<span class="memory">{memory}</span>'
    )
    width = round(100 * count / whole, 1)
    return (
        f'{text}<svg class="share" viewBox="0 0 100 6" preserveAspectRatio="none">'
        f"<title>{escape(share)}</title>"
        '<rect width="100" height="6" class="fill-grid"/>'
        f'<rect width="{width:g}" height="6" class="fill-plain"/></svg>'
    )


def _tensors(tensors: tuple[TensorEntry, ...]) -> Iterator[str]:
    yield "<table>"
    for entry in tensors:
        kind = "buffer" if entry.is_buffer else "" if entry.is_trainable else "frozen"
        tied = f"tied to {entry.tied_to}" if entry.tied_to is not None else ""
        cells = (
            entry.name,
            shape_or_scalar(entry.shape),
            entry.dtype,
            entry.device,
            format_bytes(entry.size_bytes),
            ", ".join(filter(None, (kind, tied))),
        )
        yield f"<tr>{''.join(f'<td>{_words(cell)}</td>' for cell in cells)}</tr>"
    yield "</table>"


def _words(text: str) -> str:
    return escape(sanitize(text, 300, strip=False))
