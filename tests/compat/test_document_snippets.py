"""The code in the documents of the original tools runs as it is written, under our package's name.

The documents lie beside the project, not in it; where they are not, these tests are skipped. Each
of their blocks has a test here, or a reason why it has none.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from snapviewer import events, explorer, pth_analyzer
from snapviewer.cli import parser_main
from snapviewer.demo import DemoOptions, write_demo
from snapviewer.model import RunOptions
from support import events_sample
from support.display import focus_window, key, xvfb
from support.torch_marks import torch_marks

torch = pytest.importorskip("torch")
pytestmark = torch_marks(":DeprecationWarning", ":FutureWarning")

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ROOT.parent / "shared" / "seeds"
BLOCK = re.compile(r"^ *```\w*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
OURS = {
    "diffsynth.utils.pth_analyzer": "snapviewer.pth_analyzer",
    "rp.libs.pytorch_module_explorer": "snapviewer.explorer",
    "rp.libs.torch_hooks": "snapviewer.explorer",
    "./pytorch_parser": "pytorch_parser",
    "<日志文件路径>": "profiler_logs/baseline/memory_events.json",
    "<输出报告路径>": "report.md",
    "<dir_to_your_snapshot>": "./large",
}

# What no test here runs: words of a block, and the reason.
NOT_RUN = {
    "cmake": "there is no C++ to build; maturin builds the extension",
    "build.bat": "the same",
    r".venv\Scripts\activate": "a command of Windows that is not ours",
    "torch.load('file.pth')": "torch alone; a pickle from elsewhere could run code",
    "Files are automatically loaded": "a comment without code",
    "Automatically detects from model structure": "a comment without code; see test_input_sizes.py",
    "'video_latent': torch.Tensor,": "a description; see the test of P26",
    "161.24 MB   ": "an output with invented sizes; see the test of P24",
    "145.5M parameters": "an output with invented sizes; see the test of X24",
    "⚡ 0.85ms": "an output with invented times; see the test of X25",
    "from textual.widgets._tree": "private imports of the original; see pyproject.toml for ours",
    "from asyncio import Queue, Lock": "imports of the original alone",
    "pip install -r requirements.txt": "run with the conversion, which has the same line",
}


def blocks() -> list[str]:
    """All blocks of all documents, with our names."""
    found = []
    for path in sorted(DOCUMENTS.glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        for theirs, ours in OURS.items():
            text = text.replace(theirs, ours)
        found += [textwrap.dedent(code).strip() for code in BLOCK.findall(text)]
    return found


def block(words: str) -> str:
    """The one block that is these words, or else the one that has them."""
    if not DOCUMENTS.is_dir():
        pytest.skip("the documents are not here")
    (found,) = [code for code in blocks() if code == words] or [
        code for code in blocks() if words in code
    ]
    return found


def run(words: str, **known: Any) -> dict[str, Any]:
    """Run a block of Python, and return what it defines."""
    names = {"__name__": "snippet", **known}
    exec(compile(block(words), words, "exec"), names)
    return names


def shell(folder: Path, code: str, **environment: str) -> str:
    """Run a block of commands in a folder, and return what they print."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["sh", "-e", "-c", code],
        cwd=folder,
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory that looks like a clone of the project."""
    for name in ("convert_snap.py", "examples", "gui.py", "requirements.txt", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_block_is_run_here_or_has_a_reason_not_to_be() -> None:
    if not DOCUMENTS.is_dir():
        pytest.skip("the documents are not here")
    calls = [
        node
        for node in ast.walk(ast.parse(Path(__file__).read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("run", "block")
    ]
    words = [
        ast.literal_eval(call.args[0]) for call in calls if isinstance(call.args[0], ast.Constant)
    ]
    run_here = {block(each) for each in words}

    left = [code for code in blocks() if code not in run_here]

    assert len(run_here) > 40
    assert [code for code in left if not any(words in code for words in NOT_RUN)] == []


# The checkpoint analyzer


@pytest.fixture
def checkpoints(folder: Path) -> Path:
    """The files that the first document names."""
    value = {
        "video_latent": torch.zeros(81, 4, 60, 104),
        "prompt": "a cat",
        "video": torch.zeros(30_000_000, dtype=torch.int8).expand(4, -1).clone(),
    }
    for name in ("path/to", "models/train/processed", "data/processed", "."):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in ("file.pth", "path/to/file.pth", "data/processed/small.pth"):
        torch.save({"video_latent": torch.zeros(3, 4), "prompt": "a cat"}, folder / name)
    torch.save(value, folder / "sample.pth")
    for name in ("models/train/processed", "data/processed"):
        (folder / name / "sample.pth").symlink_to(folder / "sample.pth")
    return folder


@pytest.mark.promise("P01", "P02", "P03", "P09")
def test_a_file_is_analyzed(checkpoints: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("'path/to/file.pth',")

    printed = capsys.readouterr().out
    assert "PTH File Analysis: path/to/file.pth\n" in printed
    assert "\nNumber of variables: 2\n" in printed
    assert printed.endswith("\nvideo_latent: (3, 4) - 48 B\n")


@pytest.mark.promise("P07", "P12", "P16")
def test_the_use_cases_run(checkpoints: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = {"analyze_pth_file": pth_analyzer.analyze_pth_file}

    run("'models/train/processed/sample.pth'", **known)
    assert capsys.readouterr().out.endswith("\nLarge tensor found: video - 114.44 MB\n")

    run("import glob", **known)
    sizes = dict(line.split(": ") for line in capsys.readouterr().out.splitlines())
    assert set(sizes) == {"data/processed/small.pth", "data/processed/sample.pth"}
    assert sizes["data/processed/sample.pth"] == "122.15 MB"

    run("expected_keys", **known)
    assert capsys.readouterr().out == "Warning: Missing expected key 'video_id'\n"

    run("max_depth=10)", **known)
    assert "PTH File Analysis: file.pth\n" in capsys.readouterr().out


@pytest.mark.promise("P16", "P28")
def test_a_pool_analyzes_files(checkpoints: Path) -> None:
    (checkpoints / "many.py").write_text(
        "import multiprocessing\n"
        "from snapviewer.pth_analyzer import analyze_pth_file\n"
        "multiprocessing.set_start_method('fork')  # others import the script again\n"
        "file_paths = ['file.pth', 'sample.pth']\n"
        f"{block('from multiprocessing import Pool')}\n"
        "print([result['num_variables'] for result in results])\n"
    )

    assert shell(checkpoints, "python many.py") == "[2, 3]\n"


@pytest.mark.promise("P18", "P19", "P20", "P21", "P22")
def test_the_commands_of_the_analyzer_run(checkpoints: Path) -> None:
    printed = shell(checkpoints, block("--max-depth 10"))
    assert printed.count("PTH File Analysis: path/to/file.pth\n") == 2, "all but the quiet one"

    printed = shell(checkpoints, block("examples/analyze_pth_example.py"))
    assert printed.count("PTH File Analysis: ") == 3
    assert "\n2 files, " in printed


# Memory events


@pytest.fixture
def logs(folder: Path) -> Path:
    """The logs that the second document names."""
    for name in ("baseline", "optimized"):
        path = folder / "profiler_logs" / name / "memory_events.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(events_sample.SAMPLE))
    return path


@pytest.mark.promise("E01", "E03", "E04")
def test_the_commands_on_logs_run(logs: Path, folder: Path) -> None:
    shell(folder, block("--output report.md"))
    shell(folder, block("--output baseline_analysis.md"))

    for name in ("report", "baseline_analysis", "optimized_analysis", "memory_analysis_report"):
        report = (folder / f"{name}.md").read_text(encoding="utf-8")
        assert "\n## 概述\n" in report, name


@pytest.mark.promise("E06")
def test_the_log_of_the_document_is_read(folder: Path) -> None:
    path = folder / "memory_events.json"
    path.write_text(block('"event": "t5_loaded"'), encoding="utf-8")

    analysis_data = events.analyze_log_file(path)

    assert len(analysis_data["raw_events"]) == 4
    assert list(analysis_data["peak_memory"]) == ["model_loaded"]
    assert list(analysis_data["incremental_memory"]) == ["t5_loaded", "step_0"]


@pytest.mark.promise("E08", "E27")
def test_the_self_test_prints_the_lines_of_the_document(folder: Path) -> None:
    printed = iter(shell(folder, block("tests/scripts/test_memory_analysis.py")).splitlines())

    for line in block("=== 显存分析脚本功能测试 ===").splitlines():
        assert line in printed, f"{line} is missing, or out of order"


@pytest.mark.promise("E15")
def test_debug_prints_the_lines_of_the_document(
    logs: Path, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    data = events.analyze_log_file(logs)
    run(
        "解析到的事件数量",
        events=data["raw_events"],
        memory_data=data["peak_memory"],
        incremental_data=data["incremental_memory"],
    )
    lines = capsys.readouterr().out.splitlines()

    printed = shell(folder, f"python tests/scripts/analyze_memory.py --debug --log {logs} 2>&1")

    assert [line for line in lines if line not in printed.splitlines()] == []


@pytest.mark.promise("E11", "E12", "E13", "E14")
def test_reports_are_extended_and_written_as_the_document_defines(logs: Path) -> None:
    data = events.analyze_log_file(logs)
    report = events.generate_report(data, logs)

    custom = run("def add_custom_analysis")["add_custom_analysis"]
    written = run("def generate_html_report")

    assert custom(report, data) == report + "### 自定义分析\n\n"
    for name in ("generate_html_report", "generate_pdf_report"):
        theirs, ours = inspect.signature(written[name]), inspect.signature(getattr(events, name))
        ours.bind("data", "path")
        assert list(ours.parameters)[:2] == list(theirs.parameters)
    assert list(inspect.signature(events.add_custom_analysis).parameters) == [
        "report",
        "analysis_data",
    ]


# The model analyzer


@pytest.fixture
def models(folder: Path) -> Path:
    """The models that the third document names: a small one under every name."""
    from support.promised_model import save_network

    save_network(folder / "model.pt")
    for name in ("detr_resnet50", "gpt2_model", "vit_large", "large_model", "complex_model"):
        (folder / f"{name}.pt").symlink_to(folder / "model.pt")
    return folder


def labels(code: str) -> list[str]:
    """The marks and labels of an output, without its invented numbers and names of layers."""
    marks = re.findall(r"^\[[A-Z ]+\]|^[A-Z][A-Za-z &-]+$|^={80}$", code, re.MULTILINE)
    return [*marks, *re.findall(r"^ *([A-Z][A-Za-z0-9 ]+:)", code, re.MULTILINE)]


@pytest.fixture
def parsed(
    models: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[[str], str]]:
    """Run a block of commands of the parser, and return what they print.

    They run in this process, with short repetitions and a made-up machine: torch takes seconds to
    start, and what it measures is tested elsewhere.
    """
    from snapviewer.cli import model as command
    from support.promised_model import SHORT, known_roof

    def short(**given: Any) -> RunOptions:
        return replace(RunOptions(**given), budget_s=SHORT.budget_s)

    monkeypatch.setattr(command, "RunOptions", short)

    def parse(code: str) -> str:
        with monkeypatch.context() as patch:
            for line in code.splitlines():
                words = [word for word in shlex.split(line, comments=True) if word != "export"]
                while words and "=" in words[0]:
                    patch.setenv(*words.pop(0).split("=", 1))
                if words:
                    assert words[0] == "pytorch_parser"
                    assert parser_main(words[1:]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    with known_roof():
        yield parse


@pytest.mark.promise("M01")
def test_the_parser_runs_as_a_command(models: Path) -> None:
    printed = shell(models, block("pytorch_parser model.pt"))

    assert "[COMPREHENSIVE MODEL ANALYSIS REPORT]\n" in printed


@pytest.mark.promise("M01", "M02", "M09", "M10", "M13", "M14", "M15", "M16", "M50")
def test_the_commands_of_the_parser_run(parsed: Callable[[str], str]) -> None:
    for code in (
        block("pytorch_parser model.pt --inference"),
        block("complex_model.pt"),
        block("export PYTORCH_PROFILER_LEVEL=1") + "\npytorch_parser model.pt",
        block("PYTORCH_CUDA_MEMORY_FRACTION=0.5"),
        block('CUDA_VISIBLE_DEVICES=""'),
    ):
        printed = parsed(code)
        assert "[COMPREHENSIVE MODEL ANALYSIS REPORT]\n" in printed, code
        assert ("Run time: " in printed) == ("--inference" in code), code


@pytest.mark.promise("M03", "M05", "M17", "M23", "M29")
def test_a_profile_has_every_mark_and_label_of_the_document(
    parsed: Callable[[str], str], models: Path
) -> None:
    code = block("pytorch_parser model.pt --inference --profile")
    commands = block("detr_resnet50.pt --inference --profile").splitlines()
    names = [line.split()[1] for line in commands if line.startswith("pytorch_parser")]
    assert names == ["detr_resnet50.pt", "gpt2_model.pt", "vit_large.pt"]
    assert all(code.replace("model.pt", name) in commands for name in names), "but for the name"

    printed = parsed(code)
    report = (models / "comprehensive_model_analysis.txt").read_text(encoding="utf-8")

    layers = {"Activation:", "Normalization:", "Attention:", "ElementWise:"}
    expected = labels(block("[LOADING PYTORCH MODEL"))
    assert len(expected) > 25
    assert [label for label in expected if label not in printed and label not in layers] == []
    for output in (block("Parameter: transformer.layers.0"), block("Node: Attention_15")):
        expected = labels(output)
        assert len(expected) >= 8
        assert [label for label in expected if label not in report] == []


# The explorer


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a prompt has in which the explorer was imported."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    model[2].bias.requires_grad_(False)
    return {
        **{name: getattr(explorer, name) for name in explorer.__all__},
        "torch": torch,
        "model": model,
        "input_data": torch.ones(5, 3),
    }


@pytest.mark.promise("X06", "X07", "X08")
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("format_shape", [(), (3,), (3, 224, 224)]),
        ("format_param_count", [0, 1, 999, 1000, 9408, 999_949, 1_700_000, 5_400_000_000]),
        (
            "format_time",
            [3.1e-9, 5e-7, 1.5e-5, 9.99e-4, 0.00123, 0.5, 2.5, 9.9, 12.345, 59.0, 90, 3540, 7200],
        ),
    ],
)
def test_formats_are_those_of_the_document(name: str, values: list[Any]) -> None:
    found = {
        "format_shape": lambda: run("def format_shape"),
        "format_param_count": lambda: run("def format_param_count"),
        "format_time": lambda: run("def format_time"),
    }[name]()

    ours = getattr(explorer, name)

    assert [ours(value) for value in values] == [found[name](value) for value in values]


@pytest.mark.promise("X03", "X05", "X10", "X25")
def test_a_run_is_recorded_and_its_times_are_shown(
    known: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    made = run("EMA  # Command", **known)
    assert tuple(made["output"].shape) == (5, 2)
    known["EMA"](known["model"])
    assert "0: Linear(3→4) [16 params]" in capsys.readouterr().out

    run("from snapviewer.explorer import get_forward_stats", **known)
    assert "├─ forward()" in capsys.readouterr().out


@pytest.mark.promise("X02")
def test_models_are_explored(
    known: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    models = pytest.importorskip("torchvision.models")
    network = models.resnet50
    monkeypatch.setattr(models, "resnet50", lambda pretrained: network())  # without a download

    run("import torchvision.models as models")
    printed = capsys.readouterr().out
    assert "conv1: Conv2d(3→64, 7×7)" in printed
    assert "fc: Linear(2048→1000) [2.0M params]" in printed

    monkeypatch.setattr(torch.nn, "Linear", lambda *sizes: torch.nn.LazyLinear(sizes[1]))
    run("class CustomNet", **known)
    assert "conv2: Conv2d(64→128, 3×3) [73.9K params]" in capsys.readouterr().out


@pytest.mark.promise("X11", "X12", "X14", "X16")
def test_functions_return_what_those_of_the_document_return(known: dict[str, Any]) -> None:
    model = known["model"]
    usage = run("def analyze_memory_usage")["analyze_memory_usage"]
    statistics = run("def get_parameter_statistics")["get_parameter_statistics"]
    export = run("def export_model_summary", **known)["export_model_summary"]
    lazy = run("def lazy_parameter_analysis", **known)["lazy_parameter_analysis"]

    assert explorer.analyze_memory_usage(model) == usage(model)
    assert explorer.get_parameter_statistics(model) == statistics(model)
    for name in ("text", "json", "html"):
        assert explorer.export_model_summary(model, format=name) == export(model, format=name)
    ours, theirs = explorer.lazy_parameter_analysis(model)("2"), lazy(model)("2")
    assert (ours.module_type, ours.parameter_count, ours.shapes) == (
        theirs.module_type,
        theirs.parameter_count,
        theirs.shapes,
    )


@pytest.mark.promise("X09", "X13")
def test_classes_have_the_fields_of_the_document() -> None:
    import dataclasses
    import typing

    info = run("class ModuleInfo", **vars(typing), dataclass=dataclasses.dataclass)["ModuleInfo"]
    config = run("class ExplorerConfig", **vars(typing))["ExplorerConfig"]

    expected = [(field.name, field.default) for field in fields(info)]
    assert [(field.name, field.default) for field in fields(explorer.ModuleInfo)] == expected
    assert expected[0] == ("name", MISSING)
    ours = explorer.ExplorerConfig()
    for name in config.__annotations__:
        assert getattr(ours, name) == getattr(config, name), name


@pytest.mark.promise("X17")
def test_the_worker_of_the_document_analyzes_every_module(known: dict[str, Any]) -> None:
    textual = pytest.importorskip("textual")
    from textual.worker import WorkerCancelled

    seen: list[str] = []

    def watched(name: str, module: Any) -> None:
        seen.append(explorer.analyze_module(name, module).name)

    known |= {"analyze_module": watched, "asyncio": asyncio, "WorkerCancelled": WorkerCancelled}
    made = run("async def analyze_model_async", **known, work=textual.work)

    asyncio.run(inspect.unwrap(made["analyze_model_async"])(known["model"]))
    assert seen == ["", "0", "1", "2"]


@pytest.mark.promise("X15", "X18", "X19")
def test_what_the_original_loads_plots_and_saves_is_ours_to_explore(
    known: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save(known["model"].state_dict(), folder / "weights.pth")

    def save_text_file(text: str, path: str) -> None:
        (folder / path).write_text(text, encoding="utf-8")

    def input_select_file(extension_filter: str) -> Path:
        return next(folder.glob(f"*.{extension_filter}"))

    known["rp"] = SimpleNamespace(
        input_select_file=input_select_file,
        plot_network_graph=sorted,
        save_text_file=save_text_file,
    )

    run("rp.input_select_file", **known)
    assert "0: Linear(3→4) [16 params]" in capsys.readouterr().out

    diagram: Callable[[Any], list[str]] = run("def generate_architecture_diagram", **known)[
        "generate_architecture_diagram"
    ]
    assert diagram(known["model"]) == ["edges", "nodes"]

    run("generate_model_summary(model)", **known)
    saved = (folder / "model_analysis.txt").read_text(encoding="utf-8")
    assert saved == explorer.generate_model_summary(known["model"])


# The snapshot viewer


@pytest.mark.promise("S01", "S02", "S03", "S09", "S13")
def test_a_snapshot_is_converted_unzipped_and_opened(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("unzip") is None:
        pytest.skip("unzip is not installed")
    (folder / "snap").mkdir()
    write_demo(folder / "snap" / "large.pickle", DemoOptions(events=5000))

    # Everything is installed here: pip reads the file, and downloads nothing.
    no_download = {"PIP_DRY_RUN": "1", "PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1"}
    shell(folder, block("# Convert snapshot"), **no_download)
    shell(folder, block("unzip snap/large.zip"))

    assert sorted(path.name for path in (folder / "large").iterdir()) == [
        "allocations.json",
        "elements.db",
    ]
    monkeypatch.setenv("SNAPVIEWER_CONFIG", str(folder / "config"))
    command = block("python gui.py --log info").removeprefix("python ").split()
    with xvfb() as name:
        monkeypatch.setenv("DISPLAY", name)
        with subprocess.Popen([sys.executable, *command], stderr=subprocess.PIPE) as window:
            focus_window("large")
            key("ctrl+q")
            _, errors = window.communicate(timeout=60)
    assert window.returncode == 0, errors
    shell(folder, f"{block('maturin dev -r')} --help")
