"""The blocks of a report that describe runs: times, roofline, trials, energy, machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from snapviewer.model.analysis import ModelAnalysis
from snapviewer.model.quantity import Quantity
from snapviewer.report.blocks import (
    Bar,
    BarChart,
    Block,
    Column,
    Heading,
    LineChart,
    Listing,
    Paragraph,
    Series,
    Table,
    Text,
    strong,
    text,
)
from snapviewer.report.model.quantities import (
    describe_best_pattern,
    describe_dtype,
    describe_energy_runs,
    describe_layouts,
    describe_pattern,
    energy_figures,
    format_percent,
    format_quantity,
    format_rate,
    machine_parts,
    parts_of,
    performance_figures,
    slowest_nodes,
)
from snapviewer.text.units import count_of

if TYPE_CHECKING:
    from snapviewer.model.inference import NodeProfile, Profile

Figure: TypeAlias = tuple[str, str, str, str]
"""A row of a table of figures: label, value, status, source."""

_SLOWEST = 15
_MAX_ROWS = 60


def figure(label: str, quantity: Quantity) -> Figure:
    """Return the row of a quantity."""
    return label, value_of(quantity), quantity.status, quantity.source


def value_of(quantity: Quantity) -> str:
    """Format a quantity for a cell of a table."""
    return "–" if quantity.value is None else format_quantity(quantity)


def figure_table(rows: Iterable[Figure]) -> Table:
    """Return a table of figures."""
    cells = (
        (text(label), text(strong(value)), text(status), text(source))
        for label, value, status, source in rows
    )
    return Table(columns("Figure", "Value|", "Status", "Source"), tuple(cells))


def columns(*titles: str) -> tuple[Column, ...]:
    """Return columns; a title that ends with `|` is one of numbers."""
    return tuple(Column(title.rstrip("|"), is_number=title.endswith("|")) for title in titles)


def _table(titles: tuple[str, ...], rows: Iterable[Iterable[str]]) -> Table:
    cells: tuple[tuple[Text, ...], ...] = tuple(tuple(map(text, row)) for row in rows)
    return Table(columns(*titles), cells)


def performance_blocks(analysis: ModelAnalysis) -> Iterator[Block]:
    """Yield the times of the runs, and where they were spent."""
    yield Heading(2, "Performance profiling")
    profile = analysis.profile
    if profile is None:
        yield Paragraph(text("The model was not run: --inference times it."))
        return
    rows = [
        ("Run time (median)", profile.plain.median),
        ("Median absolute deviation", profile.plain.deviation),
        *performance_figures(profile),
    ]
    if profile.memory is not None:
        memory = profile.memory
        rows += [
            ("Peak memory besides the parameters", memory.peak),
            ("Allocations", memory.allocations),
            ("Allocated in total", memory.total),
            ("Largest allocation", memory.largest),
        ]
    yield figure_table(figure(*row) for row in rows)
    slowest = slowest_nodes(profile, _SLOWEST)
    if slowest:
        bars = [
            _bar(
                node,
                1e3 * (node.time.median.value or 0.0),
                f"{format_quantity(node.time.median)}, {share:.1f} %",
            )
            for node, share in slowest
        ]
        yield BarChart("Slowest operations (orange: memory-bound)", "ms", tuple(bars))
    yield from _roofline(profile, slowest)
    yield from _threads(profile)
    yield from _trials(profile)


def _bar(node: NodeProfile, value: float, note: str) -> Bar:
    is_memory_bound = node.bound == "memory-bound"
    return Bar(node.module or node.node.op, value, note, "warning" if is_memory_bound else "plain")


def _roofline(profile: Profile, slowest: list[tuple[NodeProfile, float]]) -> Iterator[Block]:
    roof = profile.roof
    if roof is None:
        return
    yield Heading(3, "Roofline")
    yield Paragraph(
        text(
            "Measured on this machine: ",
            strong(format_quantity(roof.peak)),
            " and ",
            strong(format_quantity(roof.bandwidth)),
            f" ({roof.device}, {roof.dtype}, {count_of(roof.threads, 'thread')}). Below ",
            strong(format_quantity(roof.ridge)),
            " an operation is memory-bound, above it compute-bound.",
        )
    )
    bars = tuple(
        _bar(node, node.of_roof.value, f"{format_percent(node.of_roof.value)}, {node.bound}")
        for node, _ in slowest
        if node.of_roof.value is not None
    )
    if bars:
        yield BarChart("Share of the attainable rate that the slowest reach", "%", bars)


def _threads(profile: Profile) -> Iterator[Block]:
    if len(profile.thread_runs) < 2:
        return
    yield Heading(3, "Threads")
    yield _table(
        ("Threads|", "Time|", "Fastest|", "Speed-up|", "Parallel efficiency|"),
        (
            (
                str(run.threads),
                *map(
                    format_quantity,
                    (run.time.median, run.time.fastest, run.speed_up, run.efficiency),
                ),
            )
            for run in profile.thread_runs
        ),
    )


def _trials(profile: Profile) -> Iterator[Block]:
    batches, layouts, dtype = profile.batches, describe_layouts(profile), describe_dtype(profile)
    if layouts is None and batches is None and dtype is None:
        return
    yield Heading(3, "Layout, dtype and batch size")
    for described in (layouts, dtype):
        if described is not None:
            yield Paragraph(text(f"{described}."))
    if batches is None:
        return
    yield _table(
        ("Batch|", "Time|", "Time per example|", "Examples per second|"),
        (
            (
                str(run.size),
                format_quantity(run.time.median),
                format_quantity(run.per_example),
                format_rate(run.throughput),
            )
            for run in batches.runs
        ),
    )
    advice = [strong(f"Recommended batch size: {batches.advised}. ")]
    yield Paragraph(
        text(
            *(advice if len(batches.runs) > 1 else []), f"No larger one was tried: {batches.ended}."
        )
    )
    if len(batches.runs) > 1:
        points = tuple((float(run.size), run.throughput.value or 0.0) for run in batches.runs)
        yield LineChart(
            "Throughput by batch size",
            "examples in a batch",
            "examples/s",
            (Series("measured", points),),
        )


def energy_blocks(analysis: ModelAnalysis) -> Iterator[Block]:
    """Yield the energy, its parts, and the ways in which it was looked for."""
    yield Heading(2, "Energy")
    energy = analysis.energy
    rows = [
        ("Energy", energy.energy),
        ("Power", energy.power),
        ("Efficiency", energy.efficiency),
        ("Carbon", energy.carbon),
    ]
    if analysis.profile is not None:
        rows += [
            ("Duration", energy.seconds),
            ("Peak power", energy.peak_power),
            ("Idle power", energy.idle),
            ("Energy above idle", energy.above_idle),
        ]
    rows += energy_figures(analysis)
    rows += [(f"Domain {name}", joules) for name, joules in energy.domains]
    rows += [
        (f"Estimated: {term.name}", term.quantity(energy.model or "")) for term in energy.terms
    ]
    rows += [(f"Also measured: {name}", joules) for name, joules in energy.beside]
    yield figure_table(figure(*row) for row in rows)
    runs = describe_energy_runs(analysis.profile) if analysis.profile else None
    if runs is not None:
        yield Paragraph(text(f"Runs for energy: {runs}."))
    if energy.energy.status == "estimated":
        yield Paragraph(
            text(
                "No sensor measured the energy of these runs: the figures are estimates from "
                "stated assumptions, for comparing models."
                if analysis.profile
                else "The model was not run: the energy is an estimate from its work alone."
            ),
            "warning",
        )
    if analysis.profile is not None:
        yield from _patterns(analysis.profile)
    if energy.attempts:
        yield _table(
            ("Way to find the energy, in order of preference", "Used", "Answer"),
            ((way.name, "yes" if way.is_used else "no", way.message) for way in energy.attempts),
        )
    if energy.assumptions:
        yield Heading(3, "Assumptions of the energy model")
        yield _table(
            ("Assumption", "Usual|", "Low|", "High|", "Unit", "Basis"),
            (
                (
                    row.name,
                    *(f"{n:g}" for n in (row.range.usual, row.range.low, row.range.high)),
                    row.unit,
                    row.basis,
                )
                for row in energy.assumptions
            ),
        )


def _patterns(profile: Profile) -> Iterator[Block]:
    patterns = profile.patterns
    if patterns is None:
        return
    yield Heading(3, "Energy by execution pattern")
    yield Paragraph(text(strong("Fewest joules: "), f"{describe_best_pattern(profile)}."))
    yield _table(
        ("Pattern", "Energy of an example|", "Saving|", "Time|", "Deviation|", "Runs|"),
        (
            (
                describe_pattern(pattern),
                *map(value_of, (pattern.energy, pattern.saving, pattern.time, pattern.spread)),
                str(pattern.runs),
            )
            for pattern in patterns.tried
        ),
    )
    if patterns.untried:
        lines = (text(f"Not compared: {name}: {why}") for name, why in patterns.untried)
        yield Listing(tuple(lines))


def system_blocks(analysis: ModelAnalysis) -> Iterator[Block]:
    """Yield the machine, and what the runs used of it."""
    rows = list(_flat(machine_parts(analysis)))
    if rows:
        yield Heading(2, "System")
        yield figure_table(rows[:_MAX_ROWS])


def _flat(parts: Iterable[tuple[str, Any]], above: str = "") -> Iterator[Figure]:
    """Yield the quantities inside the parts of a record, each labelled with its path."""
    for label, value in parts:
        if isinstance(value, Quantity):
            yield figure(f"{above}{label}", value)
        elif not isinstance(value, str):
            yield from _flat(parts_of(value), f"{above}{label}: ")
