"""Pages of a PDF, with fpdf2: texts, lines and charts at places. Only this file knows about it.

There is one font, and in one weight: words in bold are filled and stroked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from snapviewer.report.blocks import Language, Span, Text
from snapviewer.report.writers.colors import PALETTES, Ink
from snapviewer.report.writers.fonts import PdfUnavailable, chinese_font, face_number
from snapviewer.report.writers.lettering import one_line
from snapviewer.report.writers.shapes import Dot, Drawing, Label, Line, Polyline, Rect, Shape
from snapviewer.report.writers.typesetting import EmOf, TextLine, broken

if TYPE_CHECKING:
    from fpdf import FPDF

# In points: an A4 page, and what is left free around it.
WIDTH, HEIGHT = 595.28, 841.89
SIDE, TOP, BOTTOM = 54.0, 54.0, 62.0
ROOM = WIDTH - 2 * SIDE
RIGHT = WIDTH - SIDE
PAGE_ROOM = HEIGHT - TOP - BOTTOM
LEADING = 1.6

_FONT = "report"
_FOOTER = 8.0
_LANGUAGES = {"zh": "zh-CN", "en": "en"}
_COLORS = PALETTES["light"]
_SHARES = {"start": 0.0, "middle": 0.5, "end": 1.0}


def new_pages(title: str, language: Language) -> Pages:
    """Begin a PDF.

    Raises:
        PdfUnavailable: fpdf2 or a font with Chinese letters is not installed.
    """
    try:
        from fpdf import FPDF
        from fpdf.fonts import TTFFont
    except ImportError:
        raise PdfUnavailable("library") from None
    path = chinese_font()
    if path is None:
        raise PdfUnavailable("font")
    pdf = FPDF(unit="pt", format="A4")
    pdf.add_font(_FONT, fname=path, collection_font_number=face_number(path))
    font = pdf.fonts[_FONT]
    assert isinstance(font, TTFFont)
    pdf.set_font(_FONT, size=10)
    pdf.set_auto_page_break(False)
    pdf.set_title(one_line(title).strip())
    pdf.set_lang(_LANGUAGES[language])
    pdf.set_creator("snapviewer")
    return Pages(pdf, lambda letter: ord(letter) in font.cmap)


class Pages:
    """The pages written so far, and where on the last one the next thing goes.

    Attributes:
        y: How far down that is, in points.
    """

    def __init__(self, pdf: FPDF, has_letter: Callable[[str], bool]) -> None:
        self.y = TOP
        self._pdf = pdf
        self._has_letter = has_letter
        self._em_of: EmOf = cache(self._measured)
        pdf.add_page()

    def _measured(self, letter: str) -> float:
        self._pdf.set_font(_FONT, size=100)
        return self._pdf.get_string_width(letter) / 100

    def make_room(self, height: float) -> bool:
        """Begin a page unless there is room for so much, or this page has nothing yet."""
        if self.y + height <= HEIGHT - BOTTOM or self.y <= TOP:
            return False
        self._pdf.add_page()
        self.y = TOP
        return True

    def readable(self, words: str) -> str:
        """Replace what the font lacks: it would be an empty box, and fpdf2 would complain."""
        return "".join(c if self._has_letter(c) else "?" for c in one_line(words))

    def lines(self, text: Text, room: float, size: float) -> tuple[TextLine, ...]:
        """Break a text into lines."""
        shown = tuple(Span(self.readable(span.text), span.style) for span in text)
        return broken(shown, room, size, self._em_of)

    def width(self, words: str, size: float) -> float:
        """Measure words that are `readable`."""
        return size * sum(map(self._em_of, words))

    def write_lines(
        self,
        lines: Sequence[TextLine],
        size: float,
        *,
        indent: float = 0.0,
        ink: Ink = "text",
        leading: float = LEADING,
    ) -> None:
        """Write lines below each other, over as many pages as they need."""
        for line in lines:
            self.make_room(size * leading)
            self.set_line(line, SIDE + indent, self.y, size, ink=ink, leading=leading)
            self.y += size * leading

    def set_line(
        self,
        line: TextLine,
        x: float,
        top: float,
        size: float,
        *,
        ink: Ink = "text",
        leading: float = LEADING,
    ) -> None:
        """Set a line whose upper edge is at `top`, the space between lines included."""
        # Letters reach about 0.85 above where they stand and 0.15 below, Chinese ones the most.
        base = top + (leading / 2 + 0.35) * size
        for span in line.spans:
            width = self.width(span.text, size)
            if span.style == "code":
                self.fill(x - 1.5, base - size, width + 3, 1.32 * size, "code")
            self.set_words(span.text, x, base, size, ink, is_strong=span.style == "strong")
            x += width

    def set_words(
        self, words: str, x: float, base: float, size: float, ink: Ink, *, is_strong: bool = False
    ) -> None:
        """Set words that stand at `base`."""
        from fpdf.enums import TextMode

        if not words.strip():
            return
        color = _COLORS[ink]
        mode = TextMode.FILL_STROKE if is_strong else TextMode.FILL
        self._pdf.set_font(_FONT, size=size)
        self._pdf.set_text_color(*color)
        # Within a context, or the mode would hold for all that comes after.
        with self._pdf.local_context(text_mode=mode, line_width=0.032 * size, draw_color=color):
            self._pdf.text(x, base, words)

    def fill(self, x: float, y: float, width: float, height: float, ink: Ink) -> None:
        """Fill a rectangle."""
        self._pdf.set_fill_color(*_COLORS[ink])
        self._pdf.rect(x, y, width, height, style="F")

    def dot(self, x: float, y: float, radius: float, ink: Ink) -> None:
        """Fill a circle around a place."""
        self._pdf.set_fill_color(*_COLORS[ink])
        self._pdf.circle(x, y, radius, style="F")

    def rule(self, y: float, ink: Ink) -> None:
        """Draw a thin line across the page."""
        self._stroke(ink, 0.6)
        self._pdf.line(SIDE, y, RIGHT, y)

    def bookmark(self, words: str, level: int) -> None:
        """Put this place among the bookmarks of the document; levels begin at 0."""
        self._pdf.set_y(self.y)
        self._pdf.start_section(one_line(words).strip() or "–", level, strict=False)

    def draw(self, drawing: Drawing, scale: float) -> None:
        """Draw a chart here; `scale` is how many points a pixel is."""
        for shape in drawing.shapes:
            self._draw(shape, scale)

    def _draw(self, shape: Shape, scale: float) -> None:
        pdf = self._pdf

        def place(x: float, y: float) -> tuple[float, float]:
            return SIDE + x * scale, self.y + y * scale

        match shape:
            case Rect(x, y, width, height, ink):
                self.fill(*place(x, y), width * scale, height * scale, ink)
            case Line(x1, y1, x2, y2, ink):
                self._stroke(ink, scale)
                pdf.line(*place(x1, y1), *place(x2, y2))
            case Polyline(points, ink, is_dashed):
                self._stroke(ink, 2 * scale)
                if is_dashed:
                    pdf.set_dash_pattern(dash=6 * scale, gap=4 * scale)
                pdf.polyline([place(x, y) for x, y in points])
                pdf.set_dash_pattern()
            case Dot(x, y, radius, ink):
                self.dot(*place(x, y), radius * scale, ink)
            case Label(x, y, text, size, anchor, ink):
                words = self.readable(text)
                left, base = place(x, y)
                left -= _SHARES[anchor] * self.width(words, size * scale)
                self.set_words(words, left, base, size * scale, ink)

    def _stroke(self, ink: Ink, width: float) -> None:
        self._pdf.set_draw_color(*_COLORS[ink])
        self._pdf.set_line_width(width)

    def finished(self, title: str) -> bytes:
        """Write the title and the number of the page below each page, and return the file."""
        count = self._pdf.pages_count
        base = HEIGHT - 34
        for number in range(1, count + 1):
            self._pdf.page = number
            # fpdf2 knows what was last drawn on the last page, not on this one: so it is told.
            self._pdf.set_fill_color(*_COLORS["paper"])
            shown = f"{number} / {count}"
            width = self.width(shown, _FOOTER)
            self.set_words(shown, RIGHT - width, base, _FOOTER, "secondary")
            first = self.lines((Span(title.strip()),), ROOM - width - 30, _FOOTER)[0]
            words = "".join(span.text for span in first.spans)
            self.set_words(words, SIDE, base, _FOOTER, "secondary")
        return bytes(self._pdf.output())
