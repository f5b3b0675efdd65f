"""The details of each node of a graph: work, parameters, time and energy.

The operations of runs are matched with the nodes by `inference.result`. A node that was not run,
or ran another number of times than the graph says, has no time, and the reason instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from snapviewer.model.compression import pruning_potential, quantization_sensitivity, why_unknown
from snapviewer.model.energy import Energy, EnergySetting, energy_model, work_by_class
from snapviewer.model.graph import Graph, Node
from snapviewer.model.parameters import Parameter, Parameters
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.work import Uncounted, Work, kind_of, work_of
from snapviewer.model.work.registry import NO_WORK

if TYPE_CHECKING:
    from snapviewer.model.inference import NodeProfile, Profile
    from snapviewer.model.roofline import Bound, Roof

_FORMULA = "formula on the shapes of the graph"
_NOT_RUN = "the model was not run (--inference)"


@dataclass(frozen=True, slots=True)
class NodeDetails:
    """One node.

    `place` counts from 1. `before` is the previous node if it made the first argument of this one,
    and `after` the next node if its first argument is the output of this one. `ran_flops` are the
    FLOPs that the processor counted in a run, or those of a formula on the run's shapes; `rate` is
    those of the formula over its time. `speed_up` is that of the most threads over one, and
    `efficiency` the speed-up per thread.
    """

    place: int
    node: Node
    kind: str
    work: Work | Uncounted
    parameters: tuple[Parameter, ...]
    before: Node | None
    after: Node | None
    time: Quantity
    time_spread: Quantity
    time_share: Quantity
    ran_flops: Quantity
    rate: Quantity
    bandwidth: Quantity
    of_roof: Quantity
    speed_up: Quantity
    efficiency: Quantity
    bound: Bound
    bound_source: str
    energy: Quantity
    power: Quantity
    pruning: Quantity
    sensitivity: Quantity

    @property
    def name(self) -> str:
        """The name in reports: its kind and place, such as `Convolution_1`."""
        return f"{self.kind}_{self.place}"

    @property
    def counted(self) -> Work:
        """Its work; none if it could not be counted."""
        return NO_WORK if isinstance(self.work, Uncounted) else self.work

    @property
    def moved_bytes(self) -> int:
        """The bytes that it reads and writes."""
        return self.counted.read_bytes + self.counted.written_bytes

    @property
    def elements(self) -> int:
        """The number of elements of its parameters."""
        return sum(item.elements for item in self.parameters)

    @property
    def intensity(self) -> Quantity:
        """The FLOPs per byte moved."""
        if isinstance(self.work, Uncounted):
            return unavailable("FLOP/B", self.work.why)
        if not self.moved_bytes:
            return unavailable("FLOP/B", "it moves no bytes")
        flops = self.counted.flops
        return Quantity(flops / self.moved_bytes, "FLOP/B", "computed", "FLOPs / bytes moved once")


def node_details(
    graph: Graph,
    parameters: Parameters,
    profile: Profile | None = None,
    *,
    model: str = "picojoules",
) -> tuple[NodeDetails, ...]:
    """Return the details of each node.

    Args:
        graph: The graph.
        parameters: The parameters of the same model.
        profile: The runs, if there were any.
        model: The energy model for what is not measured.
    """
    by_name = {item.name: item for item in parameters.tensors}
    runs = _by_graph_number(profile)
    roof = profile.roof if profile else None
    neighbours = _neighbours(graph.nodes)
    found = []
    for place, (node, (before, after)) in enumerate(zip(graph.nodes, neighbours, strict=True), 1):
        work = work_of(node)
        used = _parameters_of(node, by_name)
        ran = _ran(node, runs.get(node.number, ()), is_run=profile is not None)
        facts = NodeDetails(
            place=place,
            node=node,
            kind=kind_of(node.op),
            work=work,
            parameters=used,
            before=before,
            after=after,
            energy=unavailable("nJ", _NOT_RUN),
            power=unavailable("W", _NOT_RUN),
            pruning=_of_parameters(used, pruning_potential, "prunable values"),
            sensitivity=_of_parameters(used, quantization_sensitivity, "sensitivity to int8"),
            **ran,
        )
        facts = _bounded(facts, roof)
        found.append(_powered(facts, profile, model))
    return tuple(found)


def _by_graph_number(profile: Profile | None) -> Mapping[int, Sequence[NodeProfile]]:
    found: dict[int, list[NodeProfile]] = {}
    for node in profile.nodes if profile else ():
        if node.graph_number is not None:
            found.setdefault(node.graph_number, []).append(node)
    return found


def _neighbours(nodes: Sequence[Node]) -> Iterator[tuple[Node | None, Node | None]]:
    """Yield the neighbours of each node, if their shapes fit."""
    fits = [
        bool(one.outputs and other.arguments and one.outputs[0] == other.arguments[0])
        for one, other in pairwise(nodes)
    ]
    for index in range(len(nodes)):
        before = nodes[index - 1] if index and fits[index - 1] else None
        after = nodes[index + 1] if index < len(fits) and fits[index] else None
        yield before, after


def _parameters_of(node: Node, by_name: Mapping[str, Parameter]) -> tuple[Parameter, ...]:
    """Return the parameters of a node; in place of a tied one, the one it is tied to."""
    found = []
    for name in node.parameters:
        item = by_name.get(name)
        if item is not None and item.tied_to is not None:
            item = by_name.get(item.tied_to, item)
        if item is not None:
            found.append(item)
    return tuple(found)


def _ran(node: Node, runs: Sequence[NodeProfile], *, is_run: bool) -> dict[str, Any]:
    """Return the measured quantities of a node."""
    units = {
        "time": "s",
        "time_spread": "s",
        "time_share": "%",
        "ran_flops": "FLOP",
        "rate": "FLOP/s",
        "bandwidth": "B/s",
        "of_roof": "%",
        "speed_up": "×",
        "efficiency": "%",
    }
    if len(runs) != node.times or len(runs) != 1:
        why = _NOT_RUN if not is_run else "it was not found among the operations of the run"
        if runs or (is_run and node.times != 1):
            why = f"it runs {node.times:,} times in a loop, of which {len(runs):,} were matched"
        nothing = {name: unavailable(unit, why) for name, unit in units.items()}
        return {**nothing, "bound": "unknown", "bound_source": why}
    run = runs[0]
    return {
        "time": run.time.median,
        "time_spread": run.time.deviation,
        "time_share": run.share,
        "ran_flops": run.measured_flops,
        "rate": run.rate,
        "bandwidth": run.bandwidth,
        "of_roof": run.of_roof,
        "speed_up": run.speed_up,
        "efficiency": run.efficiency,
        "bound": run.bound,
        "bound_source": "intensity of the run against the measured roof",
    }


def _bounded(facts: NodeDetails, roof: Roof | None) -> NodeDetails:
    """Find the bound of a node that was not found in the run, from its intensity."""
    if facts.bound != "unknown" or roof is None or facts.intensity.value is None:
        return facts
    from snapviewer.model.roofline import bound_of  # imports NumPy

    return replace(
        facts,
        bound=bound_of(facts.intensity.value, roof),
        bound_source="computed intensity against the measured roof",
    )


def _of_parameters(
    items: Sequence[Parameter], measure: Callable[[Parameter], float | None], what: str
) -> Quantity:
    """Return the mean of a measure over the parameters of a node, weighted by their elements."""
    if not items:
        return unavailable("%", "it has no parameters")
    known = [(item.elements, value) for item in items if (value := measure(item)) is not None]
    whole = sum(elements for elements, _ in known)
    if not whole:
        return unavailable("%", why_unknown(items[0]))
    mean = sum(elements * value for elements, value in known) / whole
    return Quantity(100 * mean, "%", "computed", f"{what}, mean over {whole:,} elements")


def _powered(facts: NodeDetails, profile: Profile | None, model: str) -> NodeDetails:
    """Add the energy of a node: its share of what was measured, else an estimate.

    Energy and power are those of the runs in which the energy of the whole model was found, so
    that the nodes and the time between them add up to it.
    """
    seconds = _seconds(facts, profile)
    if isinstance(facts.work, Uncounted) and seconds.value is None:
        return replace(
            facts,
            energy=unavailable("nJ", facts.work.why),
            power=unavailable("W", facts.work.why),
        )
    whole = profile.energy if profile else None
    shared = _share_of(whole, seconds) if whole else None
    energy = shared or _modelled(facts, seconds, whole, profile, model)
    if energy.value is not None and seconds.value:
        watts = energy.value / 1e9 / seconds.value
        power = Quantity(watts, "W", "estimated", f"energy / {seconds.source}; {energy.source}")
    else:
        power = unavailable("W", seconds.source if energy.value is not None else energy.source)
    return replace(facts, energy=energy, power=power)


def _seconds(facts: NodeDetails, profile: Profile | None) -> Quantity:
    """Return the time of a node in the runs for energy: its share of a profiled run."""
    share = facts.time_share.value
    whole = profile.energy.seconds.value if profile and profile.energy else None
    in_nodes = profile.node_share if profile else None
    if share is None or whole is None or in_nodes is None:
        return facts.time
    return Quantity(
        share / 100 * in_nodes * whole,
        "s",
        "computed",
        "its share of a profiled run × the mean time of the runs for energy",
    )


def _share_of(whole: Energy, seconds: Quantity) -> Quantity | None:
    """Return the energy of a node by its share of the time of a run, unless a model has terms."""
    if whole.is_modelled or None in (seconds.value, whole.energy.value, whole.seconds.value):
        return None
    joules = (whole.energy.value or 0.0) * (seconds.value or 0.0) / (whole.seconds.value or 1.0)
    return Quantity(
        joules * 1e9,
        "nJ",
        "estimated",
        f"its share of the time × the energy of a run ({whole.energy.status}: "
        f"{whole.energy.source})",
    )


def _modelled(
    facts: NodeDetails,
    seconds: Quantity,
    whole: Energy | None,
    profile: Profile | None,
    model: str,
) -> Quantity:
    is_gpu = profile is not None and profile.device.startswith("cuda")
    setting = whole.setting if whole else None
    estimate = energy_model(
        work_by_class([facts.node]),
        seconds.value or 0.0,
        setting=setting or EnergySetting(device="gpu" if is_gpu else "cpu"),
        model=model,
    )
    source = estimate.energy.source
    if not seconds.value:
        source += "; without idle power, because it was not timed"
    return Quantity(estimate.range.usual * 1e9, "nJ", "estimated", source)
