"""The legend of a picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from snapviewer import Device, Timeline, _core
from snapviewer.report.theme import Color
from snapviewer.snapshot.allocation_details import pool_name
from snapviewer.text.units import BYTE_UNITS, count_of

if TYPE_CHECKING:
    import numpy.typing as npt

    Ids = npt.NDArray[np.int64]
    Rgb = npt.NDArray[np.uint8]

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
    """What is shown in a picture.

    Args:
        device: The device.
        timeline: The timeline that is drawn.
        peak_event: The event with the largest total in the picture.
        line_of: Returns the name of a stack.
        visible: The allocations that have pixels.
        pixels: Their numbers of pixels.
    """

    device: Device
    timeline: Timeline
    peak_event: int
    line_of: Callable[[int], str]
    visible: Ids
    pixels: Ids


def visible_in(ids: npt.NDArray[np.uint32], allocations: int) -> tuple[Ids, Ids]:
    """Return the allocations that have pixels, and their numbers of pixels."""
    pixels = np.bincount(ids[ids != BACKGROUND], minlength=allocations)
    visible = np.flatnonzero(pixels)
    return visible, pixels[visible]


def legend_of(shown: Shown, *, color: str, theme: str, max_entries: int) -> tuple[Entry, ...]:
    """Return the legend of a picture.

    Args:
        shown: The shown allocations.
        color: What allocations are coloured by.
        theme: The theme.
        max_entries: The number of lines.
    """
    if len(shown.visible) == 0:
        return ()
    colors, scale = shown.device.colors(color, theme), shown.device.scale(color, theme)
    a = shown.device.allocations
    if color == "size":
        return _scale("size", a.size[shown.visible], scale, _sizes, max_entries)
    if color == "age":
        lives = (a.free_event - a.alloc_event)[shown.visible]
        return _scale("lifetime", lives, scale, _lifetimes, max_entries)
    if color == "stack":
        return _stacks(shown, colors, max_entries)
    if color == "stream":
        heading, groups = "stream", _groups(shown, a.stream, _stream_text, "stream={}".format)
    elif color == "pool":
        pools, heading = shown.device.pools, "memory pool"
        groups = _groups(shown, a.pool, lambda pool: pool_name(pools, pool), _pool_filter)
    else:
        heading = "category"
        groups = _groups(shown, a.category, _category_text, _category_filter)
    lines = _held(groups, colors, max_entries - 1)
    return (Entry(f"{heading}  (share of the peak)", is_heading=True), *lines)


def _stacks(shown: Shown, colors: Rgb, max_entries: int) -> tuple[Entry, ...]:
    """Return what holds the peak, then what else covers most of the picture."""
    groups = _groups(shown, shown.device.allocations.stack, shown.line_of)
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
    at_peak = _held(groups, colors, min(len(holders) + 1, room))
    if not others:
        return (heading, *at_peak)
    elsewhere = (_entry(group, colors, _percent(group.pixels, area)) for group in others)
    blank = Entry("", is_heading=True)
    more = Entry("elsewhere  (share of the area)", is_heading=True)
    return (heading, *at_peak, blank, more, *elsewhere)


@dataclass(frozen=True, slots=True)
class _Group:
    """Allocations of one name: pixels and largest allocation of each key, bytes at the peak."""

    text: str
    filter: str
    keys: tuple[int, ...]
    largest: tuple[tuple[int, int], ...]
    held_bytes: int
    pixels: int

    def joined(self, other: _Group) -> _Group:
        return _Group(
            self.text,
            self.filter,
            self.keys + other.keys,
            self.largest + other.largest,
            self.held_bytes + other.held_bytes,
            self.pixels + other.pixels,
        )


def _groups(
    shown: Shown,
    keys: npt.NDArray[np.generic],
    text_of: Callable[[int], str],
    filter_of: Callable[[int], str] = lambda _: "",
) -> list[_Group]:
    """Group visible allocations and those at the peak by name, the most bytes first."""
    size = shown.device.allocations.size
    at_peak = shown.timeline.stack(shown.peak_event)[0].astype(np.int64)
    # Neither `union1d` nor `unique`: they import numpy.ma, which takes as long as all the rest.
    is_member = np.zeros(len(size), dtype=np.bool_)
    is_member[shown.visible] = is_member[at_peak] = True
    members = np.flatnonzero(is_member)
    members = members[np.argsort(size[members], kind="stable")]
    found = np.array(sorted(set(keys[members].tolist())), dtype=keys.dtype)
    largest = np.zeros(len(found), dtype=np.int64)
    # The last one that is written is the largest.
    largest[np.searchsorted(found, keys[members])] = members
    held = np.zeros(len(found), dtype=np.uint64)
    np.add.at(held, np.searchsorted(found, keys[at_peak]), size[at_peak])
    pixels = np.zeros(len(found), dtype=np.int64)
    np.add.at(pixels, np.searchsorted(found, keys[shown.visible]), shown.pixels)

    groups: dict[str, _Group] = {}
    by_held = np.lexsort((found, np.iinfo(np.uint64).max - held))
    # A file may have any number of stacks, each of any length: only these are named.
    named = {*by_held[:_MAX_NAMED].tolist(), *np.argsort(-pixels)[:_MAX_NAMED].tolist()}
    for place in by_held.tolist():
        key, area = int(found[place]), int(pixels[place])
        text = text_of(key) if place in named else f"#{key}"
        biggest = ((area, int(largest[place])),)
        group = _Group(text, filter_of(key), (key,), biggest, int(held[place]), area)
        groups[text] = groups[text].joined(group) if text in groups else group
    return sorted(groups.values(), key=lambda group: -group.held_bytes)


def _held(groups: Sequence[_Group], colors: Rgb, max_entries: int) -> list[Entry]:
    """Return a line for each group, and one for those that have no room."""
    total = sum(group.held_bytes for group in groups)
    named = groups if len(groups) <= max_entries else groups[: max_entries - 1]
    entries = [_entry(group, colors, _percent(group.held_bytes, total)) for group in named]
    if rest := [group for group in groups[len(named) :] if group.held_bytes]:
        left = sum(group.held_bytes for group in rest)
        entries.append(Entry(f"{len(rest):,} more", amount=_percent(left, total)))
    return entries


def _entry(group: _Group, colors: Rgb, amount: str) -> Entry:
    swatches = _swatches(group, colors)
    return Entry(group.text, swatches, amount, keys=group.keys, filter=group.filter)


def _swatches(group: _Group, colors: Rgb) -> tuple[Color, ...]:
    """Return the colours of most pixels of a group."""
    by_area = sorted(group.largest, reverse=True)
    least = by_area[0][0] // _MAX_SWATCHES
    different = dict.fromkeys(_color(colors[one]) for area, one in by_area if area >= least)
    return tuple(different)[:_MAX_SWATCHES]


def _scale(
    heading: str,
    visible: npt.NDArray[np.generic],
    scale: tuple[int, int, Rgb] | None,
    steps_of: Callable[[float, float, int], list[tuple[float, str]]],
    max_entries: int,
) -> tuple[Entry, ...]:
    """Return a logarithmic scale at round numbers, the largest on top."""
    if len(visible) == 0 or scale is None:
        return ()
    first, last = _log(visible.min()), _log(visible.max())
    steps = steps_of(first, last, min(max_entries - 1, _MAX_STEPS))
    least, greatest, colors = _log(scale[0]), _log(scale[1]), scale[2]
    lines = [Entry(heading, is_heading=True)]
    for value, text in reversed(steps):
        place = np.interp(value, (least, greatest), (0, len(colors) - 1))
        lines.append(Entry(text, (_color(colors[int(place)]),), is_step=True))
    return tuple(lines)


def _log(number: int) -> float:
    return math.log2(max(int(number), 1))


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
        return _category_text(int(a.category[allocation]))
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


def _color(rgb: npt.NDArray[np.generic]) -> Color:
    red, green, blue = (int(one) for one in rgb)
    return red, green, blue
