"""What is different between the live allocations of two snapshots, by group.

The core adds up the groups of each side. Groups of the same name are one row, so that the rows add
up to the totals of both sides.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from snapviewer._core import Device, Snapshot, load

from .moments import device_of, event_of, step_of

Kind: TypeAlias = Literal["new", "gone", "larger", "smaller", "more often", "less often", "same"]

# What rows can be matched by, and the core's name for it. A site is a function of a file: lines
# move when a file is edited.
GROUPINGS = {
    "line": "line",
    "stack": "stack",
    "site": "function",
    "module": "module",
    "category": "category",
}


@dataclass(frozen=True, slots=True)
class Row:
    """A group: its bytes and allocations in A and in B."""

    key: str
    a_bytes: int
    b_bytes: int
    a_count: int
    b_count: int

    @property
    def change_bytes(self) -> int:
        """How many bytes B has more; negative if less."""
        return self.b_bytes - self.a_bytes

    @property
    def kind(self) -> Kind:
        """What happened to the group from A to B."""
        if not self.a_count and self.b_count:
            return "new"
        if self.a_count and not self.b_count:
            return "gone"
        if self.change_bytes:
            return "larger" if self.change_bytes > 0 else "smaller"
        if self.a_count != self.b_count:
            return "more often" if self.b_count > self.a_count else "less often"
        return "same"


@dataclass(frozen=True, slots=True)
class Side:
    """One of the snapshots: the device, the moment that is compared, and its peaks.

    `is_trace` is False for a state without a trace. `missing` is what the file lacks for the
    grouping, as a sentence; `step` is the name of the step whose peak is compared.
    """

    format: str
    predicted: Mapping[str, Any] | None
    device: int
    event: int
    step: str | None
    is_peak: bool
    is_trace: bool
    total_bytes: int
    count: int
    peak_bytes: int
    reserved_bytes: int
    settings: Mapping[str, Any]
    has_settings: bool
    missing: str | None


@dataclass(frozen=True, slots=True)
class Difference:
    """What changes from A to B; all groups are rows, the largest change first."""

    by: str
    a: Side
    b: Side
    rows: tuple[Row, ...]

    @property
    def change_bytes(self) -> int:
        """By how much the totals differ: the sum of the changes of all rows."""
        return self.b.total_bytes - self.a.total_bytes

    @property
    def changed(self) -> tuple[Row, ...]:
        """The rows that are not the same."""
        return tuple(row for row in self.rows if row.kind != "same")


def diff(
    a: str | os.PathLike[str] | Snapshot,
    b: str | os.PathLike[str] | Snapshot,
    *,
    by: str = "line",
    event: int | str = "peak",
    step: str | int | None = None,
    device: int | None = None,
) -> Difference:
    """Compare what is alive in two snapshots.

    Args:
        a: The older snapshot or bundle, or its file.
        b: The newer one.
        by: "line", "stack", "site" (file and function, without the line), "module" or "category".
        event: "peak", "oom", "end", or an event's number: the moment to compare in each.
        step: Compare the peaks of this step instead: its name, or the number that it ends with.
        device: The device; default: the one with the largest peak in A.

    Raises:
        ValueError: There is no such device, event or step, or the grouping is not known.
        SnapshotError: A file cannot be read.
    """
    first = a if isinstance(a, Snapshot) else load(a)
    second = b if isinstance(b, Snapshot) else load(b)
    pair = paired(first, second, device)
    events = []
    for name, one in zip("AB", pair, strict=True):
        with _named(name):
            events.append(_event(one, event, step))
    return compare((first, pair[0], *events[0]), (second, pair[1], *events[1]), by)


def paired(a: Snapshot, b: Snapshot, device: int | None) -> tuple[Device, Device]:
    """Return the devices to compare.

    Without a number, that is the device with the largest peak in A, and in B the same one; if B has
    none of this number, its largest.

    Raises:
        ValueError: A file does not have the device.
    """
    with _named("A"):
        first = device_of(a, device)
    with _named("B"):
        if device is None and all(first.index != one.index for one in b.devices):
            return first, device_of(b, None)
        return first, device_of(b, first.index)


@contextmanager
def _named(side: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{side}: {error}") from None


def _event(device: Device, event: int | str, step: str | int | None) -> tuple[int, str | None]:
    if step is None:
        return event_of(device, event), None
    found = step_of(device, str(step))
    return found.peak_event, found.name


def compare(
    a: tuple[Snapshot, Device, int, str | None],
    b: tuple[Snapshot, Device, int, str | None],
    by: str,
) -> Difference:
    """Compare the live allocations of two devices.

    Args:
        a: A snapshot, its device, the event, and the name of its step if it is a step's peak.
        b: The same of the newer one.
        by: One of `GROUPINGS`.

    Raises:
        ValueError: The grouping is not known.
    """
    if by not in GROUPINGS:
        raise ValueError(f"a difference is by {', '.join(GROUPINGS)}, not by {by!r}")
    rows: dict[str, list[int]] = {}
    sides = []
    for place, (snapshot, device, event, step) in enumerate((a, b)):
        alive = device.alive(event, GROUPINGS[by])
        for group in alive.groups:
            key = _without_directories(group.key) if by == "stack" else group.key
            row = rows.setdefault(key, [0, 0, 0, 0])
            row[place] += group.bytes
            row[2 + place] += group.count
        predicted = snapshot.metadata.get("predicted")
        side = Side(
            format=snapshot.format,
            predicted=predicted if isinstance(predicted, dict | None) else {},
            device=device.index,
            event=event,
            step=step,
            is_peak=event == device.peak_event,
            is_trace=bool(device.events),
            total_bytes=alive.total_bytes,
            count=alive.count,
            peak_bytes=device.peak_bytes,
            reserved_bytes=device.reserved_peak_bytes,
            settings=device.allocator.settings,
            has_settings=device.allocator.has_settings,
            missing=alive.missing,
        )
        sides.append(side)
    listed = [Row(key, *numbers) for key, numbers in rows.items()]
    listed.sort(key=lambda row: (-abs(row.change_bytes), row.kind == "same", -row.b_bytes, row.key))
    return Difference(by, sides[0], sides[1], tuple(listed))


def _without_directories(stack: str) -> str:
    r"""Name the files of a stack as lines do, so that two checkouts have the same.

    >>> _without_directories("forward (/home/me/model.py:7)\nmain (train.py:9)")
    'forward (model.py:7)\nmain (train.py:9)'
    """
    frames = []
    for frame in stack.split("\n"):
        name, opening, place = frame.rpartition(" (")
        frames.append(name + opening + re.split(r"[/\\]", place)[-1])
    return "\n".join(frames)
