"""From the times of runs to the profile of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from snapviewer.model.energy import Energy
from snapviewer.model.graph import Graph
from snapviewer.model.inference.allocations import Memory
from snapviewer.model.inference.batches import Batches
from snapviewer.model.inference.layouts import Layouts
from snapviewer.model.inference.listening import Recorded, TimedRun
from snapviewer.model.inference.matching import matched
from snapviewer.model.inference.nodes import NodeProfile, node_profiles
from snapviewer.model.inference.result import Profile
from snapviewer.model.inference.settings import NODES
from snapviewer.model.inference.threads import ThreadRun
from snapviewer.model.inference.timing import no_timing, ratio, timing_of
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.roofline import Roof
from snapviewer.model.system import SystemUse
from snapviewer.model.work import totals_of

_NOT_TIMED = "the operations were not timed"


@dataclass(slots=True)
class Runs:
    """What the runs of a model showed so far."""

    device: str
    threads: int
    level: int
    warmups_ns: list[int] = field(default_factory=list)
    plain_ns: list[int] = field(default_factory=list)
    recorded: Recorded | None = None
    timed: list[TimedRun] = field(default_factory=list)
    roof: Roof | None = None
    memory: Memory | None = None
    allocations: dict[int, tuple[int, int]] | None = None
    thread_runs: tuple[ThreadRun, ...] = ()
    energy: Energy | None = None
    system: SystemUse | None = None
    layouts: Layouts | None = None
    batches: Batches | None = None


def gathered_profile(runs: Runs, graph: Graph | None, notes: Sequence[str]) -> Profile:
    """Compute the profile that runs show."""
    plain = timing_of(runs.plain_ns, "clock around the run")
    sums_ns = [sum(run.node_ns) for run in runs.timed]
    profiled = in_nodes = outside = no_timing(_NOT_TIMED)
    if runs.timed:
        profiled = timing_of([run.total_ns for run in runs.timed], "clock around a profiled run")
        in_nodes = timing_of(sums_ns, "sum of the operations of a profiled run")
        rest_ns = [run.total_ns - sum_ns for run, sum_ns in zip(runs.timed, sums_ns, strict=True)]
        outside = timing_of(rest_ns, "Python, torch and the listening between the operations")
    return Profile(
        device=runs.device,
        threads=runs.threads,
        level=runs.level,
        warmups=tuple(
            Quantity(time_ns / 1e9, "s", "measured", f"clock around warm-up {number}")
            for number, time_ns in enumerate(runs.warmups_ns, 1)
        ),
        plain=plain,
        profiled=profiled,
        in_nodes=in_nodes,
        outside=outside,
        overhead=_overhead(plain.fastest, profiled.fastest),
        accounted=ratio(
            in_nodes.median, plain.median, "%", "median sum of operations / median plain run", 100
        ),
        **_rates(runs, graph, plain.median),
        nodes=_nodes(runs, graph),
        roof=runs.roof,
        thread_runs=runs.thread_runs,
        memory=runs.memory,
        energy=runs.energy,
        system=runs.system,
        layouts=runs.layouts,
        batches=runs.batches,
        notes=tuple(dict.fromkeys(notes)),
    )


def _overhead(plain: Quantity, profiled: Quantity) -> Quantity:
    """Compare the fastest runs: other programs can only slow them down."""
    if plain.value is None or profiled.value is None:
        return unavailable("%", _NOT_TIMED)
    if profiled.value < plain.value:
        return unavailable("%", "less than the runs differ: the fastest of them was profiled")
    more = Quantity(profiled.value - plain.value, "s", "computed", "")
    return ratio(more, plain, "%", "(profiled - plain) / plain, of the fastest runs", 100)


def _nodes(runs: Runs, graph: Graph | None) -> tuple[NodeProfile, ...]:
    if runs.recorded is None:
        return ()
    nodes = runs.recorded.nodes
    sources = dict.fromkeys(run.source for run in runs.timed)
    return node_profiles(
        runs.recorded,
        runs.timed,
        runs.roof,
        graph_nodes=matched(nodes, graph.nodes if graph else ()),
        allocations=runs.allocations,
        source=f"{' and '.join(sources)}, the operation alone",
    )


def _rates(runs: Runs, graph: Graph | None, time: Quantity) -> dict[str, Any]:
    """Return what the whole model computes and moves, and how fast."""
    nodes = runs.recorded.nodes if runs.recorded else graph.nodes if graph else None
    if nodes is None:
        why = (
            "PYTORCH_PROFILER_LEVEL is 0: totals only"
            if runs.level < NODES
            else "the operations are not known"
        )
        units = {"flops": "FLOP", "moved": "B", "rate": "FLOP/s", "bandwidth": "B/s"}
        return {
            name: unavailable(unit, why) for name, unit in {**units, "intensity": "FLOP/B"}.items()
        }
    totals = totals_of(nodes)
    source = "formulas on the shapes of the operations"
    if totals.uncounted:
        source += f", {len(totals.uncounted)} of {len(nodes)} not counted"
    flops = Quantity(float(totals.work.flops), "FLOP", "computed", source)
    moved_bytes = totals.work.read_bytes + totals.work.written_bytes
    moved = Quantity(float(moved_bytes), "B", "computed", source)
    return {
        "flops": flops,
        "moved": moved,
        "rate": ratio(flops, time, "FLOP/s", "FLOPs / median plain run"),
        "bandwidth": ratio(moved, time, "B/s", "bytes in and out of each operation / median"),
        "intensity": ratio(flops, moved, "FLOP/B", "FLOPs / bytes")
        if moved_bytes
        else unavailable("FLOP/B", "it moves no bytes"),
    }
