"""An analysis of a model with runs of which every number is made up, the same on every machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from snapviewer.model import ModelAnalysis, analyze_file
from snapviewer.model.energy import Attempt, Energy, Range, Term, carbon_of
from snapviewer.model.inference import Batches, BatchRun, Layouts, Profile, RunMemory, ThreadRun
from snapviewer.model.inference.dispatch import RecordedRun, TimedRun
from snapviewer.model.inference.result import Runs, profile_of
from snapviewer.model.inference.timing import Timing, ratio, timing_of
from snapviewer.model.inference.trials import ThreadTrials
from snapviewer.model.nodes import node_details
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.recommend import Known, recommend
from snapviewer.model.system import Cpu, Gpu, GpuUse, MachineMemory, System, SystemUse
from support import golden_inputs
from support.promised_model import made_up_roof


def measured(value: float, unit: str) -> Quantity:
    return Quantity(value, unit, "measured", f"made up, in {unit}")


def all_measured(unit: str, **values: float) -> dict[str, Any]:
    return {name: measured(value, unit) for name, value in values.items()}


def profiled_model(folder: Path) -> ModelAnalysis:
    """Return the analysis of the network of the goldens, with runs on a machine with a GPU."""
    golden_inputs.write_models(folder)
    found = analyze_file(folder / "network.pt")
    assert found.graph is not None
    profile = _profile(found)
    nodes = node_details(found.graph, found.parameters, profile)
    assert profile.energy is not None
    return replace(
        found,
        file="network.pt",
        profile=profile,
        nodes=nodes,
        energy=profile.energy,
        system=_system(),
        recommendations=recommend(Known(found.parameters, found.graph, nodes, profile)),
        notes=(*found.notes, *profile.notes),
    )


def _timing(*milliseconds: float) -> Timing:
    return timing_of([round(time * 1e6) for time in milliseconds], "made-up clock")


def _profile(found: ModelAnalysis) -> Profile:
    assert found.graph is not None
    nodes = found.graph.nodes
    recorded = RecordedRun(
        nodes,
        functions=tuple(node.op for node in nodes),
        numbers=tuple(range(len(nodes))),
        lines=tuple(f"net.py:{10 + node.number} in forward" for node in nodes),
    )
    node_us = [400, 90, 60, 900, 50, 30, 2, 20]
    node_ns = tuple(1000 * time for time in node_us[: len(nodes)])
    runs = Runs(
        "cpu",
        2,
        2,
        warmups_ns=[9_000_000, 2_100_000],
        plain_ns=[2_000_000, 2_100_000, 2_050_000],
        recorded=recorded,
        timed=[TimedRun(2_200_000, node_ns, "made-up profiler")] * 3,
        roof=made_up_roof(peak=5e10, bandwidth=1e10),
        memory=RunMemory(
            peak_at=3,
            **all_measured("B", peak=98_304, total=200_000, largest=65_536, kept=20),
            **all_measured("1", allocations=12, reused=4),
            device_peak=unavailable("B", "the model ran on the processor"),
            sizes=((16, 1), (8192, 9), (65_536, 2)),
        ),
        allocations={0: (1, 8192), 3: (2, 73_728)},
        thread_trials=ThreadTrials(tuple(_threads()), _thread_ns(node_ns)),
        why_uncounted="perf_event is not permitted",
        energy=_energy(),
        energy_ns=[1_800_000, 2_300_000, 1_900_000],
        system=_use(),
        layouts=_layouts(),
        batches=_batches(),
        untried={"dtype": "bfloat16: the made-up model refuses it"},
    )
    return profile_of(runs, found.graph, ["a note on the runs"])


def _threads() -> list[ThreadRun]:
    one, two = _timing(3.0, 3.2, 3.1), _timing(2.0, 2.2, 2.1)
    speed_up = ratio(one.fastest, two.fastest, "×", "made up")
    return [
        ThreadRun(
            1,
            one,
            Quantity(1.0, "×", "computed", ""),
            Quantity(100.0, "%", "computed", ""),
            _estimated(0.075),
        ),
        ThreadRun(
            2,
            two,
            speed_up,
            Quantity(75.0, "%", "computed", "speed-up / threads"),
            _estimated(0.0625),
        ),
    ]


def _estimated(joules: float) -> Quantity:
    return Quantity(joules, "J", "estimated", "a made-up model")


def _thread_ns(node_ns: tuple[int, ...]) -> dict[int, list[tuple[int, ...]]]:
    """With two threads the first two nodes take two thirds of their time, others all of it."""
    one = tuple(time * 3 // 2 if place < 2 else time for place, time in enumerate(node_ns))
    return {1: [tuple(2 * time for time in one), one], 2: [node_ns]}


def _layouts() -> Layouts:
    usual, last = _timing(2.0, 2.1, 2.05), _timing(1.5, 1.6, 1.55)
    speed_up = ratio(usual.median, last.median, "×", "made up")
    return Layouts(usual, last, speed_up, _estimated(0.061), _timing(1.6, 1.7, 1.6))


def _batches() -> Batches:
    runs = []
    for size, milliseconds, joules in ((1, 2.0, 0.062), (2, 2.5, 0.1), (4, 4.8, 0.16)):
        time = _timing(milliseconds, milliseconds)
        count = Quantity(float(size), "1", "computed", "")
        each = ratio(time.median, count, "s", "median / batch")
        rate = ratio(count, time.median, "1/s", "batch / median")
        runs.append(BatchRun(size, time, each, rate, _estimated(joules)))
    return Batches(tuple(runs), 2, "a batch of 8 would take longer than the time for it", 1)


def _energy() -> Energy:
    energy = Quantity(0.0625, "J", "estimated", "a made-up model")
    return Energy(
        seconds=measured(0.002, "s"),
        energy=energy,
        power=Quantity(31.25, "W", "estimated", "a made-up model, mean"),
        peak_power=unavailable("W", "only sampled power has a peak"),
        carbon=carbon_of(energy, 360.0),
        efficiency=Quantity(6.4e6, "FLOP/J", "estimated", "FLOPs / (a made-up model)"),
        idle=measured(10.0, "W"),
        above_idle=Quantity(0.0425, "J", "computed", "energy of the run − idle power × time"),
        low_j=0.03,
        high_j=0.125,
        domains=(("package-0", measured(0.05, "J")),),
        beside=(("dram", measured(0.01, "J")),),
        attempts=(Attempt("RAPL", False, "no counters"), Attempt("energy model", True, "30 pJ")),
        model="made up",
        terms=(Term("operation", Range(0.02, 0.04, 0.08), "30 pJ/FLOP"),),
    )


def _use() -> SystemUse:
    none = unavailable("°C", "no sensor is visible, as in virtual machines")
    return SystemUse(
        seconds=measured(1.0, "s"),
        program_cpus=measured(1.1, "CPUs"),
        **all_measured("%", cpu_utilisation=55.0, cpu_utilisation_peak=80.0, cpu_efficiency=55.0),
        frequency=measured(2400.0, "MHz"),
        cache_hits=unavailable("%", "perf_event is not permitted"),
        temperature_peak=none,
        slowed_for_heat=measured(0.0, "times"),
        **all_measured("B", memory_peak=3e8, disk_read=0.0, disk_written=4096.0),
        **all_measured("B", network_received=100.0, network_sent=200.0),
        gpus=(
            GpuUse(
                "GPU 0",
                measured(10.0, "%"),
                measured(20.0, "%"),
                measured(1e9, "B"),
                measured(60.0, "°C"),
                measured(100.0, "W"),
                measured(150.0, "W"),
                measured(0.0, ""),
            ),
        ),
        gpu_note="",
    )


def _system() -> System:
    cpu = Cpu(
        name="A made-up processor",
        architecture="x86_64",
        logical_cpus=measured(2.0, "CPUs"),
        physical_cpus=measured(1.0, "cores"),
        usable_cpus=measured(2.0, "CPUs"),
        frequency=measured(2400.0, "MHz"),
        highest_frequency=unavailable("MHz", "psutil does not report it here"),
        utilisation=measured(12.5, "%"),
        load=measured(0.5, "runnable"),
        caches=(("L1d", measured(32_768, "B")), ("L2", measured(1_048_576, "B"))),
    )
    memory = MachineMemory(
        total=measured(8 * 2**30, "B"),
        available=measured(6 * 2**30, "B"),
        limit=unavailable("B", "no control group limits it"),
        program=measured(2e8, "B"),
        program_peak=measured(3e8, "B"),
    )
    gpu = Gpu(
        "A made-up card",
        measured(2**34, "B"),
        measured(2**30, "B"),
        measured(3.0, "%"),
        measured(4.0, "%"),
        measured(50.0, "°C"),
        measured(60.0, "W"),
        measured(250.0, "W"),
        measured(1500.0, "MHz"),
        measured(0.0, ""),
    )
    return System(cpu, memory, (gpu,), "", (("coretemp Core 0", measured(45.0, "°C")),))
