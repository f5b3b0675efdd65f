"""An analysis as the JSON document that `--json` prints and that scripts build on.

What describes the structure is a plain number: numbers of nodes, shapes, sizes, how often a node
runs. Everything that was computed, measured or estimated is a quantity with its status and source.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

from snapviewer.model.compression import (
    NOT_ASKED,
    compressibility,
    compression_ratio,
    int8_db,
    pruning_potential,
    quantization_sensitivity,
    why_unknown,
)
from snapviewer.model.energy import Energy
from snapviewer.model.graph import InputSize, TensorSpec, Value
from snapviewer.model.nodes import NodeDetails
from snapviewer.model.parameters import Parameter, Parameters
from snapviewer.model.placement import no_placement
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.recommend import advice_for_node, advice_for_parameter
from snapviewer.model.work import Uncounted, kind_of

if TYPE_CHECKING:
    from snapviewer.model.analysis import ModelAnalysis
    from snapviewer.model.inference import NodeProfile, Profile
    from snapviewer.model.roofline import Roof

_EVERY = "every element, in one pass"
_NOT_PLACED = "where its elements are is unknown: packed, sparse, or on another device"


def to_json(analysis: ModelAnalysis) -> dict[str, Any]:
    """Return the document of an analysis."""
    architecture, profile = analysis.architecture, analysis.profile
    system = {} if analysis.system is None else record_json(analysis.system)
    if profile is not None and profile.system is not None:
        system["during_runs"] = record_json(profile.system)
    return {
        "file": analysis.file,
        "format": analysis.format,
        "architecture": {
            "class": architecture.model_class,
            "label": architecture.label,
            "reason": architecture.reason,
            "layers": dict(architecture.layers),
        },
        "parameters": _parameters(analysis.parameters),
        "compute": _compute(analysis),
        "nodes": [_node(node) for node in analysis.nodes],
        "inference": profile_json(profile) if profile else None,
        "energy": {
            **energy_json(analysis.energy),
            "of_nodes": _plain(analysis.energy_of_nodes[0]),
            "outside": _plain(analysis.energy_of_nodes[1]),
        },
        "system": system,
        "recommendations": _plain(analysis.recommendations),
        "notes": list(analysis.notes),
    }


def _plain(value: Any) -> Any:
    """Return records as dicts, pairs of a name and a value as a dict, and the rest as it is."""
    if isinstance(value, Quantity):
        return {
            "value": value.value,
            "unit": value.unit,
            "status": value.status,
            "source": value.source,
        }
    if is_dataclass(value):
        return record_json(value)
    if isinstance(value, tuple):
        if value and all(isinstance(pair, tuple) and len(pair) == 2 for pair in value):
            return {str(name): _plain(held) for name, held in value}
        return [_plain(held) for held in value]
    return value


def record_json(record: Any, **given: Any) -> dict[str, Any]:
    """Return the fields of a record, some of them as given."""
    names = [field.name for field in fields(record)]
    return {name: given[name] if name in given else _plain(getattr(record, name)) for name in names}


def _quantity(value: float | None, unit: str, source: str, why: str) -> dict[str, Any]:
    """Return a computed number, or why there is none."""
    found = Quantity(value, unit, "computed", source)
    if value is None:
        found = unavailable(unit, why)
    elif not isfinite(value):
        # The signal-to-noise ratio of a lossless round trip has no number of decibels.
        found = unavailable(unit, "infinite: nothing is lost")
    document: dict[str, Any] = _plain(found)
    return document


# Parameters

_STATISTICS = {
    **dict.fromkeys(("mean", "std", "min", "max", "l1", "l2", "skewness", "kurtosis"), "1"),
    "entropy": "bits",
}


def _parameters(parameters: Parameters) -> dict[str, Any]:
    return {
        "count": _quantity(parameters.count, "elements", "shapes, tied ones once, no buffers", ""),
        "bytes": _quantity(parameters.size_bytes, "bytes", "shapes and types", ""),
        "sparsity": _quantity(parameters.sparsity, "share", "zeros among all elements", NOT_ASKED),
        "tensors": [_parameter(item) for item in parameters.tensors],
    }


def _parameter(item: Parameter) -> dict[str, Any]:
    stats, place = item.stats, item.placement
    why = why_unknown(item)
    alignment, locality = (
        (place.alignment, place.locality) if place is not None else no_placement(_NOT_PLACED)
    )
    return {
        "name": item.name,
        "shape": list(item.shape),
        "dtype": item.dtype,
        "elements": item.elements,
        "bytes": item.size_bytes,
        "buffer": item.is_buffer,
        "tied_to": item.tied_to,
        "unmeasured": item.unmeasured,
        "sparsity": _quantity(item.sparsity, "share", _EVERY, why),
        **{
            name: _quantity(getattr(stats, name, None), unit, _EVERY, why)
            for name, unit in _STATISTICS.items()
        },
        # The Frobenius norm of a matrix is the L2 norm of its elements.
        "frobenius": _quantity(stats.l2 if stats else None, "1", f"{_EVERY}: the L2 norm", why),
        "nan": stats.nan if stats else None,
        "inf": stats.inf if stats else None,
        "histogram": list(stats.histogram) if stats else None,
        "edges": list(stats.edges) if stats and stats.edges else None,
        **_quality(item, why),
        "pruning_potential": _quantity(
            pruning_potential(item), "share", "share that loses at most 1 % of squared norm", why
        ),
        "quantization_sensitivity": _quantity(
            quantization_sensitivity(item), "share", "0 at 50 dB of int8 and 1 at 10 dB", why
        ),
        "compressibility": _plain(compressibility(item)),
        "compression_ratio": _plain(compression_ratio(item)),
        "alignment": _plain(alignment),
        "locality": _plain(locality),
        "recommendations": _plain(advice_for_parameter(item)),
    }


def _quality(item: Parameter, why: str) -> dict[str, Any]:
    """Return the norms of a matrix, and the cost of fewer bits and of fewer values."""
    quality = item.quality
    spectrum = quality.spectrum if quality else None
    no_spectrum = (quality.spectrum_unavailable if quality else None) or why
    no_channels = (quality.channels_unavailable if quality else None) or why
    return {
        "spectral_norm": _quantity(
            spectrum.norm if spectrum else None,
            "1",
            f"iteration, at most {spectrum.upper_bound:.6g}" if spectrum else "",
            no_spectrum,
        ),
        "spectral_norm_bound": _quantity(
            spectrum.upper_bound if spectrum else None,
            "1",
            "the lesser of ‖A‖_F and √(‖A‖₁·‖A‖_∞)",
            no_spectrum,
        ),
        "stable_rank": _quantity(
            spectrum.stable_rank if spectrum else None, "1", "‖A‖_F² / norm²", no_spectrum
        ),
        "int8_sqnr": _quantity(int8_db(item), "dB", "round trip, the better of both scales", why),
        "round_trips": {
            trip.format: {
                "tensor": _quantity(trip.sqnr_db, "dB", "round trip, one scale", why),
                "channel": _quantity(
                    trip.channel_sqnr_db, "dB", "round trip, one scale per channel", no_channels
                ),
            }
            for trip in (quality.round_trips if quality else ())
        },
        "pruning": [
            {"share": point.share, "threshold": point.threshold, "lost": point.lost}
            for point in (quality.pruning if quality else ())
        ],
    }


# The graph


def _compute(analysis: ModelAnalysis) -> dict[str, Any]:
    graph, totals = analysis.graph, analysis.totals
    macs, flops = analysis.work
    by_kind = totals.by_kind if totals else {}
    return {
        "macs": _plain(macs),
        "flops": _plain(flops),
        "by_type": {
            kind: _plain(replace(flops, value=work.flops))
            for kind, work in by_kind.items()
            if work.flops
        },
        "uncounted": [
            {"node": node.number, "op": node.op, "module": node.module, "reason": why}
            for node, why in (totals.uncounted if totals else ())
        ],
        "input_shapes": [_value(value) for value in graph.inputs] if graph else [],
        "input_source": graph.input_source if graph else "none",
        "input_sizes": [_input_size(size) for size in graph.input_sizes] if graph else [],
    }


def _input_size(size: InputSize) -> dict[str, Any]:
    places = [{"input": number, "dimension": dimension} for number, dimension in size.places]
    return record_json(size, places=places)


def _node(facts: NodeDetails) -> dict[str, Any]:
    node, work = facts.node, facts.work
    why = work.why if isinstance(work, Uncounted) else None
    formula = traffic = "formula on the shapes of the graph"
    if not facts.counted.is_traffic_exact:
        traffic = f"{formula}, some types are unknown"
    counted = {
        "macs": (facts.counted.macs, "MAC", formula),
        "flops": (facts.counted.flops, "FLOP", formula),
        "read": (facts.counted.read_bytes, "B", traffic),
        "written": (facts.counted.written_bytes, "B", traffic),
        "memory_accesses": (facts.moved_bytes, "B", f"{traffic}: in and out once"),
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
        "uncounted": why,
        **{
            name: _quantity(value if why is None else None, unit, source, why or "")
            for name, (value, unit, source) in counted.items()
        },
        "intensity": _plain(facts.intensity),
        "time": _plain(facts.time),
        "time_spread": _plain(facts.time_spread),
        "time_share": _plain(facts.time_share),
        "measured_flops": _plain(facts.ran_flops),
        "rate": _plain(facts.rate),
        "bandwidth": _plain(facts.bandwidth),
        "of_roof": _plain(facts.of_roof),
        "speed_up": _plain(facts.speed_up),
        "parallel_efficiency": _plain(facts.efficiency),
        "bound": facts.bound,
        "bound_source": facts.bound_source,
        "energy": _plain(facts.energy),
        "power": _plain(facts.power),
        "pruning_potential": _plain(facts.pruning),
        "quantization_sensitivity": _plain(facts.sensitivity),
        "recommendations": _plain(advice_for_node(facts)),
    }


def _value(value: Value) -> Any:
    if isinstance(value, TensorSpec):
        return {"shape": list(value.shape), "dtype": value.dtype}
    if isinstance(value, tuple):
        return [_value(item) for item in value]
    return value if value is None or isinstance(value, (int, float, str)) else str(value)


# Runs


def profile_json(profile: Profile) -> dict[str, Any]:
    """Return the document of the runs."""
    roof = profile.roof
    return record_json(
        profile,
        nodes=[_node_profile(node) for node in profile.nodes],
        roof=roof_json(roof) if roof else None,
        energy=energy_json(profile.energy) if profile.energy else None,
    )


def roof_json(roof: Roof) -> dict[str, Any]:
    """Return the document of the machine's limits."""
    return {**record_json(roof), "ridge": _plain(roof.ridge)}


def _node_profile(run: NodeProfile) -> dict[str, Any]:
    node = run.node
    document = {
        "number": node.number,
        "op": node.op,
        "type": kind_of(node.op),
        "module_type": node.module_type,
        **record_json(run, node=None),
    }
    del document["node"]
    return document


def energy_json(energy: Energy) -> dict[str, Any]:
    """Return the document of an energy."""
    document = record_json(
        energy,
        domains={name: _plain(joules) for name, joules in energy.domains},
        beside={name: _plain(joules) for name, joules in energy.beside},
        terms={
            term.name: {
                **_plain(term.quantity(energy.model or "")),
                "low": term.joules.low,
                "high": term.joules.high,
            }
            for term in energy.terms
        },
        attempts=[
            {"rung": attempt.name, "is_used": attempt.is_used, "says": attempt.message}
            for attempt in energy.attempts
        ],
    )
    return {**document, "assumptions": [_plain(row) for row in energy.assumptions]}
