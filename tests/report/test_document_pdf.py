"""PDF: the words are there, in an embedded font, on as many pages as they need."""

from __future__ import annotations

import io
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from snapviewer.report import blocks as b
from snapviewer.report.blocks import code, text
from snapviewer.report.writers import pdf
from snapviewer.report.writers.pdf import FONT_VARIABLE, PdfUnavailable, as_pdf, find_font
from support.documents import LONG_WORD, hostile_report, long_report, memory_report

pytest.importorskip("typst")
pypdf = pytest.importorskip("pypdf")

A4 = (595.28, 841.89)


@pytest.fixture(autouse=True)
def has_font() -> None:
    try:
        find_font()
    except PdfUnavailable as error:
        pytest.skip(str(error))


def read(document: b.Document) -> Any:
    return pypdf.PdfReader(io.BytesIO(as_pdf(document)))


def words_on(page: Any) -> str:
    # Where a font brings its own encoding, pypdf takes each pair of bytes for two letters, and
    # the first byte is zero as long as there are not more than 255 different ones.
    return str(page.extract_text()).replace("\0", "")


def words(reader: Any) -> str:
    return "\n".join(map(words_on, reader.pages))


def letters(shown: str) -> str:
    """A text without spaces and line ends: where lines break is for the page to decide."""
    return re.sub(r"\s", "", shown)


def test_a_chinese_report_has_its_words() -> None:
    reader = read(memory_report())
    shown = words(reader)

    for expected in (
        "显存分析报告",
        "模型加载阶段显存消耗",
        "T5 编码器",
        "10.58",
        "64.6 %",
        "没有归属",
    ):
        assert letters(expected) in letters(shown)
    assert f"1 / {len(reader.pages)}" in shown


def test_the_font_is_embedded_and_only_what_is_needed_of_it() -> None:
    content = as_pdf(memory_report())
    reader = pypdf.PdfReader(io.BytesIO(content))

    used = [font for page in reader.pages for font in page["/Resources"]["/Font"].values()]

    assert used
    for font in used:
        descriptor = font["/DescendantFonts"][0].get_object()["/FontDescriptor"]
        assert "/FontFile2" in descriptor or "/FontFile3" in descriptor
    assert len(content) < 300_000, "the whole font has megabytes"


def test_title_language_and_bookmarks_are_there() -> None:
    reader = read(memory_report())
    bookmarks = list(flat(reader.outline))

    assert reader.metadata.title == "显存分析报告"
    assert reader.trailer["/Root"]["/Lang"] == "zh-CN"
    assert bookmarks[:3] == ["概述", "测试环境", "显存使用分析"]


def flat(outline: list[Any]) -> Iterator[str]:
    for item in outline:
        if isinstance(item, list):
            yield from flat(item)
        else:
            yield str(item["/Title"])


def test_pages_are_numbered_a4_and_without_links() -> None:
    reader = read(long_report())
    count = len(reader.pages)

    assert count > 3
    for number, page in enumerate(reader.pages, start=1):
        assert f"{number} / {count}" in words_on(page)
        assert [float(side) for side in page.mediabox[2:]] == pytest.approx(A4, abs=0.1)
        assert "/Annots" not in page


def test_the_head_of_a_table_is_there_again_on_each_page_and_no_row_is_lost() -> None:
    rows = tuple((text(f"event-{n}-"), text(str(n))) for n in range(120))
    table = b.Table((b.Column("Name of it"), b.Column("Bytes", is_number=True)), rows)

    reader = read(b.Document("t", "en", (table,), ""))
    shown = words(reader)

    assert len(reader.pages) > 2
    assert shown.count("Name of it") == len(reader.pages)
    assert all(f"event-{n}-" in shown for n in range(120))


def test_a_row_higher_than_a_page_goes_on_on_the_next() -> None:
    long = " ".join(f"w{n}w" for n in range(1990))
    table = b.Table(
        (b.Column("a"), b.Column("b")), ((tuple([b.Span(long[:1990])] * 8), text("x")),)
    )

    reader = read(b.Document("t", "en", (table,), ""))

    assert len(reader.pages) > 1
    assert letters(words(reader)).count("w0w") == 8


def test_a_heading_is_never_the_last_thing_on_a_page() -> None:
    # More and more lines between, so that headings come to stand at all heights of a page.
    parts: list[tuple[b.Block, ...]] = [
        (
            *(b.Paragraph(text("line")) for _ in range(count)),
            b.Heading(2, f"HEADING {count}."),
            b.Heading(3, f"SECOND {count}."),
            b.Paragraph(text(f"FOLLOWING {count}.")),
        )
        for count in range(25, 60)
    ]
    pages = list(map(words_on, read(b.Document("t", "en", sum(parts, ()), "")).pages))

    def page_of(words: str) -> int:
        return next(number for number, page in enumerate(pages) if words in page)

    for count in range(25, 60):
        assert page_of(f"HEADING {count}.") == page_of(f"FOLLOWING {count}.")


def test_a_word_without_end_is_broken_and_not_cut_off() -> None:
    blocks = (
        b.Paragraph(text(LONG_WORD)),
        b.Listing((text(code(LONG_WORD)),)),
        b.Table((b.Column("a"), b.Column("b")), ((text(LONG_WORD), text(LONG_WORD)),)),
    )

    reader = read(b.Document("t", "en", blocks, ""))
    edges = [x for page in reader.pages for x in places(page)]

    assert letters(words(reader)).count(LONG_WORD) >= 2
    assert max(edges) < A4[0] - 54


def places(page: Any) -> list[float]:
    """Where on a page the stretches of text begin, from the left."""
    found: list[float] = []
    page.extract_text(visitor_text=lambda part, _, matrix, *rest: found.append(matrix[4]))
    return found


def test_hostile_texts_are_texts(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.WARNING):
        shown = words(read(hostile_report()))

    assert "<script>alert(1)</script>" in shown
    assert "%%{init}%%" in shown
    assert "?[31m" in shown, "an escape sequence of terminals"
    assert caplog.records == []
    assert capfd.readouterr().err == ""


def test_an_empty_document_is_a_page() -> None:
    assert len(read(b.Document("", "zh", (), "")).pages) == 1


def test_without_typst_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "typst", None)

    with pytest.raises(PdfUnavailable, match="pip install typst") as raised:
        as_pdf(memory_report())

    assert "pip install typst" in raised.value.sentence("zh")


def test_without_a_font_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FONT_VARIABLE, raising=False)
    monkeypatch.setattr(pdf, "_FAMILIES", ("No Such Font",))

    with pytest.raises(PdfUnavailable, match=r"pip install .*SNAPVIEWER_FONT"):
        as_pdf(memory_report())


def test_a_chosen_font_is_taken_and_a_bad_one_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(FONT_VARIABLE, raising=False)
    family, fonts = find_font()
    path = next(font.path for font in fonts.fonts() if font.family == family)
    assert path is not None
    chosen = tmp_path / f"mine{Path(path).suffix}"
    chosen.write_bytes(Path(path).read_bytes())
    bad = tmp_path / "bad.ttf"
    bad.write_bytes(b"no font")

    monkeypatch.setenv(FONT_VARIABLE, str(chosen))
    assert find_font()[0] == family
    for other in (bad, tmp_path / "missing.ttf", tmp_path):
        monkeypatch.setenv(FONT_VARIABLE, str(other))
        with pytest.raises(PdfUnavailable, match=FONT_VARIABLE):
            find_font()
