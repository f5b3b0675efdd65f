"""The operations of a run: time, work, and the rate against the limits of the machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from snapviewer.model.graph import Node
from snapviewer.model.inference.counted import SOURCE as COUNTERS
from snapviewer.model.inference.counted import CountedRun
from snapviewer.model.inference.dispatch import RecordedRun, TimedRun
from snapviewer.model.inference.timing import Timing, ratio, timing_of
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.roofline import Bound, Roof, bound_of
from snapviewer.model.work import Uncounted, work_of

_FORMULA = "a formula on the run's shapes"


@dataclass(frozen=True, slots=True)
class NodeProfile:
    """One operation of a run.

    `module` is the path of the module that runs it; `graph_number` its number in the graph that
    was given to the profile, None without one; `line` the line of the model's code that calls it.
    `share` is of the time of all nodes; `of_roof` compares its rate with the attainable rate at
    this intensity. `flops` are by formula; `measured_flops` are those that the processor counted,
    if it can. `speed_up` compares the most threads that were tried with one, by the fastest runs;
    `efficiency` is the speed-up per thread.
    """

    node: Node
    module: str
    graph_number: int | None
    line: str
    time: Timing
    share: Quantity
    macs: Quantity
    flops: Quantity
    measured_flops: Quantity
    read: Quantity
    written: Quantity
    rate: Quantity
    bandwidth: Quantity
    intensity: Quantity
    bound: Bound
    of_roof: Quantity
    speed_up: Quantity
    efficiency: Quantity
    allocations: Quantity
    allocated: Quantity


def node_profiles(
    recorded: RecordedRun,
    runs: Sequence[TimedRun],
    roof: Roof | None,
    *,
    graph_nodes: Sequence[Node | None],
    allocations: dict[int, tuple[int, int]] | None,
    counted: CountedRun | None,
    thread_ns: Mapping[int, Sequence[tuple[int, ...]]],
    source: str,
) -> tuple[NodeProfile, ...]:
    """Return the profile of each node, in the order in which they ran.

    Args:
        recorded: The nodes.
        runs: Their times.
        roof: The limits of the machine, None if unknown.
        graph_nodes: The same nodes in a graph of the file, None where there is none.
        allocations: The number of allocations of each node and their bytes; None if memory was not
            recorded.
        counted: Their FLOPs as the processor counted them; None if it did not.
        thread_ns: Their times in runs with one thread and with the most.
        source: How they were timed.
    """
    times = [
        timing_of([run.node_ns[i] for run in runs], source) for i in range(len(recorded.nodes))
    ]
    all_s = sum(time.median.value or 0.0 for time in times)
    whole = Quantity(all_s, "s", "computed", "sum of the medians of all nodes")
    profiles = []
    for place, (node, line, time, in_graph) in enumerate(
        zip(recorded.nodes, recorded.lines, times, graph_nodes, strict=True)
    ):
        work = _work(node, time.median, roof)
        profiles.append(
            NodeProfile(
                node=node,
                module=in_graph.module if in_graph is not None else node.module or _owner(node),
                graph_number=None if in_graph is None else in_graph.number,
                line=line,
                time=time,
                share=ratio(time.median, whole, "%", "median / sum of all medians", 100),
                measured_flops=work["flops"]
                if counted is None
                else Quantity(counted.node_flops[place], "FLOP", "measured", COUNTERS),
                **work,
                **_threads(place, thread_ns),
                **_allocated(node.number, allocations),
            )
        )
    return tuple(profiles)


def _threads(place: int, thread_ns: Mapping[int, Sequence[tuple[int, ...]]]) -> dict[str, Any]:
    """Compare a node with one thread and with the most."""
    most = max(thread_ns, default=1)
    if most == 1 or not thread_ns.get(1) or not thread_ns[most]:
        why = "it was not timed with one thread and with several"
        return {"speed_up": unavailable("×", why), "efficiency": unavailable("%", why)}
    one, many = (
        timing_of([run[place] for run in thread_ns[count]], "torch profiler").fastest
        for count in (1, most)
    )
    threads = Quantity(float(most), "1", "computed", "")
    speed_up = ratio(
        one, many, "×", f"fastest with 1 thread / fastest with {most}, of profiled runs"
    )
    return {
        "speed_up": speed_up,
        "efficiency": ratio(speed_up, threads, "%", f"speed-up / {most} threads", 100),
    }


def _owner(node: Node) -> str:
    """Return the innermost module that contains all parameters of a node; empty without any.

    In a ScriptModule nothing else is known of an operation that its code does not contain, such as
    the attention that torch substitutes for several operations.
    """
    paths = [name.split(".")[:-1] for name in node.parameters]
    common = takewhile(lambda parts: len(set(parts)) == 1, zip(*paths, strict=False))
    return ".".join(parts[0] for parts in common)


def _work(node: Node, time: Quantity, roof: Roof | None) -> dict[str, Any]:
    """Return the work and the rates of a node."""
    work = work_of(node)
    if isinstance(work, Uncounted):
        units = {"macs": "MAC", "flops": "FLOP", "read": "B", "written": "B"}
        units |= {"rate": "FLOP/s", "bandwidth": "B/s", "intensity": "FLOP/B", "of_roof": "%"}
        nothing = {name: unavailable(unit, work.why) for name, unit in units.items()}
        return {**nothing, "bound": "unknown"}
    traffic = _FORMULA if work.is_traffic_exact else f"{_FORMULA}, some types are unknown"
    flops = Quantity(float(work.flops), "FLOP", "computed", _FORMULA)
    moved = Quantity(float(work.read_bytes + work.written_bytes), "B", "computed", traffic)
    rate = ratio(flops, time, "FLOP/s", "FLOPs / median time")
    intensity = (
        ratio(flops, moved, "FLOP/B", "FLOPs / bytes in and out once")
        if moved.value
        else unavailable("FLOP/B", "it moves no bytes")
    )
    bandwidth = ratio(moved, time, "B/s", "bytes in and out once / median time")
    # An operation that neither computes nor moves has no bound.
    bound: Bound = "unknown"
    of_roof = unavailable("%", intensity.source if roof else "the machine was not measured")
    if roof is not None and intensity.value is not None:
        bound = bound_of(intensity.value, roof)
        of_roof = _of_roof(rate, bandwidth, intensity.value, roof)
    return {
        "macs": Quantity(float(work.macs), "MAC", "computed", _FORMULA),
        "flops": flops,
        "read": Quantity(float(work.read_bytes), "B", "computed", traffic),
        "written": Quantity(float(work.written_bytes), "B", "computed", traffic),
        "rate": rate,
        "bandwidth": bandwidth,
        "intensity": intensity,
        "bound": bound,
        "of_roof": of_roof,
    }


def _of_roof(rate: Quantity, bandwidth: Quantity, intensity: float, roof: Roof) -> Quantity:
    """Compare the rate of an operation with the attainable one."""
    if intensity:
        reachable = roof.attainable(intensity)
        share = ratio(rate, reachable, "%", "rate / attainable rate", 100)
    else:
        share = ratio(bandwidth, roof.bandwidth, "%", "bandwidth / bandwidth of the memory", 100)
    if share.value is None or share.value <= 100:
        return share
    why = f"{share.source}; above 100 % because its operands were in a cache"
    return Quantity(share.value, share.unit, share.status, why)


def _allocated(number: int, allocations: dict[int, tuple[int, int]] | None) -> dict[str, Any]:
    if allocations is None:
        why = "memory was not recorded"
        return {"allocations": unavailable("1", why), "allocated": unavailable("B", why)}
    count, size_bytes = allocations.get(number, (0, 0))
    source = "torch profiler, one run"
    return {
        "allocations": Quantity(float(count), "1", "measured", source),
        "allocated": Quantity(float(size_bytes), "B", "measured", source),
    }
