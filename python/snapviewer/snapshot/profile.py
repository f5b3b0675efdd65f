"""A profiler's trace beside a snapshot: how well their clocks fit, and what ran at a moment.

Both record Unix times. Annotations that are in both tell how far the clocks are apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt

from snapviewer._core import Clock, Device, Profile, Snapshot, read_profile
from snapviewer.snapshot.annotations import Span
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize
from snapviewer.text.units import count_of, format_duration

ANNOTATION, OPERATOR, KERNEL = range(3)
KINDS = {ANNOTATION: "annotations", OPERATOR: "operators", KERNEL: "kernels"}
MAX_SPANS = 2_000_000
_MAX_LANES = 8  # of a kind; deeper ones are in the last
_FAR_US = 1000  # clocks that are further apart are worth a warning


@dataclass(frozen=True, slots=True)
class ClockFit:
    """How far annotations that are in both files are apart.

    `shared` counts their ends; `offset_us` is the median, and nine of ten are within `spread_us` of
    it. (The first mark of a profiler may be late by milliseconds: it prepares itself then.)
    """

    shared: int
    offset_us: float
    spread_us: float

    def sentence(self) -> str:
        """Return it in words."""
        if not self.shared:
            return "no annotation is in both files: whether the clocks agree is not known"
        apart = format_duration(abs(self.offset_us))
        spread = format_duration(self.spread_us)
        known = count_of(self.shared, "time")
        most = f"nine of ten within {spread} of that"
        return f"clocks agree to {apart}, {most}, by {known} of annotations in both files"

    @property
    def is_far(self) -> bool:
        """Whether the clocks disagree so much that lanes would mislead."""
        return bool(self.shared) and abs(self.offset_us) + self.spread_us > _FAR_US


@dataclass(frozen=True, slots=True, eq=False)
class ProfilerTrace:
    """What the profiler recorded, and how it fits a snapshot."""

    profile: Profile
    fit: ClockFit

    def spans(self, device: Device, clock: Clock | None) -> dict[str, tuple[Span, ...]]:
        """Return the spans of each kind on the clock of a device; none without a clock."""
        if clock is None or not int(device.events):
            return {}
        profile, found = self.profile, {}
        starts_us = (profile.start_ns - clock.start_us * 1000) // 1000
        ends_us = (profile.start_ns + profile.duration_ns - clock.start_us * 1000) // 1000
        is_in = (ends_us >= 0) & (starts_us <= clock.length_us)
        for kind, title in KINDS.items():
            chosen = np.flatnonzero(is_in & (profile.kind == kind))[:MAX_SPANS]
            if len(chosen):
                found[title] = self._spans(chosen, starts_us, ends_us, clock)
        return found

    def _spans(
        self,
        chosen: npt.NDArray[np.int64],
        starts_us: npt.NDArray[np.int64],
        ends_us: npt.NDArray[np.int64],
        clock: Clock,
    ) -> tuple[Span, ...]:
        profile = self.profile
        start = np.clip(starts_us[chosen], 0, clock.length_us)
        end = np.clip(ends_us[chosen], 0, clock.length_us)
        first = np.searchsorted(clock.times, start.astype(np.uint64), side="left")
        after = np.searchsorted(clock.times, end.astype(np.uint64), side="right")
        names = {int(one): profile.text(int(one)) for one in np.unique(profile.name[chosen])}
        lanes = _lanes(start.tolist(), end.tolist())
        texts = [names[name] for name in profile.name[chosen].tolist()]
        return tuple(
            map(
                Span,
                texts,
                lanes,
                start.tolist(),
                end.tolist(),
                first.tolist(),
                after.tolist(),
                (starts_us[chosen] < 0).tolist(),
                (ends_us[chosen] > clock.length_us).tolist(),
            )
        )

    def at(self, unix_us: int) -> tuple[str | None, str | None]:
        """Return the operator and the kernel that ran at a time: the innermost of each."""
        return self._at(unix_us, OPERATOR), self._at(unix_us, KERNEL)

    def _at(self, unix_us: int, kind: int) -> str | None:
        profile = self.profile
        time_ns = unix_us * 1000
        # The snapshot's clock has microseconds: anything that ran within it counts.
        started = int(np.searchsorted(profile.start_ns, time_ns + 999, side="right"))
        ends = profile.start_ns[:started] + profile.duration_ns[:started]
        running = np.flatnonzero((ends >= time_ns) & (profile.kind[:started] == kind))
        if not len(running):
            return None
        return sanitize(profile.text(int(profile.name[running[-1]])), MAX_NAME_CHARS)


def open_trace(path: Path, snapshot: Snapshot, **reports: object) -> ProfilerTrace:
    """Read a profiler's trace and compare its clock with a snapshot's.

    Raises:
        SnapshotError: The file is no profiler's trace; the message says why.
        OSError: The file cannot be read.
    """
    profile = read_profile(path, **reports)  # type: ignore[arg-type]
    return ProfilerTrace(profile, clock_fit(snapshot.annotations, profile))


def clock_fit(
    annotations: Sequence[tuple[str, str, int | None, int]], profile: Profile
) -> ClockFit:
    """Compare annotations that are in both: those that both have equally often, in their order."""
    theirs: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for place in np.flatnonzero(profile.kind == ANNOTATION).tolist():
        start, long = int(profile.start_ns[place]), int(profile.duration_ns[place])
        theirs[profile.text(int(profile.name[place]))].append((start, start + long))
    ours: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for name, stage, _, time_us in annotations:
        ours[name, stage].append(time_us)
    apart: list[float] = []
    for name, times in theirs.items():
        for which, stage in enumerate(("START", "END")):
            mine = sorted(ours.get((name, stage), ()))
            if len(mine) == len(times):
                known = sorted(pair[which] for pair in times)
                apart += [a - b / 1000 for a, b in zip(mine, known, strict=True)]
    if not apart:
        return ClockFit(0, 0.0, 0.0)
    middle = median(apart)
    distances = sorted(abs(one - middle) for one in apart)
    return ClockFit(len(apart), middle, distances[9 * (len(distances) - 1) // 10])


def _lanes(starts: list[int], ends: list[int]) -> list[int]:
    """Return a lane for each span, in the order of their starts: the first that is free."""
    free_from: list[int] = []
    lanes = []
    for start, end in zip(starts, ends, strict=True):
        lane = next((n for n, free in enumerate(free_from) if free <= start), len(free_from))
        lane = min(lane, _MAX_LANES - 1)
        if lane == len(free_from):
            free_from.append(end)
        else:
            free_from[lane] = max(free_from[lane], end)
        lanes.append(lane)
    return lanes
