"""The blocks that the console shows, under the names that people know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from snapviewer.model.analysis import ModelAnalysis
from snapviewer.model.graph import Node, TensorSpec, Value
from snapviewer.model.parameters import Parameter
from snapviewer.model.quantity import Quantity
from snapviewer.model.work import Uncounted, kind_of, work_of
from snapviewer.texts import clean
from snapviewer.units import format_bytes

if TYPE_CHECKING:
    from snapviewer.model.inference import Profile

WIDE, NARROW = "=" * 80, "-" * 50
_MIB = 2**20


def title() -> Iterator[str]:
    """Yield the lines above everything."""
    yield "Comprehensive PyTorch Model Analyzer"
    yield "Enterprise-Grade Performance & Energy Instrumentation"
    yield WIDE
    yield ""


def loading(analysis: ModelAnalysis) -> Iterator[str]:
    """Yield what was read."""
    yield "[LOADING PYTORCH MODEL FOR COMPREHENSIVE ANALYSIS]"
    yield f"File: {clean(analysis.file)}"
    yield "[SUCCESS] PyTorch model loaded"
    ran = "its code was run" if analysis.profile else "nothing of it was run"
    yield f"Format: {analysis.format} ({ran})"
    yield f"Graph nodes: {len(analysis.graph.nodes) if analysis.graph else 'none in this file'}"
    yield ""


def parameters(analysis: ModelAnalysis) -> Iterator[str]:
    """Yield a line for each parameter."""
    yield "[EXTRACTING COMPREHENSIVE PARAMETER ANALYSIS]"
    for item in analysis.parameters.tensors:
        yield _parameter_line(item)
    yield ""


def _parameter_line(item: Parameter) -> str:
    shape = ", ".join(map(str, item.shape))
    sparsity = "not measured" if item.sparsity is None else f"{100 * item.sparsity:.2f}%"
    tied = f" (tied to {clean(item.tied_to)})" if item.tied_to else ""
    return f"Analyzed parameter: {clean(item.name)} Shape: [{shape}] Sparsity: {sparsity}{tied}"


def nodes(analysis: ModelAnalysis) -> Iterator[str]:
    """Yield a line for each node."""
    yield "[PARSING COMPREHENSIVE COMPUTATION GRAPH]"
    if analysis.graph is None:
        yield "This file has no graph."
    else:
        for place, node in enumerate(analysis.graph.nodes, start=1):
            yield _node_line(place, node, analysis)
    yield ""


def node_name(place: int, node: Node) -> str:
    """Return what a node is called: its kind and its place, such as `Convolution_1`."""
    return f"{kind_of(node.op)}_{place}"


def _node_line(place: int, node: Node, analysis: ModelAnalysis) -> str:
    work = work_of(node)
    counts = {item.name: item.elements for item in analysis.parameters.tensors}
    elements = sum(counts.get(name, 0) for name in node.parameters)
    if isinstance(work, Uncounted):
        flops, memory = "not counted", "not known"
    else:
        flops = str(work.flops)
        memory = f"{(work.read_bytes + work.written_bytes) / _MIB:.2f} MB"
    name = f"{node_name(place, node)} ({clean(node.op)})"
    return f"Analyzed: {name} FLOPs: {flops} Params: {elements} Memory: {memory}"


def summary(analysis: ModelAnalysis) -> Iterator[str]:
    """Yield the report's blocks: architecture, parameters, computation."""
    yield "[COMPREHENSIVE MODEL ANALYSIS REPORT]"
    yield WIDE
    yield ""
    yield from _block("[ARCHITECTURE SUMMARY]", _architecture(analysis))
    yield from _block("[PARAMETER ANALYSIS]", _parameters(analysis))
    yield from _block("[COMPUTATIONAL ANALYSIS]", _computation(analysis))
    if analysis.profile is not None:
        yield from _block("[PERFORMANCE ANALYSIS]", performance(analysis.profile))
    yield from _block("[ENERGY ANALYSIS]", _energy(analysis))
    if analysis.system is not None:
        yield from _block("[SYSTEM]", _system(analysis.system.to_dict()))
    yield from _block("[OPTIMIZATION RECOMMENDATIONS]", _recommendations(analysis))
    if analysis.notes:
        yield from _block("[NOTES]", (f"- {clean(note)}" for note in analysis.notes[:20]))


def _block(name: str, lines: Iterator[str]) -> Iterator[str]:
    yield name
    yield NARROW
    yield from lines
    yield ""


def _architecture(analysis: ModelAnalysis) -> Iterator[str]:
    layers = analysis.architecture.layers
    yield "Layer Distribution:"
    width = max((len(kind) for kind in layers), default=0) + 1
    for kind, count in layers.items():
        yield f"    {kind + ':':<{width}} {count:>4} layers"
    yield ""
    yield f"Architecture Classification: {analysis.architecture.label}"
    yield f"    because of {analysis.architecture.reason}"


def _parameters(analysis: ModelAnalysis) -> Iterator[str]:
    found = analysis.parameters
    yield f"Total Parameters: {found.count}"
    yield f"Parameter Memory: {found.size_bytes / _MIB:.2f} MB"
    sparsity = found.sparsity
    yield f"Average Sparsity: {'not measured' if sparsity is None else f'{100 * sparsity:.2f}%'}"


def _computation(analysis: ModelAnalysis) -> Iterator[str]:
    totals, graph = analysis.totals, analysis.graph
    if totals is None or graph is None:
        yield "Total Theoretical FLOPs: unavailable (the file has no graph)"
        return
    yield f"Input: {', '.join(map(_shown, graph.inputs)) or 'none'} ({graph.input_source})"
    yield f"Total Theoretical FLOPs: {totals.work.flops}"
    yield f"Total MACs: {totals.work.macs}"
    if totals.uncounted:
        yield f"Not counted: {len(totals.uncounted)} operations (the report lists them)"
    yield "FLOP Distribution by Operation Type:"
    counted = {kind: work.flops for kind, work in totals.by_kind.items() if work.flops}
    width = max((len(kind) for kind in counted), default=0) + 1
    for kind, flops in counted.items():
        yield f"    {kind + ':':<{width}} {100 * flops / max(1, totals.work.flops):5.1f}%"


def performance(profile: Profile) -> Iterator[str]:
    """Yield how long runs took, and what they were spent on."""
    yield f"Time of a run: {_told(profile.plain.median)} (median of {profile.plain.runs} runs)"
    yield f"Spread: {_told(profile.plain.deviation)}"
    yield f"Rate: {_told(profile.rate)}"
    yield f"Memory bandwidth: {_told(profile.bandwidth)}"
    yield f"Arithmetic intensity: {_told(profile.intensity)}"
    yield f"Cost of profiling: {_told(profile.overhead)}"
    if profile.memory is not None:
        yield f"Peak of memory: {_told(profile.memory.peak)}"
    for run in profile.thread_runs:
        yield f"{run.threads} threads: {_told(run.efficiency)} parallel efficiency"
    slowest = sorted(profile.nodes, key=lambda node: -(node.time.median.value or 0.0))[:10]
    if slowest:
        yield "Slowest operations:"
    for node in slowest:
        name = f"{clean(node.node.op)}  {clean(node.module)}"
        yield f"    {_told(node.time.median)}  {name}  {node.bound}"


def _energy(analysis: ModelAnalysis) -> Iterator[str]:
    energy = analysis.to_dict()["energy"]
    for name, key, form, unit in (
        ("Energy Consumption", "energy", ".3e", "J"),
        ("Power Consumption", "power", ".3f", "W"),
        ("Energy Efficiency", "efficiency", ".3e", "FLOPs/J"),
        ("Carbon Footprint Estimate", "carbon", ".6f", "g CO2"),
    ):
        found = energy.get(key)
        if found is None or found["value"] is None:
            why = found["source"] if found else "not computed"
            yield f"{name}: unavailable ({clean(why, 160)})"
        else:
            how = f"{found['status']}: {clean(found['source'], 160)}"
            yield f"{name}: {found['value']:{form}} {unit} ({how})"
    for attempt in energy.get("attempts", []):
        yield f"    {clean(attempt['rung'])}: {clean(attempt['says'], 160)}"


def _system(document: dict[str, Any], depth: int = 0) -> Iterator[str]:
    """Yield a tree of quantities, one a line."""
    for name, value in document.items():
        if isinstance(value, dict) and set(value) == {"value", "unit", "status", "source"}:
            said = (
                f"unavailable ({clean(value['source'], 120)})"
                if value["value"] is None
                else f"{value['value']:,.6g} {value['unit']}"
            )
            yield f"{'    ' * depth}{name}: {said}"
        elif isinstance(value, dict):
            yield f"{'    ' * depth}{name}:"
            yield from _system(value, depth + 1)
        elif not isinstance(value, list):
            yield f"{'    ' * depth}{name}: {clean(str(value), 160)}"


def _told(quantity: Quantity) -> str:
    if quantity.value is None:
        return f"unavailable ({clean(quantity.source, 160)})"
    return f"{quantity.value:.4g} {quantity.unit}"


def _shown(value: Value) -> str:
    if isinstance(value, TensorSpec):
        return "x".join("?" if size is None else str(size) for size in value.shape) or "scalar"
    return clean(str(value), 40)


def _recommendations(analysis: ModelAnalysis) -> Iterator[str]:
    if not analysis.recommendations:
        yield "These numbers point to nothing that is worth doing."
    for place, item in enumerate(analysis.recommendations, start=1):
        gain = item.gain
        if gain.value is None:
            said = f"{gain.status}: {gain.source}"
        else:
            size = (
                format_bytes(int(gain.value))
                if gain.unit == "bytes"
                else f"{gain.value:.4g} {gain.unit}"
            )
            said = f"{size}, {100 * item.share:.1f} %"
        yield f"{place}. {item.title} ({said})"
        yield f"    {item.evidence}"
