"""The blocks that `pytorch_parser` prints, in the words that it promises."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from snapviewer.model.analysis import ModelAnalysis
from snapviewer.model.nodes import NodeDetails
from snapviewer.model.parameters import Parameter
from snapviewer.model.quantity import Quantity
from snapviewer.model.work import Uncounted
from snapviewer.report.model.quantities import (
    describe_best_pattern,
    describe_dtype,
    describe_energy_runs,
    describe_gain,
    describe_inputs,
    describe_layouts,
    describe_pattern,
    describe_sizes,
    describe_uncounted,
    energy_figures,
    flops_by_kind,
    format_mb,
    format_measured_share,
    format_number,
    format_percent,
    format_quantity,
    format_rate,
    machine_parts,
    parts_of,
    performance_figures,
    provenance,
    slowest_nodes,
)
from snapviewer.text.sanitize import sanitize, shorten_middle
from snapviewer.text.units import count_of

if TYPE_CHECKING:
    from snapviewer.model.inference import NodeProfile, Profile

WIDE, NARROW = "=" * 80, "-" * 50
_SLOWEST = 10
_MAX_NOTES = 20


def lines_of(analysis: ModelAnalysis) -> Iterator[str]:
    """Yield all blocks."""
    return chain(
        title(), _loading(analysis), _parameters(analysis), _nodes(analysis), summary(analysis)
    )


def title() -> Iterator[str]:
    """Yield the title."""
    yield "Comprehensive PyTorch Model Analyzer"
    yield "Enterprise-Grade Performance & Energy Instrumentation"
    yield WIDE
    yield ""


def _loading(analysis: ModelAnalysis) -> Iterator[str]:
    yield "[LOADING PYTORCH MODEL FOR COMPREHENSIVE ANALYSIS]"
    yield f"File: {sanitize(analysis.file)}"
    yield "[SUCCESS] PyTorch model loaded"
    yield f"Format: {analysis.format} ({what_ran(analysis)})"
    yield f"Graph nodes: {len(analysis.graph.nodes) if analysis.graph else 'none in this file'}"
    yield ""


def what_ran(analysis: ModelAnalysis) -> str:
    """Say whether code of the model was run."""
    return "its code was run" if analysis.profile else "no code was run"


def _parameters(analysis: ModelAnalysis) -> Iterator[str]:
    yield "[EXTRACTING COMPREHENSIVE PARAMETER ANALYSIS]"
    yield from map(_parameter_line, analysis.parameters.tensors)
    yield ""


def _parameter_line(item: Parameter) -> str:
    shape = ", ".join(map(str, item.shape))
    sparsity = format_measured_share(item.sparsity)
    tied = f" (tied to {sanitize(item.tied_to)})" if item.tied_to else ""
    return f"Analyzed parameter: {sanitize(item.name)} Shape: [{shape}] Sparsity: {sparsity}{tied}"


def _nodes(analysis: ModelAnalysis) -> Iterator[str]:
    yield "[PARSING COMPREHENSIVE COMPUTATION GRAPH]"
    if analysis.graph is None:
        yield "This file has no graph."
    yield from map(_node_line, analysis.nodes)
    yield ""


def _node_line(node: NodeDetails) -> str:
    if isinstance(node.work, Uncounted):
        flops, memory = "not counted", "unknown"
    else:
        flops, memory = str(node.work.flops), format_mb(node.moved_bytes)
    name = f"{node.name} ({sanitize(node.node.op)})"
    return f"Analyzed: {name} FLOPs: {flops} Params: {node.elements} Memory: {memory}"


def summary(analysis: ModelAnalysis) -> Iterator[str]:
    """Yield the blocks of the report: architecture, parameters, computation, and so on."""
    yield "[COMPREHENSIVE MODEL ANALYSIS REPORT]"
    yield WIDE
    yield ""
    yield from block("[ARCHITECTURE SUMMARY]", _architecture(analysis))
    yield from block("[PARAMETER ANALYSIS]", _parameter_totals(analysis))
    yield from block("[COMPUTATIONAL ANALYSIS]", _computation(analysis))
    if analysis.profile is not None:
        yield from block("[PERFORMANCE ANALYSIS]", performance(analysis.profile))
    yield from block("[ENERGY ANALYSIS]", _energy(analysis))
    machine = dict(machine_parts(analysis))
    if machine:
        yield from block("[SYSTEM]", _tree(machine))
    yield from block("[OPTIMIZATION RECOMMENDATIONS]", _recommendations(analysis))
    if analysis.notes:
        notes = (f"- {sanitize(note)}" for note in analysis.notes[:_MAX_NOTES])
        yield from block("[NOTES]", notes)


def block(name: str, lines: Iterator[str], rule: str = NARROW) -> Iterator[str]:
    """Yield a titled block and an empty line."""
    yield name
    yield rule
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


def _parameter_totals(analysis: ModelAnalysis) -> Iterator[str]:
    found = analysis.parameters
    yield f"Total Parameters: {found.count}"
    yield f"Parameter Memory: {format_mb(found.size_bytes)}"
    yield f"Average Sparsity: {format_measured_share(found.sparsity)}"


def _computation(analysis: ModelAnalysis) -> Iterator[str]:
    totals, graph = analysis.totals, analysis.graph
    _, flops = analysis.work
    if totals is None or graph is None:
        yield f"Total Theoretical FLOPs: {format_quantity(flops)}"
        return
    yield f"Input: {describe_inputs(graph)}"
    yield from (f"    {line}" for line in describe_sizes(graph))
    if flops.value is None:
        yield f"Total Theoretical FLOPs: {format_quantity(flops)}"
    else:
        yield f"Total Theoretical FLOPs: {totals.work.flops}"
        yield f"Total MACs: {totals.work.macs}"
    if flops.status == "estimated":
        yield f"    estimate: {sanitize(graph.doubts[0], 200)}"
    if totals.uncounted:
        yield f"    lower bound, not counted: {describe_uncounted(totals)}; --json has the reasons"
    yield "FLOP Distribution by Operation Type:"
    counted = flops_by_kind(totals)
    width = max((len(kind) for kind, _, _ in counted), default=0) + 1
    for kind, _, share in counted:
        yield f"    {kind + ':':<{width}} {share:5.1f}%"


def performance(profile: Profile) -> Iterator[str]:
    """Yield the times of the runs, and where they were spent."""
    plain = profile.plain
    yield f"Device: {profile.device}, {count_of(profile.threads, 'thread')}"
    spread = (
        f"median absolute deviation {format_quantity(plain.deviation)}, "
        f"fastest {format_quantity(plain.fastest)}"
    )
    runs = f"median of {plain.runs} runs, {spread}" if plain.runs > 1 else "a single run"
    yield f"Run time: {format_quantity(plain.median)} ({runs})"
    if profile.warmups:
        yield f"First run: {format_quantity(profile.warmups[0])} (warm-up, not counted)"
    for label, quantity in performance_figures(profile):
        yield f"{label}: {format_quantity(quantity)}"
        if quantity is profile.measured_flops and quantity.value is not None:
            yield f"    {provenance(quantity)}"
    roof = profile.roof
    if roof is not None:
        yield (
            f"Machine limits: {format_quantity(roof.peak)}, {format_quantity(roof.bandwidth)}; "
            f"memory-bound below {format_quantity(roof.ridge)}"
        )
    yield from _memory(profile)
    for run in profile.thread_runs:
        yield (
            f"With {count_of(run.threads, 'thread')}: {format_quantity(run.time.median)}, "
            f"fastest {format_quantity(run.time.fastest)}, "
            f"parallel efficiency {format_quantity(run.efficiency)} (of the fastest)"
        )
    for described in (describe_layouts(profile), describe_dtype(profile)):
        if described is not None:
            yield described
    yield from _batches(profile)
    yield from _slowest(profile)


def _memory(profile: Profile) -> Iterator[str]:
    memory = profile.memory
    if memory is None:
        return
    yield f"Peak memory: {format_quantity(memory.peak)} besides the parameters"
    yield (
        f"Allocations: {format_quantity(memory.allocations)}, "
        f"{format_quantity(memory.total)} in total, largest {format_quantity(memory.largest)}; "
        f"{format_quantity(memory.reused)} at reused addresses, "
        f"{format_quantity(memory.kept)} not freed at the end"
    )
    if memory.sizes:
        sizes = [f"{count} from {format_number(size, 'B')}" for size, count in memory.sizes]
        yield f"Allocation sizes: {', '.join(sizes)}"


def _batches(profile: Profile) -> Iterator[str]:
    batches = profile.batches
    if batches is not None:
        yield "Batch sizes:"
        for run in batches.runs:
            is_advised = len(batches.runs) > 1 and run.size == batches.advised
            mark = "  <- recommended" if is_advised else ""
            yield (
                f"    {run.size:>4}: {format_quantity(run.time.median):>9}, "
                f"{format_rate(run.throughput)} examples/s{mark}"
            )
        yield f"    {batches.ended}"


def _slowest(profile: Profile) -> Iterator[str]:
    slowest = slowest_nodes(profile, _SLOWEST)
    if slowest:
        yield "Slowest operations, what bounds them, and how much of that bound they reach:"
    for node, percent in slowest:
        # Together they fit into 80 columns.
        name = shorten_middle(sanitize(node.module) or "(the model)", 20)
        op = sanitize(node.node.op.removeprefix("aten::"), 18)
        share = f"{percent:.1f} %"
        time = format_quantity(node.time.median)
        yield f"  {time:>8} {share:>6}  {op:<18} {name:<20} {_bound(node)}".rstrip()


def _bound(node: NodeProfile) -> str:
    if node.bound == "unknown":
        return ""
    reached = node.of_roof.value
    return node.bound if reached is None else f"{node.bound}, {format_percent(reached)}"


def _energy(analysis: ModelAnalysis) -> Iterator[str]:
    energy = analysis.energy
    for name, found, form, unit in (
        ("Energy Consumption", energy.energy, ".3e", "J"),
        ("Power Consumption", energy.power, ".3f", "W"),
        ("Energy Efficiency", energy.efficiency, ".3e", "FLOPs/J"),
        ("Carbon Footprint Estimate", energy.carbon, ".6f", "g CO2"),
    ):
        if found.value is None:
            yield f"{name}: {format_quantity(found)}"
        else:
            # Six digits would show a tiny number as zero.
            is_tiny = form == ".6f" and 0 < found.value < 5e-7
            yield f"{name}: {found.value:{'.3e' if is_tiny else form}} {unit}"
            yield f"    {provenance(found)}"
    if analysis.profile is not None:
        runs = describe_energy_runs(analysis.profile)
        if runs is not None:
            yield f"Runs for energy: {runs}"
    for label, found in energy_figures(analysis):
        yield f"{label}: {_joules(found)}"
        if found.value is not None:
            yield f"    {provenance(found)}"
    if analysis.profile is not None:
        yield from _patterns(analysis.profile)
    use = analysis.profile.system if analysis.profile else None
    if use is not None:
        yield f"Temperature Peak: {format_quantity(use.temperature_peak)}"
        yield f"Thermal Throttling: {format_quantity(use.slowed_for_heat)}"
    if energy.attempts:
        yield "Ways to find the energy, in order of preference:"
    for attempt in energy.attempts:
        used = " (used)" if attempt.is_used else ""
        yield f"    {sanitize(attempt.name)}{used}: {sanitize(attempt.message, 300)}"
    if energy.terms:
        yield "Terms of the estimate:"
    for term in energy.terms:
        numbers = term.joules
        yield (
            f"    {sanitize(term.name)}: {numbers.usual:.3e} J "
            f"({numbers.low:.3e} to {numbers.high:.3e} J)"
        )
    if energy.assumptions:
        yield "Assumptions of the energy model, usual (low to high), and their basis:"
    for row in energy.assumptions:
        yield f"    {row.name} {row}"


def _patterns(profile: Profile) -> Iterator[str]:
    patterns = profile.patterns
    if patterns is None:
        return
    yield "Energy of an example by execution pattern:"
    for pattern in patterns.tried:
        saving = pattern.saving.value
        more = "" if not saving else f", {abs(saving):.1f} % {'less' if saving > 0 else 'more'}"
        mark = "  <- fewest joules" if pattern.name == patterns.best else ""
        yield (
            f"    {describe_pattern(pattern)}: {_joules(pattern.energy)}{more}, "
            f"{format_quantity(pattern.time)} (median of {count_of(pattern.runs, 'run')}, "
            f"deviation {format_percent(pattern.spread.value or 0.0)}){mark}"
        )
    for name, why in patterns.untried:
        yield f"    not compared: {name}: {sanitize(why, 300)}"
    yield f"Fewest joules: {describe_best_pattern(profile)}"


def _joules(quantity: Quantity) -> str:
    return format_quantity(quantity) if quantity.value is None else f"{quantity.value:.3e} J"


def _tree(record: Any, depth: int = 0) -> Iterator[str]:
    """Yield the parts of a record as an indented tree."""
    for label, value in parts_of(record):
        name = f"{'    ' * depth}{sanitize(label, 60)}"
        if isinstance(value, Quantity):
            yield f"{name}: {format_quantity(value)}"
        elif isinstance(value, str):
            if value:
                yield f"{name}: {sanitize(value, 160)}"
        else:
            yield f"{name}:"
            yield from _tree(value, depth + 1)


def _recommendations(analysis: ModelAnalysis) -> Iterator[str]:
    if not analysis.recommendations:
        yield "No recommendations."
    for place, item in enumerate(analysis.recommendations, start=1):
        yield f"{place}. {item.title} ({describe_gain(item)})"
        yield f"    {sanitize(item.evidence, 400)}"
