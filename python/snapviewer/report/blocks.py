"""The blocks of a report as plain data, which the writers render as text, Markdown, HTML and PDF.

Texts are unescaped: a writer escapes what is markup in its format. Values of charts are in the unit
that the chart names, and a chart has no more points than a reader can distinguish.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Language: TypeAlias = Literal["zh", "en"]
Tone: TypeAlias = Literal["plain", "good", "warning", "bad"]
Style: TypeAlias = Literal["plain", "strong", "code"]


class Span(NamedTuple):
    """A run of text in one style; `code` is for names, paths and commands."""

    text: str
    style: Style = "plain"


Text: TypeAlias = tuple[Span, ...]


def text(*parts: str | Span) -> Text:
    """Return a text of strings, which are plain, and spans."""
    return tuple(Span(part) if isinstance(part, str) else part for part in parts)


def strong(words: str) -> Span:
    """Return bold text."""
    return Span(words, "strong")


def code(words: str) -> Span:
    """Return a name, a path or a command."""
    return Span(words, "code")


class Heading(NamedTuple):
    """A heading; the title of the document is not one. Levels are 2, 3 and 4."""

    level: int
    title: str


class Paragraph(NamedTuple):
    """A paragraph; with a tone it is in a box."""

    text: Text
    tone: Tone = "plain"


class Listing(NamedTuple):
    """A list, numbered or with bullets."""

    items: tuple[Text, ...]
    is_ordered: bool = False


class Column(NamedTuple):
    """A column of a table; numbers are aligned to the right."""

    title: str
    is_number: bool = False


class Table(NamedTuple):
    """A table; its last row may be the sum of the others."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Text, ...], ...]
    has_total: bool = False

    def full_rows(self, *, bold_total: bool = False) -> list[tuple[Text, ...]]:
        """Return the rows with one cell for each column, and on request the total in bold."""
        count = len(self.columns)
        rows = [(*row[:count], *[()] * (count - len(row))) for row in self.rows]
        if rows and self.has_total and bold_total:
            rows[-1] = tuple(
                tuple(strong(span.text) if span.style == "plain" else span for span in cell)
                for cell in rows[-1]
            )
        return rows


class Bar(NamedTuple):
    """A bar of a chart, not negative; `note` is the text at its end, such as `5.31 GB`."""

    label: str
    value: float
    note: str
    tone: Tone = "plain"


class BarChart(NamedTuple):
    """Horizontal bars on an axis that begins at zero."""

    title: str
    unit: str
    bars: tuple[Bar, ...]


class Series(NamedTuple):
    """A line through points in ascending x; a trend is dashed and has no dots."""

    name: str
    points: tuple[tuple[float, float], ...]
    is_trend: bool = False


class LineChart(NamedTuple):
    """Lines over a common x axis, with a legend if there are several."""

    title: str
    x_title: str
    unit: str
    series: tuple[Series, ...]


Block: TypeAlias = Heading | Paragraph | Listing | Table | BarChart | LineChart


class Document(NamedTuple):
    """A report; the colophon is a line at its end."""

    title: str
    language: Language
    blocks: tuple[Block, ...]
    colophon: str
