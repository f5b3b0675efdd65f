"""The analysis as blocks, rendered as HTML, Markdown, PDF, and as the overview on the console.

The main figures and the recommendations come first.
"""

from __future__ import annotations

from collections.abc import Iterator

from snapviewer import __version__
from snapviewer.model.analysis import ModelAnalysis
from snapviewer.model.compression import compressibility, int8_db, pruning_potential
from snapviewer.model.nodes import NodeDetails
from snapviewer.model.parameters import largest
from snapviewer.model.recommend import advice_for_node
from snapviewer.model.work import Uncounted
from snapviewer.report.blocks import (
    Bar,
    BarChart,
    Block,
    Document,
    Heading,
    Listing,
    Paragraph,
    Table,
    Text,
    code,
    strong,
    text,
)
from snapviewer.report.model.console import what_ran
from snapviewer.report.model.document_runs import (
    Figure,
    columns,
    energy_blocks,
    figure,
    figure_table,
    performance_blocks,
    system_blocks,
    value_of,
)
from snapviewer.report.model.quantities import (
    describe_gain,
    describe_inputs,
    describe_uncounted,
    flops_by_kind,
    format_quantity,
    si_prefix,
)
from snapviewer.text.units import count_of, format_bytes, format_shape

_MAX_ROWS = 40
_MAX_OVERVIEW_ROWS = 5
_NOTHING_TO_DO = "No recommendations."


def document_of(analysis: ModelAnalysis) -> Document:
    """Return the whole report."""
    name = analysis.file.replace("\\", "/").rsplit("/", 1)[-1]
    return Document(
        f"Model analysis: {name}",
        "en",
        (
            *_summary(analysis),
            *_recommendations(analysis),
            *_computation(analysis),
            *performance_blocks(analysis),
            *energy_blocks(analysis),
            *_parameters(analysis),
            *_nodes(analysis),
            *system_blocks(analysis),
            *_notes(analysis, _MAX_ROWS),
        ),
        f"Written by snapviewer {__version__}.",
    )


def overview_blocks(analysis: ModelAnalysis) -> Iterator[Block]:
    """Yield what fits on a screen: the main figures, the first recommendations and notes."""
    yield _identity(analysis)
    known = [row[:3] for row in _main_figures(analysis) if row[2] != "unavailable"]
    rows = tuple(tuple(map(text, row)) for row in known)
    yield Table(columns("Figure", "Value|", "Status"), rows)
    macs, _ = analysis.work
    if macs.value is None:
        yield Paragraph(text(f"Work of a run: {format_quantity(macs)}."))
    else:
        yield Paragraph(text(f"Work counted for {_counted_for(analysis)}."))
    yield Heading(2, "Recommendations")
    found = analysis.recommendations
    if not found:
        yield Paragraph(text(_NOTHING_TO_DO))
    else:
        items = (
            text(f"{item.title} ({describe_gain(item)})") for item in found[:_MAX_OVERVIEW_ROWS]
        )
        yield Listing(tuple(items), is_ordered=True)
        if len(found) > _MAX_OVERVIEW_ROWS:
            rest = count_of(len(found) - _MAX_OVERVIEW_ROWS, "more recommendation")
            yield Paragraph(text(f"{rest}: --full shows all."))
    yield from _notes(analysis, _MAX_OVERVIEW_ROWS)


def _summary(analysis: ModelAnalysis) -> Iterator[Block]:
    yield Heading(2, "Executive summary")
    yield _identity(analysis)
    yield figure_table(_main_figures(analysis))


def _identity(analysis: ModelAnalysis) -> Paragraph:
    return Paragraph(
        text(
            strong(analysis.architecture.label),
            f", because of {analysis.architecture.reason}. ",
            code(analysis.file),
            f" ({analysis.format}; {what_ran(analysis)}).",
        )
    )


def _main_figures(analysis: ModelAnalysis) -> Iterator[Figure]:
    found, profile, energy = analysis.parameters, analysis.profile, analysis.energy
    yield "Parameters", f"{found.count:,}", "computed", "shapes; tied ones once"
    yield "Parameter memory", format_bytes(found.size_bytes), "computed", "types"
    if analysis.totals is not None:
        macs, flops = analysis.work
        is_known = macs.value is not None
        value = f"{format_quantity(macs)} ({format_quantity(flops)})" if is_known else "–"
        yield "Work of a run", value, macs.status, f"{macs.source}; {_counted_for(analysis)}"
    if profile is not None:
        yield figure("Run time", profile.plain.median)
        if profile.memory is not None:
            yield figure("Peak memory besides the parameters", profile.memory.peak)
        yield figure("Rate", profile.rate)
    yield figure("Energy of a run", energy.energy)
    yield figure("Power", energy.power)
    yield figure("Carbon", energy.carbon)


def _counted_for(analysis: ModelAnalysis) -> str:
    """Return the input that the work was counted for, and the operations that are missing."""
    parts = [f"input {describe_inputs(analysis.graph)}"] if analysis.graph is not None else []
    if analysis.totals is not None and analysis.totals.uncounted:
        parts.append(f"lower bound, not counted: {describe_uncounted(analysis.totals)}")
    return "; ".join(parts)


def _recommendations(analysis: ModelAnalysis) -> Iterator[Block]:
    yield Heading(2, "Optimization recommendations")
    if not analysis.recommendations:
        yield Paragraph(text(_NOTHING_TO_DO))
        return
    yield Table(
        columns("Recommendation", "Gain|", "Share", "Evidence"),
        tuple(
            (
                text(strong(item.title)),
                text(value_of(item.gain)),
                text(f"{100 * item.share:.1f} % of {item.share_of}" if item.share else "–"),
                text(
                    item.evidence,
                    f" ({item.gain.source})" if item.gain.value is None else "",
                ),
            )
            for item in analysis.recommendations[:_MAX_ROWS]
        ),
    )


def _computation(analysis: ModelAnalysis) -> Iterator[Block]:
    totals = analysis.totals
    layers = tuple(
        Bar(kind, float(count), f"{count:,}")
        for kind, count in analysis.architecture.layers.items()
    )
    if totals is None and not layers:
        return
    yield Heading(2, "Architecture and computation")
    if totals is not None:
        flops = flops_by_kind(totals)
        size, prefix = si_prefix(max(flops.values(), default=0))
        bars = tuple(
            Bar(kind, count / size, f"{100 * count / max(1, totals.work.flops):.1f} %")
            for kind, count in flops.items()
        )
        yield BarChart("FLOPs by operation type", f"{prefix}FLOP", bars[:_MAX_ROWS])
        if totals.uncounted:
            why = dict.fromkeys(f"{node.op}: {reason}" for node, reason in totals.uncounted)
            count = count_of(len(totals.uncounted), "operation")
            yield Paragraph(text(f"Not counted: {count}."), "warning")
            yield Listing(tuple(text(code(reason)) for reason in list(why)[:_MAX_ROWS]))
    if layers:
        yield BarChart("Layers", "layers", layers[:_MAX_ROWS])


def _parameters(analysis: ModelAnalysis) -> Iterator[Block]:
    tensors = analysis.parameters.tensors
    yield Heading(2, "Parameter analysis")
    rows = []
    for item in largest(tensors, _MAX_ROWS):
        potential, decibels = pruning_potential(item), int8_db(item)
        score = compressibility(item).value
        rows.append(
            (
                text(code(item.name)),
                text(format_shape(item.shape) or "scalar", f" {item.dtype}"),
                text(format_bytes(item.size_bytes)),
                text("–" if item.sparsity is None else f"{100 * item.sparsity:.2f} %"),
                text("–" if potential is None else f"{100 * potential:.0f} %"),
                text("–" if decibels is None else f"{decibels:.1f} dB"),
                text("–" if score is None else f"{score:.2f}"),
            )
        )
    titles = ("Memory|", "Sparsity|", "Prunable|", "int8 SQNR|", "Compressibility|")
    yield Table(columns("Parameter", "Shape", *titles), tuple(rows))
    yield from _rest(len(tensors), "parameters")


def _nodes(analysis: ModelAnalysis) -> Iterator[Block]:
    yield Heading(2, "Node analysis")
    if analysis.graph is None:
        yield Paragraph(text("This file has no graph."))
        return
    is_timed = any(node.time.value is not None for node in analysis.nodes)
    heaviest = sorted(
        analysis.nodes, key=lambda node: (-(node.time.value or 0.0), -node.counted.flops)
    )
    titles = ("FLOPs|", "Memory|", "FLOPs/byte|", *(["Time|"] if is_timed else []), "Energy|")
    yield Table(
        columns("Node", "Module", *titles, "Advice on"),
        tuple(_node(node, is_timed=is_timed) for node in heaviest[:_MAX_ROWS]),
    )
    yield from _rest(len(analysis.nodes), "nodes")


def _node(node: NodeDetails, *, is_timed: bool) -> tuple[Text, ...]:
    intensity, energy_nj = node.intensity.value, node.energy.value
    topics = dict.fromkeys(item.topic for item in advice_for_node(node))
    return (
        text(node.name, " ", code(node.node.op)),
        text(node.node.module),
        text("not counted" if isinstance(node.work, Uncounted) else f"{node.work.flops:,}"),
        text(format_bytes(node.moved_bytes)),
        text("–" if intensity is None else f"{intensity:.1f}"),
        *([text(value_of(node.time))] if is_timed else []),
        text("–" if energy_nj is None else f"{energy_nj:,.3g} nJ"),
        text(", ".join(topics)),
    )


def _notes(analysis: ModelAnalysis, count: int) -> Iterator[Block]:
    if analysis.notes:
        yield Heading(2, "Notes")
        yield Listing(tuple(text(note) for note in analysis.notes[:count]))


def _rest(count: int, what: str) -> Iterator[Block]:
    if count > _MAX_ROWS:
        shown = f"The first {_MAX_ROWS} of {count:,} {what}"
        yield Paragraph(text(f"{shown}; the text report has all."))
