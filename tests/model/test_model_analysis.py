"""A model file as one result: what it is, what it computes, what follows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from snapviewer.cli import parser_main
from snapviewer.model.analysis import ModelAnalysis, analyze_file
from snapviewer.model.graph import TensorSpec
from snapviewer.report.model import console
from snapviewer.report.model.json import to_json
from snapviewer.report.model.text import as_text
from support.program import run_here
from support.pth_writer import T, write_pth


@pytest.fixture(scope="module")
def resnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    models = pytest.importorskip("torchvision.models", reason="torchvision is not installed")
    path = tmp_path_factory.mktemp("model") / "resnet18.pt"
    torch.manual_seed(1)
    torch.jit.script(models.resnet18().eval()).save(str(path))
    return path


@pytest.fixture(scope="module")
def analysis(resnet: Path) -> ModelAnalysis:
    return analyze_file(resnet, has_quality=False)


def lines(analysis: ModelAnalysis) -> list[str]:
    return list(console.lines_of(analysis))


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
class TestAScriptedNetwork:
    def test_its_parameters_and_multiply_adds_are_the_published_ones(
        self, analysis: ModelAnalysis
    ) -> None:
        assert analysis.parameters.count == 11_689_512
        assert analysis.totals is not None
        assert analysis.totals.work.macs == 1_814_073_344
        assert analysis.totals.uncounted == ()

    def test_it_is_a_convolutional_network_and_the_reason_counts(
        self, analysis: ModelAnalysis
    ) -> None:
        assert analysis.architecture.model_class == "CNN"
        assert "20 convolutions" in analysis.architecture.reason

    def test_the_console_has_the_blocks_that_people_know(self, analysis: ModelAnalysis) -> None:
        shown = lines(analysis)

        for marker in (
            "[LOADING PYTORCH MODEL FOR COMPREHENSIVE ANALYSIS]",
            "Graph nodes: 69",
            "Analyzed parameter: conv1.weight Shape: [64, 3, 7, 7] Sparsity: 0.00%",
            "[COMPREHENSIVE MODEL ANALYSIS REPORT]",
            "Total Parameters: 11689512",
            "Parameter Memory: 44.59 MB",
        ):
            assert marker in shown
        assert any(
            line.startswith("Analyzed: Convolution_1 (aten::conv2d) FLOPs: ") for line in shown
        )

    def test_the_shares_of_flops_add_up(self, analysis: ModelAnalysis) -> None:
        shown = lines(analysis)
        start = shown.index("FLOP Distribution by Operation Type:") + 1

        shares = []
        for line in shown[start:]:
            if not line.startswith("    "):
                break
            shares.append(float(line.split()[-1].rstrip("%")))

        assert sum(shares) == pytest.approx(100, abs=0.3)

    def test_its_document_is_json_and_every_total_says_how_it_was_obtained(
        self, analysis: ModelAnalysis
    ) -> None:
        document = json.loads(json.dumps(to_json(analysis), allow_nan=False))

        assert document["compute"]["macs"] == {
            "value": 1_814_073_344,
            "unit": "MAC",
            "status": "computed",
            "source": "formulas on the shapes of the torchscript graph",
        }
        assert (
            sum(node["flops"]["value"] for node in document["nodes"])
            == document["compute"]["flops"]["value"]
        )

    def test_normalisations_are_to_be_folded_into_convolutions(
        self, analysis: ModelAnalysis
    ) -> None:
        titles = [item.title for item in analysis.recommendations]

        assert "Fold 20 batch normalisations into the preceding convolutions" in titles

    def test_its_report_names_every_parameter_and_node(self, analysis: ModelAnalysis) -> None:
        text = as_text(analysis)

        assert text.count("\nParameter: ") == len(analysis.parameters.tensors)
        assert text.count("\nNode: ") == 69

    def test_another_input_gives_other_counts(
        self, resnet: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        ran = run_here(capsys, "model", resnet, "--input", "1x3x64x64", "--no-stats", "--json")

        compute: dict[str, Any] = json.loads(ran.out)["compute"]
        assert ran.code == 0
        assert compute["macs"]["value"] == 148_557_824
        assert compute["input_source"] == "given"


def test_a_state_dict_has_parameters_and_says_why_there_is_no_graph(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "state.pth"
    write_pth(path, {"layer.weight": T("float32", (4, 3)), "layer.bias": T("float32", (4,))})

    brief = run_here(capsys, "model", path)
    full = run_here(capsys, "model", path, "--full")

    assert brief.code == full.code == 0
    assert "  Parameters           16  computed" in brief.out.splitlines()
    assert "Work of a run: unavailable (the file has no graph)." in brief.out.splitlines()
    assert "Node analysis\n\nThis file has no graph." in full.out
    assert "  layer.weight  4×3 float32        12" in full.out
    for ran in (brief, full):
        assert "has parameters but no graph" in ran.out.replace("\n    ", " ")


@pytest.mark.parametrize("shape", ["", "axb", "1x-3", "1x3:float 32", "1x" * 40])
def test_a_shape_that_is_none_is_wrong_usage(
    shape: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = run_here(capsys, "model", "model.pt", "--input", shape)

    assert ran.code == 2
    assert "must be a shape" in ran.err


def test_a_file_that_is_no_model_is_refused_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(b"not a model")

    ran = run_here(capsys, "model", path)

    assert ran.code == 1
    assert ran.err.count("\n") == 1


def test_pytorch_parser_writes_its_report_where_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_pth(tmp_path / "state.pth", {"layer.weight": T("float32", (4, 3))})
    monkeypatch.chdir(tmp_path)

    assert parser_main(["state.pth"]) == 0

    report = Path("comprehensive_model_analysis.txt").read_text(encoding="utf-8")
    assert "EXECUTIVE SUMMARY" in report
    assert "Comprehensive PyTorch Model Analyzer" in capsys.readouterr().out


def test_pytorch_parser_marks_its_errors(capsys: pytest.CaptureFixture[str]) -> None:
    assert parser_main(["no-such-model.pt"]) == 1

    assert capsys.readouterr().err.startswith("[ERROR] ")


@pytest.mark.torch
def test_sizes_that_an_exported_program_lets_vary_are_the_users(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    path = tmp_path / "linear.pt2"
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(
        torch.nn.Linear(8, 4), (torch.zeros(4, 8),), dynamic_shapes=({0: batch},)
    )
    torch.export.save(program, path)

    counts = {}
    for shape in (None, (16, 8), (16, 9)):
        inputs = None if shape is None else [TensorSpec(shape, "float32")]
        analysis = analyze_file(path, inputs=inputs)
        assert analysis.totals is not None
        counts[shape] = analysis.totals.work.macs

    assert counts == {None: 4 * 8 * 4, (16, 8): 16 * 8 * 4, (16, 9): 4 * 8 * 4}
    assert "dimension 1 of the input input (4×8) is not dynamic" in " ".join(analysis.notes)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
class TestCountsThatAreNotSure:
    def test_a_loop_of_unknown_length_makes_the_count_an_estimate(self, tmp_path: Path) -> None:
        torch = pytest.importorskip("torch", reason="torch is not installed")
        path = str(tmp_path / "loop.pt")
        torch.jit.script(looping(torch)).save(path)

        analysis = analyze_file(path, inputs=[TensorSpec((2, 4), "float32")])

        macs = to_json(analysis)["compute"]["macs"]
        assert (macs["value"], macs["status"]) == (2 * 4 * 4, "estimated")
        assert "its body is counted once" in macs["source"]
        assert any(
            line.startswith("    estimate: how often a loop runs depends on values: its body is")
            for line in lines(analysis)
        )
        assert "(estimated from shapes)" in as_text(analysis)

    def test_a_model_that_refuses_its_input_has_no_count_rather_than_zero(
        self, tmp_path: Path
    ) -> None:
        torch = pytest.importorskip("torch", reason="torch is not installed")
        path = str(tmp_path / "linear.pt")
        torch.jit.script(torch.nn.Sequential(torch.nn.Linear(4, 4))).save(path)

        analysis = analyze_file(path, inputs=[TensorSpec((2, 5), "float32")])

        compute = to_json(analysis)["compute"]
        assert compute["macs"]["status"] == compute["flops"]["status"] == "unavailable"
        assert compute["macs"]["value"] is None
        assert analysis.parameters.count == 20, "parameters need no graph"


def looping(torch: Any) -> Any:
    class Loop(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 4, bias=False)

        def forward(self, x):  # type: ignore[no-untyped-def]
            while bool(x.sum() > 0):
                x = self.layer(x)
            return x

    return Loop()
