"""The parts of the document that tell of runs: time, roof, trials, energy, machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from snapviewer.model.analysis import ModelAnalysis
from snapviewer.model.quantity import Quantity
from snapviewer.report.blocks import (
    Bar,
    BarChart,
    Block,
    Column,
    Heading,
    LineChart,
    Paragraph,
    Series,
    Table,
    Text,
    strong,
    text,
)
from snapviewer.report.model.console import layout_lines
from snapviewer.report.model.figures import (
    machine,
    parts_of,
    per_second,
    said,
    share_said,
)
from snapviewer.text.units import count_of

if TYPE_CHECKING:
    from snapviewer.model.inference import NodeProfile, Profile

_SLOWEST = 15
_MOST_ROWS = 60


def performance(analysis: ModelAnalysis) -> Iterator[Block]:
    """Yield what runs showed."""
    yield Heading(2, "Performance profiling")
    profile = analysis.profile
    if profile is None:
        yield Paragraph(text("Nothing of the file was run: --inference times it."))
        return
    rows = [
        ("Time of a run (median)", profile.plain.median),
        ("Spread (median absolute deviation)", profile.plain.deviation),
        ("Rate", profile.rate),
        ("Memory bandwidth", profile.bandwidth),
        ("Arithmetic intensity", profile.intensity),
        ("Cost of profiling", profile.overhead),
    ]
    if profile.memory is not None:
        memory = profile.memory
        rows += [
            ("Peak of memory beside the parameters", memory.peak),
            ("Allocations", memory.allocations),
            ("Allocated in all", memory.total),
            ("Largest allocation", memory.largest),
        ]
    yield _quantities(rows)
    slowest = sorted(profile.nodes, key=_seconds, reverse=True)[:_SLOWEST]
    if slowest:
        yield BarChart(
            "Slowest operations (orange: memory-bound)",
            "ms",
            tuple(
                Bar(
                    node.module or node.node.op,
                    1e3 * _seconds(node),
                    f"{said(node.time.median)}, {node.share.value or 0:.1f} %",
                    "warning" if node.bound == "memory-bound" else "plain",
                )
                for node in slowest
            ),
        )
    yield from _roofline(profile, slowest)
    yield from _threads(profile)
    yield from _trials(profile)


def _seconds(node: NodeProfile) -> float:
    return node.time.median.value or 0.0


def _roofline(profile: Profile, slowest: list[NodeProfile]) -> Iterator[Block]:
    roof = profile.roof
    if roof is None:
        return
    yield Heading(3, "Roofline")
    yield Paragraph(
        text(
            "Measured on this machine: ",
            strong(said(roof.peak)),
            " and ",
            strong(said(roof.bandwidth)),
            f" ({roof.device}, {roof.dtype}, {count_of(roof.threads, 'thread')}). Below ",
            strong(said(roof.ridge)),
            " memory sets the pace, above it arithmetic does.",
        )
    )
    bars = tuple(
        Bar(
            node.module or node.node.op,
            node.of_roof.value,
            f"{share_said(node.of_roof.value)}, {node.bound}",
            "warning" if node.bound == "memory-bound" else "plain",
        )
        for node in slowest
        if node.of_roof.value is not None
    )
    if bars:
        yield BarChart("What the slowest reach of what the roof allows them", "%", bars)


def _threads(profile: Profile) -> Iterator[Block]:
    if len(profile.thread_runs) < 2:
        return
    yield Heading(3, "Threads")
    yield Table(
        (
            Column("Threads", is_number=True),
            Column("Time", is_number=True),
            Column("Speed-up", is_number=True),
            Column("Parallel efficiency", is_number=True),
        ),
        tuple(
            (
                text(str(run.threads)),
                text(said(run.time.median)),
                text(said(run.speed_up)),
                text(said(run.efficiency)),
            )
            for run in profile.thread_runs
        ),
    )


def _trials(profile: Profile) -> Iterator[Block]:
    batches = profile.batches
    if profile.layouts is None and batches is None:
        return
    yield Heading(3, "Layout and batch size")
    yield from (Paragraph(text(f"{line}.")) for line in layout_lines(profile))
    if batches is None:
        return
    yield Table(
        (
            Column("Batch", is_number=True),
            Column("Time", is_number=True),
            Column("Time of an example", is_number=True),
            Column("Examples a second", is_number=True),
        ),
        tuple(
            (
                text(str(run.size)),
                text(said(run.time.median)),
                text(said(run.per_example)),
                text(per_second(run.throughput)),
            )
            for run in batches.runs
        ),
    )
    advised = f"Of these, a batch of {batches.advised} is advised. "
    told = [strong(advised)] if len(batches.runs) > 1 else []
    yield Paragraph(text(*told, f"No larger one was tried: {batches.ended}."))
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
    rows += [(f"Domain {name}", joules) for name, joules in energy.domains]
    rows += [(f"Term {term.name}", term.quantity(energy.model or "")) for term in energy.terms]
    rows += [(f"Measured beside: {name}", joules) for name, joules in energy.beside]
    yield _quantities(rows)
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
    if energy.attempts:
        yield Table(
            (
                Column("Way to find the energy, in order of preference"),
                Column("Used"),
                Column("Answer"),
            ),
            tuple(
                (text(item.name), text("yes" if item.is_used else "no"), text(item.message))
                for item in energy.attempts
            ),
        )


def system(analysis: ModelAnalysis) -> Iterator[Block]:
    """Yield the machine, and what the runs used of it."""
    rows = _flat(machine(analysis))
    if rows:
        yield Heading(2, "System")
        yield _quantities(rows[:_MOST_ROWS])


def _flat(parts: Iterable[tuple[str, Any]], above: str = "") -> list[tuple[str, Quantity]]:
    """Return the quantities inside the parts of a record, each labelled with its path."""
    rows: list[tuple[str, Quantity]] = []
    for label, value in parts:
        if isinstance(value, Quantity):
            rows.append((f"{above}{label}", value))
        elif not isinstance(value, str):
            rows += _flat(parts_of(value), f"{above}{label}: ")
    return rows


def _quantities(rows: list[tuple[str, Quantity]]) -> Table:
    return Table(
        (Column("Figure"), Column("Value", is_number=True), Column("Status"), Column("Source")),
        tuple(_row(name, quantity) for name, quantity in rows),
    )


def _row(name: str, quantity: Quantity) -> tuple[Text, ...]:
    value = "–" if quantity.value is None else said(quantity)
    return text(name), text(value), text(quantity.status), text(quantity.source)
