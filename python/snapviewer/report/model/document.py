"""The analysis as blocks, rendered as HTML, Markdown, PDF, and as the overview on the console.

The main figures and the recommendations come first.
"""

from __future__ import annotations

from collections.abc import Iterator

from snapviewer import __version__
from snapviewer.model.analysis import ModelAnalysis
from snapviewer.report.blocks import (
    Bar,
    BarChart,
    Block,
    Document,
    Heading,
    Listing,
    Paragraph,
    Table,
    code,
    strong,
    text,
)
from snapviewer.report.model.console import what_ran
from snapviewer.report.model.document_details import node_blocks, parameter_blocks
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
    describe_sizes,
    describe_uncounted,
    flops_by_kind,
    format_parameters,
    format_quantity,
    si_prefix,
)
from snapviewer.report.writers.text import text_lines
from snapviewer.text.units import count_of, format_bytes

MAX_ROWS = 40
"""How many rows the long tables of a page have."""

_MAX_OVERVIEW_ROWS = 5
_NOTHING_TO_DO = "No recommendations."


def document_of(analysis: ModelAnalysis, limit: int | None = MAX_ROWS) -> Document:
    """Return the whole report.

    Args:
        analysis: The analysis.
        limit: How many rows the long tables have at most; None for all.
    """
    name = analysis.file.replace("\\", "/").rsplit("/", 1)[-1]
    return Document(
        f"Model analysis: {name}",
        "en",
        (
            *_summary(analysis),
            *_recommendations(analysis, limit),
            *_computation(analysis, limit),
            *performance_blocks(analysis),
            *energy_blocks(analysis),
            *parameter_blocks(analysis, limit),
            *node_blocks(analysis, limit),
            *system_blocks(analysis),
            *_notes(analysis, limit),
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


def full_text(analysis: ModelAnalysis, width: int | None = None) -> Iterator[str]:
    """Yield the lines of the whole report as plain text, with every parameter and node."""
    document = document_of(analysis, limit=None)
    yield from (document.title, "=" * len(document.title), "")
    yield from text_lines(document.blocks, width)


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
    yield "Parameters", format_parameters(found.count), "computed", "shapes; tied ones once"
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


def _recommendations(analysis: ModelAnalysis, limit: int | None) -> Iterator[Block]:
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
            for item in analysis.recommendations[:limit]
        ),
    )


def _computation(analysis: ModelAnalysis, limit: int | None) -> Iterator[Block]:
    totals = analysis.totals
    layers = tuple(
        Bar(kind, float(count), f"{count:,}")
        for kind, count in analysis.architecture.layers.items()
    )
    if totals is None and not layers:
        return
    yield Heading(2, "Architecture and computation")
    if analysis.graph is not None:
        yield Paragraph(text(f"Input: {describe_inputs(analysis.graph)}."))
        sizes = describe_sizes(analysis.graph)
        if sizes:
            yield Listing(tuple(map(text, sizes)))
    if totals is not None:
        flops = flops_by_kind(totals)
        size, prefix = si_prefix(max((count for _, count, _ in flops), default=0))
        bars = tuple(Bar(kind, count / size, f"{share:.1f} %") for kind, count, share in flops)
        yield BarChart("FLOPs by operation type", f"{prefix}FLOP", bars[:limit])
        if totals.uncounted:
            why = dict.fromkeys(f"{node.op}: {reason}" for node, reason in totals.uncounted)
            count = count_of(len(totals.uncounted), "operation")
            yield Paragraph(text(f"Not counted: {count}."), "warning")
            yield Listing(tuple(text(code(reason)) for reason in list(why)[:limit]))
    if layers:
        yield BarChart("Layers", "count", layers[:limit])


def _notes(analysis: ModelAnalysis, limit: int | None) -> Iterator[Block]:
    if analysis.notes:
        yield Heading(2, "Notes")
        yield Listing(tuple(text(note) for note in analysis.notes[:limit]))
