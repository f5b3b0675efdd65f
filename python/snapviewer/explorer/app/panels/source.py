"""The panel Source Code: `forward` first, then the whole class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygments.token import Comment, Keyword, Name, Number, Operator, String, Token
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax

from snapviewer.explorer.explored_model import ExploredModel, Item
from snapviewer.explorer.labels import type_text
from snapviewer.explorer.sources import SourceExcerpt, module_source

from . import ui

if TYPE_CHECKING:
    from rich.console import RenderableType

# The terminal's own colours, so that it is readable in dark and light.
_THEME = ANSISyntaxTheme(
    {
        Token: Style(),
        Comment: Style(dim=True, italic=True),
        Keyword: Style(color="magenta"),
        Keyword.Constant: Style(color="cyan"),
        Name.Builtin: Style(color="cyan"),
        Name.Builtin.Pseudo: Style(italic=True),
        Name.Class: Style(bold=True),
        Name.Decorator: Style(color="cyan"),
        Name.Function: Style(bold=True),
        Number: Style(color="cyan"),
        Operator.Word: Style(color="magenta"),
        String: Style(color="green"),
        String.Doc: Style(color="green", dim=True),
    }
)


def content(explored: ExploredModel, item: Item, width: int) -> RenderableType:
    """Show the source code of a module, or why there is none."""
    node = explored.node_of(item)
    found = module_source(explored, node)
    return ui.stack(
        ui.title(node.path or explored.tree.name, type_text(node), width),
        ui.sentence(found.reason) if found.reason else None,
        *(ui.section(code.name, _excerpt(code, width)) for code in found.excerpts),
    )


def _excerpt(code: SourceExcerpt, width: int) -> RenderableType:
    syntax = Syntax(
        "\n".join(code.lines),
        "python",
        theme=_THEME,
        background_color="default",
        line_numbers=width >= 50,
        start_line=code.first_line,
        word_wrap=True,
    )
    line = f":{code.first_line}"
    place = f"{ui.short_name(code.place, max(20, width - len(line)))}{line}"
    return ui.stack(
        ui.sentence(place, style=ui.QUIET),
        syntax,
        ui.more(code.left_lines) if code.left_lines else None,
    )
