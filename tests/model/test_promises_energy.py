"""The promises M25, M28, M34, M38 and M53: energy, measured work, threads, disk and network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from snapviewer.model import ModelAnalysis
from snapviewer.model.energy import (
    Energy,
    EnergySetting,
    Range,
    RunWork,
    energy_model,
    work_by_class,
)
from snapviewer.model.energy.assumptions import CLASSES, ClassName, class_of_kind
from snapviewer.model.energy.work import OperationWork
from snapviewer.model.graph import Node, TensorSpec
from snapviewer.model.inference import DtypeRun, Patterns
from snapviewer.model.inference.patterns import patterns_of
from snapviewer.model.inference.timing import timing_of
from snapviewer.model.nodes import node_details
from snapviewer.model.nvml import NoAnswerError
from snapviewer.model.quantity import Quantity
from snapviewer.model.work import kind_of, work_of
from snapviewer.report.model import console
from snapviewer.report.model.document import document_of
from snapviewer.report.model.json import to_json
from snapviewer.report.model.text import as_text
from snapviewer.report.writers.html import as_html
from support.fake_flops import FakeFlops
from support.profiled_models import profiled_model
from support.promised_model import ROOF
from support.torch_marks import torch_marks

FLOPS = 2**28
_Test = TypeVar("_Test", bound=Callable[..., None])


def needs_torch(test: _Test) -> _Test:
    """Mark a test that runs a model; torch warns of its own ways to save."""
    for mark in torch_marks(":DeprecationWarning"):
        test = mark(test)
    return test


def node(op: str, inputs: list[tuple[int, ...]], output: tuple[int, ...], *more: object) -> Node:
    arguments = tuple(TensorSpec(shape, "float32") for shape in inputs)
    outputs = (TensorSpec(output, "float32"),)
    return Node(0, op, "", "", (*arguments, *more), (), outputs, ())  # type: ignore[arg-type]


def convolution() -> Node:
    """3×3, from 64 to 64 channels, without a bias."""
    image = (1, 64, 64, 64 // 2)
    options = (None, (1, 1), (1, 1), (1, 1), 1)
    return node("aten::conv2d", [image, (64, 64, 3, 3)], image, *options)


def linear() -> Node:
    return node("aten::linear", [(128, 1024), (1024, 1024)], (128, 1024))


def attention() -> Node:
    """8 heads of 64 dimensions over 512 positions."""
    shape = (1, 8, 512, 64)
    return node("aten::scaled_dot_product_attention", [shape, shape, shape], shape)


def elementwise() -> Node:
    shape = (1024, 1024)
    return node("aten::add", [shape, shape], shape, 1)


NODES: dict[ClassName, Callable[[], Node]] = {
    "convolution": convolution,
    "attention": attention,
    "linear": linear,
    "elementwise": elementwise,
}


def picojoules_per_flop(made: Node, **setting: Any) -> Range:
    """The energy of an operation for each of its FLOPs, without idle power."""
    work = work_by_class([made])
    found = energy_model(work, 0.0, setting=EnergySetting(**setting))
    return found.range * (1e12 / work.flops)


@pytest.mark.promise("M34")
@pytest.mark.parametrize("name", list(NODES))
def test_each_kind_of_operation_has_an_energy_model_of_its_own(name: ClassName) -> None:
    made = NODES[name]()

    (part,) = work_by_class([made]).parts

    assert class_of_kind(kind_of(made.op)) == part.operation == name
    work: Any = work_of(made)
    assert (part.flops, part.read_bytes) == (work.flops, work.read_bytes)
    assert part.dtype == "float32"


@pytest.mark.promise("M34")
def test_equal_flops_take_other_joules_in_a_convolution_attention_and_addition() -> None:
    found = {name: picojoules_per_flop(make()) for name, make in NODES.items()}

    usual = {name: numbers.usual for name, numbers in found.items()}
    # 128 rows use a weight 128 times, a convolution thousands of times; a sum uses nothing twice.
    assert usual["convolution"] < usual["linear"] < usual["attention"] < usual["elementwise"]
    assert usual["convolution"] == pytest.approx(
        30 + 150 * 1.3 * moved_per_flop(convolution()) + 2.5 * 4 / 12, rel=1e-6
    )
    assert usual["attention"] == pytest.approx(
        30 * 1.2 + 150 * 1.5 * moved_per_flop(attention()) + 2.5 * 4 / 7, rel=1e-6
    )
    # Twelve bytes for one FLOP: moving them is nearly all of it.
    assert usual["elementwise"] == pytest.approx(30 * 2 + 12 * 150 + 12 * 2.5)
    for numbers in found.values():
        assert numbers.low < numbers.usual < numbers.high


def moved_per_flop(made: Node) -> float:
    work = work_by_class([made])
    return (work.read_bytes + work.written_bytes) / work.flops


@pytest.mark.promise("M34")
def test_the_classes_differ_in_arithmetic_traffic_and_reuse_alone() -> None:
    """With equal FLOPs and bytes only the constants of the classes are left."""
    energies = {
        name: energy_model(RunWork((OperationWork(name, "float32", FLOPS, 2**20, 0),)), 0.0)
        for name in CLASSES
    }

    operation, memory = (
        {name: found.terms[place].joules.usual for name, found in energies.items()}
        for place in (0, 1)
    )
    assert operation["convolution"] == operation["linear"]
    assert operation["attention"] == pytest.approx(1.2 * operation["linear"])
    assert operation["elementwise"] == pytest.approx(2 * operation["linear"])
    assert memory["convolution"] < memory["linear"] < memory["attention"] < memory["elementwise"]
    assert len({found.range for found in energies.values()}) == len(CLASSES)


@pytest.mark.promise("M34")
def test_only_products_use_the_matrix_units_of_a_gpu() -> None:
    half = {
        name: energy_model(
            RunWork((OperationWork(name, "float16", FLOPS, 0, 0),)),
            0.0,
            setting=EnergySetting(device="gpu"),
        )
        .terms[0]
        .joules.usual
        / FLOPS
        * 1e12
        for name in CLASSES
    }

    assert half["linear"] == half["convolution"] == pytest.approx(1)
    assert half["attention"] == pytest.approx(1.2)
    assert half["elementwise"] == pytest.approx(2 * 12)


@pytest.mark.promise("M34")
def test_the_energy_of_a_graph_is_that_of_its_operations() -> None:
    nodes = [make() for make in NODES.values()]

    whole = energy_model(work_by_class(nodes), 0.0)

    each = [energy_model(work_by_class([made]), 0.0).range for made in nodes]
    assert whole.range.usual == pytest.approx(sum(numbers.usual for numbers in each))
    assert whole.range.high == pytest.approx(sum(numbers.high for numbers in each))


@pytest.fixture(scope="module")
def analysis(tmp_path_factory: pytest.TempPathFactory) -> ModelAnalysis:
    """The analysis of runs whose numbers are made up."""
    return profiled_model(tmp_path_factory.mktemp("models"))


@pytest.mark.promise("M34")
def test_every_report_has_the_assumptions_with_range_and_origin(analysis: ModelAnalysis) -> None:
    assert analysis.graph is not None
    work = work_by_class(analysis.graph.nodes)
    energy = replace(analysis.energy, model="picojoules", terms=energy_model(work, 0.002).terms)
    analysis = replace(analysis, energy=energy)

    rows = to_json(analysis)["energy"]["assumptions"]

    names = [row["name"] for row in rows]
    for name in ("convolution", "linear", "elementwise"):
        assert {f"{name} {what}" for what in ("arithmetic", "traffic", "reuse")} <= set(names)
    assert not any(name.startswith("attention") for name in names), "this model has none"
    assert {"float32 on a CPU", "memory of a CPU", "caches", "leakage"} <= set(names)
    page, lines = as_html(document_of(analysis)), list(console.lines_of(analysis))
    for row in rows:
        numbers = row["range"]
        assert numbers["low"] <= numbers["usual"] <= numbers["high"]
        assert row["basis"] in as_text(analysis)
        assert row["name"] in page
        assert any(line.startswith(f"    {row['name']} {numbers['usual']:g} ") for line in lines)
    assert "Goto and van de Geijn, ACM TOMS 2008" in page


# The figures of one report


def with_energy(analysis: ModelAnalysis, energy: Energy) -> ModelAnalysis:
    """The analysis if its runs had taken this energy."""
    assert analysis.profile is not None
    assert analysis.graph is not None
    profile = replace(analysis.profile, energy=energy)
    nodes = node_details(analysis.graph, analysis.parameters, profile)
    return replace(analysis, profile=profile, nodes=nodes, energy=energy)


def modelled(analysis: ModelAnalysis) -> Energy:
    """The energy that the model estimates for the runs, on a hot chip."""
    assert analysis.graph is not None
    setting = EnergySetting(logical_cpus=4, temperature_c=90)
    found = energy_model(work_by_class(analysis.graph.nodes), 0.002, setting=setting)
    return replace(
        analysis.energy,
        energy=found.energy,
        power=found.power,
        model="picojoules",
        terms=found.terms,
        setting=setting,
    )


def measured(analysis: ModelAnalysis) -> Energy:
    return replace(
        analysis.energy,
        energy=Quantity(0.05, "J", "measured", "RAPL of package-0"),
        power=Quantity(25.0, "W", "measured", "RAPL of package-0, mean"),
        model=None,
        terms=(),
    )


@pytest.mark.promise("M30")
@pytest.mark.parametrize("energy_of", [modelled, measured])
def test_nodes_and_the_time_between_them_are_the_energy_of_a_run(
    analysis: ModelAnalysis, energy_of: Callable[[ModelAnalysis], Energy]
) -> None:
    analysis = with_energy(analysis, energy_of(analysis))

    document = to_json(analysis)["energy"]

    total = document["energy"]["value"]
    in_nodes = sum(found.energy.value or 0 for found in analysis.nodes) / 1e9
    assert document["of_nodes"]["value"] == pytest.approx(in_nodes)
    assert document["of_nodes"]["value"] + document["outside"]["value"] == pytest.approx(total)
    # The operations take 1.552 of 2.2 ms in a profiled run, and idle power is the rest.
    share = 1.552 / 2.2
    static = [term["value"] for name, term in document["terms"].items() if name in IDLE]
    expected = (1 - share) * (sum(static) if static else total)
    assert document["outside"]["value"] == pytest.approx(expected)
    for found in analysis.nodes:
        assert found.power.value is not None
        if not static:
            assert found.power.value == pytest.approx(25), "no node has more power than the run"


IDLE = ("static", "thermal")


@pytest.mark.promise("M30")
def test_each_report_says_which_runs_its_energy_is_of_and_how_they_vary(
    analysis: ModelAnalysis,
) -> None:
    use = analysis.profile.system if analysis.profile else None
    assert use is not None
    busy = replace(use, cpu_utilisation=Quantity(100.0, "%", "measured", "made up"))
    busy = replace(busy, program_cpus=Quantity(0.2, "CPUs", "measured", "made up"))
    assert analysis.profile is not None
    analysis = replace(analysis, profile=replace(analysis.profile, system=busy))

    runs = (
        "Runs for energy: 3 runs after the timed ones, mean 2.00 ms, median 1.90 ms "
        "(fastest 1.80 ms, slowest 2.30 ms); the timed runs had a median of 2.05 ms; "
        "other programs used the machine"
    )
    assert runs in as_text(analysis)
    assert runs in as_html(document_of(analysis))
    document = to_json(analysis)["inference"]["energy_runs"]
    assert (document["runs"], document["slowest"]["value"]) == (3, 0.0023)
    # 31.25 W × 0.1 ms
    assert "Spread of the energy: 3.125e-03 J" in as_text(analysis)
    assert "Spread of the energy" in as_html(document_of(analysis))


@pytest.mark.promise("M38")
def test_every_report_says_whose_disk_and_network_it_is(analysis: ModelAnalysis) -> None:
    lines, page = as_text(analysis), as_html(document_of(analysis))

    for label, value in (
        ("disk read (this process)", "0 B"),
        ("disk written (this process)", "4.00 KiB"),
        ("network received (whole machine)", "100 B"),
        ("network sent (whole machine)", "200 B"),
    ):
        assert f"    {label}: {value}\n" in lines
        assert f"    {label}: {value}" in console.lines_of(analysis)
        assert f"during runs: {label}" in page
    use = to_json(analysis)["system"]["during_runs"]
    assert use["disk_written"]["value"] == 4096
    assert use["network_received"]["value"] == 100


# Measured work


def run(
    monkeypatch: pytest.MonkeyPatch, counters: Callable[[], object], network: Path
) -> ModelAnalysis:
    """Analyze a model on a machine that has these counters."""
    pytest.importorskip("torch", reason="torch is not installed")
    from snapviewer.model.inference import profiling
    from support.promised_model import analyzed

    monkeypatch.setattr(profiling, "flop_counters", counters)
    return analyzed(network)


def refused() -> object:
    raise NoAnswerError("perf_event is not permitted (kernel.perf_event_paranoid is 4)")


@needs_torch
@pytest.mark.promise("M25")
def test_flops_are_measured_where_the_processor_counts_them(
    monkeypatch: pytest.MonkeyPatch, network: Path
) -> None:
    counters = (FakeFlops(300), FakeFlops(700))

    found = run(monkeypatch, lambda: counters, network)

    assert found.profile is not None
    for ran in found.nodes:
        assert ran.ran_flops == Quantity(1000, "FLOP", "measured", "hardware counters (perf_event)")
    # A reading before and after the run, and around each of its calls.
    whole = found.profile.measured_flops
    assert whole.status == "measured"
    assert whole.value == 1000 * (2 * len(found.profile.nodes) + 1)
    assert not any(counter.is_open for counter in counters)
    line = "  Measured FLOPs: 1.00 kFLOP (measured: hardware counters (perf_event)) at "
    assert as_text(found).count(line) == len(found.nodes)
    assert to_json(found)["nodes"][0]["measured_flops"]["status"] == "measured"
    assert "1.00 kFLOP" in as_html(document_of(found))


@needs_torch
@pytest.mark.promise("M25")
def test_flops_that_are_not_measured_are_called_a_formula(
    monkeypatch: pytest.MonkeyPatch, network: Path
) -> None:
    found = run(monkeypatch, refused, network)

    assert found.profile is not None
    for ran in found.nodes:
        assert ran.ran_flops.status == "computed"
        assert ran.ran_flops.source == "a formula on the run's shapes"
        assert ran.ran_flops.value == ran.counted.flops
    report, document = as_text(found), to_json(found)
    assert "  Measured FLOPs: 110.59 kFLOP (computed: a formula on the run's shapes) at " in report
    whole = (
        "computed: formulas on the run's shapes; not measured: perf_event is not permitted "
        "(kernel.perf_event_paranoid is 4)"
    )
    assert f"Measured FLOPs: 419.92 kFLOP\n    {whole}\n" in report
    assert whole.removeprefix("computed: ") == document["inference"]["measured_flops"]["source"]
    assert "formula only" in as_html(document_of(found))


@needs_torch
@pytest.mark.promise("M25")
def test_a_counter_that_fails_during_the_run_is_a_reason(
    monkeypatch: pytest.MonkeyPatch, network: Path
) -> None:
    class Failing(FakeFlops):
        def flops(self) -> float:
            if self.count > 5:
                raise NoAnswerError("the counters cannot be read: gone")
            return super().flops()

    counter = Failing(1)
    found = run(monkeypatch, lambda: (counter,), network)

    assert found.profile is not None
    assert found.profile.measured_flops.source.endswith("the counters cannot be read: gone")
    assert not counter.is_open


# Threads


@pytest.mark.promise("M28")
def test_each_node_has_its_speed_up_and_parallel_efficiency(analysis: ModelAnalysis) -> None:
    document = to_json(analysis)["nodes"]

    # The first two take 1.5 times as long with one thread as with two, the others as long.
    for place, made in enumerate(document):
        speed_up = 1.5 if place < 2 else 1.0
        assert made["speed_up"]["value"] == pytest.approx(speed_up)
        assert made["parallel_efficiency"]["value"] == pytest.approx(50 * speed_up)
    block = as_text(analysis).partition("Node: Convolution_1 ")[2].partition("Node: ")[0]
    assert (
        "  Thread Speed-up: 1.5 × (fastest with 1 thread / fastest with 2, of profiled runs)\n"
        "  Parallel Efficiency: 75 % (speed-up / 2 threads)\n"
    ) in block
    page = as_html(document_of(analysis))
    assert "Parallel efficiency" in page
    assert page.count("75 %") >= 2


@needs_torch
@pytest.mark.promise("M28")
def test_nodes_are_timed_with_one_thread_and_with_the_most(
    monkeypatch: pytest.MonkeyPatch, network: Path
) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from snapviewer.model.inference import load_torchscript, profile, torch_profiler, trials

    threads: list[int] = []
    timed = torch_profiler.time_run

    def watched(*arguments: Any) -> Any:
        threads.append(torch.get_num_threads())
        return timed(*arguments)

    monkeypatch.setattr(trials, "time_run", watched)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    module = load_torchscript(network)

    found = profile(module, torch.rand(1, 3, 16, 16), roof=ROOF, repeats=3, budget_s=9)

    assert threads == [1, 1, 1, 3, 3, 3]
    for ran in found.nodes:
        assert ran.speed_up.value is not None
        assert ran.speed_up.value > 0
        assert ran.efficiency.value == pytest.approx(100 * ran.speed_up.value / 3)


@needs_torch
@pytest.mark.promise("M28")
def test_a_machine_with_one_thread_says_that_nothing_was_compared(
    monkeypatch: pytest.MonkeyPatch, network: Path
) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from snapviewer.model.inference import load_torchscript, profile

    monkeypatch.setenv("OMP_NUM_THREADS", "1")

    found = profile(
        load_torchscript(network), torch.rand(1, 3, 16, 16), roof=ROOF, threads=1, budget_s=0.02
    )

    assert {ran.efficiency.source for ran in found.nodes} == {
        "it was not timed with one thread and with several"
    }


# The pattern that takes the fewest joules


@pytest.mark.promise("M53")
def test_every_report_names_the_pattern_with_the_fewest_joules(analysis: ModelAnalysis) -> None:
    report, page = as_text(analysis), as_html(document_of(analysis))
    document = to_json(analysis)["inference"]["patterns"]

    # Of 0.16 J for four examples; 0.0625 J as run.
    fewest = "batch of 4, 36.0 % less than as run (the energy is estimated)"
    assert f"Fewest joules: {fewest}\n" in report
    assert f"{fewest}." in page
    assert document["best"] == "batch of 4"
    joules = {each["name"]: each["energy"]["value"] for each in document["tried"]}
    assert joules == pytest.approx(
        {
            "as run": 0.0625,
            "1 thread": 0.075,
            "channels_last": 0.061,
            "batch of 2": 0.05,
            "batch of 4": 0.04,
        }
    )
    assert document["tried"][0]["energy"]["value"] == to_json(analysis)["energy"]["energy"]["value"]
    for each in document["tried"]:
        assert each["saving"]["value"] == pytest.approx(100 * (1 - joules[each["name"]] / 0.0625))
        assert each["name"] in page
        assert each["name"] in report
    settings = ("threads", "batch", "layout", "dtype")
    assert [document["tried"][0][name] for name in settings] == [2, 1, "contiguous", "float32"]
    assert [document["tried"][1][name] for name in settings] == [1, 1, "contiguous", "float32"]
    assert [document["tried"][2][name] for name in settings] == [2, 1, "channels_last", "float32"]
    assert [document["tried"][4][name] for name in settings] == [2, 4, "contiguous", "float32"]
    # What could not be tried, and why.
    why = "bfloat16: the made-up model refuses it"
    assert document["untried"] == {"dtype": why}
    assert f"    not compared: dtype: {why}\n" in report
    assert f"Not compared: dtype: {why}" in page


def joules(value: float | None, status: Any = "estimated") -> Quantity:
    return Quantity(value, "J", status if value is not None else "unavailable", f"{status} so")


def patterns(analysis: ModelAnalysis, **runs: Any) -> Patterns:
    """Compare made-up runs; as run they take 1 J in 10 ms, more or less 1 ms."""
    usual: dict[str, Any] = {"thread_runs": (), "layouts": None, "batches": None, "dtype_run": None}
    return patterns_of(
        replace(analysis.energy, energy=joules(1.0)),
        timing_of([9_000_000, 10_000_000, 11_000_000], "made up"),
        threads=2,
        dtype="float32",
        **{**usual, "untried": {}, **runs},
    )


def in_bfloat16(energy: Quantity) -> DtypeRun:
    time = timing_of([4_000_000, 4_000_000, 5_000_000], "made up")
    return DtypeRun("bfloat16", time, Quantity(0.5, "%", "measured", "made up"), energy)


@pytest.mark.promise("M53")
@pytest.mark.parametrize(
    ("energy", "best"),
    [(0.5, "bfloat16"), (0.89, "bfloat16"), (0.91, "as run"), (1.5, "as run")],
    ids=["half", "more than the spread", "within the spread", "more"],
)
def test_a_saving_within_the_spread_of_the_runs_is_none(
    analysis: ModelAnalysis, energy: float, best: str
) -> None:
    found = patterns(analysis, dtype_run=in_bfloat16(joules(energy)))

    assert found.best == best
    assert found.tried[1].saving.value == pytest.approx(100 * (1 - energy))
    assert found.tried[1].dtype == "bfloat16"


@pytest.mark.promise("M53")
@pytest.mark.parametrize(
    ("energy", "why"),
    [
        (joules(0.1, "measured"), "its energy was found in another way"),
        (joules(None), "estimated so"),
    ],
    ids=["measured", "unknown"],
)
def test_energies_found_in_different_ways_are_not_compared(
    analysis: ModelAnalysis, energy: Quantity, why: str
) -> None:
    found = patterns(analysis, dtype_run=in_bfloat16(energy))

    assert found.best == "as run"
    assert found.tried[1].saving.status == "unavailable"
    ((name, reason),) = found.untried
    assert name == "bfloat16"
    assert reason.startswith(why)


@needs_torch
@pytest.mark.promise("M53")
def test_threads_batches_layout_and_dtype_are_tried_with_their_energy(
    monkeypatch: pytest.MonkeyPatch, network: Path
) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from snapviewer.model.inference import load_torchscript, profile

    monkeypatch.setenv("OMP_NUM_THREADS", "2")

    found = profile(
        load_torchscript(network),
        torch.rand(2, 3, 16, 16),
        roof=ROOF,
        threads=2,
        budget_s=9,
        repeats=3,
        has_trials=True,
    ).patterns

    assert found is not None
    names = [each.name for each in found.tried]
    assert names[:4] == ["as run", "1 thread", "channels_last", "batch of 1"]
    assert names[-1] == "bfloat16"
    assert "batch of 2" not in names, "as it is run"
    assert found.untried == ()
    base = found.tried[0]
    assert (base.threads, base.batch, base.layout, base.dtype) == (2, 2, "contiguous", "float32")
    for each in found.tried:
        assert each.energy.value is not None
        assert each.energy.value > 0
        assert each.runs >= 1


@needs_torch
@pytest.mark.promise("M53")
def test_a_way_that_the_model_refuses_is_reported_with_the_reason() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from snapviewer.model.inference import profile

    class Picky(torch.nn.Module):  # type: ignore[misc, name-defined] # its base is torch's
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            if x.shape[0] != 1:
                raise ValueError("one example at a time")
            if x.dtype != torch.float32:
                raise ValueError("float32 only")
            return self.layer(x)

    found = profile(Picky(), torch.rand(1, 4), roof=ROOF, budget_s=0.5, has_trials=True).patterns

    assert found is not None
    why = dict(found.untried)
    assert "one example at a time" in why["batch"]
    assert why["dtype"] == "float32 only"
    assert why["layout"] == "convolutions of images are not most of the work"


@needs_torch
@pytest.mark.promise("M53")
def test_the_work_of_a_batch_is_that_of_its_examples() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from snapviewer.model.inference import batches, running
    from snapviewer.model.inference.dispatch import record_run
    from snapviewer.model.inference.metering import Metering
    from snapviewer.model.live.inputs import Inputs

    module = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()).eval()

    def runner(size: int) -> Any:
        return running.Runner(module, Inputs((torch.ones(size, 8),), {}), "cpu", lambda: None)

    def work(size: int) -> RunWork:
        return work_by_class(record_run(runner(size), has_lines=False).nodes)

    works = batches._works(Metering(None, work(1)), runner(1), runner(2))

    for size in (1, 2, 8):
        assert batches._work_of_batch(works, size) == work(size)


@pytest.mark.promise("M53")
def test_the_energy_of_a_trial_is_measured_where_a_sensor_is(tmp_path: Path) -> None:
    from snapviewer.model.energy import EnergyMeter
    from snapviewer.model.inference.metering import Metering

    zone = tmp_path / "intel-rapl:0"
    zone.mkdir()
    (zone / "name").write_text("package-0\n")
    used_uj = 0
    (zone / "energy_uj").write_text("0\n")

    class Running:
        """Takes 10 ms and 2 J a run."""

        def timed_ns(self) -> int:
            nonlocal used_uj
            used_uj += 2_000_000
            (zone / "energy_uj").write_text(f"{used_uj}\n")
            return 10_000_000

    metering = Metering(lambda: EnergyMeter(powercap=tmp_path), None)

    times_ns, energy = metering.run(Running(), least=4, is_over=lambda _: False)  # type: ignore[arg-type]

    assert times_ns == [10_000_000] * 4
    assert (energy.value, energy.status) == (2.0, "measured")
