"""What-if questions about a device: one answer per setting."""

from __future__ import annotations

from dataclasses import dataclass

from snapviewer._core import Device, WhatIf, whatif

SENSIBLE = (
    "",
    "expandable_segments:True",
    "max_split_size_mb:128",
    "max_split_size_mb:512",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:8",
)
"""The settings that `--conf all` tries; the first is PyTorch's default."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What is different from the recording, apart from settings."""

    without: tuple[str, ...] = ()
    scale: tuple[tuple[str, float], ...] = ()
    free_early: tuple[tuple[str, int], ...] = ()
    capacity_bytes: int | None = None
    memory_bytes: int | None = None
    gpu: str | None = None

    @property
    def are_requests(self) -> bool:
        """Whether the program itself would ask for something else."""
        return bool(self.without or self.scale or self.free_early)


@dataclass(frozen=True, slots=True)
class Case:
    """An answer, and its settings; None are those of the recording."""

    conf: str | None
    answer: WhatIf


@dataclass(frozen=True, slots=True)
class Comparison:
    """The recording, and what it would have been."""

    recorded: dict[str, int]
    recorded_retries: int
    recorded_oom: int | None
    changes: Changes
    cases: tuple[Case, ...]


def compare(device: Device, confs: tuple[str | None, ...], changes: Changes) -> Comparison:
    """Ask the same about each of some settings.

    Raises:
        ValueError: A setting or a filter is not understood.
        SnapshotError: The file does not contain what it takes.
    """
    cases = tuple(
        Case(
            conf,
            whatif(
                device,
                conf,
                capacity=changes.capacity_bytes,
                memory=changes.memory_bytes,
                without=list(changes.without),
                scale=list(changes.scale),
                free_early=list(changes.free_early),
            ),
        )
        for conf in confs
    )
    releases = device.allocator.releases
    return Comparison(
        device.curves.peaks,
        sum(release.cause == "retry" for release in releases),
        device.oom_at[0] if device.oom_at else None,
        changes,
        cases,
    )
