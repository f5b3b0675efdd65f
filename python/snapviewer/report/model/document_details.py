"""The blocks of a report that describe every parameter and every node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from snapviewer.model.analysis import ModelAnalysis
from snapviewer.model.compression import (
    compressibility,
    compression_ratio,
    int8_db,
    pruning_potential,
    quantization_sensitivity,
)
from snapviewer.model.nodes import NodeDetails
from snapviewer.model.parameters import Parameter, largest
from snapviewer.model.recommend import Advice, advice_for_node, advice_for_parameter
from snapviewer.model.work import Uncounted
from snapviewer.report.blocks import Block, Heading, Paragraph, Table, Text, code, text
from snapviewer.report.model.document_runs import columns, value_of
from snapviewer.report.model.quantities import (
    format_decibels,
    format_histogram,
    format_number,
    format_statistic,
    time_shares,
)
from snapviewer.text.units import format_bytes, format_shape

ParameterCell = Callable[[Parameter], str]


def parameter_blocks(analysis: ModelAnalysis, limit: int | None) -> Iterator[Block]:
    """Yield the parameters, the largest first: sizes, statistics, norms, storage, advice."""
    tensors = analysis.parameters.tensors
    yield Heading(2, "Parameter analysis")
    items = largest(tensors, len(tensors) if limit is None else limit)
    yield _table(items, "Shape", **_SIZES)
    yield from _rest(len(tensors), limit, "parameters")
    measured = [item for item in items if item.stats is not None]
    if measured:
        yield Heading(3, "Statistics")
        yield _table(measured, **_STATISTICS)
        yield Heading(3, "Norms")
        yield _table(measured, **_NORMS)
        yield Heading(3, "Histograms")
        yield _table(measured, "Histogram", **_HISTOGRAM)
    if any(item.placement is not None for item in items):
        yield Heading(3, "Storage")
        yield _table(items, **_STORAGE)
    yield from _advice((text(code(item.name)), advice_for_parameter(item)) for item in items)


def _table(items: Sequence[Parameter], *words: str, **cells: ParameterCell) -> Table:
    """Return a table with a row for each parameter; the columns are numbers but for some."""
    titles = [title.replace("_", " ") for title in cells]
    rows = tuple(
        (text(code(item.name)), *(text(cell(item)) for cell in cells.values())) for item in items
    )
    head = (title if title in words else f"{title}|" for title in titles)
    return Table(columns("Parameter", *head), rows)


def _percent(share: float | None, decimals: int) -> str:
    return "–" if share is None else f"{100 * share:.{decimals}f} %"


def _of_stats(name: str) -> ParameterCell:
    return lambda item: format_statistic(getattr(item.stats, name, None))


def _spectrum(name: str) -> ParameterCell:
    def cell(item: Parameter) -> str:
        spectrum = item.quality.spectrum if item.quality else None
        return format_statistic(getattr(spectrum, name, None))

    return cell


def _score(item: Parameter) -> str:
    score = compressibility(item).value
    return "–" if score is None else f"{score:.3f}"


_SIZES: dict[str, ParameterCell] = {
    "Shape": lambda item: f"{format_shape(item.shape) or 'scalar'} {item.dtype}",
    "Elements": lambda item: f"{item.elements:,}",
    "Memory": lambda item: format_bytes(item.size_bytes),
    "Sparsity": lambda item: _percent(item.sparsity, 2),
    "Prunable": lambda item: _percent(pruning_potential(item), 0),
    "int8_SQNR": lambda item: format_decibels(int8_db(item)),
    "Compressibility": _score,
}
_STATISTICS: dict[str, ParameterCell] = {
    "Mean": _of_stats("mean"),
    "Std": _of_stats("std"),
    "Min": _of_stats("min"),
    "Max": _of_stats("max"),
    "Skewness": _of_stats("skewness"),
    "Kurtosis": _of_stats("kurtosis"),
    "Entropy": _of_stats("entropy"),
}
_NORMS: dict[str, ParameterCell] = {
    "L1_norm": _of_stats("l1"),
    "L2_norm": _of_stats("l2"),
    # That of the elements: the Frobenius norm of a matrix.
    "Frobenius_norm": _of_stats("l2"),
    "Spectral_norm": _spectrum("norm"),
    "Stable_rank": _spectrum("stable_rank"),
}
_HISTOGRAM: dict[str, ParameterCell] = {
    "Histogram": lambda item: format_histogram(item.stats.histogram if item.stats else ())
}
_STORAGE: dict[str, ParameterCell] = {
    "Memory_alignment": lambda item: value_of(item.placement.alignment) if item.placement else "–",
    "Cache_locality": lambda item: value_of(item.placement.locality) if item.placement else "–",
    "Compression_ratio": lambda item: value_of(compression_ratio(item)),
    "Quantization_sensitivity": lambda item: _percent(quantization_sensitivity(item), 2),
}


def node_blocks(analysis: ModelAnalysis, limit: int | None) -> Iterator[Block]:
    """Yield the nodes, the slowest or heaviest first: work, what was measured, advice."""
    yield Heading(2, "Node analysis")
    if analysis.graph is None:
        yield Paragraph(text("This file has no graph."))
        return
    is_timed = any(node.time.value is not None for node in analysis.nodes)
    heaviest = sorted(
        zip(analysis.nodes, time_shares(analysis.nodes), strict=True),
        key=lambda pair: (-(pair[0].time.value or 0.0), -pair[0].counted.flops),
    )[:limit]
    timed = ("Measured FLOPs|", "Time|", "Parallel efficiency|") if is_timed else ()
    titles = ("FLOPs|", "Memory|", "FLOPs/byte|", *timed, "Energy|")
    yield Table(
        columns("Node", "Module", *titles, "Advice on"),
        tuple(_work(node, is_timed=is_timed) for node, _ in heaviest),
    )
    yield from _rest(len(analysis.nodes), limit, "nodes")
    if is_timed:
        yield Heading(3, "Execution")
        titles = ("Time|", "Share|", "Rate|", "Bandwidth|", "Of its bound|", "Power|")
        yield Table(
            columns("Node", *titles, "Bound"),
            tuple(_execution(node, share) for node, share in heaviest),
        )
    with_weights = [node for node, _ in heaviest if node.parameters]
    if with_weights:
        yield Heading(3, "Weights of nodes")
        yield Table(
            columns("Node", "Parameters|", "Pruning potential|", "Quantization sensitivity|"),
            tuple(
                (
                    text(node.name),
                    text(f"{node.elements:,}"),
                    text(value_of(node.pruning)),
                    text(value_of(node.sensitivity)),
                )
                for node in with_weights
            ),
        )
    yield from _advice((text(node.name), advice_for_node(node)) for node, _ in heaviest)


def _work(node: NodeDetails, *, is_timed: bool) -> tuple[Text, ...]:
    intensity, energy_nj = node.intensity.value, node.energy.value
    topics = dict.fromkeys(item.topic for item in advice_for_node(node))
    return (
        text(node.name, " ", code(node.node.op)),
        text(node.node.module),
        text("not counted" if isinstance(node.work, Uncounted) else f"{node.work.flops:,}"),
        text(format_bytes(node.moved_bytes)),
        text("–" if intensity is None else f"{intensity:.1f}"),
        *(
            (_counted(node), text(value_of(node.time)), text(value_of(node.efficiency)))
            if is_timed
            else ()
        ),
        text("–" if energy_nj is None else format_number(energy_nj, "nJ")),
        text(", ".join(topics)),
    )


def _counted(node: NodeDetails) -> Text:
    """Return the FLOPs that were measured, or say that they are not."""
    found = node.ran_flops
    if found.status == "measured":
        return text(value_of(found))
    return text("–" if found.value is None else "formula only")


def _execution(node: NodeDetails, share: float) -> tuple[Text, ...]:
    measured = (node.rate, node.bandwidth, node.of_roof, node.power)
    is_timed = node.time.value is not None
    return (
        text(node.name),
        text(value_of(node.time)),
        text(f"{share:.1f} %" if is_timed else "–"),
        *(text(value_of(one)) for one in measured),
        text(node.bound),
    )


def _advice(advised: Iterable[tuple[Text, Sequence[Advice]]]) -> Iterator[Block]:
    rows = tuple(
        (who, text(one.title), text(one.evidence)) for who, all_ in advised for one in all_
    )
    if rows:
        yield Heading(3, "Advice")
        yield Table(columns("For", "Recommendation", "Evidence"), rows)


def _rest(count: int, limit: int | None, what: str) -> Iterator[Block]:
    if limit is not None and count > limit:
        shown = f"The first {limit} of {count:,} {what}"
        yield Paragraph(text(f"{shown}; the text report has all."))
