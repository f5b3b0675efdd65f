"""HTML: one balanced page that runs nothing, asks for nothing, and shows what it was given."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapviewer.report import blocks as b
from snapviewer.report.blocks import code, strong, text
from snapviewer.report.writers.colors import PALETTES
from snapviewer.report.writers.html import as_html
from support.documents import hostile_report, long_report, memory_report

VOID = {"meta"}
HTML_TAGS = set(
    re.findall(
        r"\w+",
        "html head meta title style body main h1 h2 h3 h4 nav p ol ul li a div table thead tbody "
        "tr th td strong code figure figcaption footer svg rect line polyline circle text",
    )
)
ATTRIBUTES = set(
    re.findall(
        r"\S+",
        "lang charset http-equiv content name id href class scope tabindex aria-label xmlns "
        "viewbox role x y x1 y1 x2 y2 width height points stroke-dasharray cx cy r font-size "
        "text-anchor",
    )
)

REPORTS = [memory_report, long_report, hostile_report]


class Page(HTMLParser):
    """Reads a page: its elements, its attributes and its words. It fails if it is unbalanced."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[tuple[str, str]] = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.extend(attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.extend(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.words.append((self.open[-1] if self.open else "", data))

    def text_of(self, tag: str) -> list[str]:
        return [words for where, words in self.words if where == tag]


def page(*blocks: b.Block) -> Page:
    return Page(as_html(b.Document("title", "en", blocks, "colophon")))


@pytest.mark.parametrize("make", REPORTS)
def test_a_page_is_balanced_and_has_only_elements_that_do_nothing(
    make: Callable[[], b.Document],
) -> None:
    read = Page(as_html(make()))

    assert set(read.tags) <= HTML_TAGS
    assert {name for name, _ in read.attributes} <= ATTRIBUTES
    places = [value for name, value in read.attributes if name == "href"]
    assert all(value and re.fullmatch(r"#s\d+", value) for value in places)


@pytest.mark.parametrize("make", REPORTS)
def test_drawings_are_xml_with_a_title(make: Callable[[], b.Document]) -> None:
    drawings = re.findall(r"<svg.*?</svg>", as_html(make()), re.DOTALL)

    assert drawings
    for drawing in drawings:
        root = ElementTree.fromstring(drawing)
        assert root.get("role") == "img"
        assert root[0].tag.endswith("title")


def test_the_policy_allows_the_style_sheet_and_nothing_else() -> None:
    source = as_html(memory_report())

    (style,) = re.findall(r"<style>(.*?)</style>", source, re.DOTALL)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', source)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()

    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}';")
    assert "url(" not in style
    assert "@import" not in style
    assert "style=" not in source, "the policy forbids styles on elements"


def test_a_page_says_its_language_and_encoding() -> None:
    chinese, english = as_html(memory_report()), as_html(long_report())

    assert '<html lang="zh-CN">' in chinese
    assert '<html lang="en">' in english
    assert '<meta charset="utf-8">' in chinese


def test_a_report_shows_its_numbers_and_headings() -> None:
    read = Page(as_html(memory_report()))

    assert read.text_of("h1") == ["显存分析报告"]
    assert "模型加载阶段显存消耗" in read.text_of("h3")
    assert {"10.58", "64.6 %", "16.38"} <= set(read.text_of("td"))
    assert "各组件的显存占用" in read.text_of("figcaption")
    assert "10.58 GB" in read.text_of("text")
    assert read.text_of("footer") == ["由 snapviewer 生成 · 报告格式 1"]


def test_the_contents_are_the_second_level_and_lead_there() -> None:
    source = as_html(memory_report())
    read = Page(source)

    assert read.text_of("a") == read.text_of("h2")
    for place in re.findall(r'href="#(s\d+)"', source):
        assert f'<h2 id="{place}">' in source


def test_few_headings_need_no_contents() -> None:
    assert "nav" not in page(b.Heading(2, "a"), b.Heading(2, "b")).tags


def test_blocks_become_their_elements() -> None:
    read = page(
        b.Paragraph(text("a ", strong("b"), " ", code("c"))),
        b.Paragraph(text("leak"), "bad"),
        b.Listing((text("one"),), is_ordered=True),
        b.Table((b.Column("n", is_number=True),), ((text("1"),), (text("2"),)), has_total=True),
    )

    assert read.text_of("strong") == ["b"]
    assert read.text_of("code") == ["c"]
    assert read.text_of("li") == ["one"]
    classes = [value for name, value in read.attributes if name == "class"]
    assert classes == ["box bad", "wide", "number", "number", "total", "number"]


def test_every_colour_of_a_drawing_is_in_the_style_sheet_for_light_and_dark() -> None:
    source = as_html(memory_report())

    used = set(re.findall(r'class="((?:fill|stroke)-\w+)"', source))

    assert used
    for name in used:
        assert f".{name} {{" in source
    for ink in PALETTES["light"]:
        assert source.count(f"  --{ink}: #") == 2


def test_a_name_of_megabytes_is_cut_and_nothing_unprintable_stays() -> None:
    source = as_html(hostile_report())

    source.encode()
    assert len(source) < 100_000
    assert all(letter.isprintable() or letter == "\n" for letter in source)


@given(st.text())
def test_any_text_is_shown_as_it_is(words: str) -> None:
    shown = re.sub(r"\s+", " ", words)
    shown = "".join(letter if letter.isprintable() else "?" for letter in shown)

    read = page(
        b.Paragraph(text(f"<{words}>")),
        b.BarChart(words, words, (b.Bar(words, 1, words),)),
        b.LineChart(words, words, words, (b.Series(words, ((0, 1),)), b.Series(words, ()))),
    )

    assert "".join(read.text_of("p")) == f"<{shown}>"
    assert set(read.tags) <= HTML_TAGS
