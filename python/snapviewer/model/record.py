"""An analysis as the document that `--json` prints and that scripts build on."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from snapviewer.model.energy import carbon_of, energy_model
from snapviewer.model.graph import Graph, Node, TensorSpec, Value
from snapviewer.model.parameters import Parameter, Parameters
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.recommend import int8_db, pruning_potential, quantization_sensitivity
from snapviewer.model.work import Totals, Uncounted, kind_of, work_of

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
        "parameters": _parameters(analysis.parameters),
        "compute": _compute(analysis.graph, analysis.totals),
        "nodes": [_node(node) for node in analysis.graph.nodes] if analysis.graph else [],
        "inference": profile.to_dict() if profile else None,
        "energy": _energy(analysis),
        "system": analysis.system.to_dict() if analysis.system else {},
        "recommendations": [item.to_dict() for item in analysis.recommendations],
        "notes": list(analysis.notes),
    }


def _energy(analysis: ModelAnalysis) -> dict[str, Any]:
    """Return the energy of the runs; without any, that of the work alone, as an estimate."""
    if analysis.profile is not None and analysis.profile.energy is not None:
        return analysis.profile.energy.to_dict()
    if analysis.totals is None:
        return {"energy": unavailable("J", "the file has no graph, and was not run").to_dict()}
    estimate = energy_model(analysis.totals.work, 0.0)
    energy = estimate.to_dict()
    energy["carbon"] = carbon_of(estimate.energy).to_dict()
    energy["power"] = unavailable("W", "the model was not run, so it took no time").to_dict()
    return energy


def _computed(value: float | None, unit: str, source: str) -> dict[str, Any]:
    if value is None:
        return unavailable(unit, source).to_dict()
    return Quantity(value, unit, "computed", source).to_dict()


def _parameters(parameters: Parameters) -> dict[str, Any]:
    return {
        "count": _computed(parameters.count, "elements", "shapes, tied ones once, no buffers"),
        "bytes": _computed(parameters.size_bytes, "bytes", "shapes and types"),
        "sparsity": _computed(parameters.sparsity, "share", "zeros among all elements"),
        "tensors": [_parameter(item) for item in parameters.tensors],
    }


def _parameter(item: Parameter) -> dict[str, Any]:
    stats, quality = item.stats, item.quality
    document: dict[str, Any] = {
        "name": item.name,
        "shape": list(item.shape),
        "dtype": item.dtype,
        "elements": item.elements,
        "bytes": item.size_bytes,
        "buffer": item.is_buffer,
        "tied_to": item.tied_to,
        "unmeasured": item.unmeasured,
    }
    if stats is not None:
        document |= {
            "sparsity": item.sparsity,
            "mean": stats.mean,
            "std": stats.std,
            "min": stats.min,
            "max": stats.max,
            "nan": stats.nan,
            "inf": stats.inf,
            "l1": stats.l1,
            "l2": stats.l2,
            "skewness": stats.skewness,
            "kurtosis": stats.kurtosis,
            "entropy_bits": stats.entropy,
            "histogram": list(stats.histogram),
            "edges": list(stats.edges) if stats.edges else None,
        }
    if quality is not None:
        spectrum = quality.spectrum
        document |= {
            "int8_sqnr_db": _finite(int8_db(item)),
            "round_trips": {
                trip.format: {
                    "tensor_db": _finite(trip.sqnr_db),
                    "channel_db": _finite(trip.channel_sqnr_db),
                }
                for trip in quality.round_trips
            },
            "pruning": [
                {"share": point.share, "threshold": point.threshold, "lost": point.lost}
                for point in quality.pruning
            ],
            "pruning_potential": pruning_potential(item),
            "quantization_sensitivity": quantization_sensitivity(item),
            "spectral_norm": spectrum.norm if spectrum else None,
            "stable_rank": spectrum.stable_rank if spectrum else None,
            "effective_rank": spectrum.effective_rank if spectrum else None,
        }
    return document


def _compute(graph: Graph | None, totals: Totals | None) -> dict[str, Any]:
    if graph is None or totals is None:
        why = "the file has no graph"
        return {
            "macs": unavailable("MAC", why).to_dict(),
            "flops": unavailable("FLOP", why).to_dict(),
            "by_type": {},
            "uncounted": [],
            "input_shapes": [],
        }
    source = f"formulas on the shapes of the {graph.source} graph"
    return {
        "macs": _computed(totals.work.macs, "MAC", source),
        "flops": _computed(totals.work.flops, "FLOP", source),
        "by_type": {kind: work.flops for kind, work in totals.by_kind.items() if work.flops},
        "uncounted": [
            {"node": node.number, "op": node.op, "module": node.module, "reason": why}
            for node, why in totals.uncounted
        ],
        "input_shapes": [_value(value) for value in graph.inputs],
        "input_source": graph.input_source,
    }


def _node(node: Node) -> dict[str, Any]:
    work = work_of(node)
    document: dict[str, Any] = {
        "number": node.number,
        "op": node.op,
        "type": kind_of(node.op),
        "module": node.module,
        "times": node.times,
        "outputs": [_value(value) for value in node.outputs],
        "parameters": list(node.parameters),
    }
    if isinstance(work, Uncounted):
        return document | {"macs": None, "flops": None, "uncounted": work.why}
    moved = work.read_bytes + work.written_bytes
    return document | {
        "macs": work.macs,
        "flops": work.flops,
        "read_bytes": work.read_bytes,
        "written_bytes": work.written_bytes,
        "intensity": work.flops / moved if moved else None,
    }


def _value(value: Value) -> Any:
    if isinstance(value, TensorSpec):
        return {"shape": list(value.shape), "dtype": value.dtype}
    if isinstance(value, tuple):
        return [_value(item) for item in value]
    return value if value is None or isinstance(value, (int, float, str)) else str(value)


def _finite(number: float | None) -> float | None:
    """Return a number that JSON has; nothing lost at all is no number of decibels."""
    return number if number is not None and isfinite(number) else None
