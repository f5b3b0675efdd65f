"""The panel Source Code: `forward` first, then the whole class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pygments.token import Comment, Keyword, Name, Number, Operator, String, Token
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax

from snapviewer.explorer.labels import type_text
from snapviewer.explorer.sources import Code, codes_of
from snapviewer.explorer.subject import Subject

from .parts import QUIET, more, section, sentence, shown, stacked, title

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snapviewer.explorer.subject import Item

# Of a terminal's own colours, so that it can be read in the dark and in the light.
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


def content(subject: Subject, item: Item, width: int) -> RenderableType:
    """Show the code of a module, or say why there is none."""
    node = subject.node_of(item)
    found = codes_of(subject, node)
    return stacked(
        title(node.path or subject.tree.name, type_text(node), width),
        sentence(found.reason) if found.reason else None,
        *(section(code.name, _piece(code, width)) for code in found.codes),
    )


def _piece(code: Code, width: int) -> RenderableType:
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
    place = f"{shown(code.place, max(20, width - len(line)))}{line}"
    return stacked(
        sentence(place, style=QUIET), syntax, more(code.left_lines) if code.left_lines else None
    )
