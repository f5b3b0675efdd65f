"""The content of `comprehensive_model_analysis.txt`, in the words that it promises."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from snapviewer.model.analysis import ModelAnalysis
from snapviewer.model.compression import (
    NOT_ASKED,
    best_db,
    compressibility,
    compression_ratio,
    pruning_potential,
    quantization_sensitivity,
    why_unknown,
)
from snapviewer.model.nodes import NodeDetails
from snapviewer.model.parameters import Parameter
from snapviewer.model.quantity import Quantity
from snapviewer.model.recommend import Advice, advice_for_node, advice_for_parameter
from snapviewer.model.work import Uncounted
from snapviewer.report.model.console import NARROW, WIDE, block, performance, summary, title
from snapviewer.report.model.quantities import (
    describe_inputs,
    describe_uncounted,
    format_histogram,
    format_mb,
    format_measured_share,
    format_parameters,
    format_quantity,
    provenance,
    time_shares,
)
from snapviewer.text.sanitize import sanitize

if TYPE_CHECKING:
    from snapviewer._core import Quality

_FORMATS = ("int8", "int4", "float8_e4m3fn", "float8_e5m2")


def as_text(analysis: ModelAnalysis) -> str:
    """Return the report."""
    return "".join(f"{line}\n" for line in _lines(analysis))


def _lines(analysis: ModelAnalysis) -> Iterator[str]:
    yield from title()
    yield from block("EXECUTIVE SUMMARY", _executive(analysis), WIDE)
    yield from summary(analysis)
    yield from block("PARAMETER ANALYSIS", _parameters(analysis), WIDE)
    yield from block("NODE ANALYSIS", _nodes(analysis), WIDE)
    yield from block("PERFORMANCE PROFILING", _profiling(analysis), WIDE)
    yield from block("OPTIMIZATION RECOMMENDATIONS", _recommendations(analysis), WIDE)


def _executive(analysis: ModelAnalysis) -> Iterator[str]:
    totals = analysis.totals
    yield f"File: {sanitize(analysis.file)} ({analysis.format})"
    yield f"Architecture: {analysis.architecture.label}"
    yield f"Parameters: {format_parameters(analysis.parameters.count)}"
    yield f"Parameter Memory: {format_mb(analysis.parameters.size_bytes)}"
    macs, _ = analysis.work
    if totals is None or macs.value is None:
        yield f"Computation: {format_quantity(macs)}"
    else:
        counts = f"MACs: {totals.work.macs:,}   FLOPs: {totals.work.flops:,}"
        yield f"{counts} ({macs.status} from shapes)"
        if analysis.graph is not None:
            yield f"Input: {describe_inputs(analysis.graph)}"
        if totals.uncounted:
            yield f"Lower bound, not counted: {describe_uncounted(totals)}"
    if analysis.profile is not None:
        plain = analysis.profile.plain
        yield f"Run time: {format_quantity(plain.median)} (measured, median of {plain.runs} runs)"
    if analysis.recommendations:
        yield f"First recommendation: {analysis.recommendations[0].title}"


def _parameters(analysis: ModelAnalysis) -> Iterator[str]:
    for item in analysis.parameters.tensors:
        yield from _parameter(item)


def _parameter(item: Parameter) -> Iterator[str]:
    yield f"Parameter: {sanitize(item.name)}"
    yield f"  Shape: [{', '.join(map(str, item.shape))}]"
    yield f"  Elements: {item.elements}"
    yield f"  Memory: {format_mb(item.size_bytes)} ({item.dtype})"
    if item.tied_to:
        yield f"  Tied to: {sanitize(item.tied_to)} (counted there)"
        return
    if item.stats is None:
        yield f"  Not measured: {sanitize(item.unmeasured or NOT_ASKED)}"
    else:
        yield from _statistics(item)
    if item.placement is not None:
        alignment = item.placement.alignment
        yield f"  Memory Alignment: {format_quantity(alignment)} ({alignment.source})"
        locality = item.placement.locality
        yield f"  Cache Locality: {format_quantity(locality)} of lines touched ({locality.source})"
    yield from _advised(advice_for_parameter(item))


def _statistics(item: Parameter) -> Iterator[str]:
    stats, quality = item.stats, item.quality
    if stats is None:
        return
    yield f"  Sparsity: {format_measured_share(item.sparsity)}"
    yield f"  Mean: {_number(stats.mean)}  Std: {_number(stats.std)}"
    yield f"  Min: {_number(stats.min)}  Max: {_number(stats.max)}"
    if stats.nan or stats.inf:
        yield f"  NaN: {stats.nan}  Infinite: {stats.inf}"
    yield f"  L1 Norm: {_number(stats.l1)}"
    yield f"  L2 Norm: {_number(stats.l2)}"
    yield f"  Frobenius Norm: {_number(stats.l2)}"
    if quality is not None:
        yield f"  Spectral Norm: {_spectral(quality)}"
        yield f"  Stable Rank: {_rank(quality)}"
    yield f"  Entropy: {'none' if stats.entropy is None else f'{stats.entropy:.3f}'}"
    yield f"  Skewness: {_number(stats.skewness)}  Kurtosis: {_number(stats.kurtosis)}"
    yield f"  Histogram: {format_histogram(stats.histogram, ' ')}"
    score, ratio = compressibility(item), compression_ratio(item)
    yield f"  Compressibility Score: {'none' if score.value is None else f'{score.value:.3f}'}"
    yield f"  Compression Ratio: {format_quantity(ratio)} ({sanitize(ratio.source)})"
    if quality is not None:
        yield f"  Pruning Potential: {_measure(item, pruning_potential(item))}"
        yield f"  Quantization Sensitivity: {_measure(item, quantization_sensitivity(item))}"
        trips = [(name, best_db(item, name)) for name in _FORMATS]
        known = ", ".join(f"{name} {db:.1f} dB" for name, db in trips if db is not None)
        yield f"  Round Trips: {known or 'none'}"


def _measure(item: Parameter, share: float | None) -> str:
    if share is None:
        return f"unavailable ({sanitize(why_unknown(item))})"
    return format_measured_share(share)


def _spectral(quality: Quality) -> str:
    spectrum = quality.spectrum
    if spectrum is None:
        return f"unavailable ({sanitize(quality.spectrum_unavailable or '')})"
    return f"{spectrum.norm:.3e} (by iteration; at most {spectrum.upper_bound:.3e})"


def _rank(quality: Quality) -> str:
    spectrum = quality.spectrum
    if spectrum is None or spectrum.stable_rank is None:
        return "unavailable (no spectral norm)"
    return f"{spectrum.stable_rank:.1f} of {min(spectrum.shape)}"


def _nodes(analysis: ModelAnalysis) -> Iterator[str]:
    if analysis.graph is None:
        yield "This file has no graph."
    for node, share in zip(analysis.nodes, time_shares(analysis.nodes), strict=True):
        yield from _node(node, share)


def _node(facts: NodeDetails, share: float) -> Iterator[str]:
    work = facts.work
    yield f"Node: {facts.name} ({sanitize(facts.node.op)})"
    yield f"  Type: {facts.kind}"
    yield f"  Module: {sanitize(facts.node.module) or '(the model)'}"
    if isinstance(work, Uncounted):
        yield f"  Theoretical FLOPs: not counted: {sanitize(work.why)}"
    else:
        yield f"  Theoretical FLOPs: {work.flops}"
        yield f"  MACs: {work.macs}"
        yield f"  Memory Accesses: {facts.moved_bytes}"
        intensity = facts.intensity.value
        yield (
            f"  Arithmetic Intensity: {'–' if intensity is None else f'{intensity:.1f}'} FLOPs/byte"
        )
    if facts.time.value is not None:
        reached = format_quantity(facts.of_roof)
        flops = format_quantity(facts.ran_flops)
        if facts.ran_flops.value is not None:
            flops = f"{flops} ({provenance(facts.ran_flops)}) at {format_quantity(facts.rate)}"
        yield f"  Execution Time: {1e6 * facts.time.value:.2f} us ({share:.1f} %)"
        yield f"  Measured FLOPs: {flops}"
        yield f"  Memory Bandwidth: {format_quantity(facts.bandwidth)}"
        yield f"  Bound: {facts.bound} ({facts.bound_source}), {reached} of it reached"
        yield f"  Thread Speed-up: {_with_source(facts.speed_up)}"
        yield f"  Parallel Efficiency: {_with_source(facts.efficiency)}"
    energy = facts.energy
    if energy.value is not None:
        yield f"  Energy per Operation: {energy.value:.3e} nJ"
        yield f"    {energy.status}: {sanitize(energy.source)}"
        yield f"  Power: {format_quantity(facts.power)}"
    else:
        yield f"  Energy per Operation: {format_quantity(energy)}"
    yield f"  Pruning Potential: {_share(facts.pruning)}"
    yield f"  Quantization Sensitivity: {_share(facts.sensitivity)}"
    yield from _advised(advice_for_node(facts))


def _advised(advice: Iterable[Advice]) -> Iterator[str]:
    lines = [f"{item.title} ({item.evidence})" for item in advice]
    yield "  Optimization Recommendations:"
    yield from (f"    - {sanitize(line)}" for line in lines or ["none"])


def _profiling(analysis: ModelAnalysis) -> Iterator[str]:
    if analysis.profile is None:
        yield "The model was not run."
    else:
        yield from performance(analysis.profile)


def _recommendations(analysis: ModelAnalysis) -> Iterator[str]:
    for place, item in enumerate(analysis.recommendations, 1):
        yield f"{place}. {item.title}"
        share = f" ({100 * item.share:.1f} % of {item.share_of})" if item.share else ""
        yield f"    gain: {format_quantity(item.gain)}{share}, {item.gain.status}"
        yield f"    why: {sanitize(item.evidence)}"
        for name in item.subjects[:10]:
            yield f"    {sanitize(name)}"
    yield NARROW


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3e}"


def _with_source(quantity: Quantity) -> str:
    shown = format_quantity(quantity)
    return shown if quantity.value is None else f"{shown} ({quantity.source})"


def _share(quantity: Quantity) -> str:
    return format_quantity(quantity) if quantity.value is None else f"{quantity.value:.1f}%"
