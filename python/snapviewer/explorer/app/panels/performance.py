"""The panel Performance Stats: where the time and the memory of recorded runs went."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from snapviewer.explorer.formats import format_memory, format_time
from snapviewer.explorer.subject import Subject
from snapviewer.explorer.timing import ModuleTiming, Spread
from snapviewer.explorer.tree import ModuleNode
from snapviewer.report.tree.overlay import GAP, OverlayLine, gradient_text, overlay_lines
from snapviewer.text.units import count_of

from .parts import (
    ACCENT,
    MOST_ROWS,
    QUIET,
    Column,
    bar,
    facts,
    percent,
    rows_of,
    section,
    sentence,
    shown,
    stacked,
)
from .recording_hint import recording_hint

if TYPE_CHECKING:
    from rich.console import RenderableType

    from snapviewer.explorer.subject import Item

_SLOWEST = 10


def content(subject: Subject, item: Item, width: int) -> RenderableType:
    """Tell what was recorded of a module, or how to record it."""
    node = subject.node_of(item)
    timing = subject.timing_of(node)
    inside = (
        section("Slowest inside", _slowest(subject, node, width)),
        section("Most time of their own", _most_own(subject, node, width)),
    )
    if timing is None:
        return stacked(overlay(subject, node, None, width), recording_hint(subject), *inside)
    return stacked(
        overlay(subject, node, timing, width),
        section("Forward", _forward(subject, node, timing, width)),
        section("Backward", _backward(timing)),
        section("Memory", _memory(node, timing)),
        *inside,
        section("Notes", _notes(subject)),
    )


def _notes(subject: Subject) -> RenderableType | None:
    notes = subject.stats.notes[:MOST_ROWS] if subject.stats else ()
    return stacked(*map(sentence, notes)) if notes else None


def overlay(subject: Subject, node: ModuleNode, timing: ModuleTiming | None, width: int) -> Text:
    """Say a module's costs in four lines; in more where there is no room for four."""
    name = shown(node.path or subject.tree.name, max(18, width // 2))
    lines = overlay_lines(name, node, timing)
    return Text("\n", overflow="fold").join(
        _line(line, width, is_last=line is lines[-1]) for line in lines
    )


def _line(line: OverlayLine, width: int, *, is_last: bool) -> Text:
    """Draw a line of the overlay; parts for which there is no room go below it."""
    after_what, after_value = line.padding
    text = Text().append(line.guide, style=QUIET)
    text.append(line.what, style="" if line.guide else "bold").append(after_what)
    text.append(line.value, style=ACCENT).append(after_value)
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
            text.append(f"\n{below}", style=QUIET).append(part)
            room = width - len(below) - cell_len(part)
    return text


def _forward(
    subject: Subject, node: ModuleNode, timing: ModuleTiming, width: int
) -> RenderableType | None:
    runs = subject.stats.runs if subject.stats else 0
    calls = count_of(timing.calls, "call") + (f" in {count_of(runs, 'run')}" if runs else "")
    cells = 16 if width >= 60 else 6
    rows: list[tuple[str, str | Text | None]] = [
        ("calls", calls),
        ("a call", _spread(timing.total)),
        ("range", _range(timing.total)),
        ("own", _spread(timing.own)),
        ("", _shared(timing.own.sum_s, timing.total.sum_s, cells, "of it")),
    ]
    root = subject.tree.root
    above = _called_above(subject, node)
    if above is not None and not subject.is_root(above[0]):
        of = f"of {shown(above[0].path, 24)}"
        rows.append(("share", _shared(timing.total.sum_s, above[1].total.sum_s, cells, of)))
    whole = subject.timing_of(root)
    if whole is not None and not subject.is_root(node):
        name = "share" if rows[-1][0] != "share" else ""
        rows.append((name, _shared(timing.total.sum_s, whole.total.sum_s, cells, "of the model")))
    return facts(rows)


def _spread(times: Spread) -> str:
    median = format_time(times.median_s)
    return f"{median} ± {format_time(times.deviation_s)}" if times.count > 1 else median


def _range(times: Spread) -> str | None:
    if times.count < 2:
        return None
    return f"{format_time(times.min_s)} to {format_time(times.max_s)}"


def _shared(part_s: float, whole_s: float, cells: int, of: str) -> Text:
    text = Text().append_text(bar(part_s / whole_s if whole_s > 0 else 0.0, cells))
    return text.append(f" {percent(part_s, whole_s):>7}").append(f" {of}", style=QUIET)


def _called_above(subject: Subject, node: ModuleNode) -> tuple[ModuleNode, ModuleTiming] | None:
    """Return the nearest module above that was called; a list of modules, say, never is."""
    above = subject.places.parents.get(node.path)
    while above is not None:
        timing = subject.timing_of(above)
        if timing is not None:
            return above, timing
        above = subject.places.parents.get(above.path)
    return None


def _called_below(subject: Subject, node: ModuleNode) -> Iterator[tuple[ModuleNode, ModuleTiming]]:
    """Yield the nearest modules below that were called."""
    waiting = [*reversed(node.children)]
    while waiting:
        below = waiting.pop()
        timing = subject.timing_of(below)
        if timing is None:
            waiting.extend(reversed(below.children))
        else:
            yield below, timing


def _backward(timing: ModuleTiming) -> RenderableType | None:
    if timing.backward is None:
        return None
    own = timing.backward_own
    return facts(
        [
            ("a call", _spread(timing.backward)),
            ("range", _range(timing.backward)),
            ("own", None if own is None else _spread(own)),
            ("gradient", gradient_text(timing)),
        ]
    )


def _memory(node: ModuleNode, timing: ModuleTiming) -> RenderableType | None:
    grown = timing.allocated_bytes
    return facts(
        [
            ("parameters", format_memory(node.sums.parameter_bytes)),
            ("buffers", format_memory(node.sums.buffer_bytes) if node.sums.buffer_bytes else None),
            ("activations", f"{format_memory(timing.activation_bytes)} a call"),
            ("allocated", "not counted here" if grown is None else f"{format_memory(grown)} more"),
        ]
    )


def _slowest(subject: Subject, node: ModuleNode, width: int) -> RenderableType | None:
    called = [(child, its.total) for child, its in _called_below(subject, node)]
    return _ranked(subject, node, called, width)


def _most_own(subject: Subject, node: ModuleNode, width: int) -> RenderableType | None:
    """Rank all modules below, however deep, without what they call; children alone are above."""
    deep = [below for child in node.children for below in child.walk()]
    if subject.stats is None or len(deep) == len(node.children):
        return None
    timings = subject.stats.timings
    called = [(below, timings[below.path].own) for below in deep if below.path in timings]
    return _ranked(subject, node, called, width)


def _ranked(
    subject: Subject, node: ModuleNode, called: list[tuple[ModuleNode, Spread]], width: int
) -> RenderableType | None:
    """Set the slowest of some modules in a table, with their shares of the module's time."""
    called.sort(key=lambda pair: -pair[1].sum_s)
    timing = subject.timing_of(node)
    whole = timing.total.sum_s if timing else sum(its.sum_s for _, its in called)
    start = len(node.path) + 1 if node.path else 0
    rows = []
    for child, its in called[:_SLOWEST]:
        cells: list[str | Text] = [
            Text(shown(child.path[start:] or child.name)),
            Text(shown(child.type_name, 24)),
            format_time(its.median_s),
            percent(its.sum_s, whole),
            bar(its.sum_s / whole if whole > 0 else 0.0, 12),
        ]
        rows.append(cells if width >= 60 else [cells[0], *cells[2:4]])
    columns = [
        Column("module", shrinks=True),
        Column("class", style=QUIET, shrinks=True),
        Column("a call", "right"),
        Column("share", "right"),
        Column(""),
    ]
    chosen = columns if width >= 60 else [columns[0], *columns[2:4]]
    return rows_of(chosen, rows, width, most=_SLOWEST, total=len(called))
