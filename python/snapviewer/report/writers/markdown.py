"""Documents as GitHub-flavoured Markdown, with charts in Mermaid (`mermaid.py`)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from snapviewer.report import blocks
from snapviewer.report.writers.lettering import MAX_SPAN_CHARS, columns
from snapviewer.report.writers.mermaid import bar_fence, line_fences
from snapviewer.text.sanitize import sanitize

MARKS = {"plain": "", "good": "✅ ", "warning": "⚠️ ", "bad": "❌ "}

_MAX_PADDED = 60  # characters; wider cells are not padded

# An underscore within a word is not markup, so that `step_0` stays readable.
_SPECIAL = re.compile(
    r"[\\`*\[\]<|~$]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)|:(?=//)|(?<=www)\.", re.IGNORECASE
)
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")
_LIST_NUMBER = re.compile(r"^(\d+)([.)])(?=\s|$)")


def as_markdown(document: blocks.Document) -> str:
    """Render a document as Markdown."""
    parts = [f"# {_heading(document.title)}", blocks_as_markdown(document.blocks).rstrip()]
    if document.colophon.strip():
        parts.append(f"---\n\n{_paragraph(blocks.text(document.colophon))}\n")
    return "\n\n".join(part for part in parts if part)


def blocks_as_markdown(content: Sequence[blocks.Block]) -> str:
    """Render blocks as part of a document."""
    return "\n\n".join(filter(None, map(_block, content))) + "\n"


def _block(block: blocks.Block) -> str:
    match block:
        case blocks.Heading(level, title):
            return f"{'#' * min(max(level, 2), 4)} {_heading(title)}"
        case blocks.Paragraph(text, "plain"):
            return _paragraph(text)
        case blocks.Paragraph(text, tone):
            return f"> {MARKS[tone]}{_paragraph(text)}"
        case blocks.Listing(items, is_ordered):
            return "\n".join(
                f"{f'{number}.' if is_ordered else '-'} {_paragraph(item)}"
                for number, item in enumerate(items, start=1)
            )
        case blocks.Table():
            return _table(block)
        case blocks.BarChart():
            return bar_fence(block)
        case blocks.LineChart():
            names = [_inline(blocks.text(series.name)) for series in block.series]
            return line_fences(block, names)


def _heading(title: str) -> str:
    words = _inline(blocks.text(title)).strip()
    # Number signs at the end would close the heading.
    return re.sub(r"#(#*)$", r"\#\1", words) or "–"


def _paragraph(text: blocks.Text) -> str:
    """Render a text at the beginning of a line, where more characters are markup."""
    words = _inline(text).strip()
    if words[:1] in ("-", "+", "#", ">", "="):
        return f"\\{words}"
    return _LIST_NUMBER.sub(r"\1\\\2", words)


def _inline(text: blocks.Text, *, is_cell: bool = False) -> str:
    """Render spans; neighbours of one style become one, since `**a****b**` is not bold."""
    joined = [
        blocks.Span("".join(span.text for span in spans), style)
        for style, spans in groupby((s for s in text if s.text), key=lambda span: span.style)
    ]
    parts: list[str] = []
    for index, span in enumerate(joined):
        words = sanitize(span.text, MAX_SPAN_CHARS, strip=False)
        before = joined[index - 1].text[-1:] if index else ""
        after = joined[index + 1].text[:1] if index + 1 < len(joined) else ""
        if span.style == "code":
            parts.append(_code(words, is_cell=is_cell))
        elif span.style == "strong":
            parts.append(_strong(words, before, after))
        else:
            parts.append(_escaped(words))
    return "".join(parts)


def _escaped(words: str) -> str:
    r"""Escape markup.

    >>> print(_escaped("step_0 | *a* <b> _c_ 64.6 %"))
    step_0 \| \*a\* \<b> \_c\_ 64.6 %
    """
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", words)


def _strong(words: str, before: str, after: str) -> str:
    """Return words in bold.

    Stars between punctuation and a letter, as in `**显存：**峰值`, are not read as bold. So a colon
    or full stop goes after them; what is left becomes HTML.

    >>> print(_strong("显存：", "", "峰"), _strong("（显存）", "", "峰"))
    **显存**： <strong>（显存）</strong>
    """
    start, core, end = _peeled(words)
    if not core:
        return words
    opens = core[0].isalnum() or bool(start) or not before.strip()
    # Before a space or punctuation bold words may end with anything.
    closes = core[-1].isalnum() or bool(end) or not after.strip()
    inner = _escaped(core)
    bold = f"**{inner}**" if opens and closes else f"<strong>{inner}</strong>"
    return f"{start}{bold}{_escaped(end)}"


def _peeled(words: str) -> tuple[str, str, str]:
    """Split off the spaces around words, and the punctuation at the end."""
    start = words[: len(words) - len(words.lstrip())]
    core = words.strip().rstrip(" ,.:;!?，。：；！？、")
    return start, core, words[len(start) + len(core) :]


def _code(words: str, *, is_cell: bool) -> str:
    """Return words as code, whatever they contain.

    >>> print(_code("a`b", is_cell=False), _code("a|b", is_cell=True))
    ``a`b`` <code>a&#124;b</code>
    """
    words = words.strip()
    if not words:
        return ""
    if is_cell and "|" in words:
        # Tables are split at pipes before code is recognised, and parsers unescape differently;
        # entities work everywhere.
        return f"<code>{_PUNCTUATION.sub(_entity, words)}</code>"
    runs = {len(run) for run in re.findall("`+", words)}
    fence = "`" * next(length for length in range(1, len(words) + 2) if length not in runs)
    pad = " " if words[0] == "`" or words[-1] == "`" else ""
    return f"{fence}{pad}{words}{pad}{fence}"


def _entity(found: re.Match[str]) -> str:
    return f"&#{ord(found[0])};"


def _table(table: blocks.Table) -> str:
    if not table.columns:
        return ""
    head = [_inline(blocks.text(column.title), is_cell=True).strip() for column in table.columns]
    rows = [
        head,
        *(
            [_inline(cell, is_cell=True).strip() for cell in row]
            for row in table.full_rows(bold_total=True)
        ),
    ]
    widths = [
        max(3, *(min(columns(row[index]), _MAX_PADDED) for row in rows))
        for index in range(len(head))
    ]
    rule = [
        f"{'-' * (width - 1)}:" if column.is_number else "-" * width
        for column, width in zip(table.columns, widths, strict=True)
    ]
    lines = [_row(row, widths, table.columns) for row in rows]
    return "\n".join([lines[0], _row(rule, widths, table.columns), *lines[1:]])


def _row(cells: Sequence[str], widths: Sequence[int], layout: Sequence[blocks.Column]) -> str:
    padded = (
        f"{' ' * (width - columns(cell))}{cell}"
        if column.is_number
        else f"{cell}{' ' * (width - columns(cell))}"
        for cell, width, column in zip(cells, widths, layout, strict=True)
    )
    return f"| {' | '.join(padded)} |"
