"""A model file, analyzed: parameters, graph, work, recommendations, as one result.

Nothing of the file is run, and its weights are read as a stream, never loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from threading import Event
from typing import TYPE_CHECKING, Any

from snapviewer import Checkpoint, SnapshotError, read_checkpoint
from snapviewer.model.architecture import Architecture, architecture_of
from snapviewer.model.graph import Graph, TensorSpec
from snapviewer.model.parameters import Parameters, parameters_of, parameters_of_module
from snapviewer.model.pt2 import read_pt2
from snapviewer.model.recommend import Known, Recommendation, recommend
from snapviewer.model.record import document_of
from snapviewer.model.system import System, read_system
from snapviewer.model.torchscript import read_torchscript
from snapviewer.model.work import Totals, totals_of

if TYPE_CHECKING:
    from snapviewer.model.inference import Profile

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

    profile: Profile | None = None
    """What runs showed, if there were any."""
    system: System | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as the documents have it."""
        return document_of(self)


def analyze_file(
    path: str | PathLike[str],
    *,
    inputs: Sequence[TensorSpec] | None = None,
    has_stats: bool = True,
    has_quality: bool | None = None,
    is_run: bool = False,
    has_system: bool = False,
    progress: Progress | None = None,
    cancel: Event | None = None,
) -> ModelAnalysis:
    """Analyze a model file; nothing of it is run unless that is asked for.

    Args:
        path: A TorchScript archive, a `.pt2`, a state dict or a `.safetensors` file.
        inputs: What the model is called with; else what the file says, or its first layers.
        has_stats: Whether to read all elements of the parameters for their statistics.
        has_quality: Whether to find out what fewer bits would cost; if None, for smaller files.
        is_run: Whether to load the model with torch and run it, which runs the file's code.
        has_system: Whether to look at the machine as well.
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
    profile = None
    if is_run:
        try:
            profile = _profiled(checkpoint, path, graph, cancel)
            notes += profile.notes
        except SnapshotError as error:
            notes.append(f"the model was not run: {error}")
    return ModelAnalysis(
        file=fspath(path),
        format=checkpoint.format,
        architecture=architecture_of(graph, parameters.tensors, parameters.count),
        parameters=parameters,
        graph=graph,
        totals=totals_of(graph.nodes) if graph else None,
        recommendations=recommend(Known(parameters, graph)),
        notes=(*notes, *checkpoint.warnings, *(graph.notes if graph else ())),
        profile=profile,
        system=read_system() if has_system else None,
    )


def _profiled(
    checkpoint: Checkpoint,
    path: str | PathLike[str],
    graph: Graph | None,
    cancel: Event | None,
) -> Profile:
    """Load the file's code, and run it on made-up inputs.

    Raises:
        SnapshotError: It has no code, torch is missing, or the model refuses its inputs.
    """
    from snapviewer.model import inference

    if graph is None:
        raise SnapshotError("only TorchScript archives and .pt2 files have code that can be run")
    if checkpoint.format == "torchscript":
        module = inference.load_torchscript(path)
    else:
        module = inference.load_pt2(path)
    inputs = inference.example_inputs(graph)
    return inference.profile(module, inputs, graph=graph, cancel=cancel)


def analyze(
    module: Any,
    inputs: Any,
    *,
    keywords: Mapping[str, Any] | None = None,
    has_quality: bool = True,
    is_run: bool = False,
    has_system: bool = False,
    cancel: Event | None = None,
) -> ModelAnalysis:
    """Analyze a live module, such as a `torch.nn.Module`.

    Args:
        module: The model; it is left as it was.
        inputs: What it is called with: tensors, or `TensorSpec`s that stand for them.
        keywords: Keyword arguments beside them.
        has_quality: Whether to find out what fewer bits would cost.
        is_run: Whether to time runs of it as well.
        has_system: Whether to look at the machine as well.
        cancel: Stops it.

    Raises:
        SnapshotError: torch is not installed, or the model failed with these inputs.
    """
    from snapviewer.model import inference
    from snapviewer.model.live import record

    graph = record(module, inputs, keywords=keywords)
    parameters = parameters_of_module(module, has_quality=has_quality, cancel=cancel)
    notes: list[str] = []
    profile = None
    if is_run:
        made = inputs if keywords else inference.example_inputs(graph)
        profile = inference.profile(module, made, keywords=keywords, graph=graph, cancel=cancel)
        notes += profile.notes
    return ModelAnalysis(
        file=type(module).__name__,
        format="live module",
        architecture=architecture_of(graph, parameters.tensors, parameters.count),
        parameters=parameters,
        graph=graph,
        totals=totals_of(graph.nodes),
        recommendations=recommend(Known(parameters, graph)),
        notes=(*notes, *graph.notes),
        profile=profile,
        system=read_system() if has_system else None,
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
