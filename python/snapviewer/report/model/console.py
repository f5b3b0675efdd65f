"""The blocks that the console shows, under the names that people know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from snapviewer.model.analysis import ModelAnalysis
from snapviewer.model.compute import compute_of
from snapviewer.model.nodes import NodeFacts
from snapviewer.model.parameters import Parameter
from snapviewer.model.quantity import Quantity
from snapviewer.model.work import Uncounted
from snapviewer.report.model.figures import (
    how,
    inputs_said,
    machine,
    number,
    parts_of,
    per_second,
    said,
    share_said,
    uncounted_said,
)
from snapviewer.text.sanitize import sanitize, shorten_middle

if TYPE_CHECKING:
    from snapviewer.model.inference import NodeProfile, Profile

WIDE, NARROW = "=" * 80, "-" * 50
SLOWEST = 10
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
    yield f"File: {sanitize(analysis.file)}"
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
    tied = f" (tied to {sanitize(item.tied_to)})" if item.tied_to else ""
    return f"Analyzed parameter: {sanitize(item.name)} Shape: [{shape}] Sparsity: {sparsity}{tied}"


def nodes(analysis: ModelAnalysis) -> Iterator[str]:
    """Yield a line for each node."""
    yield "[PARSING COMPREHENSIVE COMPUTATION GRAPH]"
    if analysis.graph is None:
        yield "This file has no graph."
    for node in analysis.nodes:
        yield _node_line(node)
    yield ""


def _node_line(node: NodeFacts) -> str:
    if isinstance(node.work, Uncounted):
        flops, memory = "not counted", "not known"
    else:
        flops, memory = str(node.work.flops), f"{node.moved_bytes / _MIB:.2f} MB"
    name = f"{node.name} ({sanitize(node.node.op)})"
    return f"Analyzed: {name} FLOPs: {flops} Params: {node.elements} Memory: {memory}"


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
    system = dict(machine(analysis))
    if system:
        yield from _block("[SYSTEM]", _tree(system))
    yield from _block("[OPTIMIZATION RECOMMENDATIONS]", _recommendations(analysis))
    if analysis.notes:
        yield from _block("[NOTES]", (f"- {sanitize(note)}" for note in analysis.notes[:20]))


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
    flops = compute_of(graph, totals).flops
    if totals is None or graph is None:
        yield f"Total Theoretical FLOPs: unavailable ({flops.source})"
        return
    yield f"Input: {inputs_said(graph)}"
    if flops.value is None:
        yield f"Total Theoretical FLOPs: unavailable ({sanitize(flops.source, 200)})"
    else:
        yield f"Total Theoretical FLOPs: {totals.work.flops}"
        yield f"Total MACs: {totals.work.macs}"
    if flops.status == "estimated":
        yield f"    an estimate: {sanitize(graph.doubts[0], 200)}"
    if totals.uncounted:
        yield f"Not counted, so that it is more: {uncounted_said(totals)}; --json tells why"
    yield "FLOP Distribution by Operation Type:"
    counted = {kind: work.flops for kind, work in totals.by_kind.items() if work.flops}
    width = max((len(kind) for kind in counted), default=0) + 1
    for kind, count in counted.items():
        yield f"    {kind + ':':<{width}} {100 * count / max(1, totals.work.flops):5.1f}%"


def performance(profile: Profile) -> Iterator[str]:
    """Yield how long runs took, and what they were spent on."""
    plain = profile.plain
    word = "thread" if profile.threads == 1 else "threads"
    yield f"Device: {profile.device}, {profile.threads} {word}"
    spread = f"spread {said(plain.deviation)}, fastest {said(plain.fastest)}"
    told = f"median of {plain.runs} runs, {spread}" if plain.runs > 1 else "a single run"
    yield f"Time of a run: {said(plain.median)} ({told})"
    first = profile.warmups[0] if profile.warmups else None
    if first is not None:
        yield f"First run: {said(first)} (warm-up, not counted)"
    yield f"Rate: {said(profile.rate)}"
    yield f"Memory bandwidth: {said(profile.bandwidth)}"
    yield f"Arithmetic intensity: {said(profile.intensity)}"
    roof = profile.roof
    if roof is not None:
        yield (
            f"Roof of the machine: {said(roof.peak)}, {said(roof.bandwidth)}; memory-bound below "
            f"{said(roof.ridge)}"
        )
    yield f"Cost of profiling: {said(profile.overhead)}"
    yield from _memory(profile)
    for run in profile.thread_runs:
        word = "thread" if run.threads == 1 else "threads"
        yield (
            f"With {run.threads} {word}: {said(run.time.median)}, parallel efficiency "
            f"{said(run.efficiency)}"
        )
    yield from layout_lines(profile)
    yield from _batches(profile)
    yield from _slowest(profile)


def _memory(profile: Profile) -> Iterator[str]:
    memory = profile.memory
    if memory is None:
        return
    yield f"Peak of memory: {said(memory.peak)} beside the parameters"
    yield (
        f"Allocations: {said(memory.allocations)} of {said(memory.total)}, the largest "
        f"{said(memory.largest)}; {said(memory.reused)} at addresses given back before, "
        f"{said(memory.kept)} still there at the end"
    )
    if memory.sizes:
        sizes = ", ".join(f"{count} from {number(size, 'B')}" for size, count in memory.sizes)
        yield f"Sizes of allocations: {sizes}"


def layout_lines(profile: Profile) -> Iterator[str]:
    """Yield what another layout brought."""
    layouts = profile.layouts
    if layouts is not None:
        yield (
            f"channels_last: {said(layouts.channels_last.median)} against "
            f"{said(layouts.contiguous.median)} contiguous (spreads "
            f"{said(layouts.channels_last.deviation)} and {said(layouts.contiguous.deviation)}, "
            f"{layouts.contiguous.runs} runs each, in turn)"
        )


def _batches(profile: Profile) -> Iterator[str]:
    batches = profile.batches
    if batches is not None:
        yield "Batches:"
        for run in batches.runs:
            is_advised = len(batches.runs) > 1 and run.size == batches.advised
            mark = "  <- advised" if is_advised else ""
            yield (
                f"    {run.size:>4}: {said(run.time.median):>9}, "
                f"{per_second(run.throughput)} examples/s{mark}"
            )
        yield f"    {batches.ended}"


def _slowest(profile: Profile) -> Iterator[str]:
    slowest = sorted(profile.nodes, key=lambda node: -(node.time.median.value or 0.0))[:SLOWEST]
    if slowest:
        yield "Slowest operations, what bounds them, and how much of that they reach:"
    for node in slowest:
        # Together they fit into 80 columns.
        name = shorten_middle(sanitize(node.module) or "(the model)", 20)
        op = sanitize(node.node.op.removeprefix("aten::"), 18)
        share = f"{node.share.value or 0:.1f} %"
        yield (
            f"  {said(node.time.median):>8} {share:>6}  {op:<18} {name:<20} {_bound(node)}".rstrip()
        )


def _bound(node: NodeProfile) -> str:
    if node.bound == "unknown":
        return ""
    reached = node.of_roof.value
    return node.bound if reached is None else f"{node.bound}, {share_said(reached)}"


def _energy(analysis: ModelAnalysis) -> Iterator[str]:
    energy = analysis.energy
    for name, found, form, unit in (
        ("Energy Consumption", energy.energy, ".3e", "J"),
        ("Power Consumption", energy.power, ".3f", "W"),
        ("Energy Efficiency", energy.efficiency, ".3e", "FLOPs/J"),
        ("Carbon Footprint Estimate", energy.carbon, ".6f", "g CO2"),
    ):
        if found.value is None:
            yield f"{name}: {said(found)}"
        else:
            # What six digits show as nothing is not nothing.
            is_tiny = form == ".6f" and 0 < found.value < 5e-7
            yield f"{name}: {found.value:{'.3e' if is_tiny else form}} {unit}"
            yield f"    {how(found)}"
    yield from _temperature(analysis)
    if energy.attempts:
        yield "Ways to find the energy, in order of preference:"
    for attempt in energy.attempts:
        used = " (used)" if attempt.is_used else ""
        yield f"    {sanitize(attempt.name)}{used}: {sanitize(attempt.message, 300)}"


def _temperature(analysis: ModelAnalysis) -> Iterator[str]:
    """Yield how warm the machine got, and whether that slowed it down."""
    use = analysis.profile.system if analysis.profile else None
    if use is not None:
        yield f"Temperature Peak: {said(use.temperature_peak)}"
        yield f"Thermal Throttling: {said(use.slowed_for_heat)}"


def _tree(record: Any, depth: int = 0) -> Iterator[str]:
    """Yield the parts of a record as an indented tree."""
    for label, value in parts_of(record):
        name = f"{'    ' * depth}{sanitize(label, 60)}"
        if isinstance(value, Quantity):
            yield f"{name}: {said(value)}"
        elif isinstance(value, str):
            if value:
                yield f"{name}: {sanitize(value, 160)}"
        else:
            yield f"{name}:"
            yield from _tree(value, depth + 1)


def _recommendations(analysis: ModelAnalysis) -> Iterator[str]:
    if not analysis.recommendations:
        yield "These numbers point to nothing that is worth doing."
    for place, item in enumerate(analysis.recommendations, start=1):
        gain = item.gain
        if gain.value is None:
            told = f"{gain.status}: {gain.source}"
        else:
            told = f"{said(gain)}, {100 * item.share:.1f} % of {item.share_of}"
        yield f"{place}. {item.title} ({told})"
        yield f"    {sanitize(item.evidence, 400)}"
