"""The analysis of a model: parameters, graph, work, runs and recommendations as one result.

No code of a file is run unless requested; its weights are read as a stream, never loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from threading import Event
from typing import TYPE_CHECKING, Any

from snapviewer import CancelledError, Checkpoint, SnapshotError, read_checkpoint
from snapviewer.checkpoint.buffers import is_of_optimizer
from snapviewer.model.architecture import Architecture, architecture_of
from snapviewer.model.energy import Energy, energy_without_run, work_by_class
from snapviewer.model.graph import Graph, TensorSpec
from snapviewer.model.nodes import NodeDetails, node_details
from snapviewer.model.parameters import Parameters, parameters_of, parameters_of_module
from snapviewer.model.pt2 import read_pt2
from snapviewer.model.quantity import Quantity, Status, unavailable
from snapviewer.model.recommend import Known, Recommendation, recommend
from snapviewer.model.system import System, read_system
from snapviewer.model.torchscript import MISFIT, read_torchscript
from snapviewer.model.work import Totals, totals_of
from snapviewer.text.progress import part_of
from snapviewer.text.units import count_of

if TYPE_CHECKING:
    from snapviewer.model.inference import Profile

Progress = Callable[[int, int], object]

# The elements of larger files are read only on request: this much takes some seconds.
_MAX_READ_BYTES = 2 * 2**30
# How the note begins that says why a model was not run.
_NOT_RUN = "the model was not run: "
# The parts of the progress that reading and running take.
_READING, _RUNNING = 400, 600


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run and profile a model.

    `device` is `cpu` or `cuda`, by default that of the model; `tdp_w` the thermal design power of
    the chip; `carbon_intensity` in grams of CO2 per kilowatt-hour; `energy_model` the name of a
    registered one; `idle_s` how long to watch the idle machine first; `is_memory_watched` whether
    to record every allocation, whatever `PYTORCH_PROFILER_LEVEL` is; `has_trials` whether to try
    other layouts and batch sizes; `budget_s` when to stop repeating.
    """

    device: str | None = None
    tdp_w: float | None = None
    carbon_intensity: float | None = None
    energy_model: str = "picojoules"
    idle_s: float = 0.0
    is_memory_watched: bool = False
    has_trials: bool = True
    budget_s: float = 5.0


@dataclass(frozen=True, slots=True)
class ModelAnalysis:
    """The analysis of a model."""

    file: str
    format: str
    architecture: Architecture
    parameters: Parameters
    graph: Graph | None
    totals: Totals | None
    energy: Energy
    """The energy of a run: measured, or estimated from the work."""
    recommendations: tuple[Recommendation, ...]
    notes: tuple[str, ...]
    """What could not be done, and why, in sentences."""

    nodes: tuple[NodeDetails, ...] = ()
    """The details of the nodes of the graph."""
    profile: Profile | None = None
    """The runs, if there were any."""
    system: System | None = None

    @property
    def why_not_run(self) -> str | None:
        """The note that says why the model could not be run, if that was requested."""
        return next((note for note in self.notes if note.startswith(_NOT_RUN)), None)

    @property
    def energy_of_nodes(self) -> tuple[Quantity, Quantity]:
        """The part of the energy that the nodes take, and the rest; together they are all of it."""
        whole = self.energy.energy
        known = [node.energy for node in self.nodes if node.energy.value is not None]
        if whole.value is None or not known:
            why = whole.source if whole.value is None else "no node has an energy"
            return unavailable("J", why), unavailable("J", why)
        joules = sum(energy.value or 0.0 for energy in known) / 1e9
        source = f"sum of the energy of {count_of(len(known), 'node')}"
        rest = (
            unavailable("J", "the model was not run")
            if self.profile is None
            else Quantity(
                whole.value - joules,
                "J",
                "estimated",
                "the rest of a run: the time between its operations, and operations that the "
                "graph does not have",
            )
        )
        return Quantity(joules, "J", "estimated", source), rest

    @property
    def work(self) -> tuple[Quantity, Quantity]:
        """The multiply-adds and the FLOPs of a run: computed, or estimated if the graph has doubts.

        They are unavailable, never zero, if nothing could be counted.
        """
        if self.graph is None or self.totals is None:
            return _unknown_work("the file has no graph")
        doubts, work, uncounted = self.graph.doubts, self.totals.work, self.totals.uncounted
        if not work.flops and (doubts or uncounted):
            return _unknown_work(doubts[0] if doubts else f"uncounted: {uncounted[0][1]}")
        source = f"formulas on the shapes of the {self.graph.source} graph"
        status: Status = "computed"
        if doubts:
            status, source = "estimated", f"{source}; {doubts[0]}"
        return Quantity(work.macs, "MAC", status, source), Quantity(
            work.flops, "FLOP", status, source
        )


def _unknown_work(why: str) -> tuple[Quantity, Quantity]:
    return unavailable("MAC", why), unavailable("FLOP", why)


def analyze_file(
    path: str | PathLike[str],
    *,
    inputs: Sequence[TensorSpec] | None = None,
    has_stats: bool | None = None,
    has_quality: bool | None = None,
    is_run: bool = False,
    has_system: bool = False,
    options: RunOptions | None = None,
    progress: Progress | None = None,
    cancel: Event | None = None,
) -> ModelAnalysis:
    """Analyze a model file; its code is not run unless requested.

    Args:
        path: A TorchScript archive, a `.pt2`, a state dict or a `.safetensors` file.
        inputs: The inputs of the model; by default those in the file, or inferred from its layers.
        has_stats: Whether to read all elements of the parameters for their statistics; if None, of
            files of up to 2 GiB.
        has_quality: Whether to compute the cost of fewer bits; if None, as for `has_stats`.
        is_run: Whether to load the model with torch and run it, which runs the file's code.
        has_system: Whether to report on the machine as well.
        options: How to run it.
        progress: Called with (done, total).
        cancel: Stops the analysis when set.

    Raises:
        SnapshotError: The file is not a readable model; the message says why.
        CancelledError: `cancel` was set.
    """
    options = options or RunOptions()
    checkpoint = read_checkpoint(path, cancel=cancel)
    graph, notes = _graph_of(checkpoint, inputs)
    is_small = checkpoint.logical_bytes <= _MAX_READ_BYTES
    if has_stats is None:
        has_stats = is_small or bool(has_quality)
        if not has_stats:
            notes.append("the file is large: its elements were not read (--stats reads them)")
    if has_quality is None:
        has_quality = is_small and has_stats
        if has_stats and not has_quality and not is_small:
            notes.append(
                "the file is large: the cost of fewer bits was not computed (--quality computes it)"
            )
    total = _READING + is_run * _RUNNING
    parameters = parameters_of(
        checkpoint,
        has_stats=has_stats,
        has_quality=has_quality and has_stats,
        progress=part_of(progress, 0, _READING, total),
        cancel=cancel,
    )
    others = sum(is_of_optimizer(item.name) for item in parameters.tensors)
    if others:
        notes.append(f"{count_of(others, 'tensor')} of an optimizer: not counted as parameters")
    profile = None
    if is_run:
        try:
            profile = _profiled(
                checkpoint,
                path,
                graph,
                options,
                part_of(progress, _READING, _RUNNING, total),
                cancel,
            )
            notes += profile.notes
        except CancelledError:
            raise
        except SnapshotError as error:
            notes.append(f"{_NOT_RUN}{error}")
    return _analysis(
        fspath(path),
        checkpoint.format,
        parameters,
        graph,
        notes=tuple(dict.fromkeys((*notes, *checkpoint.warnings, *(graph.notes if graph else ())))),
        profile=profile,
        system=read_system() if has_system else None,
        options=options,
    )


def _analysis(
    file: str,
    file_format: str,
    parameters: Parameters,
    graph: Graph | None,
    *,
    notes: tuple[str, ...],
    profile: Profile | None,
    system: System | None,
    options: RunOptions,
) -> ModelAnalysis:
    """Combine what was read and run, and derive the rest."""
    nodes = node_details(graph, parameters, profile, model=options.energy_model) if graph else ()
    totals = totals_of(graph.nodes) if graph else None
    return ModelAnalysis(
        file=file,
        format=file_format,
        architecture=architecture_of(graph, parameters.tensors, parameters.count),
        parameters=parameters,
        graph=graph,
        totals=totals,
        energy=(profile.energy if profile else None) or _unmeasured_energy(graph, totals, options),
        recommendations=recommend(Known(parameters, graph, nodes, profile)),
        notes=notes,
        nodes=nodes,
        profile=profile,
        system=system,
    )


def _unmeasured_energy(graph: Graph | None, totals: Totals | None, options: RunOptions) -> Energy:
    work, why = None, "the file has no graph, and was not run"
    if graph is not None and totals is not None and (totals.work.flops or not totals.uncounted):
        work, why = work_by_class(graph.nodes), "the model was not run"
    elif totals is not None:
        why = "none of its operations could be counted, and it was not run"
    return energy_without_run(
        work, why, model=options.energy_model, carbon_intensity=options.carbon_intensity
    )


def _profiled(
    checkpoint: Checkpoint,
    path: str | PathLike[str],
    graph: Graph | None,
    options: RunOptions,
    progress: Progress | None,
    cancel: Event | None,
) -> Profile:
    """Load the code of the file, and run it on example inputs.

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
    return _run(module, inputs, graph, options, progress=progress, cancel=cancel)


def _run(
    module: Any,
    inputs: Any,
    graph: Graph,
    options: RunOptions,
    *,
    keywords: Mapping[str, Any] | None = None,
    progress: Progress | None,
    cancel: Event | None,
) -> Profile:
    from snapviewer.model import inference
    from snapviewer.model.inference.environment import MEMORY

    return inference.profile(
        module,
        inputs,
        keywords=keywords,
        graph=graph,
        device=options.device,
        tdp_w=options.tdp_w,
        carbon_intensity=options.carbon_intensity,
        energy_model=options.energy_model,
        idle_s=options.idle_s,
        level=MEMORY if options.is_memory_watched else None,
        has_trials=options.has_trials,
        budget_s=options.budget_s,
        progress=progress,
        cancel=cancel,
    )


def analyze(
    module: Any,
    inputs: Any,
    *,
    keywords: Mapping[str, Any] | None = None,
    has_quality: bool = True,
    is_run: bool = False,
    has_system: bool = False,
    options: RunOptions | None = None,
    progress: Progress | None = None,
    cancel: Event | None = None,
) -> ModelAnalysis:
    """Analyze a live module, such as a `torch.nn.Module`.

    Args:
        module: The model; it is not changed.
        inputs: Its inputs: tensors, or `TensorSpec`s in place of them.
        keywords: Further keyword arguments.
        has_quality: Whether to compute the cost of fewer bits.
        is_run: Whether to time runs of it as well.
        has_system: Whether to report on the machine as well.
        options: How to run it.
        progress: Called with (done, total).
        cancel: Stops the analysis when set.

    Raises:
        SnapshotError: torch is not installed, or the model failed with these inputs.
        CancelledError: `cancel` was set.
    """
    from snapviewer.model import inference
    from snapviewer.model.live import record

    options = options or RunOptions()
    graph = record(module, inputs, keywords=keywords)
    total = _READING + is_run * _RUNNING
    parameters = parameters_of_module(
        module,
        has_quality=has_quality,
        progress=part_of(progress, 0, _READING, total),
        cancel=cancel,
    )
    notes: list[str] = []
    profile = None
    if is_run:
        profile = _run(
            module,
            inputs if keywords else inference.example_inputs(graph),
            graph,
            options,
            keywords=keywords,
            progress=part_of(progress, _READING, _RUNNING, total),
            cancel=cancel,
        )
        notes += profile.notes
    return _analysis(
        type(module).__name__,
        "live module",
        parameters,
        graph,
        notes=(*notes, *graph.notes),
        profile=profile,
        system=read_system() if has_system else None,
        options=options,
    )


def _graph_of(
    checkpoint: Checkpoint, inputs: Sequence[TensorSpec] | None
) -> tuple[Graph | None, list[str]]:
    """Return the graph of a file, if it has one, and notes."""
    try:
        if checkpoint.format == "torchscript":
            graph = read_torchscript(checkpoint, inputs=inputs)
            return graph, [doubt for doubt in graph.doubts[:1] if doubt.startswith(MISFIT)]
        if checkpoint.format == "pt2":
            return _pt2_graph(checkpoint, inputs)
    except SnapshotError as error:
        return None, [f"the graph could not be read: {error}"]
    return None, [
        f"a file of this format ({checkpoint.format}) has parameters but no graph: operations and "
        "FLOPs need a TorchScript archive, a .pt2 file, or the live module"
    ]


def _pt2_graph(
    checkpoint: Checkpoint, inputs: Sequence[TensorSpec] | None
) -> tuple[Graph, list[str]]:
    """Return the graph for these inputs; if the program refuses them, for its own."""
    if inputs:
        try:
            return read_pt2(checkpoint, inputs=inputs), []
        except SnapshotError as error:
            return read_pt2(checkpoint), [f"the given inputs are not used: {error}"]
    return read_pt2(checkpoint), []
