"""Every printed line of a model's report, compared with the files in `golden/`.

After a change that was meant, run

    SNAPVIEWER_UPDATE_GOLDENS=1 python -m pytest tests/model/test_model_report.py

and read `git diff tests/model/golden`.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import snapviewer
from snapviewer.model import ModelAnalysis, analyze_file
from snapviewer.model.compression import NOT_ASKED
from snapviewer.model.graph import TensorSpec, Unknown
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.report.model import console
from snapviewer.report.model.document import document_of, overview_blocks
from snapviewer.report.model.formats import rendered_parts
from snapviewer.report.model.json import to_json
from snapviewer.report.model.text import as_text
from snapviewer.report.writers.markdown import as_markdown
from snapviewer.report.writers.text import text_lines
from support.golden_inputs import numbers
from support.profiled_models import profiled_model
from support.pth_writer import S, T, write_pth
from support.torchscript_writer import module, write_torchscript

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


@pytest.fixture
def weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelAnalysis:
    """Weights without a graph: tied, with NaN, without elements, of zeros, of integers."""
    monkeypatch.chdir(tmp_path)
    shared = S("0", numbers(6, 4, seed=1).data or b"")
    odd = struct.pack("<8f", math.nan, math.inf, 1.0, -1.0, 0.5, 0.25, 0.0, 0.0)
    tensors = {
        "embedding.weight": T("float32", (6, 4), storage=shared),
        "head.weight": T("float32", (6, 4), storage=shared),
        "odd.weight": T("float32", (2, 4), odd),
        "empty.weight": T("float32", (0, 4)),
        "zero.weight": T("float32", (4, 4)),
        "sparse.weight": numbers(20, 20, seed=2, zeros=360),
        "count.weight": T("int64", (2, 2), struct.pack("<4q", 1, 2, 3, 4)),
    }
    write_pth(tmp_path / "weights.pth", tensors)
    return analyze_file("weights.pth", has_quality=True)


@pytest.fixture
def uncounted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelAnalysis:
    """A graph with an operation that nobody knows, which was not run."""
    monkeypatch.chdir(tmp_path)
    code = module("y = torch.relu(x)\nreturn torch.frobnicate(y)")
    write_torchscript(tmp_path / "uncounted.pt", code, traced=[T("float32", (1, 3, 8, 8))])
    return analyze_file("uncounted.pt")


def test_weights_without_a_graph_are_reported_in_these_lines(weights: ModelAnalysis) -> None:
    compare("weights_console.txt", "\n".join(console.lines_of(weights)))
    compare("weights_report.txt", as_text(weights))


def test_what_is_not_counted_is_reported_in_these_lines(uncounted: ModelAnalysis) -> None:
    compare("uncounted_console.txt", "\n".join(console.lines_of(uncounted)))
    compare("uncounted_report.txt", as_text(uncounted))


def test_a_single_run_has_no_spread(analysis: ModelAnalysis) -> None:
    profile = analysis.profile
    assert profile is not None
    for runs, shown in ((1, "(a single run)"), (2, "(median of 2 runs, ")):
        plain = replace(profile.plain, runs=runs)
        lines = console.lines_of(replace(analysis, profile=replace(profile, plain=plain)))
        assert any(line.startswith("Run time: ") and shown in line for line in lines)


def test_the_json_documents_have_these_values(
    analysis: ModelAnalysis, weights: ModelAnalysis, uncounted: ModelAnalysis
) -> None:
    for name, found in (("run", analysis), ("weights", weights), ("uncounted", uncounted)):
        document = rounded(to_json(found))
        document.pop("snapviewer", None)
        compare(f"{name}.json", json.dumps(document, indent=1, ensure_ascii=False))


def rounded(document: Any) -> Any:
    """A document whose floats have six digits: sums may differ beyond them."""
    if isinstance(document, dict):
        return {key: rounded(value) for key, value in document.items()}
    if isinstance(document, list):
        return [rounded(value) for value in document]
    return float(f"{document:.6g}") if isinstance(document, float) else document


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


def test_xml_is_written_in_small_parts(analysis: ModelAnalysis) -> None:
    parts = list(rendered_parts(analysis, ".xml"))

    assert max(map(len, parts)) < 3_000
    assert len(parts) > 1_000


def test_inputs_that_are_no_tensors_are_plain_values_in_json(analysis: ModelAnalysis) -> None:
    assert analysis.graph is not None
    inputs = ((TensorSpec((1, None), "int64"), (None, 3)), "mode", 0.5, Unknown("not recorded"))
    changed = replace(analysis, graph=replace(analysis.graph, inputs=inputs))

    found = to_json(changed)["compute"]["input_shapes"]

    assert found[:3] == [[{"shape": [1, None], "dtype": "int64"}, [None, 3]], "mode", 0.5]
    assert "not recorded" in found[3]


# Lines of the text report that few models have


def text_of(analysis: ModelAnalysis, **changes: Any) -> list[str]:
    return as_text(replace(analysis, **changes)).splitlines()


@pytest.mark.promise("M18")
@pytest.mark.parametrize(
    ("value", "line"), [(math.nan, "  NaN: 1  Infinite: 0"), (-math.inf, "  NaN: 0  Infinite: 1")]
)
def test_a_single_value_that_is_no_number_is_counted(
    value: float, line: str, tmp_path: Path
) -> None:
    data = struct.pack("<4f", value, 1.0, 2.0, 3.0)
    write_pth(tmp_path / "odd.pth", {"w": T("float32", (2, 2), data)})

    assert line in as_text(analyze_file(tmp_path / "odd.pth", has_quality=True)).splitlines()


@pytest.mark.promise("M23")
@pytest.mark.parametrize("why", ["its elements are not stored", None])
def test_a_parameter_that_was_not_measured_says_why(
    why: str | None, weights: ModelAnalysis
) -> None:
    first, *others = weights.parameters.tensors
    unmeasured = replace(first, stats=None, quality=None, unmeasured=why)
    parameters = replace(weights.parameters, tensors=(unmeasured, *others))

    lines = text_of(weights, parameters=parameters)

    assert f"  Not measured: {why or NOT_ASKED}" in lines


@pytest.mark.promise("M05")
def test_work_that_nothing_is_known_of_is_unavailable_in_the_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = module("return torch.frobnicate(x)")
    write_torchscript(tmp_path / "odd.pt", code, traced=[T("float32", (1, 3))])

    lines = as_text(analyze_file("odd.pt")).splitlines()

    (computation,) = [line for line in lines if line.startswith("Computation: ")]
    assert computation.startswith("Computation: unavailable (uncounted: ")


@pytest.mark.promise("M39")
def test_a_recommendation_names_ten_subjects_and_no_share_of_nothing(
    analysis: ModelAnalysis,
) -> None:
    one = replace(
        analysis.recommendations[0],
        title="Do it",
        gain=Quantity(2.0, "s", "measured", "made up"),
        share=0.0,
        subjects=tuple(f"layer{number}" for number in range(12)),
    )

    lines = text_of(analysis, recommendations=(one,))

    place = lines.index("    gain: 2.00 s, measured")
    assert lines[place - 1] == "1. Do it"
    assert lines[place + 2 : -2] == [f"    layer{number}" for number in range(10)]


@pytest.mark.promise("M24", "M28")
def test_a_node_timed_with_one_thread_count_says_why_it_has_no_speed_up(
    analysis: ModelAnalysis,
) -> None:
    node = replace(
        analysis.nodes[0],
        time=Quantity(12.5, "s", "measured", "made up"),
        speed_up=unavailable("×", "one thread only"),
        efficiency=unavailable("%", "one thread only"),
    )

    lines = text_of(analysis, nodes=(node,))

    assert "  Thread Speed-up: unavailable (one thread only)" in lines
    assert "  Parallel Efficiency: unavailable (one thread only)" in lines
    assert any(line.startswith("  Execution Time: 12500000.00 us (") for line in lines)
