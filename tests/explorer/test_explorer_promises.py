"""The functions that scripts know by name, and the command."""

from __future__ import annotations

import builtins
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import snapviewer
from snapviewer import SnapshotError, explorer
from snapviewer.compat import explorer as compat
from snapviewer.explorer.app import opening
from snapviewer.explorer.explored_model import ExploredModel
from snapviewer.report.tree.diagram import as_svg
from snapviewer.text.units import format_bytes
from support.program import run_here
from support.pth_writer import T, write_pth

NAMES = (
    "explore_torch_module",
    "explore_model",
    "explore_module",
    "record_torch_module_forward_stats",
    "get_forward_stats",
    "display_timing_in_explorer",
    "ModuleInfo",
    "ExplorerConfig",
    "format_shape",
    "format_param_count",
    "format_time",
    "analyze_memory_usage",
    "get_parameter_statistics",
    "export_model_summary",
    "generate_text_summary",
    "generate_json_summary",
    "generate_html_summary",
    "generate_model_summary",
    "lazy_parameter_analysis",
    "get_module_by_path",
    "analyze_module",
    "analyze_model_async",
    "analyze_module_detailed",
    "generate_architecture_diagram",
    "extract_model_graph",
    "EMA",
    "explore_torch_module_with_stats",
)


@pytest.mark.promise("X02", "X04")
def test_every_promised_name_is_there_and_documented() -> None:
    for name in NAMES:
        assert getattr(explorer, name).__doc__, name
        assert name in explorer.__all__
    assert {name for name in explorer.__all__ if name not in (explorer.__doc__ or "")} == set()
    with pytest.raises(AttributeError):
        explorer.nothing_of_the_kind  # type: ignore[attr-defined]  # noqa: B018


def test_the_package_is_imported_without_torch_and_textual() -> None:
    code = (
        "import sys\n"
        "from snapviewer.explorer import explore_model, ExplorerConfig, tree_of_checkpoint\n"
        "import snapviewer.explorer.recording, snapviewer.cli.explore\n"
        "heavy = {'torch', 'textual', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


@pytest.mark.promise("X09")
def test_what_is_found_of_a_module_has_the_promised_fields() -> None:
    names = ["name", "module_type", "parameter_count", "shapes", "timing_stats", "memory_usage"]
    info = explorer.ModuleInfo("a", "Linear", 6, {"weight": (2, 2)})

    assert [field.name for field in fields(explorer.ModuleInfo)] == names
    assert (info.timing_stats, info.memory_usage) == (None, None)


# Checkpoints, without torch


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.pth"
    write_pth(
        path, {"conv1.weight": T("float32", (64, 3, 7, 7)), "fc.weight": T("float32", (2, 3))}
    )
    return path


@pytest.mark.promise("X15", "X19")
def test_a_file_is_looked_at_under_the_same_names(file: Path) -> None:
    assert explorer.get_parameter_statistics(file) == {
        "total_params": 9414,
        "trainable_params": 9414,
        "non_trainable_params": 0,
        "memory_usage": 4 * 9414,
    }
    assert explorer.analyze_memory_usage(str(file)) == {"conv1.weight": 37_632, "fc.weight": 24}
    assert "conv1: Conv2d(3→64, 7×7) [9.4K params]" in explorer.generate_model_summary(file)
    assert explorer.generate_architecture_diagram(file).startswith("<svg")


@pytest.mark.promise("X14")
@pytest.mark.parametrize(
    ("form", "begins"), [("text", "model.pth("), ("json", "{"), ("html", "<!DOCTYPE html>")]
)
def test_a_summary_is_exported_in_every_format(file: Path, form: Any, begins: str) -> None:
    summary = explorer.export_model_summary(file, format=form)

    assert summary.startswith(begins)
    assert "conv1" in summary


@pytest.mark.promise("X14")
def test_another_format_is_refused_in_words(file: Path) -> None:
    with pytest.raises(ValueError, match="one of text, json, html, not 'pdf'"):
        explorer.export_model_summary(file, format="pdf")  # type: ignore[arg-type]


@pytest.mark.promise("X18")
def test_a_graph_has_every_module_and_what_it_is_in(file: Path) -> None:
    graph = explorer.extract_model_graph(file)

    assert [node["id"] for node in graph["nodes"]] == ["", "conv1", "fc"]
    assert graph["edges"] == [
        {"source": "", "target": "conv1", "kind": "contains"},
        {"source": "", "target": "fc", "kind": "contains"},
    ]


# Opening


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any, str]]:
    """What would be opened, with its settings and title, as if there were a terminal."""
    opened: list[tuple[Any, Any, str]] = []

    def explore(read: Callable[[], ExploredModel], *, config: Any, name: str) -> None:
        opened.append((read(), config, name))

    monkeypatch.setattr("snapviewer.explorer.app.opening.explore", explore)
    monkeypatch.setattr(opening, "is_interactive", lambda: True)
    return opened


@pytest.mark.promise("X01", "X02", "X04")
@pytest.mark.parametrize("name", ["explore_model", "explore_torch_module", "explore_module", "EMA"])
def test_a_model_is_opened_under_every_name(
    name: str, file: Path, watched: list[tuple[Any, Any, str]]
) -> None:
    getattr(explorer, name)(snapviewer.read_checkpoint(file))

    assert watched[0][0].tree.root.sums.parameters == 9414
    assert watched[0][0].checkpoint is not None


@pytest.mark.promise("X05")
def test_the_answer_of_the_last_line_is_explored(
    file: Path, watched: list[tuple[Any, Any, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builtins, "_", str(file), raising=False)
    explorer.EMA()
    monkeypatch.setattr(builtins, "_", None)

    assert len(watched) == 1
    for is_set in (True, False):
        if not is_set:
            monkeypatch.delattr(builtins, "_")
        with pytest.raises(SnapshotError) as refused:
            explorer.EMA()
        assert str(refused.value) == (
            "there is no last result to explore; pass a model: EMA(model)"
        )


@pytest.mark.promise("X01", "X04")
@pytest.mark.parametrize("name", ["explore_torch_module", "explore_module"])
def test_a_module_is_the_parameter_of_that_name(
    name: str, file: Path, watched: list[tuple[Any, Any, str]]
) -> None:
    getattr(explorer, name)(module=file)

    assert watched[0][0].tree.root.sums.parameters == 9414


@pytest.mark.promise("X13")
@pytest.mark.parametrize("name", ["explore_model", "explore_torch_module", "explore_module"])
def test_the_explorer_opens_with_the_settings_and_the_title_of_the_model(
    name: str, file: Path, watched: list[tuple[Any, Any, str]]
) -> None:
    config = explorer.ExplorerConfig(color_scheme="light", max_depth=1)

    getattr(explorer, name)(str(file), config=config)
    getattr(explorer, name)(snapviewer.read_checkpoint(file))

    assert [opened[1] for opened in watched] == [config, None]
    assert [opened[2] for opened in watched] == [str(file), "Checkpoint"]


@pytest.mark.promise("X10")
@pytest.mark.torch
def test_the_explorer_works_where_recording_cannot_be_imported() -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    code = (
        "import sys, torch\n"
        "sys.modules['snapviewer.explorer.recording'] = None\n"
        "from snapviewer.explorer import explore_model\n"
        "explore_model(torch.nn.Linear(2, 3))\n"
        "try:\n"
        "    from snapviewer.explorer import get_forward_stats\n"
        "except ImportError:\n"
        "    print('no timing')\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout.startswith("Linear(2→3)(\n├── 9 parameters\n"), done.stderr
    assert done.stdout.endswith("no timing\n")


def test_without_a_terminal_the_tree_is_written(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    explorer.explore_model(file)

    assert capsys.readouterr().out.startswith("model.pth(\n├── 9.4K parameters\n")


def test_without_textual_a_sentence_says_what_to_install(file: Path) -> None:
    code = (
        "import sys\n"
        "sys.modules['textual'] = None\n"
        "from snapviewer import SnapshotError\n"
        "from snapviewer.explorer import explore_model\n"
        "from snapviewer.explorer.app import opening\n"
        "opening.is_interactive = lambda: True\n"
        "try:\n"
        "    explore_model(sys.argv[1])\n"
        "except SnapshotError as error:\n"
        "    print(error)\n"
    )
    command = [sys.executable, "-c", code, str(file)]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.stdout.startswith("the explorer needs Textual: `pip install textual`")


def test_streams_that_are_gone_are_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)

    assert not opening.is_interactive()


# Live models


@pytest.fixture(scope="module")
def model() -> Any:
    pytest.importorskip("torch", reason="torch is not installed")
    from support import explorer_models

    return explorer_models.Net().eval()


@pytest.mark.promise("X11", "X12")
@pytest.mark.torch
def test_parameters_are_counted_as_the_promise_does(model: Any) -> None:
    parameters = list(model.parameters())

    assert explorer.analyze_memory_usage(model) == {
        name: p.element_size() * p.numel() for name, p in model.named_parameters()
    }
    assert explorer.get_parameter_statistics(model) == {
        "total_params": sum(p.numel() for p in parameters),
        "trainable_params": sum(p.numel() for p in parameters if p.requires_grad),
        "non_trainable_params": sum(p.numel() for p in parameters if not p.requires_grad),
        "memory_usage": sum(p.numel() * p.element_size() for p in parameters),
    }


@pytest.mark.promise("X16")
@pytest.mark.torch
def test_modules_are_found_by_path_and_analyzed_when_asked_for(model: Any) -> None:
    get_module_info = explorer.lazy_parameter_analysis(model)

    info = get_module_info("blocks.0")

    assert explorer.get_module_by_path(model, "blocks.0") is model.blocks[0]
    assert explorer.get_module_by_path(model, "") is model
    assert (info.name, info.module_type, info.parameter_count) == ("blocks.0", "Linear", 72)
    assert info.shapes == {"weight": (8, 8), "bias": (8,)}
    assert info.memory_usage == 4 * 72
    with pytest.raises(AttributeError, match=r"no module at 'blocks\.9'"):
        get_module_info("blocks.9")
    with pytest.raises(AttributeError) as refused:
        get_module_info("x" * 1000)
    assert str(refused.value) == f"there is no module at '{'x' * 199}…'"


@pytest.mark.promise("X16")
@pytest.mark.torch
def test_one_module_is_analyzed_with_its_own_tensors(model: Any) -> None:
    own = explorer.analyze_module("attention", model.attention)
    whole = explorer.analyze_module_detailed(model.attention)
    named = explorer.analyze_module_detailed(model.attention, "attention")

    assert (own.name, whole.name, named.name) == ("attention", "", "attention")
    assert own.shapes == {"in_proj_weight": (24, 8), "in_proj_bias": (24,)}
    assert whole.shapes.keys() == {*own.shapes, "out_proj.weight", "out_proj.bias"}
    assert own.parameter_count == whole.parameter_count == 288


@pytest.mark.promise("X03", "X10")
@pytest.mark.torch
def test_a_run_is_recorded_and_shown(model: Any, watched: list[tuple[Any, Any, str]]) -> None:
    import torch

    with torch.no_grad():
        result = explorer.explore_torch_module_with_stats(model, torch.rand(1, 3, 8, 8))

    explored = watched[0][0]
    assert result.shape == (1, 8)
    assert explored.stats.timings["conv"].calls == 1
    assert explored.find_module("conv") is model.conv
    stats = explorer.analyze_module_detailed(model, "net").timing_stats
    assert stats is not None
    assert stats["calls"] == 1
    assert 0 < stats["forward_own"] < stats["forward"]
    data = [e for e in explorer.extract_model_graph(model)["edges"] if e["kind"] == "data"]
    assert {"source": "conv", "target": "bn", "kind": "data"} in data
    drawn, tree = explorer.generate_architecture_diagram(model), explored.tree
    assert drawn == as_svg(tree, explored.stats) != as_svg(tree), "with the arrows of the run"


@pytest.mark.promise("X03")
@pytest.mark.torch
def test_a_model_is_run_with_the_inputs_given_by_place_and_by_name(
    watched: list[tuple[Any, Any, str]],
) -> None:
    import torch

    class Scaled(torch.nn.Module):  # type: ignore[misc]
        def forward(self, values: Any, *, by: int = 1) -> Any:
            return by * values

    result = explorer.explore_torch_module_with_stats(Scaled(), torch.ones(2), by=3)

    assert result.tolist() == [3, 3]


@pytest.mark.torch
def test_what_is_no_model_is_refused_in_words() -> None:
    with pytest.raises(SnapshotError, match="is not a module"):
        explorer.export_model_summary([1, 2])


# The command


def test_the_command_writes_the_tree_where_nobody_watches(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = run_here(
        capsys, "explore", file, "--depth", "1", "--sort", "params", "--hide-below", "10"
    )

    assert ran.code == 0
    assert "conv1: Conv2d(3→64, 7×7) [9.4K params]" in ran.out
    assert "fc" not in ran.out
    assert "... 1 more" in ran.out


def test_the_command_opens_the_explorer_for_who_watches(
    file: Path, watched: list[tuple[Any, Any, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    first = run_here(capsys, "explore", file)
    second = run_here(capsys, "explore", file, "--light", "--depth", "2", "--compare", file)

    assert (first.code, second.code) == (0, 0)
    assert watched[0][1] is None, "as it was the last time"
    assert (watched[1][1].color_scheme, watched[1][1].max_depth) == ("light", 2)
    assert (watched[0][0].other, watched[1][0].other.name) == (None, "model.pth")


@pytest.mark.parametrize(
    ("name", "begins"), [("a.txt", "model"), ("a.json", "{"), ("a.html", "<!"), ("a.svg", "<svg")]
)
def test_the_command_writes_what_the_name_of_the_output_says(
    file: Path, capsys: pytest.CaptureFixture[str], name: str, begins: str
) -> None:
    output = file.parent / name

    ran = run_here(capsys, "explore", file, "-o", output)

    assert (ran.code, ran.out) == (0, f"{output}: {format_bytes(output.stat().st_size)}\n")
    assert output.read_text(encoding="utf-8").startswith(begins)


def test_the_command_prints_one_json_document(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = run_here(capsys, "explore", file, "--export", "json")

    assert json.loads(ran.out)["totals"]["parameters"] == 9414


def test_the_command_compares(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = file.parent / "other.pth"
    write_pth(other, {"conv1.weight": T("float32", (64, 3, 7, 7))})

    ran = run_here(capsys, "explore", file, "--compare", other)

    assert ran.code == 0
    assert "- └── fc: Linear(3→2) [6 params]" in ran.out


def test_the_command_opens_the_checkpoint_of_a_directory(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = run_here(capsys, "explore", file.parent)
    (file.parent / "other.pth").write_bytes(file.read_bytes())
    two = run_here(capsys, "explore", file.parent)

    assert alone.out.startswith("model.pth(")
    assert two.code == 1
    assert "2 checkpoints found, expected one" in two.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["missing.pth"], 1, "no such file"),
        (["FILE", "--depth", "0"], 2, "must be 1 or more"),
        (["FILE", "--hide-below", "xK"], 2, "must be a number, such as 1000 or 10K"),
        (["FILE", "--hide-below", "-1"], 2, "must be 0 or more"),
        (["FILE", "-o", "out.xyz"], 2, "the suffix of an output picks its format"),
        (
            ["FILE", "--compare", "FILE", "--export", "svg"],
            2,
            "written as text or json",
        ),
    ],
)
def test_the_command_fails_with_one_sentence(
    file: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    said: str,
) -> None:
    words = [str(file) if word == "FILE" else word for word in arguments]

    ran = run_here(capsys, "explore", *words)

    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err


def test_the_functions_stay_where_the_package_says() -> None:
    assert explorer.explore_model is compat.explore_model
