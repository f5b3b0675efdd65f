"""The panel Performance Stats: the time and the memory of recorded runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from snapviewer.explorer.explored_model import ExploredModel, Item
from snapviewer.explorer.formats import format_time
from snapviewer.explorer.timing import ModuleTiming, Spread
from snapviewer.explorer.tree import ModuleNode
from snapviewer.report.tree.overlay import GAP, OverlayLine, gradient_text, overlay_lines
from snapviewer.text.units import count_of, format_bytes

from . import ui

if TYPE_CHECKING:
    from rich.console import RenderableType

_SLOWEST = 10


def content(explored: ExploredModel, item: Item, width: int) -> RenderableType:
    """Show the recorded times of a module, or how to record them."""
    node = explored.node_of(item)
    timing = explored.timing_of(node)
    inside = (
        ui.section("Slowest children", _slowest(explored, node, width)),
        ui.section("Most own time", _most_own(explored, node, width)),
    )
    if timing is None:
        return ui.stack(overlay(explored, node, None, width), ui.recording_hint(explored), *inside)
    return ui.stack(
        overlay(explored, node, timing, width),
        ui.section("Forward", _forward(explored, node, timing, width)),
        ui.section("Backward", _backward(timing)),
        ui.section("Memory", _memory(node, timing)),
        *inside,
        ui.section("Notes", _notes(explored)),
    )


def _notes(explored: ExploredModel) -> RenderableType | None:
    notes = explored.stats.notes[: ui.MAX_ROWS] if explored.stats else ()
    return ui.stack(*map(ui.sentence, notes)) if notes else None


def overlay(
    explored: ExploredModel, node: ModuleNode, timing: ModuleTiming | None, width: int
) -> Text:
    """Return the performance overlay, in more than four lines where it is too wide."""
    name = ui.short_name(node.path or explored.tree.name, max(18, width // 2))
    lines = overlay_lines(name, node, timing)
    return Text("\n", overflow="fold").join(
        _line(line, width, is_last=line is lines[-1]) for line in lines
    )


def _line(line: OverlayLine, width: int, *, is_last: bool) -> Text:
    """Draw a line of the overlay; parts that do not fit go below it."""
    after_what, after_value = line.padding
    text = Text().append(line.guide, style=ui.QUIET)
    text.append(line.what, style="" if line.guide else "bold").append(after_what)
    text.append(line.value, style=ui.ACCENT).append(after_value)
    whole = GAP.join(line.parts)
    if text.cell_len + cell_len(whole) <= width:
        return text.append(whole)
    text.rstrip()
    below = "     " if is_last else "│    " if line.guide else "  "
    room = 0
    for part in line.parts:
        cells = cell_len(GAP + part)
        if 0 < cells <= room:
            text.append(GAP + part)
            room -= cells
        else:
            text.append(f"\n{below}", style=ui.QUIET).append(part)
            room = width - len(below) - cell_len(part)
    return text


def _forward(
    explored: ExploredModel, node: ModuleNode, timing: ModuleTiming, width: int
) -> RenderableType | None:
    runs = explored.stats.runs if explored.stats else 0
    calls = count_of(timing.calls, "call") + (f" in {count_of(runs, 'run')}" if runs else "")
    cells = 16 if width >= 60 else 6
    rows: list[tuple[str, str | Text | None]] = [
        ("calls", calls),
        ("per call", _spread(timing.total)),
        ("range", _range(timing.total)),
        ("own", _spread(timing.own)),
        ("", _shared(timing.own.sum_s, timing.total.sum_s, cells, "of the call")),
    ]
    root = explored.tree.root
    above = _called_above(explored, node)
    if above is not None and not explored.is_root(above[0]):
        of = f"of {ui.short_name(above[0].path, 24)}"
        rows.append(("share", _shared(timing.total.sum_s, above[1].total.sum_s, cells, of)))
    whole = explored.timing_of(root)
    if whole is not None and not explored.is_root(node):
        name = "share" if rows[-1][0] != "share" else ""
        rows.append((name, _shared(timing.total.sum_s, whole.total.sum_s, cells, "of the model")))
    return ui.key_values(rows)


def _spread(times: Spread) -> str:
    median = format_time(times.median_s)
    return f"{median} ± {format_time(times.deviation_s)}" if times.count > 1 else median


def _range(times: Spread) -> str | None:
    if times.count < 2:
        return None
    return f"{format_time(times.min_s)} to {format_time(times.max_s)}"


def _shared(part_s: float, whole_s: float, cells: int, of: str) -> Text:
    text = Text().append_text(ui.bar(part_s / whole_s if whole_s > 0 else 0.0, cells))
    return text.append(f" {ui.percent(part_s, whole_s):>7}").append(f" {of}", style=ui.QUIET)


def _called_above(
    explored: ExploredModel, node: ModuleNode
) -> tuple[ModuleNode, ModuleTiming] | None:
    """Return the nearest module above that was called; a list of modules never is."""
    above = explored.index.parents.get(node.path)
    while above is not None:
        timing = explored.timing_of(above)
        if timing is not None:
            return above, timing
        above = explored.index.parents.get(above.path)
    return None


def _called_below(
    explored: ExploredModel, node: ModuleNode
) -> Iterator[tuple[ModuleNode, ModuleTiming]]:
    """Yield the nearest modules below that were called."""
    waiting = [*reversed(node.children)]
    while waiting:
        below = waiting.pop()
        timing = explored.timing_of(below)
        if timing is None:
            waiting.extend(reversed(below.children))
        else:
            yield below, timing


def _backward(timing: ModuleTiming) -> RenderableType | None:
    if timing.backward is None:
        return None
    own = timing.backward_own
    return ui.key_values(
        [
            ("per call", _spread(timing.backward)),
            ("range", _range(timing.backward)),
            ("own", None if own is None else _spread(own)),
            ("gradient", gradient_text(timing)),
        ]
    )


def _memory(node: ModuleNode, timing: ModuleTiming) -> RenderableType | None:
    grown = timing.allocated_bytes
    return ui.key_values(
        [
            ("parameters", format_bytes(node.sums.parameter_bytes)),
            ("buffers", format_bytes(node.sums.buffer_bytes) if node.sums.buffer_bytes else None),
            ("activations", f"{format_bytes(timing.activation_bytes)} per call"),
            (
                "allocated",
                "not counted" if grown is None else f"{format_bytes(grown)} more",
            ),
        ]
    )


def _slowest(explored: ExploredModel, node: ModuleNode, width: int) -> RenderableType | None:
    called = [(child, its.total) for child, its in _called_below(explored, node)]
    return _ranked(explored, node, called, width)


def _most_own(explored: ExploredModel, node: ModuleNode, width: int) -> RenderableType | None:
    """Rank all modules below by their own time; None if they are only direct children."""
    deep = [below for child in node.children for below in child.walk()]
    if explored.stats is None or len(deep) == len(node.children):
        return None
    timings = explored.stats.timings
    called = [(below, timings[below.path].own) for below in deep if below.path in timings]
    return _ranked(explored, node, called, width)


def _ranked(
    explored: ExploredModel, node: ModuleNode, called: list[tuple[ModuleNode, Spread]], width: int
) -> RenderableType | None:
    """Return a table of the slowest modules, with their shares of the module's time."""
    called.sort(key=lambda pair: -pair[1].sum_s)
    timing = explored.timing_of(node)
    whole = timing.total.sum_s if timing else sum(its.sum_s for _, its in called)
    start = len(node.path) + 1 if node.path else 0
    rows = []
    for child, its in called[:_SLOWEST]:
        cells: list[str | Text] = [
            Text(ui.short_name(child.path[start:] or child.name)),
            Text(ui.short_name(child.type_name, 24)),
            format_time(its.median_s),
            ui.percent(its.sum_s, whole),
            ui.bar(its.sum_s / whole if whole > 0 else 0.0, 12),
        ]
        rows.append(cells if width >= 60 else [cells[0], *cells[2:4]])
    columns = [
        ui.Column("module", shrinks=True),
        ui.Column("class", style=ui.QUIET, shrinks=True),
        ui.Column("per call", "right"),
        ui.Column("share", "right"),
        ui.Column(""),
    ]
    chosen = columns if width >= 60 else [columns[0], *columns[2:4]]
    return ui.table(chosen, rows, width, max_rows=_SLOWEST, total=len(called))
