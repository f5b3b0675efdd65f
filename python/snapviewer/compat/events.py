"""The promised functions on logs of memory events: dicts in MB of 1024² bytes, Chinese reports."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from snapviewer.events.analysis import Analysis, analyze
from snapviewer.events.log import log_of
from snapviewer.events.reader import LogError, read_entries
from snapviewer.report.blocks import Block, Document, Heading, Language, Listing, Paragraph, text
from snapviewer.report.events.report import report_on
from snapviewer.report.writers.html import as_html
from snapviewer.report.writers.markdown import as_markdown, blocks_as_markdown
from snapviewer.report.writers.pdf import as_pdf

MIB = 2**20

Section: TypeAlias = Callable[[dict[str, Any]], "str | Sequence[Block]"]

_sections: list[Section] = []


def format_b_to_mb(size_bytes: float) -> float:
    """Return bytes as MB of 1024² bytes.

    >>> format_b_to_mb(1048576), format_b_to_mb(1073741824), format_b_to_mb(524288)
    (1.0, 1024.0, 0.5)
    """
    return size_bytes / MIB


def analyze_log_file(file_path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a log.

    Returns:
        `peak_memory` and `incremental_memory`, dicts of event names to MB without zeros, and
        `raw_events`, the events as they are in the file. An empty dict if it cannot be read or has
        no events; the reason is logged as an error.
    """
    entries: list[object] = []

    def kept() -> Iterator[object]:
        for entry in read_entries(file_path):
            entries.append(entry)
            yield entry

    try:
        log = log_of(kept(), os.fsdecode(file_path))
    except (LogError, MemoryError) as error:
        logging.getLogger(__name__).error("%s", error)
        return {}
    peaks: dict[str, float] = {}
    increments: dict[str, float] = {}
    for event in log.events:
        if event.peak_bytes:
            size = max(event.peak_bytes / MIB, peaks.get(event.name, 0.0))
            peaks[event.name] = size
        if event.incremental_bytes:
            increments[event.name] = event.incremental_bytes / MIB
    return {
        "peak_memory": peaks,
        "incremental_memory": increments,
        "raw_events": [entry for entry in entries if isinstance(entry, dict)],
    }


def generate_report(
    analysis_data: Mapping[str, Any], log_path: str | os.PathLike[str], *, language: Language = "zh"
) -> str:
    """Return the report as Markdown, with the registered sections."""
    return as_markdown(promised_document(analysis_data, log_path, language=language))


def generate_html_report(
    analysis_data: Mapping[str, Any], log_path: str | os.PathLike[str], *, language: Language = "zh"
) -> str:
    """Return the report as one HTML page."""
    return as_html(promised_document(analysis_data, log_path, language=language))


def generate_pdf_report(
    analysis_data: Mapping[str, Any], log_path: str | os.PathLike[str], *, language: Language = "zh"
) -> bytes:
    """Return the report as a PDF.

    Raises:
        PdfUnavailable: Something is not installed; the message says how to install it.
    """
    return as_pdf(promised_document(analysis_data, log_path, language=language))


def register_section(section: Section) -> Section:
    """Add a section of your own to every later report; also a decorator.

    Args:
        section: Takes what `analyze_log_file` returned. It returns blocks of
            `snapviewer.report.blocks`, or text: lines that begin with `#` are headings, those
            with `- ` list items, all others paragraphs.
    """
    _sections.append(section)
    return section


def unregister_section(section: Section) -> None:
    """Remove a section."""
    _sections.remove(section)


def add_custom_analysis(report: str, analysis_data: Mapping[str, Any]) -> str:
    """Return a Markdown report with the registered sections at its end."""
    sections = blocks_as_markdown(list(_custom_blocks(analysis_data))).strip()
    if not sections or sections in report:  # `generate_report` has added them
        return report
    return f"{report.rstrip()}\n\n{sections}\n"


def promised_document(
    analysis_data: Mapping[str, Any], log_path: str | os.PathLike[str], *, language: Language = "zh"
) -> Document:
    """Return the report as a document, with the registered sections at its end.

    Raises:
        LogError: There are no events.
    """
    document = report_on(analysis_of(analysis_data, log_path), language=language, compat=True)
    return with_sections(document, analysis_data)


def with_sections(document: Document, analysis_data: Mapping[str, Any]) -> Document:
    """Return a document with the registered sections at its end."""
    blocks = (*document.blocks, *_custom_blocks(analysis_data))
    return Document(document.title, document.language, blocks, document.colophon)


def has_sections() -> bool:
    """Return whether any section is registered."""
    return bool(_sections)


def analysis_of(analysis_data: Mapping[str, Any], log_path: str | os.PathLike[str]) -> Analysis:
    """Analyze what `analyze_log_file` returned, or a similar dict."""
    entries = analysis_data.get("raw_events") or [
        {"event": name, key: round(size * MIB)}
        for key in ("peak_memory", "incremental_memory")
        for name, size in analysis_data.get(key, {}).items()
    ]
    return analyze(log_of(entries, str(log_path)))


def _custom_blocks(analysis_data: Mapping[str, Any]) -> Iterator[Block]:
    for section in _sections:
        made = section(dict(analysis_data))
        yield from _blocks_of(made) if isinstance(made, str) else made


def _blocks_of(words: str) -> Iterator[Block]:
    """Parse the simple Markdown of a section."""
    for line in filter(None, map(str.strip, words.splitlines())):
        level = len(line) - len(line.lstrip("#"))
        if level and line[level:].startswith(" "):
            yield Heading(min(4, max(2, level)), line[level:].strip())
        elif line.startswith("- "):
            yield Listing((text(line[2:]),))
        else:
            yield Paragraph(text(line))
