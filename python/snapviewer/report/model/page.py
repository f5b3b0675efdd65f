"""The analysis as a document: what the HTML, Markdown and PDF reports say."""

from __future__ import annotations

from collections.abc import Iterator

from snapviewer import __version__
from snapviewer.document.blocks import (
    Bar,
    BarChart,
    Block,
    Column,
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
from snapviewer.model.analysis import ModelAnalysis
from snapviewer.model.parameters import largest
from snapviewer.model.recommend import int8_db, pruning_potential
from snapviewer.model.work import Uncounted, Work, work_of
from snapviewer.report.model.console import node_name, performance
from snapviewer.units import format_bytes

_MOST_ROWS = 40


def page_of(analysis: ModelAnalysis) -> Document:
    """Return the document."""
    name = analysis.file.replace("\\", "/").rsplit("/", 1)[-1]
    return Document(
        f"Model analysis: {name}",
        "en",
        tuple(_blocks(analysis)),
        f"Written by snapviewer {__version__}.",
    )


def _blocks(analysis: ModelAnalysis) -> Iterator[Block]:
    yield from _summary(analysis)
    yield from _parameters(analysis)
    yield from _nodes(analysis)
    if analysis.profile is not None:
        yield Heading(2, "Performance profiling")
        yield Listing(tuple(text(line.strip()) for line in performance(analysis.profile)))
    yield from _recommendations(analysis)
    if analysis.notes:
        yield Heading(2, "Notes")
        yield Listing(tuple(text(note) for note in analysis.notes[:_MOST_ROWS]))


def _summary(analysis: ModelAnalysis) -> Iterator[Block]:
    totals, found = analysis.totals, analysis.parameters
    yield Heading(2, "Executive summary")
    points = [
        text("File: ", code(analysis.file), f" ({analysis.format})"),
        text("Architecture: ", strong(analysis.architecture.label)),
        text(f"because of {analysis.architecture.reason}"),
        text(f"Parameters: {found.count:,} ({format_bytes(found.size_bytes)})"),
    ]
    if totals is not None:
        points.append(text(f"MACs: {totals.work.macs:,}, FLOPs: {totals.work.flops:,} (computed)"))
    yield Listing(tuple(points))
    layers = tuple(
        Bar(kind, float(count), f"{count:,}")
        for kind, count in analysis.architecture.layers.items()
    )
    if layers:
        yield BarChart("Layers", "layers", layers[:_MOST_ROWS])
    if totals is not None:
        flops = {kind: work.flops for kind, work in totals.by_kind.items() if work.flops}
        bars = tuple(
            Bar(kind, count / 1e9, f"{100 * count / max(1, totals.work.flops):.1f} %")
            for kind, count in flops.items()
        )
        yield BarChart("FLOPs by operation type", "GFLOP", bars[:_MOST_ROWS])
        if totals.uncounted:
            yield Paragraph(
                text(f"{len(totals.uncounted):,} operations could not be counted."), "warning"
            )


def _parameters(analysis: ModelAnalysis) -> Iterator[Block]:
    tensors = analysis.parameters.tensors
    yield Heading(2, "Parameter analysis")
    rows = []
    for item in largest(tensors, _MOST_ROWS):
        potential, decibels = pruning_potential(item), int8_db(item)
        rows.append(
            (
                text(code(item.name)),
                text("×".join(map(str, item.shape)) or "scalar"),
                text(item.dtype),
                text(format_bytes(item.size_bytes)),
                text("–" if item.sparsity is None else f"{100 * item.sparsity:.2f} %"),
                text("–" if potential is None else f"{100 * potential:.0f} %"),
                text("–" if decibels is None else f"{decibels:.1f} dB"),
            )
        )
    yield Table(
        (
            Column("Parameter"),
            Column("Shape"),
            Column("Type"),
            Column("Memory", is_number=True),
            Column("Sparsity", is_number=True),
            Column("Prunable", is_number=True),
            Column("int8 SQNR", is_number=True),
        ),
        tuple(rows),
    )
    yield from _rest(len(tensors), "parameters")


def _nodes(analysis: ModelAnalysis) -> Iterator[Block]:
    yield Heading(2, "Node analysis")
    if analysis.graph is None:
        yield Paragraph(text("The file has no graph."))
        return
    counted = [(place, node, work_of(node)) for place, node in enumerate(analysis.graph.nodes, 1)]
    heaviest = sorted(
        counted, key=lambda item: 0 if isinstance(item[2], Uncounted) else -item[2].flops
    )
    yield Table(
        (
            Column("Node"),
            Column("Module"),
            Column("MACs", is_number=True),
            Column("FLOPs", is_number=True),
            Column("Memory", is_number=True),
            Column("FLOPs/byte", is_number=True),
        ),
        tuple(
            (text(node_name(place, node), " ", code(node.op)), text(node.module), *_figures(work))
            for place, node, work in heaviest[:_MOST_ROWS]
        ),
    )
    yield from _rest(len(counted), "nodes")


def _figures(work: Work | Uncounted) -> tuple[Text, ...]:
    if isinstance(work, Uncounted):
        return (text("not counted"), text("–"), text("–"), text("–"))
    moved = work.read_bytes + work.written_bytes
    return (
        text(f"{work.macs:,}"),
        text(f"{work.flops:,}"),
        text(format_bytes(moved)),
        text(f"{work.flops / moved:.1f}" if moved else "–"),
    )


def _rest(count: int, what: str) -> Iterator[Block]:
    if count > _MOST_ROWS:
        yield Paragraph(text(f"The {_MOST_ROWS} largest of {count:,} {what}; the text has all."))


def _recommendations(analysis: ModelAnalysis) -> Iterator[Block]:
    yield Heading(2, "Optimization recommendations")
    items = tuple(
        text(
            strong(item.title),
            f": {100 * item.share:.1f} % of the model. " if item.share else ": ",
            item.evidence,
        )
        for item in analysis.recommendations
    )
    if items:
        yield Listing(items, is_ordered=True)
    else:
        yield Paragraph(text("These numbers point to nothing that is worth doing."))
