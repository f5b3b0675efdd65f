"""The whole analysis as text: what `comprehensive_model_analysis.txt` has."""

from __future__ import annotations

from collections.abc import Iterator
from math import log2

from snapviewer.model.analysis import ModelAnalysis
from snapviewer.model.graph import Node
from snapviewer.model.parameters import Parameter
from snapviewer.model.recommend import (
    GOOD_INT8_DB,
    int8_db,
    pruning_potential,
    quantization_sensitivity,
)
from snapviewer.model.work import Uncounted, kind_of, work_of
from snapviewer.report.model.console import NARROW, WIDE, node_name, performance, summary, title
from snapviewer.texts import clean

_MIB = 2**20


def as_text(analysis: ModelAnalysis) -> str:
    """Return the report."""
    return "".join(f"{line}\n" for line in _lines(analysis))


def _lines(analysis: ModelAnalysis) -> Iterator[str]:
    yield from title()
    yield from _chapter("EXECUTIVE SUMMARY", _executive(analysis))
    yield from summary(analysis)
    yield from _chapter("PARAMETER ANALYSIS", _parameters(analysis))
    yield from _chapter("NODE ANALYSIS", _nodes(analysis))
    yield from _chapter("PERFORMANCE PROFILING", _profiling(analysis))
    yield from _chapter("OPTIMIZATION RECOMMENDATIONS", _recommendations(analysis))


def _chapter(name: str, lines: Iterator[str]) -> Iterator[str]:
    yield name
    yield WIDE
    yield from lines
    yield ""


def _executive(analysis: ModelAnalysis) -> Iterator[str]:
    totals = analysis.totals
    yield f"File: {clean(analysis.file)} ({analysis.format})"
    yield f"Architecture: {analysis.architecture.label}"
    yield f"Parameters: {analysis.parameters.count:,}"
    yield f"Parameter Memory: {analysis.parameters.size_bytes / _MIB:.2f} MB"
    if totals is None:
        yield "Computation: unavailable, the file has no graph"
    else:
        yield f"MACs: {totals.work.macs:,}   FLOPs: {totals.work.flops:,} (computed from shapes)"
    if analysis.recommendations:
        yield f"First recommendation: {analysis.recommendations[0].title}"


def _parameters(analysis: ModelAnalysis) -> Iterator[str]:
    for item in analysis.parameters.tensors:
        yield from _parameter(item)


def _parameter(item: Parameter) -> Iterator[str]:
    yield f"Parameter: {clean(item.name)}"
    yield f"  Shape: [{', '.join(map(str, item.shape))}]"
    yield f"  Elements: {item.elements}"
    yield f"  Memory: {item.size_bytes / _MIB:.2f} MB ({item.dtype})"
    if item.tied_to:
        yield f"  Tied to: {clean(item.tied_to)} (counted there)"
        return
    stats = item.stats
    if stats is None:
        yield f"  Not measured: {clean(item.unmeasured or 'not asked for')}"
        return
    yield f"  Sparsity: {_percent(item.sparsity)}"
    yield f"  Mean: {_number(stats.mean)}  Std: {_number(stats.std)}"
    yield f"  Min: {_number(stats.min)}  Max: {_number(stats.max)}"
    yield f"  L1 Norm: {_number(stats.l1)}"
    yield f"  L2 Norm: {_number(stats.l2)}"
    yield f"  Entropy: {'none' if stats.entropy is None else f'{stats.entropy:.3f} bits'}"
    yield f"  Skewness: {_number(stats.skewness)}  Kurtosis: {_number(stats.kurtosis)}"
    score = compressibility(item)
    yield f"  Compressibility Score: {'none' if score is None else f'{score:.3f}'}"
    quality = item.quality
    if quality is not None:
        spectrum = quality.spectrum
        if spectrum is not None:
            most = _number(spectrum.upper_bound)
            yield f"  Spectral Norm: {_number(spectrum.norm)} (at most {most})"
        yield f"  Pruning Potential: {_percent(pruning_potential(item))}"
        yield f"  Quantization Sensitivity: {_percent(quantization_sensitivity(item))}"
    advice = list(_advice(item))
    yield "  Optimization Recommendations:"
    yield from (f"    - {line}" for line in advice or ["none"])


def compressibility(item: Parameter) -> float | None:
    """Return 1 − entropy / log2(bins) of the histogram: 0 for a flat one, 1 for a single value."""
    stats = item.stats
    if stats is None or stats.entropy is None or len(stats.histogram) < 2:
        return None
    return 1 - stats.entropy / log2(len(stats.histogram))


def _advice(item: Parameter) -> Iterator[str]:
    potential = pruning_potential(item)
    if potential is not None and potential >= 0.1 and len(item.shape) >= 2:
        yield f"Prune the smallest {potential:.0%}: at most 1 % of the squared norm is lost"
    decibels = int8_db(item)
    if decibels is not None and decibels >= GOOD_INT8_DB and len(item.shape) >= 2:
        yield f"Quantize to 8 bits: a round trip keeps {decibels:.1f} dB"
    if (item.sparsity or 0.0) >= 0.7:
        yield "Store sparse: most elements are zero"


def _nodes(analysis: ModelAnalysis) -> Iterator[str]:
    if analysis.graph is None:
        yield "The file has no graph."
        return
    for place, node in enumerate(analysis.graph.nodes, start=1):
        yield from _node(place, node)


def _node(place: int, node: Node) -> Iterator[str]:
    work = work_of(node)
    yield f"Node: {node_name(place, node)} ({clean(node.op)})"
    yield f"  Type: {kind_of(node.op)}"
    yield f"  Module: {clean(node.module) or '(the model)'}"
    if isinstance(work, Uncounted):
        yield f"  Theoretical FLOPs: not counted: {clean(work.why)}"
        return
    moved = work.read_bytes + work.written_bytes
    yield f"  Theoretical FLOPs: {work.flops}"
    yield f"  MACs: {work.macs}"
    yield f"  Memory Accesses: {moved} bytes"
    yield f"  Arithmetic Intensity: {f'{work.flops / moved:.1f}' if moved else '–'} FLOPs/byte"


def _profiling(analysis: ModelAnalysis) -> Iterator[str]:
    if analysis.profile is None:
        yield "Not run: nothing of the file was run."
    else:
        yield from performance(analysis.profile)


def _recommendations(analysis: ModelAnalysis) -> Iterator[str]:
    for item in analysis.recommendations:
        yield f"- {item.title}"
        yield f"    why: {item.evidence}"
        for name in item.subjects[:10]:
            yield f"    {clean(name)}"
    yield NARROW


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3e}"


def _percent(share: float | None) -> str:
    return "not measured" if share is None else f"{100 * share:.2f}%"
