"""What is seen of a tree, written to a file beside others: never over one that is there."""

from __future__ import annotations

import json
import re
from pathlib import Path

from snapviewer.explorer.compare import TreeComparison
from snapviewer.explorer.tree import ModuleNode
from snapviewer.explorer.view.browsing import Browsing
from snapviewer.files.atomic_write import atomic_write
from snapviewer.report.tree.comparison import as_text as comparison_text
from snapviewer.report.tree.diagram import diagram_of
from snapviewer.report.tree.html import as_html
from snapviewer.report.tree.json import as_dict
from snapviewer.report.tree.selection import Seen
from snapviewer.report.tree.text import as_text

SUFFIXES = {"text": "txt", "json": "json", "html": "html", "svg": "svg"}
_MOST_OF_A_NAME = 80  # bytes


def exported(browsing: Browsing, form: str) -> str:
    """Render the modules that have a row now, in the order in which they have them."""
    outline = browsing.outline
    items = [outline.items[place] for place in browsing.rows.places]
    rows = {item.path: row for row, item in enumerate(items) if isinstance(item, ModuleNode)}
    seen = Seen(shown=rows, rank=lambda node: rows[node.path])
    tree = outline.tree
    if form == "svg":
        return diagram_of(tree, browsing.stats)
    if form == "json":
        # `as_json` minds what the terminal can show; a file holds every letter.
        return json.dumps(as_dict(tree, seen), indent=2, ensure_ascii=False)
    return as_html(tree, seen) if form == "html" else as_text(tree, seen)


def write_export(
    browsing: Browsing, form: str, folder: Path, comparison: TreeComparison | None = None
) -> Path:
    """Write what is seen into a folder, under a name that is free there; return where.

    Of two models that are compared, what differs is written as text.

    Raises:
        OSError: It cannot be written.
    """
    text = exported(browsing, form) if comparison is None else comparison_text(comparison)
    stem = re.sub(r"[^\w.-]+", "-", browsing.outline.tree.name).strip("-.") or "model"
    stem = stem.encode()[:_MOST_OF_A_NAME].decode(errors="ignore")
    path = folder / f"{stem}-summary.{SUFFIXES[form]}"
    number = 2
    while path.exists():
        path = folder / f"{stem}-summary-{number}.{SUFFIXES[form]}"
        number += 1
    with atomic_write(path) as file:
        file.write(text.encode("utf-8", errors="replace"))
    return path
