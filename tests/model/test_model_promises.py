"""The promises of the model analyzer, M01 to M17 and M44 to M46: command, console, report.

The numbers are in `test_model_promises_numbers.py`, the machine, scale and extension points in
`test_model_promises_machine.py`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from snapviewer.cli import parser_main
from snapviewer.model import ModelAnalysis, analyze_file
from snapviewer.report.blocks import BarChart, Heading, Table
from snapviewer.report.model.document import document_of
from snapviewer.report.model.formats import rendered
from snapviewer.report.model.json import to_json
from snapviewer.report.model.text import as_text
from support.program import run, run_here
from support.pth_writer import T, write_pth
from support.torch_marks import torch_marks

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import Tensor, nn  # noqa: E402 (after the line that skips)

from support.promised_model import analyzed, inside, known_roof, shown  # noqa: E402

# What torch says of its own ways to save.
pytestmark = torch_marks(":DeprecationWarning", ":FutureWarning")


@pytest.fixture(scope="module")
def lines(analysis: ModelAnalysis) -> list[str]:
    return shown(analysis)


def block(lines: list[str], name: str) -> list[str]:
    """What stands under the line below a marker, up to the next empty line and marker."""
    start = lines.index(name) + 2
    ends = [at for at in range(start, len(lines)) if lines[at].startswith("[")]
    return lines[start : ends[0] if ends else len(lines)]


# The command


@pytest.mark.promise("M01")
def test_a_model_alone_gives_architecture_parameters_and_recommendations(
    network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with inside(tmp_path):
        assert parser_main([str(network)]) == 0

    out = capsys.readouterr().out
    for marker in ("[ARCHITECTURE SUMMARY]", "[PARAMETER ANALYSIS]", "[OPTIMIZATION RECOMMENDA"):
        assert marker in out
    assert "no code was run" in out
    assert "[PERFORMANCE ANALYSIS]" not in out


@pytest.mark.promise("M02", "M03")
def test_inference_adds_times_and_memory_and_profile_the_machine(
    network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with known_roof(), inside(tmp_path):
        assert parser_main([str(network), "--inference", "--budget", "0.01"]) == 0
        inference = capsys.readouterr().out
        assert parser_main([str(network), "--profile", "--budget", "0.01"]) == 0
        profiled = capsys.readouterr().out

    for out in (inference, profiled):
        assert "its code was run" in out
        assert re.search(r"^Run time: [\d.]+ .s ", out, re.M)
        assert re.search(r"^Peak memory: [\d.,]+ [KM]?i?B ", out, re.M)
    # Profile alone runs the model too, and reports on the machine.
    assert "    logical cpus: " not in inference
    assert "    logical cpus: " in profiled
    assert "[ENERGY ANALYSIS]" in profiled


@pytest.mark.promise("M04")
def test_scripted_traced_exported_and_plain_weights_are_all_read(
    network: Path, tmp_path: Path
) -> None:
    layer = torch.nn.Linear(4, 2).eval()
    torch.jit.script(layer).save(str(tmp_path / "scripted.pt"))
    torch.export.save(torch.export.export(layer, (torch.ones(1, 4),)), tmp_path / "exported.pt2")
    write_pth(tmp_path / "state.pth", {"layer.weight": T("float32", (2, 4))})

    found = {
        path.name: analyze_file(path)
        for path in (network, *(tmp_path / name for name in ("scripted.pt", "exported.pt2")))
    }
    state = analyze_file(tmp_path / "state.pth")

    flops = {name: one.totals.work.flops for name, one in found.items() if one.totals}
    assert flops["scripted.pt"] == flops["exported.pt2"] == 16
    assert flops["network.pt"] > 10_000
    assert state.parameters.count == 8
    assert state.totals is None


@pytest.mark.promise("M05")
def test_the_report_is_written_where_it_is_called_or_wanted(
    network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with inside(tmp_path):
        assert parser_main([str(network), "--output", "mine.txt"]) == 0
    assert "Report: comprehensive_model_analysis.txt" in capsys.readouterr().out

    report = (tmp_path / "comprehensive_model_analysis.txt").read_text(encoding="utf-8")
    assert report == (tmp_path / "mine.txt").read_text(encoding="utf-8")
    chapters = [
        "EXECUTIVE SUMMARY",
        "PARAMETER ANALYSIS",
        "NODE ANALYSIS",
        "PERFORMANCE PROFILING",
        "OPTIMIZATION RECOMMENDATIONS",
    ]
    places = [report.index(f"\n{chapter}\n{'=' * 80}\n") for chapter in chapters]
    assert places == sorted(places)


@pytest.mark.promise("M06")
def test_json_and_xml_say_the_same(analysis: ModelAnalysis) -> None:
    document = json.loads(rendered(analysis, ".json"))
    tree = ElementTree.fromstring(rendered(analysis, ".xml"))

    assert document == json.loads(json.dumps(to_json(analysis)))
    assert tree.findtext("compute/macs/value") == str(document["compute"]["macs"]["value"])
    assert len(tree.findall("nodes/item")) == len(document["nodes"])
    assert rendered(analysis, ".html").startswith(b"<!DOCTYPE html>")


def test_the_page_begins_with_what_decides_and_shows_the_rest(analysis: ModelAnalysis) -> None:
    page = document_of(analysis)

    headings = [block.title for block in page.blocks if isinstance(block, Heading)]
    assert headings[:2] == ["Executive summary", "Optimization recommendations"]
    for title in ("Performance profiling", "Roofline", "Energy", "Node analysis", "System"):
        assert title in headings
    charts = [block.title for block in page.blocks if isinstance(block, BarChart)]
    assert charts[0] == "FLOPs by operation type"
    assert any(title.startswith("Slowest operations") for title in charts)
    (summary, advice, *_) = [block for block in page.blocks if isinstance(block, Table)]
    assert [column.title for column in summary.columns] == ["Figure", "Value", "Status", "Source"]
    assert len(advice.rows) == len(analysis.recommendations)


@pytest.mark.promise("M07")
def test_progress_goes_on_to_its_end(network: Path) -> None:
    reports: list[tuple[int, int]] = []

    analyzed(network, progress=lambda done, total: reports.append((done, total)))

    shares = [done / total for done, total in reports]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(set(shares)) > 10


@pytest.mark.promise("M08")
def test_no_file_gets_the_usage_and_a_bad_one_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.pt"
    bad.write_bytes(b"PK\x03\x04 and nothing more")

    with pytest.raises(SystemExit) as ended:
        parser_main([])
    without = capsys.readouterr().err
    assert ended.value.code == 1
    assert without.startswith("usage: pytorch_parser")
    assert "\n[ERROR] " in without
    with inside(tmp_path):
        assert parser_main([str(bad)]) == 1
    err = capsys.readouterr().err
    assert err.startswith("[ERROR] ")
    assert err.count("\n") == 1
    assert not (tmp_path / "comprehensive_model_analysis.txt").exists()


def test_without_torch_all_else_is_computed(network: Path) -> None:
    program = (
        "import sys\n"
        "sys.modules['torch'] = None\n"  # as if it were not installed
        "from snapviewer.cli import main\n"
        f"sys.exit(main(['model', {str(network)!r}, '--inference', '--json']))"
    )

    ran = run("-c", program, program=())

    document = json.loads(ran.out)
    assert ran.code == 1
    assert ran.err.startswith("snapviewer: the model was not run: ")
    assert ran.err.count("\n") == 1
    assert document["compute"]["macs"]["value"] > 0
    assert document["parameters"]["tensors"][0]["mean"]["status"] == "computed"
    said = [note for note in document["notes"] if note.startswith("the model was not run")]
    assert len(said) == 1
    assert "needs torch" in said[0]


class Choosy(nn.Module):  # type: ignore[misc] # its base is torch's
    """Takes three examples at once, and does something that has no formula."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(7, 4)

    def forward(self, x: Tensor) -> Tensor:
        assert x.size(0) == 3, "three at once, please"
        return torch.linalg.matrix_exp(self.layer(x).unsqueeze(2) * torch.ones(1, 4))


def test_a_model_that_refuses_its_input_is_quoted_and_all_else_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "choosy.pt"
    torch.jit.script(Choosy()).save(str(path))

    refused = run_here(capsys, "model", path, "--inference", "--json")
    with known_roof():
        taken = run_here(
            capsys, "model", path, "--inference", "--input", "3x7", "--json", "--budget", "0.01"
        )

    document = json.loads(refused.out)
    assert (refused.code, taken.code) == (1, 0)
    assert refused.err.startswith("snapviewer: the model was not run: ")
    assert document["parameters"]["count"]["value"] == 32
    assert document["inference"] is None
    (said,) = [note for note in document["notes"] if note.startswith("the model was not run")]
    assert "three at once, please" in said
    document = json.loads(taken.out)
    assert document["inference"]["plain"]["runs"] >= 1
    assert document["compute"]["input_source"] == "given"
    uncounted = [item["op"] for item in document["compute"]["uncounted"]]
    assert uncounted == ["aten::linalg_matrix_exp"]
    (odd,) = [node for node in document["nodes"] if node["uncounted"]]
    assert odd["flops"]["status"] == "unavailable"
    assert odd["time"]["status"] == "measured"


@pytest.mark.promise("M02")
def test_the_parser_fails_if_the_model_cannot_be_run_and_still_writes_its_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.jit.script(Choosy()).save(str(tmp_path / "choosy.pt"))
    write_pth(tmp_path / "state.pth", {"layer.weight": T("float32", (2, 4))})
    reasons = {"choosy.pt": "three at once, please", "state.pth": "have code that can be run"}

    for name, reason in reasons.items():
        for options in ([], ["--json"]):
            with inside(tmp_path):
                code = parser_main([name, "--inference", *options])
            ran = capsys.readouterr()
            report = tmp_path / "comprehensive_model_analysis.txt"
            assert code == 1, "M02: --inference on what cannot be run exits 1"
            assert ran.err.startswith("[ERROR] the model was not run: ")
            assert reason in ran.err
            assert "layer.weight" in ran.out
            assert "Parameter: layer.weight" in report.read_text(encoding="utf-8")
            report.unlink()


def test_an_input_that_does_not_fit_is_said_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "traced.pt"
    layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(4 * 6 * 6, 2))
    torch.jit.trace(layers, torch.zeros(1, 3, 8, 8)).save(str(path))

    def document(shape: str) -> Any:
        return json.loads(run_here(capsys, "model", path, "--json", "--input", shape).out)

    fits, differs = document("2x3x8x8"), document("1x3x9x9")

    assert fits["compute"]["macs"]["status"] == "computed"
    assert differs["compute"]["macs"]["status"] == "estimated"
    misfits = [note for note in differs["notes"] if "features of the input" in note]
    assert misfits == differs["notes"][:1]
    assert misfits[0].startswith("the input does not fit: aten::linear in 2: ")


def test_a_directory_stands_for_the_model_in_it(
    network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    (tmp_path / "model.pt").write_bytes(network.read_bytes())
    one = run_here(capsys, "model", tmp_path, "--json", "--no-stats")
    (tmp_path / "other.pt").write_bytes(network.read_bytes())

    several = run_here(capsys, "model", tmp_path)

    assert json.loads(one.out)["compute"]["macs"]["value"] > 0
    assert several.code == 1
    assert "2 checkpoints found, expected one" in several.err


# The console


def test_the_slowest_operations_fit_into_80_columns_with_what_they_reach(
    analysis: ModelAnalysis,
) -> None:
    lines = shown(analysis)
    start = next(at for at, line in enumerate(lines) if line.startswith("Slowest operations"))
    slowest = lines[start : lines.index("", start)]

    assert len(slowest) > 1
    assert max(map(len, slowest)) <= 80
    assert any(re.search(r"(memory|compute)-bound, [\d.]+ %$", line) for line in slowest)


@pytest.mark.promise("M09")
def test_the_title_is_the_one_that_people_know(lines: list[str]) -> None:
    assert lines[:3] == [
        "Comprehensive PyTorch Model Analyzer",
        "Enterprise-Grade Performance & Energy Instrumentation",
        "=" * 80,
    ]


@pytest.mark.promise("M10")
def test_what_was_loaded_is_printed(lines: list[str], network: Path) -> None:
    start = lines.index("[LOADING PYTORCH MODEL FOR COMPREHENSIVE ANALYSIS]")

    assert lines[start + 1] == f"File: {network}"
    assert lines[start + 2] == "[SUCCESS] PyTorch model loaded"
    assert "Graph nodes: 8" in lines[start : start + 6]


@pytest.mark.promise("M11")
def test_each_parameter_has_its_line(lines: list[str], analysis: ModelAnalysis) -> None:
    start = lines.index("[EXTRACTING COMPREHENSIVE PARAMETER ANALYSIS]") + 1

    assert lines[start] == "Analyzed parameter: 0.weight Shape: [8, 3, 3, 3] Sparsity: 12.50%"
    printed = [line for line in lines if line.startswith("Analyzed parameter: ")]
    assert len(printed) == len(analysis.parameters.tensors)


@pytest.mark.promise("M12")
def test_each_node_has_its_line(lines: list[str]) -> None:
    start = lines.index("[PARSING COMPREHENSIVE COMPUTATION GRAPH]") + 1

    # 8 × 16 × 16 outputs of 27 multiply-adds; 768 numbers in, 2,048 out, and the weights.
    flops = 8 * 16 * 16 * 2 * 27
    megabytes = 4 * (3 * 16 * 16 + 216 + 8 + 8 * 16 * 16) / 2**20
    assert lines[start] == (
        f"Analyzed: Convolution_1 (aten::_convolution) FLOPs: {flops} Params: 224 "
        f"Memory: {megabytes:.2f} MB"
    )
    assert lines[start + 2].startswith("Analyzed: Activation_3 (aten::relu")
    assert len([line for line in lines if line.startswith("Analyzed: ")]) == 8


@pytest.mark.promise("M13", "M14")
def test_the_report_has_its_marker_and_the_layers(lines: list[str]) -> None:
    start = lines.index("[COMPREHENSIVE MODEL ANALYSIS REPORT]")
    assert lines[start + 1] == "=" * 80

    printed = block(lines, "[ARCHITECTURE SUMMARY]")
    assert printed[0] == "Layer Distribution:"
    assert "    Convolution:      2 layers" in printed
    assert "Architecture Classification: Convolutional Neural Network (Low Complexity)" in printed


@pytest.mark.promise("M15")
def test_parameters_are_summed(lines: list[str]) -> None:
    printed = block(lines, "[PARAMETER ANALYSIS]")

    count = 216 + 8 + 16 + 576 + 8 + 40 + 5
    assert f"Total Parameters: {count}" in printed
    assert f"Parameter Memory: {4 * count / 2**20:.2f} MB" in printed
    # The zeros that were put in, and the shifts of the normalisation.
    assert f"Average Sparsity: {100 * (27 + 72 + 8) / count:.2f}%" in printed


@pytest.mark.promise("M15")
def test_buffers_and_sample_inputs_are_no_parameters(tmp_path: Path) -> None:
    from support import script_models

    gpt = script_models.Gpt().eval()  # with a mask, and two names for one weight
    torch.jit.script(gpt).save(str(tmp_path / "gpt.pt"))
    norm = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).eval()
    exported = torch.export.export(norm, (torch.ones(2, 3),))
    torch.export.save(exported, tmp_path / "norm.pt2")

    for name, module in (("gpt.pt", gpt), ("norm.pt2", norm)):
        found = analyze_file(tmp_path / name, has_stats=False).parameters

        assert found.count == sum(weight.numel() for weight in module.parameters())
        buffers = {item.name for item in found.tensors if item.is_buffer}
        assert buffers == {name for name, _ in module.named_buffers()}


@pytest.mark.promise("M15")
def test_what_an_optimizer_remembers_is_no_parameter(tmp_path: Path) -> None:
    layer = torch.nn.Linear(4, 3)
    optimizer = torch.optim.Adam(layer.parameters())
    layer(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    path = tmp_path / "training.pth"
    torch.save({"model": layer.state_dict(), "optimizer": optimizer.state_dict()}, path)

    found = analyze_file(path, has_stats=False)

    assert found.parameters.count == 15
    assert any("6 tensors of an optimizer" in note for note in found.notes)


@pytest.mark.promise("M16")
def test_flops_are_summed_and_their_shares_are_all(
    lines: list[str], analysis: ModelAnalysis
) -> None:
    printed = block(lines, "[COMPUTATIONAL ANALYSIS]")

    assert analysis.totals is not None
    assert f"Total Theoretical FLOPs: {analysis.totals.work.flops}" in printed
    start = printed.index("FLOP Distribution by Operation Type:") + 1
    shares = [float(line.split()[-1].rstrip("%")) for line in printed[start:] if line]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(100, abs=1e-9)


@pytest.mark.promise("M16")
@pytest.mark.parametrize("classes", [1, 2, 7, 10])  # each rounded by itself: 99.9 or 100.1
def test_shares_add_up_to_100_in_every_form(classes: int, tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    layers = nn.Sequential(nn.Conv2d(3, 16, 1), nn.BatchNorm2d(16), nn.ReLU())
    tail = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, classes))
    torch.jit.trace(nn.Sequential(layers, tail).eval(), torch.rand(1, 3, 4, 4)).save(str(path))

    found = analyzed(path)

    printed = block(shown(found), "[COMPUTATIONAL ANALYSIS]")
    printed = printed[printed.index("FLOP Distribution by Operation Type:") + 1 :]
    flops = [float(line.split()[-1].rstrip("%")) for line in printed if line]
    chart = next(one for one in document_of(found).blocks if isinstance(one, BarChart))
    bars = [float(bar.note.rstrip(" %")) for bar in chart.bars]
    times = re.findall(r"Execution Time: [\d.]+ us \(([\d.]+) %\)", as_text(found))
    assert len(flops) > 3
    assert flops == bars
    assert len(times) == len(found.nodes)
    for shares in (flops, [float(time) for time in times]):
        assert sum(shares) == pytest.approx(100, abs=1e-9), "M16: shares add up to 100.0"


@pytest.mark.promise("M17")
def test_energy_has_its_four_lines_and_says_how_each_is_known(lines: list[str]) -> None:
    printed = block(lines, "[ENERGY ANALYSIS]")

    for pattern in (
        r"Energy Consumption: \d\.\d{3}e[+-]\d\d J",
        r"Power Consumption: \d+\.\d{3} W",
        r"Energy Efficiency: \d\.\d{3}e[+-]\d\d FLOPs/J",
        # Six digits, or as many as a tiny number needs.
        r"Carbon Footprint Estimate: (\d+\.\d{6}|\d\.\d{3}e-\d\d) g CO2",
    ):
        (at,) = [at for at, line in enumerate(printed) if re.fullmatch(pattern, line)]
        assert re.match(r"    (measured|computed|estimated): .", printed[at + 1])


@pytest.mark.parametrize("columns", [80, 160])
def test_lines_of_ours_fit_the_terminal(
    columns: int,
    network: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))

    ran = run_here(capsys, "model", network)

    assert ran.code == 0
    ours = [line for line in ran.out.splitlines() if not line.startswith(("Analyzed", "File: "))]
    assert max(map(len, ours)) <= columns
    assert any(len(line) > 60 for line in ours)


# What the model is, and what it is called with


@pytest.mark.promise("M44", "M46")
@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (torch.nn.Conv2d(3, 4, 3), {"shape": [1, 3, 224, 224], "dtype": "float32"}),
        (torch.nn.Embedding(10, 4), {"shape": [1, 128], "dtype": "int64"}),
        (torch.nn.Linear(7, 4), {"shape": [1, 7], "dtype": "float32"}),
    ],
    ids=["convolution", "embedding", "linear"],
)
def test_the_input_follows_from_the_first_layer(
    first: Any, expected: dict[str, object], tmp_path: Path
) -> None:
    path = tmp_path / "model.pt"
    torch.jit.script(torch.nn.Sequential(first)).save(str(path))

    compute = to_json(analyze_file(path, has_stats=False))["compute"]

    assert compute["input_shapes"] == [expected]
    assert compute["input_source"] == "inferred"


@pytest.mark.promise("M45")
def test_kinds_of_models_are_distinguished_with_a_reason(tmp_path: Path) -> None:
    from snapviewer.model import TensorSpec, analyze
    from support import live_models, script_models

    found = {}
    for name, module, spec in (
        ("MLP", script_models.Mlp(), TensorSpec((1, 8), "float32")),
        ("CNN", script_models.LeNet(), TensorSpec((1, 1, 32, 32), "float32")),
        (
            "GPT",
            live_models.Gpt(vocabulary=20, width=8, heads=2, layers=1, positions=8),
            TensorSpec((1, 4), "int64"),
        ),
        (
            "Hybrid",
            live_models.Detr(width=16, heads=2, layers=1, queries=3, classes=2),
            TensorSpec((1, 3, 32, 32), "float32"),
        ),
        (
            "Transformer",
            torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True),
            TensorSpec((1, 4, 16), "float32"),
        ),
        ("Custom", torch.nn.Tanh(), TensorSpec((4,), "float32")),
    ):
        architecture = to_json(analyze(module, (spec,), has_quality=False))["architecture"]
        found[name] = architecture["class"]
        assert architecture["reason"]

    assert found == {name: name for name in found}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("transformer.wte.weight", "transformer.h.0.attn.c_attn.weight"), "GPT"),  # GPT-2
        (("model.embed_tokens.weight", "model.layers.0.self_attn.q_proj.weight"), "GPT"),  # Llama
        (
            (
                "roberta.embeddings.word_embeddings.weight",
                "roberta.encoder.layer.0.attention.self.query.weight",
                "lm_head.dense.weight",
            ),
            "Transformer",
        ),
        (
            (
                "model.shared.weight",
                "model.encoder.embed_tokens.weight",
                "model.decoder.layers.0.self_attn.q_proj.weight",
                "lm_head.weight",
            ),
            "Transformer",  # BART
        ),
    ],
)
def test_names_alone_distinguish_a_decoder_from_a_model_with_an_encoder(
    tmp_path: Path, names: tuple[str, ...], expected: str
) -> None:
    path = tmp_path / "state.pth"
    torch.save({name: torch.ones(4, 4) for name in names}, path)

    assert analyze_file(path, has_stats=False).architecture.model_class == expected


def test_a_mask_that_is_computed_makes_the_same_gpt_as_names_alone(tmp_path: Path) -> None:
    from snapviewer.model import TensorSpec, analyze

    class Decoder(nn.Module):  # type: ignore[misc] # its base is torch's
        def __init__(self) -> None:
            super().__init__()
            self.wte = torch.nn.Embedding(20, 8)

        def forward(self, tokens: Any) -> Any:
            x = self.wte(tokens)
            place = torch.arange(x.shape[1])
            mask = place[:, None] >= place
            return torch.nn.functional.scaled_dot_product_attention(x, x, x, mask)

    architecture = analyze(Decoder(), (TensorSpec((1, 4), "int64"),)).architecture

    assert architecture.model_class == "GPT"


def test_numbers_that_a_trace_writes_down_are_no_parameters(tmp_path: Path) -> None:
    class Scaled(nn.Linear):  # type: ignore[misc] # its base is torch's
        def forward(self, x: Any) -> Any:
            return super().forward(x) * 0.5

    path = tmp_path / "traced.pt"
    torch.jit.trace(Scaled(3, 2), torch.ones(1, 3)).save(str(path))

    parameters = analyze_file(path).parameters

    assert [item.name for item in parameters.tensors if item.name.startswith("constants")]
    assert parameters.count == 3 * 2 + 2


class Anchored(nn.Module):  # type: ignore[misc] # its base is torch's
    """Takes a list, and has one that is not learned; what it does last has no formula."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(7, 7)
        self.recurrent = nn.LSTM(7, 2)
        self.anchors = [torch.ones(3, 4), torch.ones(2, 4)]

    def forward(self, images: list[Tensor]) -> Tensor:
        x = self.recurrent(self.layer(images[0]))[0]
        return torch.linalg.matrix_exp(self.layer(images[0])) + self.anchors[0].sum() + x.sum()


@pytest.fixture(scope="module")
def anchored(tmp_path_factory: pytest.TempPathFactory) -> ModelAnalysis:
    path = tmp_path_factory.mktemp("anchored") / "scripted.pt"
    torch.jit.script(Anchored()).save(str(path))
    return analyze_file(path)


def test_a_list_of_tensors_that_the_code_keeps_is_no_parameter(anchored: ModelAnalysis) -> None:
    learned = sum(parameter.numel() for parameter in Anchored().parameters())

    assert anchored.parameters.count == learned


def test_an_input_is_shown_as_it_can_be_given(anchored: ModelAnalysis, tmp_path: Path) -> None:
    path = tmp_path / "table.pt"
    torch.jit.trace(nn.Embedding(9, 2), torch.ones(1, 5, dtype=torch.int64)).save(str(path))

    (listed,) = [line for line in shown(anchored) if line.startswith("Input: ")]
    (typed,) = [line for line in shown(analyze_file(path)) if line.startswith("Input: ")]

    assert re.fullmatch(r"Input: \[[\dx]+\] \(inferred\)", listed)
    assert typed == "Input: 1x5:int64 (traced)"
    assert "input 1x5:int64 (traced)" in rendered(analyze_file(path), ".md").decode()


def test_what_is_not_counted_is_named_where_the_sums_are(anchored: ModelAnalysis) -> None:
    (line,) = [line for line in shown(anchored) if line.startswith("    lower bound, not counted")]

    assert "1 operation (aten::linalg_matrix_exp ×1)" in line
    assert "matrix_exp" in as_text(anchored).split("PARAMETER ANALYSIS")[0]


def test_a_carbon_footprint_too_small_for_its_digits_is_not_shown_as_none(
    anchored: ModelAnalysis,
) -> None:
    (line,) = [line for line in shown(anchored) if line.startswith("Carbon")]

    assert float(line.split()[3]) == pytest.approx(
        to_json(anchored)["energy"]["carbon"]["value"], rel=1e-3
    )


@pytest.mark.promise("M01")
def test_the_commands_are_installed_under_their_names() -> None:
    scripts = Path(sys.executable).parent
    entry = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")

    assert 'pytorch_parser = "snapviewer.cli:parser_main"' in entry
    assert scripts.is_dir()
