"""The allocator's settings that were in force, each with its effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from snapviewer import Allocator
from snapviewer.text.units import format_bytes


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting by PyTorch's name, its value, and what it does."""

    name: str
    value: str
    effect: str


def settings_of(allocator: Allocator) -> tuple[Setting, ...]:
    """Return the settings that a trace was recorded with."""
    return settings_in(allocator.settings)


def settings_in(found: Mapping[str, Any]) -> tuple[Setting, ...]:
    """Return the settings of `Allocator.settings`."""
    is_expandable, max_split = found["expandable_segments"], found["max_split_size"]
    threshold, large = found["garbage_collection_threshold"], found["large_segment_size"]
    divisions = _divisions(found["roundup_power2_divisions"])
    return (
        Setting(
            "expandable_segments",
            "on" if is_expandable else "off",
            "Segments grow and shrink by pages, so that free memory stays together."
            if is_expandable
            else "Segments keep their size; free memory of two segments is never joined.",
        ),
        Setting(
            "max_split_size",
            "no limit" if max_split is None else format_bytes(max_split),
            "Free blocks of any size are split for smaller requests."
            if max_split is None
            else "Larger free blocks are not split, and are released first.",
        ),
        Setting(
            "roundup_power2_divisions",
            divisions or "off",
            "Requests are rounded up to a fraction of a power of two: fewer sizes, more slack."
            if divisions
            else "Requests are rounded up to 512 bytes.",
        ),
        Setting(
            "garbage_collection_threshold",
            f"{threshold:.0%}" if threshold else "off",
            "Above this share of the device, cached segments are released, the oldest first."
            if threshold
            else "Cached segments are released only when the device is full.",
        ),
        Setting(
            "large_segment_size",
            format_bytes(large),
            "Requests from 1 to 10 MiB share segments of this size.",
        ),
    )


def settings_source(allocator: Allocator) -> str:
    """Return where the settings are from."""
    if allocator.has_settings:
        return "As recorded in the file."
    return "Not in the file: the settings that explain its trace best."


def _divisions(divisions: Sequence[int]) -> str:
    """Return the divisions of each power of two; empty if there are none.

    >>> _divisions([0] * 16), _divisions([4] * 16), _divisions([0, 8] + [0] * 14)
    ('', '4', '2 MiB: 8')
    """
    used = {1 << 20 + place: count for place, count in enumerate(divisions) if count > 1}
    if len(used) == len(divisions) and len(set(used.values())) == 1:
        return str(divisions[0])
    sizes = ((size >> 20, "MiB") if size < 1 << 30 else (size >> 30, "GiB") for size in used)
    return ", ".join(
        f"{number} {unit}: {count}"
        for (number, unit), count in zip(sizes, used.values(), strict=True)
    )
