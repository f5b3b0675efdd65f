"""Tables of a checkpoint's tensors, of groups of them, and of their statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from snapviewer.checkpoint.statistics import Measured
from snapviewer.checkpoint.summary import Share, Summary
from snapviewer.text.columns import lay_out, named, room_for_names, shape_text
from snapviewer.text.sanitize import sanitize, shorten_middle
from snapviewer.text.units import count_of, format_bytes, format_share

if TYPE_CHECKING:
    from snapviewer._core import Stats, Tensor

_PLAIN = ("tensor", "parameter")
_BARS = "▁▂▃▄▅▆▇█"
_SPARK, _NARROW_SPARK = 16, 8  # cells; the latter on narrow terminals
_MOST_ALARMS = 10
_LEAST_NAME = 24
_NAMES, _HISTOGRAM = "statistics", "histogram"
_SPARED = ("zeros", "std", _HISTOGRAM, "mean")  # columns, the least interesting first


def tensor_table(summary: Summary, order: Sequence[int], most: int, width: int | None) -> list[str]:
    """Lay tensors out: name, type, shape, size, and what is not as usual."""
    if not order:
        return []
    rows = [("tensor", "dtype", "shape", "size", "")]
    for index in order[:most]:
        tensor = summary.tensors[index]
        rows.append(
            (
                named(tensor.name),
                sanitize(tensor.dtype, 40),
                shape_text(tensor.shape),
                format_bytes(tensor.logical_bytes),
                ", ".join(_marks(summary, index)),
            )
        )
    lines = lay_out(rows, right={3}, width=width, has_notes=True)
    if left := [summary.tensors[index].logical_bytes for index in order[most:]]:
        lines.append(_rest(len(left), "tensor", sum(left)))
    return lines


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
    """Tell whether elements stand for several, so that the file has less than the shape says."""
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
    groups: Sequence[Share], sort: str | None, most: int, width: int | None
) -> list[str]:
    """Lay groups of tensors out, in the order of the file, of names or of sizes."""
    if not groups:
        return []
    if sort == "name":
        groups = sorted(groups, key=lambda group: group.name)
    elif sort in ("size", "waste") or len(groups) > most:
        groups = sorted(groups, key=lambda group: -group.logical_bytes)
    total = sum(group.logical_bytes for group in groups) or 1
    rows = [("group", "tensors", "elements", "size", "")]
    rows += [
        (
            named(group.name),
            f"{group.tensors:,}",
            f"{group.elements:,}",
            format_bytes(group.logical_bytes),
            format_share(group.logical_bytes, total),
        )
        for group in groups[:most]
    ]
    lines = lay_out(rows, right={1, 2, 3, 4}, width=width)
    if left := groups[most:]:
        lines.append(_rest(len(left), "group", sum(group.logical_bytes for group in left)))
    return lines


def stats_table(
    tensors: Sequence[Tensor],
    measured: Measured,
    order: Sequence[int],
    most: int,
    width: int | None,
) -> list[str]:
    """Lay statistics out, with a histogram of one line.

    Where names would be cut so much that they look alike, columns give way.
    """
    rows: list[tuple[str, ...]] = [(_NAMES, "mean", "std", "min", "max", "zeros", _HISTOGRAM)]
    cells = _NARROW_SPARK if width is not None and width < 100 else _SPARK
    reasons = []
    for index in order[:most]:
        found = measured[index]
        name = named(tensors[index].name)
        if isinstance(found, str):
            reasons.append(f"  {name}: {sanitize(found, 300)}")
            continue
        rows.append(
            (
                name,
                *(_number(value) for value in (found.mean, found.std, found.min, found.max)),
                format_share(found.zeros, found.count or 1) if found.zeros else "0",
                spark(found.histogram, cells),
            )
        )
    lines = []
    if len(rows) > 1:
        rows = _spared(rows, width)
        is_right = {i for i, title in enumerate(rows[0]) if title not in (_NAMES, _HISTOGRAM)}
        lines = lay_out(rows, right=is_right, width=width)
        shown = [index for index in order[:most] if not isinstance(measured[index], str)]
        if any(_is_partly_stored(tensors[index]) for index in shown):
            lines += ["", "of sparse and nested tensors: the values that are stored"]
    if reasons:
        lines += ["", "not measured", *reasons]
    return lines


def _is_partly_stored(tensor: Tensor) -> bool:
    return tensor.kind.startswith(("sparse", "nested"))


def _spared(rows: list[tuple[str, ...]], width: int | None) -> list[tuple[str, ...]]:
    """Leave columns out until the names can be told apart, or only the last ones are left."""
    names = {row[0] for row in rows[1:]}
    longest = max(map(len, names))
    for title in _SPARED:
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        room = longest if width is None else room_for_names(widths, width)
        are_apart = len({shorten_middle(name, max(room, 1)) for name in names}) == len(names)
        if room >= min(longest, _LEAST_NAME) and are_apart:
            break
        place = rows[0].index(title)
        rows = [(*row[:place], *row[place + 1 :]) for row in rows]
    return rows


def _number(value: float | None) -> str:
    """Say a number in few characters.

    >>> _number(0.123456), _number(-3.0), _number(1.5e-12), _number(None)
    ('0.1235', '-3', '1.5e-12', '–')
    """
    return "–" if value is None else f"{value:.4g}"


def spark(histogram: Sequence[int], most: int = _SPARK) -> str:
    """Draw a histogram in a few characters; where there is nothing, there is a gap.

    >>> spark([1, 0, 8])
    '▁ █'
    """
    cells = min(most, len(histogram))
    sums = [
        sum(histogram[i * len(histogram) // cells : (i + 1) * len(histogram) // cells])
        for i in range(cells)
    ]
    highest = max(sums, default=0)
    return "".join(_BARS[(n * 8 - 1) // highest] if n else " " for n in sums)


def alarms(tensors: Sequence[Tensor], measured: Measured) -> list[str]:
    """Say which tensors have elements that are no finite numbers."""
    bad: list[tuple[str, Stats]] = [
        (tensors[index].name, found)
        for index, found in measured.items()
        if not isinstance(found, str) and (found.nan or found.inf)
    ]
    if not bad:
        return []
    lines = [f"! NaN or Inf in {count_of(len(bad), 'tensor')}"]
    for name, stats in bad[:_MOST_ALARMS]:
        kinds = [(stats.nan, "NaN"), (stats.inf, "Inf")]
        what = " and ".join(f"{number:,} {kind}" for number, kind in kinds if number)
        lines.append(f"  ! {named(name)}: {what} of {count_of(stats.count, 'element')}")
    if len(bad) > _MOST_ALARMS:
        lines.append(f"  … {count_of(len(bad) - _MOST_ALARMS, 'more tensor')}")
    return lines
