"""The analysis as a document: what the HTML, Markdown and PDF reports say.

What decides comes first: the figures that matter with how each is known, and what to do.
"""

from __future__ import annotations

from collections.abc import Iterator

from snapviewer import __version__
from snapviewer.model.analysis import ModelAnalysis
from snapviewer.model.compute import compute_of
from snapviewer.model.measures import compressibility, int8_db, pruning_potential
from snapviewer.model.nodes import NodeFacts
from snapviewer.model.parameters import largest
from snapviewer.model.quantity import Quantity
from snapviewer.model.recommend import advice_for_node
from snapviewer.model.work import Uncounted
from snapviewer.report.blocks import (
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
from snapviewer.report.model.figures import (
    inputs_said,
    prefix_of,
    said,
    uncounted_said,
)
from snapviewer.report.model.page_runs import energy_blocks, performance, system
from snapviewer.text.units import format_bytes

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
    yield from _recommendations(analysis)
    yield from _computation(analysis)
    yield from performance(analysis)
    yield from energy_blocks(analysis)
    yield from _parameters(analysis)
    yield from _nodes(analysis)
    yield from system(analysis)
    if analysis.notes:
        yield Heading(2, "Notes")
        yield Listing(tuple(text(note) for note in analysis.notes[:_MOST_ROWS]))


def _summary(analysis: ModelAnalysis) -> Iterator[Block]:
    found, totals, profile = analysis.parameters, analysis.totals, analysis.profile
    yield Heading(2, "Executive summary")
    yield Paragraph(
        text(
            strong(analysis.architecture.label),
            f", because of {analysis.architecture.reason}. ",
            code(analysis.file),
            f" ({analysis.format}; "
            + ("its code was run)." if profile else "nothing of it was run)."),
        )
    )
    rows = [
        _figure("Parameters", f"{found.count:,}", "computed", "shapes; tied ones once"),
        _figure("Memory of parameters", format_bytes(found.size_bytes), "computed", "types"),
    ]
    if totals is not None:
        compute = compute_of(analysis.graph, totals)
        is_known = compute.macs.value is not None
        macs = f"{said(compute.macs)} ({said(compute.flops)})" if is_known else "–"
        source = f"{compute.macs.source}{_work_details(analysis)}"
        rows.append(_figure("Work of a run", macs, compute.macs.status, source))
    if profile is not None:
        rows.append(_quantity("Time of a run", profile.plain.median))
        if profile.memory is not None:
            rows.append(_quantity("Peak of memory beside the parameters", profile.memory.peak))
        rows.append(_quantity("Rate", profile.rate))
    energy = analysis.energy
    rows.append(_quantity("Energy of a run", energy.energy))
    rows.append(_quantity("Power", energy.power))
    rows.append(_quantity("Carbon", energy.carbon))
    yield Table(
        (Column("Figure"), Column("Value", is_number=True), Column("Status"), Column("Source")),
        tuple(rows),
    )


def _work_details(analysis: ModelAnalysis) -> str:
    """Say what the work was counted for, and what is not in it."""
    told = f"; input {inputs_said(analysis.graph)}" if analysis.graph is not None else ""
    if analysis.totals is not None and analysis.totals.uncounted:
        told += f"; without {uncounted_said(analysis.totals)}"
    return told


def _figure(name: str, value: str, status: str, source: str) -> tuple[Text, ...]:
    return text(name), text(strong(value)), text(status), text(source)


def _quantity(name: str, quantity: Quantity) -> tuple[Text, ...]:
    value = "–" if quantity.value is None else said(quantity)
    return _figure(name, value, quantity.status, quantity.source)


def _recommendations(analysis: ModelAnalysis) -> Iterator[Block]:
    yield Heading(2, "Optimization recommendations")
    if not analysis.recommendations:
        yield Paragraph(text("These numbers point to nothing that is worth doing."))
        return
    yield Table(
        (
            Column("What to do"),
            Column("Gain", is_number=True),
            Column("Share"),
            Column("Evidence"),
        ),
        tuple(
            (
                text(strong(item.title)),
                text("–" if item.gain.value is None else said(item.gain)),
                text(f"{100 * item.share:.1f} % of {item.share_of}" if item.share else "–"),
                text(
                    item.evidence,
                    f" ({item.gain.source})" if item.gain.value is None else "",
                ),
            )
            for item in analysis.recommendations[:_MOST_ROWS]
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
        flops = {kind: work.flops for kind, work in totals.by_kind.items() if work.flops}
        size, prefix = prefix_of(max(flops.values(), default=0))
        bars = tuple(
            Bar(kind, count / size, f"{100 * count / max(1, totals.work.flops):.1f} %")
            for kind, count in flops.items()
        )
        yield BarChart("FLOPs by operation type", f"{prefix}FLOP", bars[:_MOST_ROWS])
        if totals.uncounted:
            why = dict.fromkeys(f"{node.op}: {reason}" for node, reason in totals.uncounted)
            yield Paragraph(
                text(f"{len(totals.uncounted):,} operations could not be counted."), "warning"
            )
            yield Listing(tuple(text(code(reason)) for reason in list(why)[:_MOST_ROWS]))
    if layers:
        yield BarChart("Layers", "layers", layers[:_MOST_ROWS])


def _parameters(analysis: ModelAnalysis) -> Iterator[Block]:
    tensors = analysis.parameters.tensors
    yield Heading(2, "Parameter analysis")
    rows = []
    for item in largest(tensors, _MOST_ROWS):
        potential, decibels = pruning_potential(item), int8_db(item)
        score = compressibility(item).value
        rows.append(
            (
                text(code(item.name)),
                text("×".join(map(str, item.shape)) or "scalar", f" {item.dtype}"),
                text(format_bytes(item.size_bytes)),
                text("–" if item.sparsity is None else f"{100 * item.sparsity:.2f} %"),
                text("–" if potential is None else f"{100 * potential:.0f} %"),
                text("–" if decibels is None else f"{decibels:.1f} dB"),
                text("–" if score is None else f"{score:.2f}"),
            )
        )
    yield Table(
        (
            Column("Parameter"),
            Column("Shape"),
            Column("Memory", is_number=True),
            Column("Sparsity", is_number=True),
            Column("Prunable", is_number=True),
            Column("int8 SQNR", is_number=True),
            Column("Compressibility", is_number=True),
        ),
        tuple(rows),
    )
    yield from _rest(len(tensors), "parameters")


def _nodes(analysis: ModelAnalysis) -> Iterator[Block]:
    yield Heading(2, "Node analysis")
    if analysis.graph is None:
        yield Paragraph(text("The file has no graph."))
        return
    is_timed = any(node.time.value is not None for node in analysis.nodes)
    heaviest = sorted(
        analysis.nodes, key=lambda node: (-(node.time.value or 0.0), -node.counted.flops)
    )
    columns = [Column("Node"), Column("Module")]
    columns += [Column(title, is_number=True) for title in ("FLOPs", "Memory", "FLOPs/byte")]
    columns += [Column("Time", is_number=True)] if is_timed else []
    columns += [Column("Energy", is_number=True), Column("Advice on")]
    yield Table(
        tuple(columns),
        tuple(_node(node, is_timed=is_timed) for node in heaviest[:_MOST_ROWS]),
    )
    yield from _rest(len(analysis.nodes), "nodes")


def _node(node: NodeFacts, *, is_timed: bool) -> tuple[Text, ...]:
    intensity, energy_nj = node.intensity.value, node.energy.value
    topics = dict.fromkeys(item.topic for item in advice_for_node(node))
    return (
        text(node.name, " ", code(node.node.op)),
        text(node.node.module),
        text("not counted" if isinstance(node.work, Uncounted) else f"{node.work.flops:,}"),
        text(format_bytes(node.moved_bytes)),
        text("–" if intensity is None else f"{intensity:.1f}"),
        *([text("–" if node.time.value is None else said(node.time))] if is_timed else []),
        text("–" if energy_nj is None else f"{energy_nj:,.3g} nJ"),
        text(", ".join(topics)),
    )


def _rest(count: int, what: str) -> Iterator[Block]:
    if count > _MOST_ROWS:
        yield Paragraph(text(f"The {_MOST_ROWS} largest of {count:,} {what}; the text has all."))
