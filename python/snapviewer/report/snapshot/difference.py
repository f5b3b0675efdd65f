"""What changes from one snapshot to another: text, JSON, and blocks for Markdown and HTML.

Rows add up to the difference of the totals: what is not listed is one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from snapviewer import __version__
from snapviewer.report import blocks
from snapviewer.snapshot.alive import group_name
from snapviewer.snapshot.difference import Difference, Row, Side
from snapviewer.snapshot.gate import Failure
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize
from snapviewer.text.table import format_table
from snapviewer.text.units import count_of, format_bytes

from .allocator_settings import settings_in

USUAL_TOP = 15
_MAX_TEXT_CHARS = 80


@dataclass(frozen=True, slots=True)
class Report:
    """A difference, the limits that a peak is over, the names of the files, how many rows."""

    difference: Difference
    failed: tuple[Failure, ...]
    a: str
    b: str
    top: int | None

    @property
    def files(self) -> tuple[str, str]:
        """The names of the files, without what could paint a terminal."""
        return sanitize(self.a), sanitize(self.b)


def to_json(report: Report) -> dict[str, Any]:
    """Return the document that `diff --json` prints; all groups are in it unless `top` is given."""
    difference, top = report.difference, report.top
    a, b = difference.a, difference.b
    return {
        "peak_bytes": {"a": a.peak_bytes, "b": b.peak_bytes},
        "reserved_bytes": {"a": a.reserved_bytes, "b": b.reserved_bytes},
        "total_bytes": {"a": a.total_bytes, "b": b.total_bytes},
        "allocations": {"a": a.count, "b": b.count},
        "device": {"a": a.device, "b": b.device},
        "event": {"a": a.event, "b": b.event},
        "step": {"a": _clean(a.step), "b": _clean(b.step)},
        "by": difference.by,
        "groups": [
            {
                "key": "\n".join(sanitize(line, MAX_NAME_CHARS) for line in row.key.split("\n")),
                "kind": row.kind,
                "a_bytes": row.a_bytes,
                "b_bytes": row.b_bytes,
                "a_count": row.a_count,
                "b_count": row.b_count,
            }
            for row in listed(difference.rows, top)
        ],
        "settings": [
            {"name": name, "a": before, "b": after} for name, before, after in _settings(a, b)
        ],
        "notes": _notes(difference),
        "failed": failures_json(report.failed),
    }


def failures_json(failed: Sequence[Failure]) -> list[dict[str, Any]]:
    """Return the limits that a peak is over."""
    return [
        {
            "check": one.kind,
            "device": one.device,
            "peak_bytes": one.peak_bytes,
            "limit_bytes": one.limit_bytes,
            "baseline_bytes": one.baseline_bytes,
            "percent": one.percent,
            "reason": one.reason,
        }
        for one in failed
    ]


def listed(rows: Sequence[Row], top: int | None) -> list[Row]:
    """Return the first rows, and the others as one, so that all add up to the same."""
    if top is None or len(rows) <= top:
        return list(rows)
    rest = rows[top:]
    sums = (
        sum(row.a_bytes for row in rest),
        sum(row.b_bytes for row in rest),
        sum(row.a_count for row in rest),
        sum(row.b_count for row in rest),
    )
    return [*rows[:top], Row(count_of(len(rest), "more group"), *sums)]


def as_text(report: Report) -> str:
    """Return the peaks side by side, what changed, and what else is different."""
    difference = report.difference
    a, b = report.files
    lines = [f"A: {a}", f"B: {b}", _where(difference), ""]
    lines += format_table([("", "A", "B", "change"), *_peak_rows(difference)], right=(1, 2, 3))
    lines += ["", _headline(difference)]
    if rows := _rows(difference, report.top):
        columns = ("change", "", "A", "B", "allocations", difference.by)
        lines += format_table(
            [columns, *((*cells, name) for name, *cells in rows)], right=(0, 2, 3, 4)
        )
    if settings := _settings(difference.a, difference.b):
        lines += ["", "Allocator settings that differ:"]
        lines += format_table([("", "A", "B"), *settings])
    if notes := _notes(difference):
        lines += ["", *(f"note: {note}" for note in notes)]
    if report.failed:
        lines += ["", *(f"failed: {one.reason}" for one in report.failed)]
    return "\n".join(lines) + "\n"


def as_document(report: Report) -> blocks.Document:
    """Return the same as blocks, for Markdown and HTML."""
    difference = report.difference
    a, b = map(blocks.code, report.files)
    content: list[blocks.Block] = [
        blocks.Paragraph(blocks.text(one.reason), "bad") for one in report.failed
    ]
    content.append(
        blocks.Paragraph(blocks.text("From ", a, " (A) to ", b, f" (B): {_where(difference)}."))
    )
    content.append(
        blocks.Table(
            (blocks.Column(""), _number("A"), _number("B"), _number("change")),
            tuple(tuple(blocks.text(cell) for cell in row) for row in _peak_rows(difference)),
        )
    )
    content.append(blocks.Paragraph(blocks.text(_headline(difference))))
    if rows := _rows(difference, report.top):
        content.append(_table(difference, rows))
    if settings := _settings(difference.a, difference.b):
        content += [
            blocks.Heading(2, "Allocator settings that differ"),
            blocks.Table(
                (blocks.Column("setting"), blocks.Column("A"), blocks.Column("B")),
                tuple(tuple(blocks.text(cell) for cell in row) for row in settings),
            ),
        ]
    if notes := _notes(difference):
        content.append(blocks.Listing(tuple(blocks.text(note) for note in notes)))
    change = signed(difference.b.peak_bytes - difference.a.peak_bytes)
    return blocks.Document(
        f"GPU memory: {change} at the peak", "en", tuple(content), f"snapviewer {__version__}"
    )


def _table(difference: Difference, rows: Sequence[tuple[str, ...]]) -> blocks.Table:
    columns = (
        blocks.Column(difference.by),
        _number("change"),
        blocks.Column(""),
        _number("A"),
        _number("B"),
        _number("allocations"),
    )
    a, b = difference.a, difference.b
    total = Row("total", a.total_bytes, b.total_bytes, a.count, b.count)
    named = [(blocks.code(name) if cells[1] else name, *cells) for name, *cells in rows]
    return blocks.Table(
        columns,
        tuple(tuple(map(blocks.text, row)) for row in (*named, _cells(difference.by, total, ""))),
        has_total=True,
    )


def _number(title: str) -> blocks.Column:
    return blocks.Column(title, is_number=True)


def signed(change_bytes: int) -> str:
    """Return a change in bytes with its sign.

    >>> signed(1024), signed(-5), signed(0)
    ('+1.00 KiB', '−5 B', '0 B')
    """
    sign = "+" if change_bytes > 0 else "−" if change_bytes < 0 else ""
    return f"{sign}{format_bytes(abs(change_bytes))}"


def _rows(difference: Difference, top: int | None) -> list[tuple[str, ...]]:
    """Return the cells of the rows that changed, and of one for all others."""
    changed = len(difference.changed)
    if not changed:
        return []
    count = min(USUAL_TOP if top is None else top, changed)
    return [
        _cells(difference.by, row, row.kind if place < count else "")
        for place, row in enumerate(listed(difference.rows, count))
    ]


def _cells(by: str, row: Row, kind: str) -> tuple[str, ...]:
    a, b = format_bytes(row.a_bytes), format_bytes(row.b_bytes)
    return group_name(by, row.key), signed(row.change_bytes), kind, a, b, _counts(row)


def _counts(row: Row) -> str:
    if row.a_count == row.b_count:
        return f"{row.a_count:,}"
    return f"{row.a_count:,} → {row.b_count:,}"


def _peak_rows(difference: Difference) -> list[tuple[str, ...]]:
    a, b = difference.a, difference.b
    rows = [("peak", a.peak_bytes, b.peak_bytes), ("reserved", a.reserved_bytes, b.reserved_bytes)]
    if not (a.is_peak and b.is_peak):
        rows.append(("compared", a.total_bytes, b.total_bytes))
    return [
        (name, format_bytes(before), format_bytes(after), _change(before, after))
        for name, before, after in rows
    ]


def _change(before: int, after: int) -> str:
    change = signed(after - before)
    if not before or after == before:
        return change
    return f"{change} ({100 * (after - before) / before:+.1f} %)"


def _where(difference: Difference) -> str:
    a, b = difference.a, difference.b
    device = "pinned host memory" if a.device < 0 else f"device {a.device}"
    if a.device != b.device:
        device = f"device {a.device} of A and device {b.device} of B"
    moments = [_moment(side) for side in (a, b)]
    if a.is_peak and b.is_peak and a.step is None and b.step is None:
        return f"{device}, at the peaks (A {moments[0]}, B {moments[1]})"
    if a.step is not None and b.step is not None:
        names = dict.fromkeys(sanitize(name, _MAX_TEXT_CHARS) for name in (a.step, b.step))
        at = f"at the peaks of {' and '.join(names)}"
        return f"{device}, {at} (A {moments[0]}, B {moments[1]})"
    return f"{device}, A {moments[0]}, B {moments[1]}"


def _moment(side: Side) -> str:
    if not side.is_trace:
        return "state only"
    return "before the first event" if side.event < 0 else f"after event {side.event:,}"


def _headline(difference: Difference) -> str:
    changed = difference.changed
    if not changed:
        return (
            f"No difference by {difference.by}: {format_bytes(difference.b.total_bytes)} in both."
        )
    counts: dict[str, int] = {}
    for row in changed:
        counts[row.kind] = counts.get(row.kind, 0) + 1
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in counts.items())
    return f"{signed(difference.change_bytes)} by {difference.by}: {kinds}."


def _settings(a: Side, b: Side) -> list[tuple[str, str, str]]:
    """Return the allocator settings that differ; without a trace they are not known."""
    if not all(side.is_trace or side.has_settings for side in (a, b)):
        return []
    pairs = zip(settings_in(a.settings), settings_in(b.settings), strict=True)
    return [(one.name, one.value, two.value) for one, two in pairs if one.value != two.value]


def _notes(difference: Difference) -> list[str]:
    sides = {"A": difference.a, "B": difference.b}
    notes = []
    for name, side in sides.items():
        if not side.is_trace:
            notes.append(f"{name} is a state without a trace: its peak is not known")
        if side.missing:
            notes.append(f"{name}: {sanitize(side.missing, MAX_NAME_CHARS)}")
    if difference.a.device != difference.b.device:
        notes.append("no device has the same number in both: the largest of each is compared")
    formats = [sanitize(side.format, _MAX_TEXT_CHARS) for side in sides.values()]
    if formats[0] != formats[1]:
        notes.append(f"A is {formats[0]}, B is {formats[1]}")
    made = [_made(side) for side in sides.values()]
    if made[0] != made[1]:
        notes.append(f"A was {made[0]}, B was {made[1]}")
    if _settings(difference.a, difference.b):
        inferred = [name for name, side in sides.items() if not side.has_settings]
        if inferred:
            files = " and ".join(inferred)
            notes.append(f"the settings of {files} are not in the file, but explain its trace best")
    return notes


def _made(side: Side) -> str:
    if side.predicted is None:
        return "recorded"
    gpu, torch = (_clean(side.predicted.get(key)) for key in ("gpu_name", "torch"))
    return f"predicted{f' for {gpu}' if gpu else ''}{f' by PyTorch {torch}' if torch else ''}"


def _clean(text: object) -> str | None:
    return sanitize(text, _MAX_TEXT_CHARS) if isinstance(text, str) else None
