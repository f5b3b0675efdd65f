"""Outputs under the names that the first documents promise, compared with those in `golden/`.

The goldens were made with commit 199e314, before the packages were rearranged. A difference is a
promise broken or a sentence changed. If it was meant, and no promise fixes the old words, run

    SNAPVIEWER_UPDATE_GOLDENS=1 python -m pytest tests/compat/test_goldens.py

read `git diff tests/compat/golden`, and say in the commit why they changed.

Left out of the goldens is only what differs between machines or releases: the version, the number
of processors, the size and the encoding of a bundle, the list of options before a usage error,
style sheets, and what floats in JSON have beyond six digits. JSON documents may gain keys.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import sqlite3
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import asdict
from difflib import unified_diff
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import snapviewer
from snapviewer import events, explorer, pth_analyzer
from snapviewer.explorer.timing import ForwardStats, ModuleTiming, Spread, TensorShape
from support import events_sample, golden_inputs, program

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).resolve().parent / "golden"
COLUMNS = "idx, size, start_time, end_time, callstack"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, so that outputs name files without a path; a plain environment."""
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("COLUMNS", "")  # readline sets it behind Python's back
    for name in ("DISPLAY", "OMP_NUM_THREADS", "PYTORCH_PROFILER_LEVEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "letter.txt").write_text("Dear reader, this is none of these files.\n")
    return tmp_path


# Comparing


def compare(found: Mapping[str, str]) -> None:
    """Compare outputs with the goldens of these names, and show all differences."""
    differences: list[str] = []
    for name, output in found.items():
        path = GOLDEN / name
        text = normalized(output)
        if os.environ.get("SNAPVIEWER_UPDATE_GOLDENS"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        golden = path.read_text(encoding="utf-8") if path.exists() else ""
        if path.suffix == ".json" and golden:
            text = json_text(with_known_keys(json.loads(text), json.loads(golden)))
        before, after = golden.splitlines(keepends=True), text.splitlines(keepends=True)
        differences += unified_diff(before, after, f"golden/{name}", f"{name} as it is now")
    if differences:
        pytest.fail("".join(differences), pytrace=False)


def normalized(text: str) -> str:
    """Replace what differs between machines and releases."""
    for part, name in ((str(Path.cwd()), "FOLDER"), (str(ROOT), "ROOT")):
        text = text.replace(part, name)
    # The estimate of the idle power names the number of this machine's logical processors.
    text = re.sub(r"(logical processors) × \d+", r"\1 × N", text)
    return text.replace(f"snapviewer {snapviewer.__version__}", "snapviewer VERSION")


def json_text(document: Any) -> str:
    """Return a document as JSON, with the digits that every machine computes alike."""
    return json.dumps(rounded(document), ensure_ascii=False, indent=1) + "\n"


def rounded(document: Any) -> Any:
    """Round the floats of a document to six digits."""
    if isinstance(document, float):
        return float(f"{document:.6g}")
    if isinstance(document, dict):
        return {key: rounded(value) for key, value in document.items()}
    if isinstance(document, list | tuple):
        return [rounded(value) for value in document]
    return document


def with_known_keys(found: Any, golden: Any) -> Any:
    """Leave out the keys that a golden does not have: a document may gain some."""
    if isinstance(found, dict) and isinstance(golden, dict):
        return {
            key: with_known_keys(value, golden[key])
            for key, value in found.items()
            if key in golden
        }
    if isinstance(found, list) and isinstance(golden, list) and len(found) == len(golden):
        return [with_known_keys(*pair) for pair in zip(found, golden, strict=True)]
    return found


def without_styles(page: str) -> str:
    """Return HTML or SVG without its style sheet, which all pages share, and the hash of that."""
    page = re.sub(r"(<style>).*?(</style>)", r"\1\2", page, flags=re.DOTALL)
    return re.sub(r"'sha256-[^']*'", "'sha256-'", page)


def transcript(*commands: str) -> str:
    """Run commands in the working directory, and return them with what they write."""
    return "\n".join(_ran(command) for command in commands)


def _ran(command: str) -> str:
    name, *arguments = shlex.split(command)
    if name == "pytorch_parser":
        start = ["-c", _console_script(name)]
    elif arguments[0] == "-m":
        start, arguments = arguments[:2], arguments[2:]
    else:
        start, arguments = [str(ROOT / arguments[0])], arguments[1:]
    ran = program.run(*arguments, program=start, directory=Path.cwd())
    error = re.sub(r"\Ausage: .*?\n(?! )", "usage: …\n", ran.err, flags=re.DOTALL)
    # Python puts quotes around these or not, by its version.
    error = re.sub(r"choose from .*", lambda found: found[0].replace("'", ""), error)
    errors = "".join(f"[stderr] {line}\n" for line in error.splitlines())
    return f"$ {command}\n{ran.out}{errors}[exit code {ran.code}]\n"


def _console_script(name: str) -> str:
    """Return the code that the installed script of this name would run."""
    entry = re.search(rf'^{name} = "(.+):(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    assert entry, f"pyproject.toml has no script {name}"
    return f"import sys; from {entry[1]} import {entry[2]} as main; sys.exit(main())"


# What is only printed


COMMANDS = {
    "convert_snap_errors": [
        "python convert_snap.py -i missing.pickle -o snap.zip",
        "python convert_snap.py -i letter.txt -o snap.zip",
        "python convert_snap.py -i snap.pickle -o letter.txt",
        "python convert_snap.py -i snap.pickle -o snap.zip -d 5",
        "python convert_snap.py -i snap.pickle",
    ],
    "gui": [
        "python gui.py snap.pickle",
        "python gui.py missing.pickle",
        "python gui.py --log info --res 2400 1000 -d ./large",
        "python gui.py --log loud snap.pickle",
        "python gui.py --res 2400 snap.pickle",
        "python gui.py --res 0 1000 snap.pickle",
    ],
    "pth_analyzer": [
        "python -m snapviewer.pth_analyzer sample.pth",
        "python -m snapviewer.pth_analyzer sample.pth --quiet",
        "python -m snapviewer.pth_analyzer sample.pth --max-depth 10",
        "python -m snapviewer.pth_analyzer list.pth",
        "python -m snapviewer.pth_analyzer missing.pth",
        "python -m snapviewer.pth_analyzer letter.txt --quiet",
    ],
    "analyze_pth_example": [
        "python examples/analyze_pth_example.py sample.pth",
        "python examples/analyze_pth_example.py '*.pth'",
        "python examples/analyze_pth_example.py list.pth missing.pth",
    ],
    "pytorch_parser_errors": [
        "pytorch_parser",
        "pytorch_parser missing.pt",
        "pytorch_parser letter.txt --inference",
    ],
    "analyze_memory_errors": [
        "python tests/scripts/analyze_memory.py --log missing.json",
        "python tests/scripts/analyze_memory.py --log letter.txt",
        "python tests/scripts/analyze_memory.py",
    ],
    "test_memory_analysis": ["python tests/scripts/test_memory_analysis.py"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_print_what_they_printed_and_write_nothing(name: str, folder: Path) -> None:
    if name == "gui" and sys.platform != "linux":
        pytest.skip("a window would open")
    golden_inputs.write_snapshot(folder / "snap.pickle")
    golden_inputs.write_checkpoints(folder)
    files = sorted(folder.iterdir())

    compare({f"{name}.txt": transcript(*COMMANDS[name])})

    assert sorted(folder.iterdir()) == files


# Snapshots


@pytest.mark.promise("S01")
def test_convert_snap_writes_the_bundle_that_it_wrote(folder: Path) -> None:
    golden_inputs.write_snapshot(folder / "snap.pickle")

    shown = transcript(
        "python convert_snap.py -i snap.pickle -o snap.zip",
        "python convert_snap.py -i snap.pickle -o ./large",
        "python convert_snap.py --input snap.pickle --output second.zip --device 1",
    )

    compare(
        {
            "convert_snap.txt": re.sub(r"[\d.]+ KiB", "N KiB", shown),
            "convert_snap_bundles.txt": bundles("snap.zip", "large", "second.zip"),
            "convert_snap_allocations.json": json_text(described("snap.zip")),
        }
    )
    assert described("large") == described("snap.zip")


def bundles(*names: str) -> str:
    """Return the members of bundles, and the rows of the table that people query."""
    lines = []
    for name in names:
        files = bundle_files(name)
        lines += [f"{name}: {', '.join(sorted(files))}", f"select {COLUMNS} from allocs:"]
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch, "elements.db")
            path.write_bytes(files["elements.db"])
            with contextlib.closing(sqlite3.connect(path)) as connection:
                rows = connection.execute(f"select {COLUMNS} from allocs order by idx").fetchall()
        lines += [f"  {' | '.join(map(repr, row))}" for row in rows]
    return "".join(f"{line}\n" for line in lines)


def bundle_files(name: str) -> dict[str, bytes]:
    """Read the files of a bundle, a zip or a directory."""
    path = Path(name)
    if path.is_dir():
        return {file.name: file.read_bytes() for file in path.iterdir()}
    with zipfile.ZipFile(path) as archive:
        return {member: archive.read(member) for member in archive.namelist()}


def described(name: str) -> Any:
    """Return `allocations.json` of a bundle without versions and without the packed columns."""
    document = json.loads(bundle_files(name)["allocations.json"])
    del document["version"], document["snapviewer_version"]
    for device in document["devices"]:
        device["columns"] = dict.fromkeys(device["columns"], "packed")
    return document


# Checkpoints


def test_the_functions_of_pth_analyzer_return_what_they_returned(folder: Path) -> None:
    golden_inputs.write_checkpoints(folder)

    files = {
        "sample.pth": pth_analyzer.analyze_pth_file("sample.pth", verbose=False),
        "sample.pth, max_depth=10": pth_analyzer.analyze_pth_file("sample.pth", 10, False),
        "list.pth": pth_analyzer.analyze_pth_file("list.pth", max_depth=1, verbose=False),
    }
    counts = (0, 45, 1023, 1024, 2048, 169_710_013, 5 * 2**30, 7 * 2**40, 3 * 2**50)
    compare(
        {
            "analyze_pth_file.json": json_text(files),
            "format_size.json": json_text({str(n): pth_analyzer.format_size(n) for n in counts}),
            "get_size_bytes.json": json_text(sizes()),
        }
    )


def sizes() -> dict[str, int]:
    """Return the bytes of objects beyond those of the Python objects that they are made of."""
    pixels = np.zeros((3, 224, 224), np.float32)
    texts, table = ["red", "snow"], {"pixels": pixels}
    loop: list[Any] = []
    loop.append(loop)
    objects: dict[str, tuple[Any, list[Any]]] = {
        "an array": (pixels, []),
        "a view of an array": (pixels[0, ::2], []),
        "a dict with an array": (table, [table, "pixels"]),
        "a list with an array twice": (twice := [pixels, pixels], [twice]),
        "a list of str": (texts, [texts, *texts]),
        "a tuple": (pair := (480, 0.5), [pair, *pair]),
        "a list in itself": (loop, [loop]),
        **{repr(value): (value, [value]) for value in ("fox", 17, 2.5, True, None)},
    }
    return {
        name: pth_analyzer.get_size_bytes(value) - sum(map(sys.getsizeof, parts))
        for name, (value, parts) in objects.items()
    }


# Models


def test_pytorch_parser_prints_and_writes_what_it_did(folder: Path) -> None:
    golden_inputs.write_models(folder)
    report = folder / "comprehensive_model_analysis.txt"

    found = {}
    for name, command in {
        "pytorch_parser": "pytorch_parser network.pt",
        "pytorch_parser_state": "pytorch_parser state.pth",
        "pytorch_parser_linear": "pytorch_parser linear.pt --output linear.json",
    }.items():
        found[f"{name}.txt"] = transcript(command)
        found[f"{name}_report.txt"] = report.read_text(encoding="utf-8")
        report.unlink()
    found["pytorch_parser_linear.json"] = json_text(json.loads(Path("linear.json").read_text()))

    compare(found)


# Memory events


def test_analyze_memory_prints_and_writes_what_it_did(folder: Path) -> None:
    events_sample.write_log(folder / "profiler_logs/baseline/memory_events.json")
    events_sample.write_log(folder / "rich.json", events_sample.rich_log())

    script = "python tests/scripts/analyze_memory.py"
    shown = transcript(
        f"{script} --log profiler_logs/baseline/memory_events.json --output baseline_analysis.md",
        f"{script} --log profiler_logs/baseline/memory_events.json --debug",
        f"{script} --log rich.json --output rich.md --debug",
    )

    baseline = Path("baseline_analysis.md").read_text(encoding="utf-8")
    compare(
        {
            "analyze_memory.txt": shown,
            "analyze_memory_report.md": baseline,
            "analyze_memory_rich_report.md": Path("rich.md").read_text(encoding="utf-8"),
        }
    )
    assert Path("memory_analysis_report.md").read_text(encoding="utf-8") == baseline


def test_the_functions_of_memory_events_return_what_they_returned(folder: Path) -> None:
    path = "profiler_logs/baseline/memory_events.json"
    events_sample.write_log(folder / path)

    data = events.analyze_log_file(path)

    counts = (0, 524_288, 1_048_576, 1_073_741_824)
    results = {
        "analyze_log_file": data,
        "analyze_log_file of a missing file": events.analyze_log_file("missing.json"),
        "format_b_to_mb": {str(count): events.format_b_to_mb(count) for count in counts},
    }
    compare(
        {
            "events_functions.json": json_text(results),
            "analyze_memory_report.md": events.generate_report(data, path),
            "generate_html_report.html.txt": without_styles(
                events.generate_html_report(data, path)
            ),
        }
    )


# Modules


@pytest.mark.promise("X06", "X07", "X08")
def test_the_formats_of_the_explorer_return_what_they_returned() -> None:
    shapes = ((3, 224, 224), (7,), ())
    counts = (0, 999, 1000, 999_949, 999_960, 1_700_000, 5_400_000_000)
    times = (5e-7, 1.5e-5, 0.00123, 2.5, 12.345, 90, 7200)
    memory = (0, 999, 1_500, 147_456, 102_228_128)
    results = {
        "format_shape": {str(shape): explorer.format_shape(shape) for shape in shapes},
        "format_param_count": {str(count): explorer.format_param_count(count) for count in counts},
        "format_time": {str(time): explorer.format_time(time) for time in times},
        "format_memory": {str(size): explorer.format_memory(size) for size in memory},
    }

    compare({"explorer_formats.json": json_text(results)})


def test_the_explorer_summarises_a_file_as_it_did(folder: Path) -> None:
    golden_inputs.write_models(folder)

    compare(summaries("state.pth", "explorer_file"))


@pytest.mark.promise("X14", "X24")
@pytest.mark.torch
def test_the_explorer_summarises_a_live_model_as_it_did(folder: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")

    compare(summaries(golden_inputs.live_model(), "explorer_live"))


@pytest.mark.promise("X25")
@pytest.mark.torch
def test_the_explorer_shows_times_as_it_did(folder: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    tree = explorer.tree_of_module(golden_inputs.live_model())
    timings = [
        timing("", 0.00321, backward_s=0.0071, takes=(4, 3, 16, 16), gives=(4, 8)),
        timing(
            "stem.conv", 0.00085, backward_s=0.00038, takes=(4, 3, 16, 16), gives=(4, 8, 14, 14)
        ),
        timing("stem.act", 1.5e-5, takes=(4, 8, 14, 14), gives=(4, 8, 14, 14)),
        timing("head", 5e-7, takes=(4, 8), gives=(4, 8)),
    ]
    stats = ForwardStats(
        {one.path: one for one in timings}, runs=3, notes=("times are of the CPU",)
    )

    out = io.StringIO()
    explorer.display_timing_in_explorer(stats, tree, file=out)
    explorer.display_timing_in_explorer(stats, file=out)
    explorer.display_timing_in_explorer(None, file=out)

    compare({"display_timing_in_explorer.txt": out.getvalue()})


def summaries(model: Any, name: str) -> dict[str, str]:
    """Return all outputs about a model under the promised names."""
    numbers = {
        "analyze_memory_usage": explorer.analyze_memory_usage(model),
        "get_parameter_statistics": explorer.get_parameter_statistics(model),
        "extract_model_graph": explorer.extract_model_graph(model),
    }
    if not isinstance(model, str):
        look = explorer.lazy_parameter_analysis(model)
        numbers["lazy_parameter_analysis"] = {path: asdict(look(path)) for path in ("", "stem")}
    page = explorer.export_model_summary(model, format="html")
    return {
        f"{name}.txt": explorer.export_model_summary(model),
        f"{name}.json": json_text(json.loads(explorer.export_model_summary(model, format="json"))),
        f"{name}.html.txt": without_styles(page),
        f"{name}.svg": without_styles(explorer.generate_architecture_diagram(model)),
        f"{name}_numbers.json": json_text(numbers),
    }


def timing(
    path: str,
    forward_s: float,
    *,
    takes: tuple[int, ...],
    gives: tuple[int, ...],
    backward_s: float | None = None,
) -> ModuleTiming:
    """Return what three calls of a module would show."""

    def spread(seconds: float) -> Spread:
        return Spread(3, seconds, seconds / 10, seconds / 2, seconds * 2, seconds * 3)

    def tensor(name: str, shape: tuple[int, ...]) -> TensorShape:
        return TensorShape(name, shape, "float32", "cpu", 4 * int(np.prod(shape)))

    backward = None if backward_s is None else spread(backward_s)
    return ModuleTiming(
        path=path,
        type_name="Module",
        calls=3,
        total=spread(forward_s),
        own=spread(forward_s / 2),
        backward=backward,
        backward_own=backward,
        has_gradient=backward is not None,
        inputs=(tensor("input", takes),),
        outputs=(tensor("output", gives),),
        activation_bytes=4 * int(np.prod(gives)),
        allocated_bytes=None,
    )


# The goldens themselves


def test_every_golden_is_compared_and_free_of_this_machine() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    for path in GOLDEN.iterdir():
        text = path.read_text(encoding="utf-8")
        stem = re.sub(r"(_numbers|_report)?\..*", "", path.name)
        assert f'"{stem}' in source, f"no test compares {path.name}"
        assert len(text.encode()) < 40_000, path.name
        assert not re.search(r"/(home|root|tmp|work|Users|var)/", text), path.name
        assert not re.search(r"processors × \d|[MG]Hz|\d cores", text), path.name
