r"""The formats of a model's report, by the suffix of its file: a registry, open to new ones.

from snapviewer.report.model.formats import report_format

@report_format(".csv")
def as_csv(analysis):
    return "\n".join(f"{item.name},{item.elements}" for item in analysis.parameters.tensors)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias
from xml.sax.saxutils import escape, quoteattr

from snapviewer.model.analysis import ModelAnalysis
from snapviewer.report.model.document import document_of, full_text
from snapviewer.report.model.json import to_json
from snapviewer.report.writers.html import as_html
from snapviewer.report.writers.lettering import MAX_SPAN_CHARS
from snapviewer.report.writers.markdown import as_markdown
from snapviewer.report.writers.pdf import as_pdf
from snapviewer.text.sanitize import (
    json_outline,
    replace_controls,
    replace_unprintable,
    shorten_middle,
)

Format: TypeAlias = Callable[[ModelAnalysis], "str | bytes | Iterator[str]"]

_formats: dict[str, Format] = {}


def report_format(*suffixes: str) -> Callable[[Format], Format]:
    """Add a format for files whose names end so; a suffix that is taken is replaced."""

    def add(function: Format) -> Format:
        _formats.update(dict.fromkeys(suffixes, function))
        return function

    return add


def suffixes() -> tuple[str, ...]:
    """Return the endings that are known."""
    return tuple(_formats)


def rendered(analysis: ModelAnalysis, suffix: str) -> bytes:
    """Return a report in the format of a suffix; what is not known is text."""
    return b"".join(rendered_parts(analysis, suffix))


def rendered_parts(analysis: ModelAnalysis, suffix: str) -> Iterator[bytes]:
    """Yield the parts of a report in the format of a suffix; what is not known is text."""
    made = _formats.get(suffix.lower(), _text)(analysis)
    if isinstance(made, bytes):
        yield made
    else:
        for part in [made] if isinstance(made, str) else made:
            yield replace_controls(part).encode("utf-8", errors="replace")


@report_format(".txt")
def _text(analysis: ModelAnalysis) -> str:
    return "".join(f"{line}\n" for line in full_text(analysis))


@report_format(".json")
def _json(analysis: ModelAnalysis) -> str:
    return f"{json_outline(to_json(analysis))}\n"


@report_format(".html", ".htm")
def _html(analysis: ModelAnalysis) -> str:
    return as_html(document_of(analysis))


@report_format(".md", ".markdown")
def _markdown(analysis: ModelAnalysis) -> str:
    return as_markdown(document_of(analysis))


@report_format(".pdf")
def _pdf(analysis: ModelAnalysis) -> bytes:
    return as_pdf(document_of(analysis))


@report_format(".xml")
def _xml(analysis: ModelAnalysis) -> Iterator[str]:
    """Yield the document with an element for each key, and `item` for those of lists.

    Line by line: a tree of elements takes several times the memory of the document.
    """
    yield '<?xml version="1.0" encoding="utf-8"?>\n'
    yield from _element("model", "", to_json(analysis), "")


def _element(tag: str, attributes: str, value: Any, indent: str) -> Iterator[str]:
    if value is None or value == {} or value == []:
        yield f"{indent}<{tag}{attributes} />\n"
    elif isinstance(value, dict | list):
        yield f"{indent}<{tag}{attributes}>\n"
        inner = f"{indent}  "
        if isinstance(value, list):
            for held in value:
                yield from _element("item", "", held, inner)
        else:
            for key, held in value.items():
                # Names of layers and devices are no names of elements.
                name = str(key)
                if _is_name(name):
                    yield from _element(name, "", held, inner)
                else:
                    yield from _element("entry", f" name={quoteattr(_words(name))}", held, inner)
        yield f"{indent}</{tag}>\n"
    else:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        yield f"{indent}<{tag}{attributes}>{escape(_words(text))}</{tag}>\n"


def _words(text: str) -> str:
    return replace_unprintable(shorten_middle(text, MAX_SPAN_CHARS))


def _is_name(key: str) -> bool:
    return key.isascii() and key.replace("_", "a").isalnum() and key[0].isalpha()
