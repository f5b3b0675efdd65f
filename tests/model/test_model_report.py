"""Every printed line of a model's report, compared with the files in `golden/`.

After a change that was meant, run

    SNAPVIEWER_UPDATE_GOLDENS=1 python -m pytest tests/model/test_model_report.py

and read `git diff tests/model/golden`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import snapviewer
from snapviewer.model import ModelAnalysis
from snapviewer.report.model import console
from snapviewer.report.model.document import document_of, overview_blocks
from snapviewer.report.model.json import to_json
from snapviewer.report.model.text import as_text
from snapviewer.report.writers.markdown import as_markdown
from snapviewer.report.writers.text import text_lines
from support.profiled_models import profiled_model

GOLDEN = Path(__file__).resolve().parent / "golden"


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> ModelAnalysis:
    return profiled_model(tmp_path_factory.mktemp("models"))


def compare(name: str, found: str) -> None:
    path = GOLDEN / name
    found = found.replace(f"snapviewer {snapviewer.__version__}", "snapviewer VERSION")
    if os.environ.get("SNAPVIEWER_UPDATE_GOLDENS"):
        path.write_text(found, encoding="utf-8")
    assert found.splitlines() == path.read_text(encoding="utf-8").splitlines()


def test_the_console_prints_these_lines(analysis: ModelAnalysis) -> None:
    compare("console.txt", "\n".join(console.lines_of(analysis)))


def test_the_text_report_has_these_lines(analysis: ModelAnalysis) -> None:
    compare("report.txt", as_text(analysis))


def test_the_overview_prints_these_lines(analysis: ModelAnalysis) -> None:
    compare("overview.txt", "\n".join(text_lines(overview_blocks(analysis), 80)))


def test_the_document_has_these_blocks(analysis: ModelAnalysis) -> None:
    compare("report.md", as_markdown(document_of(analysis)))


def test_the_text_writer_renders_every_kind_of_block(analysis: ModelAnalysis) -> None:
    compare("blocks.txt", "\n".join(text_lines(document_of(analysis).blocks, 100)))


def test_the_json_document_has_these_keys(analysis: ModelAnalysis) -> None:
    compare("keys.txt", "\n".join(dict.fromkeys(keys(to_json(analysis)))))


def keys(document: Any, path: str = "") -> Iterator[str]:
    """The paths of a document's keys, those of quantities with their units."""
    if isinstance(document, dict) and {"value", "unit", "status", "source"} <= set(document):
        yield f"{path} [{document['unit']}]"
    elif isinstance(document, dict):
        for key, value in document.items():
            yield from keys(value, f"{path}.{key}")
    elif isinstance(document, list):
        for value in document:
            yield from keys(value, f"{path}[]")
    else:
        yield path
    json.dumps(document, allow_nan=False)
