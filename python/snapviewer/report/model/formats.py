r"""The formats of a model's report, by the suffix of its file: a registry, open to new ones.

from snapviewer.report.model.formats import report_format

@report_format(".csv")
def as_csv(analysis):
    return "\n".join(f"{item.name},{item.elements}" for item in analysis.parameters.tensors)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias
from xml.etree import ElementTree

from snapviewer.model.analysis import ModelAnalysis
from snapviewer.report.model.document import document_of
from snapviewer.report.model.json import to_json
from snapviewer.report.model.text import as_text
from snapviewer.report.writers.html import as_html
from snapviewer.report.writers.markdown import as_markdown
from snapviewer.report.writers.pdf import as_pdf
from snapviewer.text.sanitize import json_outline, replace_unprintable, sanitize

Format: TypeAlias = Callable[[ModelAnalysis], "str | bytes"]

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
    made = _formats.get(suffix.lower(), as_text)(analysis)
    return made if isinstance(made, bytes) else made.encode("utf-8", errors="replace")


report_format(".txt")(as_text)


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
def _xml(analysis: ModelAnalysis) -> str:
    """Return the document with an element for each key, and `item` for those of lists."""
    root = ElementTree.Element("model")
    _add(root, to_json(analysis))
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, "unicode")}\n'


def _add(element: ElementTree.Element, value: Any) -> None:
    if isinstance(value, dict):
        for key, inner in value.items():
            # Names of layers and devices are no names of elements.
            child = ElementTree.SubElement(element, key if _is_name(key) else "entry")
            if child.tag == "entry":
                child.set("name", sanitize(str(key)))
            _add(child, inner)
    elif isinstance(value, list):
        for inner in value:
            _add(ElementTree.SubElement(element, "item"), inner)
    elif value is not None:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        element.text = replace_unprintable(text)


def _is_name(key: str) -> bool:
    return key.isascii() and key.replace("_", "a").isalnum() and key[0].isalpha()
