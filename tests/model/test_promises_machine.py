"""The promises M35 to M38 and M47 to M52, and the contract of the document: machine and scale."""

from __future__ import annotations

import csv
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from snapviewer import CancelledError
from snapviewer.model import ModelAnalysis, TensorSpec, analyze, analyze_file
from snapviewer.model.energy import estimate
from snapviewer.model.graph import Graph, Node
from snapviewer.model.parameters import Parameters
from snapviewer.model.recommend import registry
from snapviewer.model.work import registry as formulas
from snapviewer.report.model import formats
from support.program import run, run_here
from support.torch_marks import torch_marks

torch = pytest.importorskip("torch", reason="torch is not installed")

from torch import nn  # noqa: E402 (after the line that skips)

from snapviewer.model import nodes as node_module  # noqa: E402
from snapviewer.model.inference import batches, profile, running  # noqa: E402
from snapviewer.model.live import record  # noqa: E402
from snapviewer.report.model.json import to_json  # noqa: E402
from support.promised_model import SHORT, analyzed, known_roof  # noqa: E402
from support.sparse_files import write_sparse  # noqa: E402

pytestmark = torch_marks(":DeprecationWarning")

ROOT = Path(__file__).resolve().parents[2]
STATUSES = {"measured", "computed", "estimated", "unavailable"}


@pytest.fixture(scope="module")
def document(analysis: ModelAnalysis) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(to_json(analysis), allow_nan=False))
    return found


# The document


def quantities(value: Any, way: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """All quantities of a document, with the ways to them."""
    if isinstance(value, dict):
        if "value" in value and "unit" in value:
            yield way, value
        else:
            for key, inner in value.items():
                yield from quantities(inner, f"{way}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from quantities(inner, f"{way}[]")


def test_the_document_has_the_keys_of_its_contract(document: dict[str, Any]) -> None:
    assert list(document["architecture"]) == ["class", "label", "reason", "layers"]
    for key in ("count", "bytes", "sparsity", "tensors"):
        assert key in document["parameters"]
    for key in ("macs", "flops", "by_type", "uncounted", "input_shapes"):
        assert key in document["compute"]
    for key in ("file", "format", "nodes", "energy", "system", "recommendations"):
        assert key in document


def test_every_quantity_says_how_it_was_obtained(document: dict[str, Any]) -> None:
    found = dict(quantities(document))

    for way, quantity in found.items():
        assert {"value", "unit", "status", "source"} <= set(quantity), way
        assert quantity["status"] in STATUSES, way
        assert quantity["source"], way
        assert (quantity["value"] is None) == (quantity["status"] == "unavailable"), way
    for way in (
        ".parameters.count",
        ".parameters.tensors[].mean",
        ".parameters.tensors[].compressibility",
        ".compute.macs",
        ".compute.by_type.Convolution",
        ".nodes[].flops",
        ".nodes[].time",
        ".nodes[].energy",
        ".energy.energy",
        ".recommendations[].gain",
    ):
        assert way in found


def test_a_live_module_has_the_same_document(document: dict[str, Any]) -> None:
    live = analyze(nn.Sequential(nn.Linear(3, 2), nn.ReLU()), (TensorSpec((1, 3), "float32"),))

    found = to_json(live)

    assert list(found) == list(document)
    assert list(found["nodes"][0]) == list(document["nodes"][0])
    assert list(found["parameters"]["tensors"][0]) == list(document["parameters"]["tensors"][0])
    assert found["compute"]["macs"]["value"] == 6


# The machine


@pytest.mark.promise("M35", "M36", "M37", "M38")
def test_the_machine_is_reported_at_rest_and_during_the_runs(document: dict[str, Any]) -> None:
    system = document["system"]
    use = system["during_runs"]

    for part, names in (
        (system["cpu"], ("utilisation", "frequency", "logical_cpus")),
        (system["memory"], ("total", "available", "program_peak")),
        (use, ("cpu_utilisation", "frequency", "cache_hits", "cpu_efficiency", "memory_peak")),
        (use, ("disk_read", "disk_written", "network_received", "network_sent")),
    ):
        for name in names:
            assert part[name]["status"] in ("measured", "computed", "unavailable")
            assert part[name]["source"]
    # What a GPU does, or why there is none.
    assert system["gpus"] or system["gpu_note"]
    memory = document["inference"]["memory"]
    assert memory["peak"]["value"] > 0
    assert memory["allocations"]["value"] >= 5
    assert sum(memory["sizes"].values()) == memory["allocations"]["value"]


# Scale


def sparse_weights(path: Path, size_bytes: int, count: int = 40) -> Path:
    """A file of matrices that takes no room on the disk."""
    rows = size_bytes // count // (4 * 1024)
    return write_sparse(path, {f"layers.{n}.weight": (rows, 1024) for n in range(count)})


@pytest.mark.promise("M47")
def test_a_file_larger_than_memory_is_analyzed_without_reading_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = sparse_weights(tmp_path / "large.safetensors", 100 * 2**30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_inblock

    ran = run_here(capsys, "model", path, "--json")

    document = json.loads(ran.out)
    assert ran.code == 0
    assert document["parameters"]["bytes"]["value"] == 100 * 2**30
    assert document["parameters"]["tensors"][0]["mean"]["status"] == "unavailable"
    assert any("--stats" in note for note in document["notes"])
    # Its type alone says what can be done.
    (halved,) = document["recommendations"]
    assert halved["gain"]["value"] == 50 * 2**30
    assert resource.getrusage(resource.RUSAGE_SELF).ru_inblock - before < 10_000


@pytest.mark.promise("M47")
def test_statistics_are_read_in_pieces_where_they_are_asked_for(tmp_path: Path) -> None:
    # More than the program may have as memory, whatever it does with it.
    path = sparse_weights(tmp_path / "large.safetensors", 240 * 2**20)
    program = (
        "import resource, sys\n"
        "from snapviewer.model import analyze_file\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "found = analyze_file(sys.argv[1], has_stats=True, has_quality=False)\n"
        "print(found.parameters.sparsity)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )

    ran = run("-c", program, path, program=())

    assert ran.code == 0, ran.err
    sparsity, kibibytes = ran.out.split()
    assert float(sparsity) == 1.0
    assert int(kibibytes) < 120 * 1024


@pytest.mark.promise("M48")
def test_parameters_are_measured_by_several_threads(
    tmp_path: Path,
) -> None:
    path = sparse_weights(tmp_path / "weights.safetensors", 256 * 2**20, count=1)
    most = 1

    def look(_done: int, _total: int) -> None:
        nonlocal most
        most = max(most, len(os.listdir("/proc/self/task")) - others)

    others = len(os.listdir("/proc/self/task")) - 1

    analyze_file(path, has_stats=True, has_quality=False, progress=look)

    assert most > 1 or (os.cpu_count() or 1) == 1


def chain(length: int) -> Graph:
    """A graph of as many nodes, each on what the one before made."""
    spec = TensorSpec((1, 8), "float32")
    ops = ("aten::linear", "aten::relu", "aten::add")
    weight = TensorSpec((8, 8), "float32")
    nodes = tuple(
        Node(
            number,
            ops[number % 3],
            f"layers.{number}",
            "",
            (spec, weight) if number % 3 == 0 else (spec, spec) if number % 3 == 2 else (spec,),
            (),
            (spec,),
            (f"layers.{number}.weight",) if number % 3 == 0 else (),
        )
        for number in range(length)
    )
    return Graph("live", nodes, (spec,), "given", ())


@pytest.mark.promise("M49")
def test_thousands_of_nodes_are_looked_at_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    work_of = formulas.work_of

    def counted(node: Node) -> Any:
        nonlocal calls
        calls += 1
        return work_of(node)

    monkeypatch.setattr(node_module, "work_of", counted)

    found = node_module.node_details(chain(3000), Parameters(()))

    assert len(found) == calls == 3000
    assert [node.place for node in found] == list(range(1, 3001))
    assert found[1].before is found[0].node
    assert found[1].after is found[2].node


@pytest.mark.promise("M49")
def test_the_work_grows_with_the_nodes_and_not_faster() -> None:
    from snapviewer.report.model import console
    from snapviewer.report.model.text import as_text

    def steps(length: int) -> int:
        """How many calls of Python functions the reports of a model take."""
        layers = nn.Sequential(*(nn.Linear(2, 2) for _ in range(length)))
        analysis = analyze(layers, (TensorSpec((1, 2), "float32"),), has_quality=False)
        count = 0

        def counting(_frame: object, event: str, _argument: object) -> None:
            nonlocal count
            count += event == "call"

        sys.setprofile(counting)
        try:
            as_text(analysis)
            list(console.lines_of(analysis))
            to_json(analysis)
        finally:
            sys.setprofile(None)
        return count

    few, many = steps(20), steps(80)

    assert many < 4.5 * few


# The environment and the options


@pytest.mark.promise("M50")
def test_the_environment_is_heard(network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with known_roof():
        monkeypatch.setenv("PYTORCH_PROFILER_LEVEL", "0")
        monkeypatch.setenv("OMP_NUM_THREADS", "1")
        monkeypatch.setenv("PYTORCH_CUDA_MEMORY_FRACTION", "much")
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        found = analyze_file(network, has_stats=False, is_run=True, options=SHORT)

    assert found.profile is not None
    assert found.profile.nodes == ()
    assert found.profile.memory is None
    assert found.profile.device == "cpu"
    assert any("PYTORCH_CUDA_MEMORY_FRACTION is 'much'" in note for note in found.notes)


@pytest.mark.promise("M50")
def test_threads_are_those_of_the_environment(
    network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with known_roof():
        monkeypatch.setenv("OMP_NUM_THREADS", "3")
        found = analyze_file(network, has_stats=False, is_run=True, options=SHORT)

    assert found.profile is not None
    assert [one.threads for one in found.profile.thread_runs] == [1, 2, 3]


@pytest.mark.promise("M51")
def test_each_switch_of_the_original_does_something(
    network: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("snapviewer.cli.model._IDLE_S", 0.01)
    found = {}
    with known_roof():
        monkeypatch.setenv("PYTORCH_PROFILER_LEVEL", "0")
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
        for option in ("--inference", "--cuda-profiling", "--memory-debug", "--energy-monitor"):
            ran = run_here(
                capsys, "model", network, "--no-stats", "--json", "--budget", "0.01", option
            )
            assert ran.code == 0
            found[option] = json.loads(ran.out)

    # Each of them runs the model; the environment asked for totals only.
    assert all(document["inference"]["plain"]["runs"] for document in found.values())
    plain = found["--inference"]
    assert plain["inference"]["memory"] is None
    assert found["--memory-debug"]["inference"]["memory"]["peak"]["value"] > 0
    assert any("GPU" in note for note in found["--cuda-profiling"]["notes"])
    assert not any("GPU" in note for note in plain["notes"])
    assert "was not watched" in plain["energy"]["idle"]["source"]
    assert "was not watched" not in found["--energy-monitor"]["energy"]["idle"]["source"]


def test_a_tdp_and_a_carbon_intensity_of_ones_own_are_used(
    network: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--no-stats", "--json", "--budget", "0.01", "--carbon-intensity", "50")
    with known_roof():
        ran = run_here(capsys, "model", network, "--inference", "--tdp", "65", *options)
    alone = json.loads(run_here(capsys, "model", network, *options).out)["energy"]

    energy = json.loads(ran.out)["energy"]
    used = [attempt["rung"] for attempt in energy["attempts"] if attempt["is_used"]]
    assert used in (["TDP estimate"], ["RAPL"])
    if used == ["TDP estimate"]:
        assert "TDP 65 W" in energy["energy"]["source"]
    for one in (energy, alone):
        assert one["carbon"]["value"] == pytest.approx(one["energy"]["value"] / 3.6e6 * 50)


@pytest.mark.parametrize(
    "arguments",
    [("--tdp", "0"), ("--tdp", "nan"), ("--carbon-intensity", "-1"), ("--budget", "0")],
)
def test_numbers_that_make_no_sense_are_wrong_usage(
    arguments: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    ran = run_here(capsys, "model", "model.pt", *arguments)

    assert ran.code == 2
    assert "must be" in ran.err


# Batches and layouts


def short(module: Any, spec: TensorSpec, **options: Any) -> Any:
    from support.promised_model import ROOF

    return profile(module, spec, roof=ROOF, repeats=2, budget_s=0.2, has_trials=True, **options)


def test_batches_are_timed_and_the_smallest_good_one_is_advised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A clock by which a run takes 10 ms and another one for each example.
    now = 0

    def timed(runner: Any) -> int:
        nonlocal now
        spent = int(10 + runner.inputs.positional[0].shape[0]) * 1_000_000
        now += spent
        return spent

    monkeypatch.setattr(running, "clock_ns", lambda: now)
    monkeypatch.setattr(running.Runner, "timed_ns", timed)
    runner = running.Runner(nn.Linear(3, 2).eval(), _inputs(torch.ones(2, 3)), "cpu", lambda: None)

    found = batches.time_batches(
        runner, run_bytes=None, free_bytes=None, budget_s=1000.0, reach=lambda: None
    )

    sizes = [one.size for one in found.runs]
    assert sizes == [2**power for power in range(len(sizes))]
    rates = [size / (10 + size) * 1e3 for size in sizes]
    assert [one.throughput.value for one in found.runs] == pytest.approx(rates)
    good = [size for size, rate in zip(sizes, rates, strict=True) if rate >= 0.95 * max(rates)]
    assert found.advised == good[0]
    assert found.ended


@pytest.mark.parametrize(("run_ns", "runs"), [(10**9, 3), (10**6, 20), (10, 50)])
def test_short_runs_with_a_batch_are_repeated_more_often(
    monkeypatch: pytest.MonkeyPatch, run_ns: int, runs: int
) -> None:
    monkeypatch.setattr(running.Runner, "timed_ns", lambda _: run_ns)
    runner = running.Runner(nn.Linear(3, 2).eval(), _inputs(torch.ones(1, 3)), "cpu", lambda: None)

    found = batches.time_batches(
        runner, run_bytes=None, free_bytes=None, budget_s=0.0, reach=lambda: None
    )

    assert found.runs[0].time.runs == runs


def _inputs(*tensors: Any) -> Any:
    from snapviewer.model.live.inputs import Inputs

    return Inputs(tensors, {})


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ({"run_bytes": 2**20, "free_bytes": 2**24}, "a batch of 8 would take more than"),
        ({"budget_s": 0.0}, "a batch of 2 would exceed the time budget"),
    ],
    ids=["memory", "time"],
)
def test_a_sweep_of_batches_ends_at_its_bounds(bounds: dict[str, float], said: str) -> None:
    runner = running.Runner(nn.Linear(3, 2).eval(), _inputs(torch.ones(1, 3)), "cpu", lambda: None)
    usual: dict[str, Any] = {"run_bytes": None, "free_bytes": None, "budget_s": 1000.0}

    found = batches.time_batches(runner, **{**usual, **bounds}, reach=lambda: None)

    assert found.ended.startswith(said)


class Fixed(nn.Module):  # type: ignore[misc] # its base is torch's
    """Takes one example only, as if its sizes had been traced."""

    def forward(self, x: Any) -> Any:
        return x.view(1, 12) * 2


class Mixing(nn.Module):  # type: ignore[misc] # its base is torch's
    """Takes what others have for a batch as a sequence."""

    def forward(self, x: Any) -> Any:
        return x.cumsum(0)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (Fixed(), "the model accepts no batch of 2"),
        (Mixing(), "two examples at once give other results"),
    ],
    ids=["fixed", "sequence"],
)
def test_a_model_that_takes_no_batch_says_so(module: Any, said: str) -> None:
    found = short(module, TensorSpec((1, 12), "float32"))

    assert found.batches is None
    assert any(said in note for note in found.notes)


def test_both_layouts_run_in_turn_and_the_module_is_left_as_it_was() -> None:
    module = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()).eval()
    stride = module[0].weight.stride()

    found = short(module, TensorSpec((1, 3, 8, 8), "float32"))

    assert found.layouts is not None
    assert found.layouts.contiguous.runs == found.layouts.channels_last.runs == 2
    usual, last = found.layouts.contiguous.median.value, found.layouts.channels_last.median.value
    assert found.layouts.speed_up.value == pytest.approx(usual / last)
    assert module[0].weight.stride() == stride
    assert found.batches is not None


def test_a_model_without_images_has_one_layout() -> None:
    assert short(nn.Linear(4, 4), TensorSpec((1, 4), "float32")).layouts is None


# Stopping


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.95])
def test_it_stops_wherever_it_is_cancelled(network: Path, share: float) -> None:
    cancel = Event()

    def stop(done: int, total: int) -> None:
        if done >= share * total:
            cancel.set()

    with pytest.raises(CancelledError):
        analyzed(network, progress=stop, cancel=cancel)


@pytest.mark.parametrize("share", [0.1, 0.6, 0.8, 0.97])
def test_ctrl_c_during_a_run_writes_nothing(
    share: float,
    network: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    @contextmanager
    def bar(_what: str) -> Iterator[Any]:
        def report(done: int, total: int) -> None:
            if done >= share * total:
                raise KeyboardInterrupt

        yield report

    monkeypatch.setattr("snapviewer.cli.model.progress_bar", bar)
    report = tmp_path / "report.html"

    with known_roof():
        ran = run_here(capsys, "model", network, "--profile", "--budget", "0.01", "-o", report)

    assert (ran.code, ran.out) == (130, "")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_ends_with_130_and_leaves_nothing_behind(tmp_path: Path) -> None:
    path = sparse_weights(tmp_path / "large.safetensors", 20 * 2**30)
    work = tmp_path / "work"
    work.mkdir()
    # Who starts the tests in the background lets them ignore it, and their children, too.
    program = (
        "import signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "from snapviewer.cli import main\n"
        "sys.exit(main())"
    )
    arguments = ["model", str(path), "--stats", "-o", "report.html"]
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        cwd=work,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as ran:
        # Reading has begun when the file is mapped or open.
        _wait_until(lambda: _has_open(ran.pid, path))
        ran.send_signal(signal.SIGINT)
        out, err = ran.communicate(timeout=60)

    assert ran.returncode == 130
    assert err.decode().endswith("interrupted\n")
    assert out == b""
    assert list(work.iterdir()) == []


def _has_open(pid: int, path: Path) -> bool:
    try:
        return str(path) in Path(f"/proc/{pid}/maps").read_text() or any(
            os.readlink(link) == str(path) for link in Path(f"/proc/{pid}/fd").iterdir()
        )
    except OSError:
        return False


def _wait_until(is_so: Any) -> None:
    for _ in range(3000):
        if is_so():
            return
        time.sleep(0.01)
    raise AssertionError("it did not begin to read")


# Extension points


@pytest.fixture
def registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test adds is gone afterwards."""
    for module, name in (
        (formulas, "_entries"),
        (estimate, "_MODELS"),
        (formats, "_formats"),
        (registry, "_recommenders"),
        (registry, "_for_nodes"),
        (registry, "_for_parameters"),
    ):
        monkeypatch.setattr(module, name, getattr(module, name).copy())


def examples(file: Path) -> list[str]:
    """The pieces of Python in a document."""
    return re.findall(r"^```python\n(.*?)^```$", file.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.promise("M52")
@pytest.mark.usefixtures("registries")
def test_the_examples_of_the_documentation_run_and_are_used(
    network: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    operation, energy, recommender, report = examples(
        ROOT / "docs" / "guide" / "extending-models.md"
    )
    for example in (operation, energy, recommender, report):
        exec(compile(example, "extending-models.md", "exec"), {"__name__": "example"})
    dead = nn.Linear(6, 4, bias=False)
    nn.init.zeros_(dead.weight)

    found = analyze(dead, (TensorSpec((1, 6), "float32"),))
    modelled = ("model", network, "--full", "--energy-model", "my board")
    ran = run_here(capsys, *modelled)
    written = run_here(capsys, *modelled, "-o", tmp_path / "report.csv")

    assert "Leave out 1 tensors of zeros" in [item.title for item in found.recommendations]
    (item,) = found.parameters.tensors
    titles = [advice.title for advice in registry.advice_for_parameter(item)]
    assert "Pad to a multiple of 8 columns" in titles
    assert ran.code == written.code == 0
    assert "my board" in ran.out
    with (tmp_path / "report.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows][:2] == ["Convolution_1", "Normalization_2"]


@pytest.mark.promise("M52")
@pytest.mark.usefixtures("registries")
def test_a_new_operation_is_counted_in_a_model() -> None:
    library = torch.library.Library("promised", "DEF")
    library.define("half(Tensor x) -> Tensor")
    library.impl("half", lambda x: x / 2, "CompositeExplicitAutograd")

    class Halving(nn.Module):  # type: ignore[misc] # its base is torch's
        def forward(self, x: Any) -> Any:
            return torch.ops.promised.half(x)

    spec = (TensorSpec((2, 5), "float32"),)
    before = to_json(analyze(Halving(), spec))["compute"]
    formulas.register("promised::half", "x", kind="ElementWise")(
        lambda call: call.work(other_flops=call.elements("x"))
    )
    after = to_json(analyze(Halving(), spec))["compute"]

    assert [item["op"] for item in before["uncounted"]] == ["promised::half"]
    assert after["uncounted"] == []
    assert after["flops"]["value"] == 10
    assert record(Halving(), spec).nodes[0].op == "promised::half"
