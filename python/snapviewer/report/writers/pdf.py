"""Documents as PDF, typeset by Typst with the template `report.typ`.

Typst breaks lines in both languages, repeats the head of a table on each page, numbers the pages
and embeds what it needs of a font. Charts are the drawings that HTML shows, too.
"""

from __future__ import annotations

import json
import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from snapviewer.report import blocks
from snapviewer.report.writers.charts import draw
from snapviewer.report.writers.colors import PALETTES
from snapviewer.report.writers.lettering import MAX_SPAN_CHARS, columns
from snapviewer.report.writers.svg import as_svg
from snapviewer.text.sanitize import sanitize

if TYPE_CHECKING:
    from typst import Fonts

Lack: TypeAlias = Literal["library", "font", "chosen font"]

FONT_VARIABLE = "SNAPVIEWER_FONT"

_INSTALL = "pip install typst pylopdf-fonts-zh-cn"
_SENTENCES: dict[Lack, dict[blocks.Language, str]] = {
    "library": {
        "zh": f"生成 PDF 需要 Typst，请安装：{_INSTALL}",
        "en": f"PDF output needs Typst; install it with: {_INSTALL}",
    },
    "font": {
        "zh": (
            f"没有找到中文字体，请安装：{_INSTALL}，或者让环境变量 {FONT_VARIABLE} 指向一个字体文件"
        ),
        "en": (
            f"no font with Chinese letters was found; install one with: {_INSTALL}, "
            f"or set {FONT_VARIABLE} to a font file"
        ),
    },
    "chosen font": {
        "zh": f"环境变量 {FONT_VARIABLE} 所指的文件不是字体",
        "en": f"{FONT_VARIABLE} is not set to a font file",
    },
}

_FONT_PACKAGE = "pylopdf_fonts_zh_cn"
# Fonts with Chinese letters that the package and operating systems bring, the better ones first.
_FAMILIES = (
    "Noto Sans SC",
    "Noto Sans CJK SC",
    "Source Han Sans SC",
    "Source Han Sans CN",
    "PingFang SC",
    "Hiragino Sans GB",
    "Microsoft YaHei",
    "DengXian",
    "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei",
    "SimHei",
    "Droid Sans Fallback",
    "Heiti SC",
    "STHeiti",
    "Arial Unicode MS",
    "SimSun",
)

_TEMPLATE = Path(__file__).with_name("report.typ")
_CHART_PX = 650.0  # as wide as a page, at 0.75 points a pixel
_MAX_CHART_PX = 800.0  # as high as a page, less its headings
_MAX_SHORT, _MAX_NUMBER = 18, 30  # letters in a column that is as wide as it needs
_MAX_WEIGHT = 40
_REGIONS = {"zh": "CN", "en": "US"}
_COLORS = {ink: "#{:02x}{:02x}{:02x}".format(*color) for ink, color in PALETTES["light"].items()}

_LONG_WORD = re.compile(r"[!-~]{17,}")
_JOINT = re.compile(r"(?<=[/\\_.=:-])(?=\w)")
_LONG_PIECE = re.compile("([^\u200b]{16})(?=[^\u200b])")


class PdfUnavailable(RuntimeError):  # noqa: N818 - it is no fault of the program
    """A PDF cannot be made here: something is not installed."""

    def __init__(self, lack: Lack) -> None:
        super().__init__(_SENTENCES[lack]["en"])
        self.lack: Lack = lack

    def sentence(self, language: blocks.Language) -> str:
        """Say what is missing and how to get it."""
        return _SENTENCES[self.lack][language]


def as_pdf(document: blocks.Document) -> bytes:
    """Render a document as PDF.

    Raises:
        PdfUnavailable: Typst or a font with Chinese letters is not installed.
    """
    family, fonts = find_font()
    from typst import Compiler

    report = {
        "title": sanitize(document.title, MAX_SPAN_CHARS),
        "heading": _words(document.title).strip(),
        "lang": document.language,
        "region": _REGIONS[document.language],
        "font": family,
        "colors": _COLORS,
        "blocks": [_block(block, family) for block in document.blocks],
        "colophon": _words(document.colophon).strip(),
    }
    compiler = Compiler(
        _TEMPLATE.read_bytes(), font_paths=fonts, sys_inputs={"report": json.dumps(report)}
    )
    pdf = compiler.compile(format="pdf")
    assert isinstance(pdf, bytes)
    return pdf


def find_font() -> tuple[str, Fonts]:
    """Find a font with Chinese letters, for both languages.

    That is the file that the environment variable `SNAPVIEWER_FONT` names, or else a font of the
    extra `pdf`, or else one of the system.

    Returns:
        Its family, and the fonts that Typst may use: those of the system have other letters.

    Raises:
        PdfUnavailable: There is none, or Typst is not installed.
    """
    try:
        from typst import Fonts
    except ImportError:
        raise PdfUnavailable("library") from None
    if chosen := os.environ.get(FONT_VARIABLE):
        path = Path(chosen).absolute()
        fonts = Fonts(include_embedded_fonts=False, font_paths=[path.parent])
        named = [font.family for font in fonts.fonts() if font.path == str(path)]
        if not named:
            raise PdfUnavailable("chosen font")
        # Of a collection, the font for Chinese as it is written in China.
        return next((family for family in named if family.endswith(" SC")), named[0]), fonts
    package = find_spec(_FONT_PACKAGE)
    folders = [Path(package.origin).parent] if package and package.origin else []
    fonts = Fonts(include_embedded_fonts=False, font_paths=folders)
    there = set(fonts.families())
    for family in _FAMILIES:
        if family in there:
            return family, fonts
    raise PdfUnavailable("font")


def _block(block: blocks.Block, family: str) -> dict[str, Any]:
    """Return a block as the template takes it."""
    match block:
        case blocks.Heading(level, title):
            level = min(max(level, 2), 4)
            return {"kind": "heading", "level": level - 1, "title": _words(title).strip() or "–"}
        case blocks.Paragraph(text, tone):
            kind = "paragraph" if tone == "plain" else "box"
            return {"kind": kind, "text": _spans(text), "tone": tone}
        case blocks.Listing(items, is_ordered):
            return {"kind": "list", "ordered": is_ordered, "items": list(map(_spans, items))}
        case blocks.Table():
            return _table(block)
        case blocks.BarChart() | blocks.LineChart() as chart:
            drawing = draw(chart, width_px=_CHART_PX)
            return {
                "kind": "chart",
                "title": _words(chart.title).strip(),
                "svg": as_svg(drawing, title=chart.title, style=_svg_style(family)),
                "width": min(1.0, _MAX_CHART_PX / drawing.height_px),
            }


def _table(table: blocks.Table) -> dict[str, Any]:
    """Return a table; columns of numbers and short texts take what they need, others the rest."""
    rows = table.full_rows(bold_total=True)
    widths: list[int | None] = []
    for place, column in enumerate(table.columns):
        widest = max([columns(column.title), *(_width(row[place]) for row in rows)])
        is_short = widest <= (_MAX_NUMBER if column.is_number else _MAX_SHORT)
        widths.append(None if is_short else min(widest, _MAX_WEIGHT))
    if not any(widths):
        are_numbers = all(column.is_number for column in table.columns)
        widths = [1] * len(widths) if are_numbers else [1, *widths[1:]]
    return {
        "kind": "table",
        "widths": widths,
        "numbers": [column.is_number for column in table.columns],
        "head": [_words(column.title) for column in table.columns],
        "rows": [[_spans(cell) for cell in row] for row in rows],
        "breakable": len(rows) > 10 or sum(_width(cell) for row in rows for cell in row) > 2000,
    }


def _width(text: blocks.Text) -> int:
    return sum(columns(span.text[:500]) for span in text)


def _spans(text: blocks.Text) -> list[tuple[str, str]]:
    return [(span.style, _words(span.text)) for span in text]


def _words(text: str) -> str:
    r"""Sanitize a text, and mark with U+200B where its long words may break.

    >>> _words("see\nmodel.layers.0.weight").replace("\u200b", "|")
    'see model.|layers.|0.|weight'
    """
    return _LONG_WORD.sub(
        lambda word: _LONG_PIECE.sub("\\1\u200b", _JOINT.sub("\u200b", word[0])),
        sanitize(text, MAX_SPAN_CHARS, strip=False),
    )


def _svg_style(family: str) -> str:
    inks = "".join(
        f".fill-{ink} {{ fill: {color} }} .stroke-{ink} {{ stroke: {color} }}\n"
        for ink, color in _COLORS.items()
    )
    return f'{inks}polyline {{ fill: none; stroke-width: 2 }} text {{ font-family: "{family}" }}'
