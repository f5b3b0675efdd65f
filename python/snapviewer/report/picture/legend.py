"""The legend of a picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from snapviewer import Device, Image, Timeline, _core
from snapviewer.report.theme import Color
from snapviewer.snapshot.allocation_details import pool_name
from snapviewer.text.units import BYTE_UNITS, count_of

from .options import core_color

BACKGROUND = 2**32 - 1
"""The id of pixels without an allocation."""

_MAX_SWATCHES = 4
_MAX_STEPS = 9
_MAX_OTHERS = 5
_MAX_NAMED = 300
_FEWEST_HOLDERS = 4


class Entry(NamedTuple):
    """A line of the legend: colours, their meaning, and an amount.

    A line without colours is a heading, or the rest. `is_step` marks a part of a scale, which joins
    its neighbours. `keys` are the stacks, streams, … of a line; `filter` finds its allocations,
    unless these are stacks.
    """

    text: str
    colors: tuple[Color, ...] = ()
    amount: str = ""
    is_heading: bool = False
    is_step: bool = False
    keys: tuple[int, ...] = ()
    filter: str = ""


class Shown(NamedTuple):
    """What the colours of a picture stand for.

    Args:
        device: The device.
        color: What allocations are coloured by.
        groups: Stacks, streams, …, the most bytes at the peak first: each with these bytes, its
            pixels and its colour.
        extent: The least and the largest visible size or lifetime.
        scale: The least and the largest of the device, and the colours between.
    """

    device: Device
    color: str
    groups: list[tuple[int, int, int, Color]]
    extent: tuple[int, int] | None
    scale: tuple[int, int, list[Color]] | None


def shown_in(
    device: Device, timeline: Timeline, image: Image, peak_event: int, *, color: str, theme: str
) -> Shown:
    """Return what the colours of a picture stand for.

    Args:
        device: The device.
        timeline: The timeline that is drawn.
        image: The picture.
        peak_event: The event with the largest total in it.
        color: What allocations are coloured by.
        theme: The theme.
    """
    color = core_color(color)
    return Shown(
        device,
        color,
        timeline.color_groups(image, peak_event, color, theme),
        timeline.visible_extent(image, color),
        device.scale(color, theme),
    )


def legend_of(
    shown: Shown, line_of: Callable[[int], str], *, max_entries: int
) -> tuple[Entry, ...]:
    """Return the legend of a picture.

    Args:
        shown: What its colours stand for.
        line_of: Returns the name of a stack.
        max_entries: The number of lines.
    """
    if shown.extent is not None and shown.scale is not None:
        if shown.color == "size":
            return _scale("size", shown.extent, shown.scale, _sizes, max_entries)
        return _scale("lifetime", shown.extent, shown.scale, _lifetimes, max_entries)
    if not any(pixels for _, _, pixels, _ in shown.groups):
        return ()
    if shown.color == "stack":
        return _stacks(_groups(shown, line_of), max_entries)
    if shown.color == "stream":
        heading, groups = "stream", _groups(shown, _stream_text, "stream={}".format)
    elif shown.color == "pool":
        pools, heading = shown.device.pools, "memory pool"
        groups = _groups(shown, lambda pool: pool_name(pools, pool), _pool_filter)
    else:
        heading, groups = "category", _groups(shown, _category_text, _category_filter)
    lines = _held(groups, max_entries - 1)
    return (Entry(f"{heading}  (share of the peak)", is_heading=True), *lines)


def _stacks(groups: list[_Group], max_entries: int) -> tuple[Entry, ...]:
    """Return what holds the peak, then what else covers most of the picture."""
    total = sum(group.held_bytes for group in groups)
    area = sum(group.pixels for group in groups)
    holders = [group for group in groups if group.held_bytes * 100 >= total > 0]
    others = [
        group
        for group in groups
        if group.pixels * 100 >= area > 0 and group.held_bytes * 100 < total
    ]
    others = sorted(others, key=lambda group: -group.pixels)[:_MAX_OTHERS]
    # Two lines more for a heading and the gap above it. What covers most of the picture is not left
    # out for what holds a percent of the peak.
    room = max_entries - 1 - (len(others) + 2 if others else 0)
    if room < _FEWEST_HOLDERS:
        others, room = [], max_entries - 1
    heading = Entry("allocated at  (share of the peak)", is_heading=True)
    at_peak = _held(groups, min(len(holders) + 1, room))
    if not others:
        return (heading, *at_peak)
    elsewhere = (_entry(group, _percent(group.pixels, area)) for group in others)
    blank = Entry("", is_heading=True)
    more = Entry("elsewhere  (share of the area)", is_heading=True)
    return (heading, *at_peak, blank, more, *elsewhere)


@dataclass(frozen=True, slots=True)
class _Group:
    """Allocations of one name: pixels and colour of each key, bytes at the peak."""

    text: str
    filter: str
    keys: tuple[int, ...]
    colors: tuple[tuple[int, Color], ...]
    held_bytes: int
    pixels: int

    def joined(self, other: _Group) -> _Group:
        return _Group(
            self.text,
            self.filter,
            self.keys + other.keys,
            self.colors + other.colors,
            self.held_bytes + other.held_bytes,
            self.pixels + other.pixels,
        )


def _groups(
    shown: Shown, text_of: Callable[[int], str], filter_of: Callable[[int], str] = lambda _: ""
) -> list[_Group]:
    """Join groups of one name, the most bytes first."""
    # A file may have any number of stacks, each of any length: only these are named.
    by_area = sorted(shown.groups, key=lambda group: -group[2])
    named = {key for key, *_ in (*shown.groups[:_MAX_NAMED], *by_area[:_MAX_NAMED])}
    groups: dict[str, _Group] = {}
    for key, held_bytes, pixels, color in shown.groups:
        text = text_of(key) if key in named else f"#{key}"
        group = _Group(text, filter_of(key), (key,), ((pixels, color),), held_bytes, pixels)
        groups[text] = groups[text].joined(group) if text in groups else group
    return sorted(groups.values(), key=lambda group: -group.held_bytes)


def _held(groups: Sequence[_Group], max_entries: int) -> list[Entry]:
    """Return a line for each group, and one for those that have no room."""
    total = sum(group.held_bytes for group in groups)
    named = groups if len(groups) <= max_entries else groups[: max_entries - 1]
    entries = [_entry(group, _percent(group.held_bytes, total)) for group in named]
    if rest := [group for group in groups[len(named) :] if group.held_bytes]:
        left = sum(group.held_bytes for group in rest)
        entries.append(Entry(f"{len(rest):,} more", amount=_percent(left, total)))
    return entries


def _entry(group: _Group, amount: str) -> Entry:
    return Entry(group.text, _swatches(group), amount, keys=group.keys, filter=group.filter)


def _swatches(group: _Group) -> tuple[Color, ...]:
    """Return the colours of most pixels of a group."""
    by_area = sorted(group.colors, key=lambda one: -one[0])
    least = by_area[0][0] // _MAX_SWATCHES
    return tuple(dict.fromkeys(color for area, color in by_area if area >= least))[:_MAX_SWATCHES]


def _scale(
    heading: str,
    extent: tuple[int, int],
    scale: tuple[int, int, list[Color]],
    steps_of: Callable[[float, float, int], list[tuple[float, str]]],
    max_entries: int,
) -> tuple[Entry, ...]:
    """Return a logarithmic scale at round numbers, the largest on top."""
    steps = steps_of(_log(extent[0]), _log(extent[1]), min(max_entries - 1, _MAX_STEPS))
    least, greatest, colors = _log(scale[0]), _log(scale[1]), scale[2]
    lines = [Entry(heading, is_heading=True)]
    for value, text in reversed(steps):
        share = (value - least) / (greatest - least) if greatest > least else 0.0
        place = int(min(max(share, 0.0), 1.0) * (len(colors) - 1))
        lines.append(Entry(text, (colors[place],), is_step=True))
    return tuple(lines)


def _log(number: int) -> float:
    return math.log2(max(number, 1))


def _sizes(low: float, high: float, count: int) -> list[tuple[float, str]]:
    """Choose powers of two between two logarithms.

    >>> [text for _, text in _sizes(9.0, 21.2, 4)]
    ['512 B', '8 KiB', '128 KiB', '2 MiB']
    """
    first, last = math.floor(low), math.ceil(high)
    step = next(step for step in (1, 2, 3, 4, 5, 10, 20, 64) if (last - first) // step < count)
    return [
        (power, f"{2 ** (power % 10)} {BYTE_UNITS[power // 10]}")
        for power in range(first, last + 1, step)
    ]


def _lifetimes(low: float, high: float, count: int) -> list[tuple[float, str]]:
    """Choose powers of ten between two logarithms to base 2.

    >>> [text for _, text in _lifetimes(0.0, 10.0, 5)]
    ['1 event', '10 events', '100 events', '1,000 events']
    """
    first, last = math.floor(low / math.log2(10)), math.floor(high / math.log2(10))
    step = -(-(last - first + 1) // count)
    powers = range(first, last + 1, step)
    return [(power * math.log2(10), count_of(10**power, "event")) for power in powers]


def color_text(device: Device, color: str, allocation: int) -> str:
    """Return what the colour of an allocation stands for, unless its stack, size or lifetime."""
    a = device.allocations
    if color == "stream":
        return _stream_text(int(a.stream[allocation]))
    if color == "pool":
        return pool_name(device.pools, int(a.pool[allocation]))
    if color == "category":
        return _category_text(int(device.categories.category[allocation]))
    return ""


def _stream_text(stream: int) -> str:
    if stream == 0:
        return "default stream"
    return f"stream {stream}" if abs(stream) < 10_000 else f"stream {stream:#x}"


def _category_text(category: int) -> str:
    return _core.CATEGORIES[category - 1].replace("_", " ") if category else "no category recorded"


def _pool_filter(pool: int) -> str:
    return f"pool={pool - 1}"  # counted from 0, which is the default pool


def _category_filter(category: int) -> str:
    return f"category={_core.CATEGORIES[category - 1]}" if category else ""


def _percent(part: int, whole: int) -> str:
    """Format a share in whole percents.

    >>> _percent(0, 7), _percent(1, 1000), _percent(2, 3)
    ('0 %', '< 1 %', '67 %')
    """
    if part == 0 or whole == 0:
        return "0 %"
    return "< 1 %" if part * 100 < whole else f"{100 * part / whole:.0f} %"
