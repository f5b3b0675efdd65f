"""What a report says, as plain data: the blocks that Markdown, HTML and PDF render.

Texts are as they should be read; a renderer escapes what its format would obey. Values of charts
are in the unit that the chart names, and a chart has as many points as a reader can tell apart:
whoever makes one thins it out first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Language: TypeAlias = Literal["zh", "en"]
Tone: TypeAlias = Literal["plain", "good", "warning", "bad"]
Style: TypeAlias = Literal["plain", "strong", "code"]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of text in one style; `code` is for names, paths and commands."""

    text: str
    style: Style = "plain"


Text: TypeAlias = tuple[Span, ...]


def text(*parts: str | Span) -> Text:
    """Put a text together; a bare string is plain."""
    return tuple(Span(part) if isinstance(part, str) else part for part in parts)


def strong(words: str) -> Span:
    """Return words that stand out."""
    return Span(words, "strong")


def code(words: str) -> Span:
    """Return words that a program uses: a name, a path, a command."""
    return Span(words, "code")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading; the title of the document is not one. Levels are 2, 3 and 4."""

    level: int
    title: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph; with a tone it is set apart, in a box."""

    text: Text
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of points, numbered or not."""

    items: tuple[Text, ...]
    is_ordered: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; numbers stand to the right."""

    title: str
    is_number: bool = False


@dataclass(frozen=True, slots=True)
class Table:
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


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a chart, never below zero; `note` is what stands at its end, such as `5.31 GB`."""

    label: str
    value: float
    note: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class BarChart:
    """Bars below each other, one a row, on an axis that begins at zero."""

    title: str
    unit: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Series:
    """A line through points whose x grows; a trend is dashed and has no dots."""

    name: str
    points: tuple[tuple[float, float], ...]
    is_trend: bool = False


@dataclass(frozen=True, slots=True)
class LineChart:
    """Lines over a common axis, with a legend if there are several."""

    title: str
    x_title: str
    unit: str
    series: tuple[Series, ...]


Block: TypeAlias = Heading | Paragraph | Listing | Table | BarChart | LineChart


@dataclass(frozen=True, slots=True)
class Document:
    """A report: what it is called, what it says, and a line at its end that tells who wrote it."""

    title: str
    language: Language
    blocks: tuple[Block, ...]
    colophon: str
