"""The promised functions on logs return the whole report, in either language, with its sections."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from snapviewer.compat import events as compat
from snapviewer.events import (
    add_custom_analysis,
    analyze_log_file,
    generate_html_report,
    generate_pdf_report,
    generate_report,
    register_section,
    unregister_section,
)
from snapviewer.events.analysis import analyze
from snapviewer.events.log import log_of
from snapviewer.events.reader import LogError
from snapviewer.report.blocks import Block, Document, Heading, Language, Listing, Paragraph, text
from snapviewer.report.events.report import report_on
from snapviewer.report.writers.html import as_html
from snapviewer.report.writers.markdown import as_markdown
from support.events_sample import SAMPLE, write_log


@pytest.mark.promise("E12")
def test_the_text_of_a_section_becomes_blocks_until_it_is_removed() -> None:
    def own(data: Mapping[str, object]) -> str:
        return f"# One {len(data)}\n###### Six\n#tag\n\n  - item\n-dash\n### Three"

    document = Document("title", "en", (), "colophon")
    assert not compat.has_sections()
    register_section(own)
    try:
        with_sections = compat.with_sections(document, {"raw_events": []})
        added = add_custom_analysis("\n report \n\n", {"raw_events": []})
        again = add_custom_analysis(added, {"raw_events": []})
        assert compat.has_sections()
    finally:
        unregister_section(own)

    blocks = (
        Heading(2, "One 1"),
        Heading(4, "Six"),
        Paragraph(text("#tag")),
        Listing((text("item"),)),
        Paragraph(text("-dash")),
        Heading(3, "Three"),
    )
    assert with_sections == Document("title", "en", blocks, "colophon")
    written = "## One 1\n\n#### Six\n\n\\#tag\n\n- item\n\n\\-dash\n\n### Three"
    assert added == f"\n report\n\n{written}\n"
    assert again == added
    assert not compat.has_sections()


@pytest.mark.promise("E11", "E13", "E14")
@pytest.mark.parametrize("language", ["zh", "en"])
def test_the_functions_write_the_document_in_its_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, language: Language
) -> None:
    data = analyze_log_file(write_log(tmp_path / "log.json"))
    expected = report_on(analyze(log_of(SAMPLE, "named.json")), language=language, compat=True)
    monkeypatch.setattr(compat, "as_pdf", lambda document: as_markdown(document).encode())
    in_chinese = {} if language == "zh" else {"language": language}  # which is the default

    assert compat.promised_document(data, Path("named.json"), **in_chinese) == expected
    assert generate_report(data, "named.json", **in_chinese) == as_markdown(expected)
    assert generate_html_report(data, "named.json", **in_chinese) == as_html(expected)
    assert generate_pdf_report(data, "named.json", **in_chinese) == as_markdown(expected).encode()


@pytest.mark.promise("E11")
def test_dicts_of_names_and_sizes_are_analyzed_like_events() -> None:
    data = {"peak_memory": {"model_loaded": 3.0}, "incremental_memory": {"t5_loaded": 1.5}}

    made = compat.analysis_of(data, Path("by hand"))

    events = [
        {"event": "model_loaded", "peak_memory": 3 * 2**20},
        {"event": "t5_loaded", "incremental_memory": 3 * 2**19},
    ]
    assert made == analyze(log_of(events, "by hand"))


@pytest.mark.promise("E06", "E10")
def test_a_log_is_read_as_dicts_of_the_highest_peaks(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entries = [
        {"event": "step_0", "peak_memory": 2**19, "incremental_memory": 2**20},
        {"event": "step_1", "peak_memory": 3 * 2**20, "incremental_memory": 0},
        {"event": "step_0", "peak_memory": 2**18, "incremental_memory": -(2**19)},
    ]

    assert analyze_log_file(write_log(tmp_path / "log.json", entries)) == {
        "peak_memory": {"step_0": 0.5, "step_1": 3.0},
        "incremental_memory": {"step_0": -0.5},
        "raw_events": entries,
    }

    path = write_log(tmp_path / "empty.json", [])
    assert analyze_log_file(path) == {}
    with pytest.raises(LogError) as caught:
        log_of([], str(path))
    assert caplog.record_tuples == [("snapviewer.compat.events", logging.ERROR, str(caught.value))]


@pytest.mark.promise("E12")
def test_a_section_may_return_blocks_and_sees_the_data(tmp_path: Path) -> None:
    seen = []

    def own(data: Mapping[str, object]) -> list[Block]:
        seen.append(data)
        return [Heading(2, "Mine")]

    register_section(own)
    try:
        made = compat.promised_document({"peak_memory": {"model_loaded": 3.0}}, "by hand")
    finally:
        unregister_section(own)

    assert made.blocks[-1] == Heading(2, "Mine")
    assert seen == [{"peak_memory": {"model_loaded": 3.0}}]
