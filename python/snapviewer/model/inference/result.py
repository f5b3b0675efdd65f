"""The profile of a model: what its runs showed, computed from their times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from snapviewer.model.energy import Energy
from snapviewer.model.graph import Graph, Node, TensorSpec, Value
from snapviewer.model.inference.batches import Batches
from snapviewer.model.inference.counted import SOURCE as COUNTERS
from snapviewer.model.inference.counted import CountedRun
from snapviewer.model.inference.dispatch import RecordedRun, TimedRun
from snapviewer.model.inference.environment import NODES
from snapviewer.model.inference.memory import RunMemory
from snapviewer.model.inference.nodes import NodeProfile, node_profiles
from snapviewer.model.inference.patterns import Patterns, patterns_of
from snapviewer.model.inference.timing import Timing, no_timing, ratio, timing_of
from snapviewer.model.inference.trials import DtypeRun, Layouts, ThreadRun, ThreadTrials
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.roofline import Roof
from snapviewer.model.system import SystemUse
from snapviewer.model.work import main_dtype, totals_of

_NOT_TIMED = "the operations were not timed"
# How many nodes of the graph in a row may have no recorded operation.
_MAX_SKIPPED = 64


@dataclass(frozen=True, slots=True)
class Profile:
    """The runs of a model.

    `plain` are runs with only a clock around them; `profiled` are runs in which each operation was
    timed, alternating with the plain ones. The time of a profiled run is that of its nodes and the
    rest: `in_nodes` and `outside`. `overhead` is how much longer a profiled run takes than a plain
    one, and `accounted` the share of the nodes in a plain one. `energy_runs` are the runs of
    `energy` and `system`, after those.
    """

    device: str
    threads: int
    level: int
    warmups: tuple[Quantity, ...]
    plain: Timing
    profiled: Timing
    in_nodes: Timing
    outside: Timing
    overhead: Quantity
    accounted: Quantity
    flops: Quantity
    measured_flops: Quantity
    """As the processor counted them; if it cannot, the formula, and why."""
    moved: Quantity
    rate: Quantity
    bandwidth: Quantity
    intensity: Quantity
    nodes: tuple[NodeProfile, ...]
    """In the order in which they ran."""
    roof: Roof | None
    thread_runs: tuple[ThreadRun, ...]
    memory: RunMemory | None
    energy: Energy | None
    energy_runs: Timing
    system: SystemUse | None
    layouts: Layouts | None
    """Runs with channels last, if convolutions dominate and trials were requested."""
    batches: Batches | None
    """Runs with other batch sizes, if trials were requested."""
    dtype_run: DtypeRun | None
    """Runs in half precision, if trials were requested."""
    patterns: Patterns | None
    """The energy of an example in each way that was tried."""
    notes: tuple[str, ...]
    """What could not be done, and why, in sentences."""

    @property
    def node_share(self) -> float | None:
        """The share of a run in which its nodes run; None if they were not timed."""
        in_nodes, whole = self.in_nodes.median.value, self.profiled.median.value
        return min(1.0, in_nodes / whole) if in_nodes is not None and whole else None

    @property
    def energy_spread(self) -> Quantity:
        """How much the energy of the runs varies, by their times."""
        power = self.energy.power if self.energy else unavailable("W", "no energy is known")
        deviation = self.energy_runs.deviation
        if power.value is None or deviation.value is None:
            return unavailable("J", power.source if power.value is None else deviation.source)
        return Quantity(
            power.value * deviation.value,
            "J",
            "computed",
            "mean power × median absolute deviation of the times of the runs for energy",
        )


@dataclass(slots=True)
class Runs:
    """The raw results of the runs of a model."""

    device: str
    threads: int
    level: int
    warmups_ns: list[int] = field(default_factory=list)
    plain_ns: list[int] = field(default_factory=list)
    recorded: RecordedRun | None = None
    timed: list[TimedRun] = field(default_factory=list)
    roof: Roof | None = None
    memory: RunMemory | None = None
    allocations: dict[int, tuple[int, int]] | None = None
    thread_trials: ThreadTrials = field(default_factory=ThreadTrials)
    counted: CountedRun | None = None
    why_uncounted: str = "the operations were not recorded"
    energy: Energy | None = None
    energy_ns: Sequence[int] = ()
    system: SystemUse | None = None
    layouts: Layouts | None = None
    batches: Batches | None = None
    dtype_run: DtypeRun | None = None
    untried: dict[str, str] = field(default_factory=dict)


def profile_of(runs: Runs, graph: Graph | None, notes: Sequence[str]) -> Profile:
    """Compute the profile of runs."""
    plain = timing_of(runs.plain_ns, "clock around the run")
    sums_ns = [sum(run.node_ns) for run in runs.timed]
    profiled = in_nodes = outside = no_timing(_NOT_TIMED)
    if runs.timed:
        profiled = timing_of([run.total_ns for run in runs.timed], "clock around a profiled run")
        in_nodes = timing_of(sums_ns, "sum of the operations of a profiled run")
        rest_ns = [run.total_ns - sum_ns for run, sum_ns in zip(runs.timed, sums_ns, strict=True)]
        outside = timing_of(rest_ns, "Python, torch and the profiler between the operations")
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
        thread_runs=runs.thread_trials.runs,
        memory=runs.memory,
        energy=runs.energy,
        energy_runs=timing_of(runs.energy_ns, "clock around the runs for energy"),
        system=runs.system,
        layouts=runs.layouts,
        batches=runs.batches,
        dtype_run=runs.dtype_run,
        patterns=_patterns(runs, graph),
        notes=tuple(dict.fromkeys(notes)),
    )


def _patterns(runs: Runs, graph: Graph | None) -> Patterns | None:
    if runs.energy is None:
        return None
    nodes = runs.recorded.nodes if runs.recorded else graph.nodes if graph else ()
    return patterns_of(
        runs.energy,
        timing_of(runs.energy_ns, "clock around the runs for energy"),
        threads=runs.threads,
        dtype=main_dtype(nodes),
        thread_runs=runs.thread_trials.runs,
        layouts=runs.layouts,
        batches=runs.batches,
        dtype_run=runs.dtype_run,
        untried=runs.untried,
    )


def _overhead(plain: Quantity, profiled: Quantity) -> Quantity:
    """Compare the fastest runs, which other programs disturbed least."""
    if plain.value is None or profiled.value is None:
        return unavailable("%", _NOT_TIMED)
    if profiled.value < plain.value:
        return unavailable("%", "less than the spread of the runs: the fastest one was profiled")
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
        counted=runs.counted,
        thread_ns=runs.thread_trials.node_ns,
        source=f"{' and '.join(sources)}, the operation alone",
    )


def _rates(runs: Runs, graph: Graph | None, time: Quantity) -> dict[str, Any]:
    """Return the work and the rates of the whole model."""
    nodes = runs.recorded.nodes if runs.recorded else graph.nodes if graph else None
    if nodes is None:
        why = (
            "PYTORCH_PROFILER_LEVEL is 0: totals only"
            if runs.level < NODES
            else "the operations are unknown"
        )
        units = {"flops": "FLOP", "measured_flops": "FLOP", "moved": "B", "rate": "FLOP/s"}
        units |= {"bandwidth": "B/s", "intensity": "FLOP/B"}
        return {name: unavailable(unit, why) for name, unit in units.items()}
    totals = totals_of(nodes)
    source = "formulas on the run's shapes"
    if totals.uncounted:
        source += f", {len(totals.uncounted)} of {len(nodes)} not counted"
    flops = Quantity(float(totals.work.flops), "FLOP", "computed", source)
    moved_bytes = totals.work.read_bytes + totals.work.written_bytes
    moved = Quantity(float(moved_bytes), "B", "computed", source)
    return {
        "flops": flops,
        "measured_flops": replace(flops, source=f"{source}; not measured: {runs.why_uncounted}")
        if runs.counted is None
        else Quantity(runs.counted.flops, "FLOP", "measured", COUNTERS),
        "moved": moved,
        "rate": ratio(flops, time, "FLOP/s", "FLOPs / median plain run"),
        "bandwidth": ratio(moved, time, "B/s", "bytes in and out of each operation / median"),
        "intensity": ratio(flops, moved, "FLOP/B", "FLOPs / bytes")
        if moved_bytes
        else unavailable("FLOP/B", "it moves no bytes"),
    }


def matched(nodes: Sequence[Node], graph_nodes: Sequence[Node]) -> tuple[Node | None, ...]:
    """Return for each recorded node the matching node of the graph, or None.

    A ScriptModule does not say which of its modules runs an operation; the graph of its code does.
    Both have the same order, and each may have operations that the other lacks. The cost is at most
    `_MAX_SKIPPED` comparisons per node.
    """
    found: list[Node | None] = []
    at = 0
    for node in nodes:
        near = range(at, min(at + _MAX_SKIPPED, len(graph_nodes)))
        match = next((index for index in near if _is_like(graph_nodes[index], node)), None)
        found.append(None if match is None else graph_nodes[match])
        at = at if match is None else match + 1
    return tuple(found)


def _is_like(one: Node, other: Node) -> bool:
    return one.op.rstrip("_") == other.op.rstrip("_") and _fits(one.outputs, other.outputs)


def _fits(one: Value, other: Value) -> bool:
    """Return whether two values may be the same; an unknown one may be any."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_fits, one, other))
    if isinstance(one, TensorSpec) and isinstance(other, TensorSpec):
        return len(one.shape) == len(other.shape) and all(
            a is None or b is None or a == b for a, b in zip(one.shape, other.shape, strict=True)
        )
    return True
