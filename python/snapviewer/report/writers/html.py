"""Documents as one HTML file without scripts and external resources.

A Content-Security-Policy forbids both, so that text that was not escaped could do nothing; the
style sheet is allowed by its hash.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from html import escape

from snapviewer.report import blocks
from snapviewer.report.writers.charts import SLIM_PX, draw
from snapviewer.report.writers.lettering import MAX_SPAN_CHARS
from snapviewer.report.writers.style_sheet import style_sheet
from snapviewer.report.writers.svg import as_svg
from snapviewer.text.sanitize import sanitize

_LANGUAGES = {"zh": "zh-CN", "en": "en"}
_CONTENTS = {"zh": "目录", "en": "Contents"}
_MIN_CONTENTS = 3  # headings that are worth a table of contents

_TAGS = {"strong": "strong", "code": "code"}


def as_html(document: blocks.Document) -> str:
    """Render a document as an HTML page."""
    return page_of(document.title, "\n".join(_body(document)), language=document.language)


def page_of(
    title: str, body: str, *, language: blocks.Language = "en", more_style: str = ""
) -> str:
    """Return an HTML page.

    Args:
        title: The title, unescaped; also the heading.
        body: HTML in which all text is escaped.
        language: The language of the text.
        more_style: CSS to add to the style sheet of reports.
    """
    title = _words(title).strip()
    style = style_sheet() + more_style
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return f"""<!DOCTYPE html>
<html lang="{_LANGUAGES[language]}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{title}</h1>
{body}
</main>
</body>
</html>
"""


def _body(document: blocks.Document) -> Iterator[str]:
    sections = [
        (number, block)
        for number, block in enumerate(document.blocks)
        if isinstance(block, blocks.Heading) and block.level <= 2
    ]
    if len(sections) >= _MIN_CONTENTS:
        label = _CONTENTS[document.language]
        yield f'<nav aria-label="{label}">\n<p>{label}</p>\n<ol>'
        for number, heading in sections:
            yield f'<li><a href="#s{number}">{_words(heading.title)}</a></li>'
        yield "</ol>\n</nav>"
    for number, block in enumerate(document.blocks):
        yield from _block(block, number)
    if document.colophon.strip():
        yield f"<footer>{_words(document.colophon)}</footer>"


def _block(block: blocks.Block, number: int) -> Iterator[str]:
    match block:
        case blocks.Heading(level, title):
            tag = f"h{min(max(level, 2), 4)}"
            yield f'<{tag} id="s{number}">{_words(title)}</{tag}>'
        case blocks.Paragraph(text, "plain"):
            yield f"<p>{_inline(text)}</p>"
        case blocks.Paragraph(text, tone):
            yield f'<p class="box {tone}">{_inline(text)}</p>'
        case blocks.Listing(items, is_ordered):
            tag = "ol" if is_ordered else "ul"
            yield f"<{tag}>"
            yield from (f"<li>{_inline(item)}</li>" for item in items)
            yield f"</{tag}>"
        case blocks.Table():
            yield from _table(block)
        case blocks.BarChart() | blocks.LineChart():
            title = _words(block.title)
            yield f"<figure>\n<figcaption>{title}</figcaption>"
            yield as_svg(draw(block), title=block.title, kind="broad")
            # The style sheet shows this one on narrow screens.
            yield as_svg(draw(block, width_px=SLIM_PX), title=block.title, kind="slim")
            yield "</figure>"


def _table(table: blocks.Table) -> Iterator[str]:
    kinds = [' class="number"' if column.is_number else "" for column in table.columns]
    yield '<div class="wide" tabindex="0">\n<table>\n<thead>\n<tr>'
    for column, kind in zip(table.columns, kinds, strict=True):
        yield f'<th scope="col"{kind}>{_words(column.title)}</th>'
    yield "</tr>\n</thead>\n<tbody>"
    rows = table.full_rows()
    for number, row in enumerate(rows, start=1):
        yield '<tr class="total">' if table.has_total and number == len(rows) else "<tr>"
        yield "".join(
            f"<td{kind}>{_inline(cell)}</td>" for cell, kind in zip(row, kinds, strict=True)
        )
        yield "</tr>"
    yield "</tbody>\n</table>\n</div>"


def _inline(text: blocks.Text) -> str:
    return "".join(map(_span, text))


def _span(span: blocks.Span) -> str:
    tag = _TAGS.get(span.style)
    words = _words(span.text)
    return f"<{tag}>{words}</{tag}>" if tag and words else words


def _words(text: str) -> str:
    return escape(sanitize(text, MAX_SPAN_CHARS, strip=False))
