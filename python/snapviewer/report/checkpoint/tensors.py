"""Tables of a checkpoint's tensors, of groups of them, and of their statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from snapviewer.checkpoint.statistics import TensorStats
from snapviewer.checkpoint.summary import Summary, TensorGroup
from snapviewer.text.sanitize import sanitize, shorten_middle
from snapviewer.text.table import first_column_room, format_table, label
from snapviewer.text.units import count_of, format_bytes, format_shape, format_share

if TYPE_CHECKING:
    from snapviewer._core import Tensor

_PLAIN = ("tensor", "parameter")
_BARS = "▁▂▃▄▅▆▇█"
_SPARK, _NARROW_SPARK = 16, 8  # cells; the latter on narrow terminals
_MAX_ALARMS = 10
_MIN_NAME = 24
_NAMES, _HISTOGRAM = "statistics", "histogram"
_OPTIONAL_COLUMNS = ("zeros", "std", _HISTOGRAM, "mean")  # columns, the least interesting first


def tensor_table(
    summary: Summary, order: Sequence[int], max_rows: int, width: int | None
) -> list[str]:
    """Return a table of tensors: name, type, shape, size, and what is unusual."""
    if not order:
        return []
    rows = [("tensor", "dtype", "shape", "size", "")]
    for index in order[:max_rows]:
        tensor = summary.tensors[index]
        rows.append(
            (
                label(tensor.name),
                sanitize(tensor.dtype, 40),
                shape_text(tensor),
                format_bytes(tensor.logical_bytes),
                ", ".join(_marks(summary, index)),
            )
        )
    lines = format_table(rows, right={3}, width=width, has_notes=True)
    if left := [summary.tensors[index].logical_bytes for index in order[max_rows:]]:
        lines.append(_rest(len(left), "tensor", sum(left)))
    return lines


def shape_text(tensor: Tensor) -> str:
    """Return the shape of a tensor as a cell of a table."""
    return format_shape(tensor.shape, 48) or "scalar"


def _marks(summary: Summary, index: int) -> list[str]:
    tensor = summary.tensors[index]
    marks = []
    if index in summary.group_of:
        marks.append(letter(summary.group_of[index]))
    if tensor.class_name or tensor.kind not in _PLAIN:
        name = (tensor.class_name or "").rpartition(".")[2] or tensor.kind
        marks.append(sanitize(name, 30))
    if tensor.device not in ("cpu", tensor.kind):
        marks.append(sanitize(tensor.device, 20))
    if tensor.requires_grad:
        marks.append("grad")
    if _is_expanded(tensor):
        marks.append(f"expanded, {format_bytes(tensor.stored_bytes)} stored")
    if tensor.wasted_bytes:
        marks.append(f"wastes {format_bytes(tensor.wasted_bytes)}")
    return marks


def _is_expanded(tensor: Tensor) -> bool:
    """Return whether the file has fewer elements than the shape, by a stride of 0."""
    is_stored = tensor.storage is not None and not tensor.parts and tensor.kind in _PLAIN
    return is_stored and tensor.stored_bytes < tensor.logical_bytes


def letter(place: int) -> str:
    """Name a group: A, B, …, Z, AA, AB, ….

    >>> letter(0), letter(25), letter(26), letter(702)
    ('A', 'Z', 'AA', 'AAA')
    """
    name = ""
    place += 1
    while place:
        place, digit = divmod(place - 1, 26)
        name = chr(ord("A") + digit) + name
    return name


def _rest(count: int, what: str, size: int) -> str:
    return f"  … {count_of(count, f'more {what}')}, {format_bytes(size)} (--top 0 shows all)"


def group_table(
    groups: Sequence[TensorGroup], sort: str | None, max_rows: int, width: int | None
) -> list[str]:
    """Return a table of groups of tensors, in the order of the file, of names or of sizes."""
    if not groups:
        return []
    if sort == "name":
        groups = sorted(groups, key=lambda group: group.name)
    elif sort in ("size", "waste") or len(groups) > max_rows:
        groups = sorted(groups, key=lambda group: -group.logical_bytes)
    total = sum(group.logical_bytes for group in groups) or 1
    rows = [("group", "tensors", "elements", "size", "")]
    rows += [
        (
            label(group.name),
            f"{group.tensors:,}",
            f"{group.elements:,}",
            format_bytes(group.logical_bytes),
            format_share(group.logical_bytes, total),
        )
        for group in groups[:max_rows]
    ]
    lines = format_table(rows, right={1, 2, 3, 4}, width=width)
    if left := groups[max_rows:]:
        lines.append(_rest(len(left), "group", sum(group.logical_bytes for group in left)))
    return lines


def stats_table(
    tensors: Sequence[Tensor],
    measured: TensorStats,
    order: Sequence[int],
    max_rows: int,
    width: int | None,
) -> list[str]:
    """Return a table of statistics, with a histogram in each line.

    Columns are left out where names would be cut so much that they look alike.
    """
    rows: list[tuple[str, ...]] = [(_NAMES, "mean", "std", "min", "max", "zeros", _HISTOGRAM)]
    cells = _NARROW_SPARK if width is not None and width < 100 else _SPARK
    reasons = []
    for index in order[:max_rows]:
        found = measured[index]
        name = label(tensors[index].name)
        if isinstance(found, str):
            reasons.append(f"  {name}: {sanitize(found, 300)}")
            continue
        rows.append(
            (
                name,
                *(number_text(value) for value in (found.mean, found.std, found.min, found.max)),
                format_share(found.zeros, found.count or 1) if found.zeros else "0",
                spark(found.histogram, cells),
            )
        )
    lines = []
    if len(rows) > 1:
        rows = _fit_names(rows, width)
        is_right = {i for i, title in enumerate(rows[0]) if title not in (_NAMES, _HISTOGRAM)}
        lines = format_table(rows, right=is_right, width=width)
        shown = [index for index in order[:max_rows] if not isinstance(measured[index], str)]
        if any(_is_partly_stored(tensors[index]) for index in shown):
            lines += ["", "of sparse and nested tensors: the stored values"]
    if reasons:
        lines += ["", "not measured", *reasons]
    return lines


def _is_partly_stored(tensor: Tensor) -> bool:
    return tensor.kind.startswith(("sparse", "nested"))


def _fit_names(rows: list[tuple[str, ...]], width: int | None) -> list[tuple[str, ...]]:
    """Leave columns out until the names differ, or only the last ones are left."""
    names = {row[0] for row in rows[1:]}
    longest = max(map(len, names))
    for title in _OPTIONAL_COLUMNS:
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        room = longest if width is None else first_column_room(widths, width)
        are_apart = len({shorten_middle(name, max(room, 1)) for name in names}) == len(names)
        if room >= min(longest, _MIN_NAME) and are_apart:
            break
        place = rows[0].index(title)
        rows = [(*row[:place], *row[place + 1 :]) for row in rows]
    return rows


def number_text(value: float | None) -> str:
    """Format a number in a few characters.

    >>> number_text(0.123456), number_text(-3.0), number_text(1.5e-12), number_text(None)
    ('0.1235', '-3', '1.5e-12', '–')
    """
    return "–" if value is None else f"{value:.4g}"


def spark(histogram: Sequence[int], max_cells: int = _SPARK) -> str:
    """Return a histogram as a few characters, with a gap where there is nothing.

    >>> spark([1, 0, 8])
    '▁ █'
    """
    cells = min(max_cells, len(histogram))
    sums = [
        sum(histogram[i * len(histogram) // cells : (i + 1) * len(histogram) // cells])
        for i in range(cells)
    ]
    highest = max(sums, default=0)
    return "".join(_BARS[(n * 8 - 1) // highest] if n else " " for n in sums)


def alarms(tensors: Sequence[Tensor], measured: TensorStats) -> list[str]:
    """Return which tensors have elements that are NaN or Inf."""
    lines = []
    for index, found in measured.items():
        if isinstance(found, str) or not (found.nan or found.inf):
            continue
        kinds = [(found.nan, "NaN"), (found.inf, "Inf")]
        counts = " and ".join(f"{number:,} {kind}" for number, kind in kinds if number)
        total = count_of(found.count, "element")
        lines.append(f"{label(tensors[index].name)}: {counts} of {total}")
    return alarm_lines("NaN or Inf", lines)


def alarm_lines(title: str, lines: Sequence[str]) -> list[str]:
    """Return lines on what is wrong with tensors, below a title with their count."""
    if not lines:
        return []
    shown = [f"  ! {line}" for line in lines[:_MAX_ALARMS]]
    if more := len(lines) - len(shown):
        shown.append(f"  … {count_of(more, 'more tensor')}")
    return [f"! {title} in {count_of(len(lines), 'tensor')}", *shown]
