"""Documents as PDF: what goes where on its pages.

Texts are broken into lines by `typesetting.py`, and charts are the shapes that HTML draws, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from snapviewer.report.blocks import (
    BarChart,
    Block,
    Document,
    Heading,
    LineChart,
    Listing,
    Paragraph,
    Span,
    Table,
    Text,
)
from snapviewer.report.writers.charts import draw
from snapviewer.report.writers.colors import Ink
from snapviewer.report.writers.fonts import PdfUnavailable
from snapviewer.report.writers.pages import LEADING, PAGE_ROOM, ROOM, SIDE, TOP, Pages, new_pages
from snapviewer.report.writers.pdf_table import LEAST_HEIGHT, write_table
from snapviewer.report.writers.shapes import Drawing
from snapviewer.report.writers.typesetting import TextLine

__all__ = ["PdfUnavailable", "as_pdf"]

# In points.
_TITLE, _BODY, _SMALL = 22.0, 10.5, 9.0
_HEADINGS = {2: 15.0, 3: 12.0, 4: 10.5}
_ABOVE = {2: 26.0, 3: 14.0, 4: 10.0}
_TIGHT = 1.4  # between the lines of a heading
_BELOW = 5.0
_GAP = 8.0
_INDENT = 18.0
_POINTS_PER_PX = 0.75
_HEADING_ROOM = 110.0  # what a chart leaves free on a page for the headings before it
_LINE = _BODY * LEADING


def as_pdf(document: Document) -> bytes:
    """Render a document as PDF.

    Raises:
        PdfUnavailable: fpdf2 or a font with Chinese letters is not installed.
    """
    pages = new_pages(document.title, document.language)
    title = pages.lines((Span(document.title.strip(), "strong"),), ROOM, _TITLE)
    pages.write_lines(title, _TITLE, leading=_TIGHT)
    pages.y += 12
    for index in range(len(document.blocks)):
        _write_block(pages, document.blocks, index)
    if document.colophon.strip():
        lines = pages.lines((Span(document.colophon),), ROOM, _SMALL)
        pages.make_room(24 + len(lines) * _SMALL * LEADING)
        pages.rule(pages.y + 14, "grid")
        pages.y += 20
        pages.write_lines(lines, _SMALL, ink="secondary")
    return pages.finished(document.title)


def _write_block(pages: Pages, blocks: Sequence[Block], index: int) -> None:
    match blocks[index]:
        case Heading() as heading:
            pages.make_room(_least(pages, blocks, index))
            _write_heading(pages, heading)
        case Paragraph(text, "plain"):
            lines = pages.lines(text, ROOM, _BODY)
            is_title = all(span.style == "strong" for span in text)  # it stays with what follows
            pages.make_room(min(len(lines), 3) * _LINE + (3 * _LINE if is_title else 0))
            pages.write_lines(lines, _BODY)
            pages.y += _GAP
        case Paragraph(text, tone):
            _write_box(pages, text, tone)
        case Listing() as listing:
            _write_listing(pages, listing)
        case Table() as table:
            if table.columns:
                write_table(pages, table)
        case BarChart() | LineChart() as chart:
            _write_chart(pages, chart)


def _least(pages: Pages, blocks: Sequence[Block], index: int) -> float:
    """Return the height that a block needs at least; headings stay with what follows them."""
    height = 0.0
    for block in blocks[index:]:
        match block:
            case Heading():
                size = _HEADINGS[_level(block)]
                height += _ABOVE[_level(block)] + _BELOW
                height += len(_heading_lines(pages, block)) * size * _TIGHT
                if height > PAGE_ROOM / 2:
                    return height  # so many headings cannot all stay together
                continue
            case BarChart() | LineChart():
                lines, drawing, scale = _chart(pages, block)
                height += len(lines) * _LINE + drawing.height_px * scale
            case Table():
                height += LEAST_HEIGHT
            case _:
                height += 3 * _LINE
        break
    return height


def _level(heading: Heading) -> int:
    return min(max(heading.level, 2), 4)


def _heading_lines(pages: Pages, heading: Heading) -> tuple[TextLine, ...]:
    return pages.lines((Span(heading.title.strip(), "strong"),), ROOM, _HEADINGS[_level(heading)])


def _write_heading(pages: Pages, heading: Heading) -> None:
    level = _level(heading)
    if pages.y > TOP:
        pages.y += _ABOVE[level]
        if level == 2:
            pages.rule(pages.y - 12, "grid")
    pages.bookmark(heading.title, level - 2)
    ink = "secondary" if level == 4 else "text"
    lines = _heading_lines(pages, heading)
    pages.write_lines(lines, _HEADINGS[level], ink=ink, leading=_TIGHT)
    pages.y += _BELOW


def _write_box(pages: Pages, text: Text, tone: Ink) -> None:
    """Write a paragraph that is set apart; each line brings its part of the box."""
    lines = pages.lines(text, ROOM - 24, _BODY)
    pages.make_room(min(len(lines) * _LINE + 12, PAGE_ROOM / 2))
    for index, line in enumerate(lines):
        above = 6.0 if index == 0 else 0.0
        height = above + _LINE + (6.0 if index == len(lines) - 1 else 0.0)
        pages.make_room(height)
        pages.fill(SIDE, pages.y, ROOM, height, "panel")
        pages.fill(SIDE, pages.y, 3, height, tone)
        pages.set_line(line, SIDE + 14, pages.y + above, _BODY)
        pages.y += height
    pages.y += _GAP


def _write_listing(pages: Pages, listing: Listing) -> None:
    """Write a list; its marks stand to the left of the points."""
    widest = pages.width(f"{len(listing.items)}.", _BODY)
    indent = max(_INDENT, widest + 8)
    for number, item in enumerate(listing.items, start=1):
        lines = pages.lines(item, ROOM - indent, _BODY)
        pages.make_room(min(len(lines), 3) * _LINE)
        if listing.is_ordered:
            mark = pages.lines((Span(f"{number}."),), ROOM, _BODY)[0]
            left = SIDE + indent - 6 - mark.width
            pages.set_line(mark, left, pages.y, _BODY, ink="secondary")
        else:
            pages.dot(SIDE + indent - 9, pages.y + _LINE / 2, 1.7, "secondary")
        pages.write_lines(lines, _BODY, indent=indent)
        pages.y += 2
    pages.y += _GAP - 2


def _chart(
    pages: Pages, chart: BarChart | LineChart
) -> tuple[tuple[TextLine, ...], Drawing, float]:
    """Lay out a chart and its title; one that is higher than a page becomes smaller."""
    lines = pages.lines((Span(chart.title.strip(), "strong"),), ROOM, _BODY)
    lines = lines[:8]  # the title of a chart is no essay
    drawing = draw(chart, width_px=ROOM / _POINTS_PER_PX)
    room = PAGE_ROOM - _HEADING_ROOM - len(lines) * _LINE
    return lines, drawing, min(_POINTS_PER_PX, room / drawing.height_px)


def _write_chart(pages: Pages, chart: BarChart | LineChart) -> None:
    lines, drawing, scale = _chart(pages, chart)
    pages.make_room(len(lines) * _LINE + 4 + drawing.height_px * scale)
    pages.write_lines(lines, _BODY)
    pages.y += 4
    pages.draw(drawing, scale)
    pages.y += drawing.height_px * scale + 12
