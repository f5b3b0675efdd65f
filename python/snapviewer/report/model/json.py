"""An analysis as the document that `--json` prints and that scripts build on.

What describes the structure is a plain number: numbers of nodes, shapes, sizes, how often a node
runs. Everything that was computed, measured or estimated is a quantity, which says how.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from snapviewer.model.compute import compute_of
from snapviewer.model.energy import carbon_of, energy_model
from snapviewer.model.graph import Graph, TensorSpec, Value
from snapviewer.model.nodes import NodeFacts
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.recommend import advice_for_node
from snapviewer.model.work import Totals, Uncounted
from snapviewer.report.model.parameters_json import parameters_document

if TYPE_CHECKING:
    from snapviewer.model.analysis import ModelAnalysis


def document_of(analysis: ModelAnalysis) -> dict[str, Any]:
    """Return everything; each quantity says how it was obtained."""
    profile = analysis.profile
    return {
        "file": analysis.file,
        "format": analysis.format,
        "architecture": {
            "class": analysis.architecture.model_class,
            "label": analysis.architecture.label,
            "reason": analysis.architecture.reason,
            "layers": dict(analysis.architecture.layers),
        },
        "parameters": parameters_document(analysis.parameters),
        "compute": _compute(analysis.graph, analysis.totals),
        "nodes": [_node(node) for node in analysis.nodes],
        "inference": profile.to_dict() if profile else None,
        "energy": energy_document(analysis),
        "system": system_document(analysis),
        "recommendations": [item.to_dict() for item in analysis.recommendations],
        "notes": list(analysis.notes),
    }


def energy_document(analysis: ModelAnalysis) -> dict[str, Any]:
    """Return the energy of the runs; without any, that of the work alone, as an estimate."""
    if analysis.profile is not None and analysis.profile.energy is not None:
        return analysis.profile.energy.to_dict()
    totals = analysis.totals
    if totals is None or (totals.uncounted and not totals.work.flops):
        why = "the file has no graph, and was not run"
        if totals is not None:
            why = "none of its operations could be counted, and it was not run"
        return {
            "energy": unavailable("J", why).to_dict(),
            "power": unavailable("W", why).to_dict(),
            "efficiency": unavailable("FLOP/J", why).to_dict(),
            "carbon": unavailable("g CO2", why).to_dict(),
        }
    options = analysis.options
    estimate = energy_model(totals.work, 0.0, model=options.energy_model)
    energy = estimate.to_dict()
    energy["carbon"] = carbon_of(estimate.energy, options.carbon_intensity).to_dict()
    energy["power"] = unavailable("W", "the model was not run, so it took no time").to_dict()
    return energy


def system_document(analysis: ModelAnalysis) -> dict[str, Any]:
    """Return the machine, and what the runs used of it."""
    document = analysis.system.to_dict() if analysis.system else {}
    if analysis.profile is not None and analysis.profile.system is not None:
        document["during_runs"] = analysis.profile.system.to_dict()
    return document


def _compute(graph: Graph | None, totals: Totals | None) -> dict[str, Any]:
    compute = compute_of(graph, totals)
    counts = {"macs": compute.macs.to_dict(), "flops": compute.flops.to_dict()}
    if graph is None or totals is None:
        return {
            **counts,
            "by_type": {},
            "uncounted": [],
            "input_shapes": [],
            "input_source": "none",
        }
    return {
        **counts,
        "by_type": {
            kind: replace(compute.flops, value=work.flops).to_dict()
            for kind, work in totals.by_kind.items()
            if work.flops
        },
        "uncounted": [
            {"node": node.number, "op": node.op, "module": node.module, "reason": why}
            for node, why in totals.uncounted
        ],
        "input_shapes": [_value(value) for value in graph.inputs],
        "input_source": graph.input_source,
    }


def _node(facts: NodeFacts) -> dict[str, Any]:
    node, work = facts.node, facts.work
    source = "formula on the shapes of the graph"
    if isinstance(work, Uncounted):
        counted = {
            "macs": unavailable("MAC", work.why).to_dict(),
            "flops": unavailable("FLOP", work.why).to_dict(),
            "read": unavailable("B", work.why).to_dict(),
            "written": unavailable("B", work.why).to_dict(),
            "memory_accesses": unavailable("B", work.why).to_dict(),
        }
    else:
        traffic = source if work.is_traffic_exact else f"{source}, some types are not known"
        counted = {
            "macs": _computed(work.macs, "MAC", source),
            "flops": _computed(work.flops, "FLOP", source),
            "read": _computed(work.read_bytes, "B", traffic),
            "written": _computed(work.written_bytes, "B", traffic),
            "memory_accesses": _computed(facts.moved_bytes, "B", f"{traffic}: in and out once"),
        }
    return {
        "number": node.number,
        "name": facts.name,
        "op": node.op,
        "type": facts.kind,
        "module": node.module,
        "times": node.times,
        "outputs": [_value(value) for value in node.outputs],
        "parameters": list(node.parameters),
        "parameter_elements": facts.elements,
        "uncounted": work.why if isinstance(work, Uncounted) else None,
        **counted,
        "intensity": facts.intensity.to_dict(),
        "time": facts.time.to_dict(),
        "time_spread": facts.time_spread.to_dict(),
        "time_share": facts.time_share.to_dict(),
        "measured_flops": facts.ran_flops.to_dict(),
        "rate": facts.rate.to_dict(),
        "bandwidth": facts.bandwidth.to_dict(),
        "of_roof": facts.of_roof.to_dict(),
        "bound": facts.bound,
        "bound_source": facts.bound_source,
        "energy": facts.energy.to_dict(),
        "power": facts.power.to_dict(),
        "pruning_potential": facts.pruning.to_dict(),
        "quantization_sensitivity": facts.sensitivity.to_dict(),
        "recommendations": [advice.to_dict() for advice in advice_for_node(facts)],
    }


def _computed(value: float, unit: str, source: str) -> dict[str, Any]:
    return Quantity(value, unit, "computed", source).to_dict()


def _value(value: Value) -> Any:
    if isinstance(value, TensorSpec):
        return {"shape": list(value.shape), "dtype": value.dtype}
    if isinstance(value, tuple):
        return [_value(item) for item in value]
    return value if value is None or isinstance(value, (int, float, str)) else str(value)
