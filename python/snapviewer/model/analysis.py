"""A model file, analyzed: parameters, graph, work, recommendations, as one result.

Nothing of the file is run, and its weights are read as a stream, never loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from threading import Event
from typing import Any

from snapviewer import Checkpoint, SnapshotError, read_checkpoint
from snapviewer.model.architecture import Architecture, architecture_of
from snapviewer.model.graph import Graph, Node, TensorSpec, Value
from snapviewer.model.parameters import Parameter, Parameters, parameters_of
from snapviewer.model.pt2 import read_pt2
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.recommend import (
    Known,
    Recommendation,
    int8_db,
    pruning_potential,
    quantization_sensitivity,
    recommend,
)
from snapviewer.model.torchscript import read_torchscript
from snapviewer.model.work import Totals, Uncounted, kind_of, totals_of, work_of

Progress = Callable[[int, int], object]

# Larger files get statistics, but what fewer bits would cost is asked for (it reads them again).
_QUALITY_UP_TO_BYTES = 2 * 2**30


@dataclass(frozen=True, slots=True)
class ModelAnalysis:
    """All that the reports say of a model."""

    file: str
    format: str
    architecture: Architecture
    parameters: Parameters
    graph: Graph | None
    totals: Totals | None
    recommendations: tuple[Recommendation, ...]
    notes: tuple[str, ...]
    """What could not be done, and why, in sentences."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as the documents have it."""
        return {
            "file": self.file,
            "format": self.format,
            "architecture": {
                "class": self.architecture.model_class,
                "label": self.architecture.label,
                "reason": self.architecture.reason,
                "layers": dict(self.architecture.layers),
            },
            "parameters": _parameters_dict(self.parameters),
            "compute": _compute_dict(self.graph, self.totals),
            "nodes": [_node_dict(node) for node in self.graph.nodes] if self.graph else [],
            "recommendations": [item.to_dict() for item in self.recommendations],
            "notes": list(self.notes),
        }


def analyze_file(
    path: str | PathLike[str],
    *,
    inputs: Sequence[TensorSpec] | None = None,
    has_stats: bool = True,
    has_quality: bool | None = None,
    progress: Progress | None = None,
    cancel: Event | None = None,
) -> ModelAnalysis:
    """Analyze a model file without running anything of it.

    Args:
        path: A TorchScript archive, a `.pt2`, a state dict or a `.safetensors` file.
        inputs: What the model is called with; else what the file says, or its first layers.
        has_stats: Whether to read all elements of the parameters for their statistics.
        has_quality: Whether to find out what fewer bits would cost; if None, for smaller files.
        progress: Called with (done, total) while elements are read.
        cancel: Stops it.

    Raises:
        SnapshotError: The file is no model that can be read; the message says why.
        CancelledError: `cancel` was set.
    """
    checkpoint = read_checkpoint(path, cancel=cancel)
    graph, notes = _graph_of(checkpoint, path, inputs)
    if has_quality is None:
        has_quality = checkpoint.logical_bytes <= _QUALITY_UP_TO_BYTES
        if not has_quality:
            notes.append("the file is large: what fewer bits would cost was not computed")
    parameters = parameters_of(
        checkpoint, has_stats=has_stats, has_quality=has_quality, progress=progress, cancel=cancel
    )
    return ModelAnalysis(
        file=fspath(path),
        format=checkpoint.format,
        architecture=architecture_of(graph, parameters.tensors, parameters.count),
        parameters=parameters,
        graph=graph,
        totals=totals_of(graph.nodes) if graph else None,
        recommendations=recommend(Known(parameters, graph)),
        notes=(*notes, *checkpoint.warnings, *(graph.notes if graph else ())),
    )


def _graph_of(
    checkpoint: Checkpoint, path: str | PathLike[str], inputs: Sequence[TensorSpec] | None
) -> tuple[Graph | None, list[str]]:
    """Return the graph of a file that has one, and what to say of it."""
    try:
        if checkpoint.format == "torchscript":
            return read_torchscript(path, inputs=inputs), []
        if checkpoint.format == "pt2":
            return read_pt2(path), []
    except SnapshotError as error:
        return None, [f"the graph could not be read: {error}"]
    return None, [
        f"a file of this format ({checkpoint.format}) has parameters and no graph: operations and "
        "FLOPs need a TorchScript archive, a .pt2 file, or the live module"
    ]


def _computed(value: float | None, unit: str, source: str) -> dict[str, Any]:
    if value is None:
        return unavailable(unit, source).to_dict()
    return Quantity(value, unit, "computed", source).to_dict()


def _parameters_dict(parameters: Parameters) -> dict[str, Any]:
    return {
        "count": _computed(parameters.count, "elements", "shapes, tied ones once, no buffers"),
        "bytes": _computed(parameters.size_bytes, "bytes", "shapes and types"),
        "sparsity": _computed(parameters.sparsity, "share", "zeros among all elements"),
        "tensors": [_parameter_dict(item) for item in parameters.tensors],
    }


def _parameter_dict(item: Parameter) -> dict[str, Any]:
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
            "int8_sqnr_db": int8_db(item),
            "round_trips": {
                trip.format: {"tensor_db": trip.sqnr_db, "channel_db": trip.channel_sqnr_db}
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


def _compute_dict(graph: Graph | None, totals: Totals | None) -> dict[str, Any]:
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


def _node_dict(node: Node) -> dict[str, Any]:
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
