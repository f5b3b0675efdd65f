"""Exports the visible tree to a new file; existing files are never overwritten."""

from __future__ import annotations

import re
from pathlib import Path

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import ModalScreen
from textual.widgets import Static

from snapviewer.explorer.app.dialogs import DIALOG_CSS
from snapviewer.explorer.compare import TreeComparison
from snapviewer.explorer.tree import ModuleNode
from snapviewer.explorer.view.browser import TreeBrowser
from snapviewer.files.atomic_write import write_text
from snapviewer.report.tree import comparison as comparison_report
from snapviewer.report.tree import diagram, html, text
from snapviewer.report.tree.json import to_json
from snapviewer.report.tree.selection import TreeSelection
from snapviewer.text.sanitize import json_text

SUFFIXES = {"text": "txt", "json": "json", "html": "html", "svg": "svg"}
_MAX_STEM_BYTES = 80


class ExportScreen(ModalScreen[str]):
    """Asks for the format of an export."""

    DEFAULT_CSS = DIALOG_CSS.format(name="ExportScreen")
    FORMATS = (
        ("t", "text", "text"),
        ("j", "json", "JSON"),
        ("h", "html", "HTML"),
        ("s", "svg", "SVG, a diagram of the architecture"),
    )
    BINDINGS = [  # noqa: RUF012 (Textual's own type)
        Binding("escape,q", "dismiss", show=False),
        *(Binding(letter, f"choose('{form}')", show=False) for letter, form, _ in FORMATS),
    ]

    def compose(self) -> ComposeResult:
        lines = [
            Text.assemble((f" {letter} ", "bold cyan"), f" {words}")
            for letter, _, words in self.FORMATS
        ]
        box = Static(Text("\n").join(lines))
        box.border_title = "Export as"
        box.border_subtitle = "Esc closes"
        yield box

    def action_choose(self, form: str) -> None:
        self.dismiss(form)


def exported(browser: TreeBrowser, form: str) -> str:
    """Render the visible modules in their visible order."""
    outline = browser.outline
    items = [outline.items[place] for place in browser.rows.places]
    rows = {item.path: row for row, item in enumerate(items) if isinstance(item, ModuleNode)}
    selection = TreeSelection(shown=rows, rank=lambda node: rows[node.path])
    tree = outline.tree
    if form == "svg":
        return diagram.as_svg(tree, browser.stats)
    if form == "json":
        return json_text(to_json(tree, selection), is_ascii=False)
    return html.as_html(tree, selection) if form == "html" else text.as_text(tree, selection)


def write_export(
    browser: TreeBrowser, form: str, folder: Path, comparison: TreeComparison | None = None
) -> Path:
    """Write the visible tree to an unused name in a folder; return the path.

    If two models are compared, their differences are written as text.

    Raises:
        OSError: The file cannot be written.
    """
    if comparison is None:
        content = exported(browser, form)
    else:
        content = comparison_report.as_text(comparison)
    stem = re.sub(r"[^\w.-]+", "-", browser.outline.tree.name).strip("-.") or "model"
    stem = stem.encode()[:_MAX_STEM_BYTES].decode(errors="ignore")
    path = folder / f"{stem}-summary.{SUFFIXES[form]}"
    number = 2
    while path.exists():
        path = folder / f"{stem}-summary-{number}.{SUFFIXES[form]}"
        number += 1
    write_text(path, content)
    return path
