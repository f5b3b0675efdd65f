"""What the rungs of the ladder have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class NoMeasureError(Exception):
    """A rung does not work here; the text says why."""


@dataclass(frozen=True, slots=True)
class Domain:
    """A part of the machine and its energy."""

    name: str
    joules: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What a rung measured."""

    domains: tuple[Domain, ...]
    source: str
    peak_w: float | None = None

    @property
    def joules(self) -> float:
        """The energy of all domains."""
        return sum(domain.joules for domain in self.domains)


class Rung(Protocol):
    """A way to measure energy."""

    @property
    def name(self) -> str:
        """What a report calls it."""

    def start(self) -> None:
        """Begin to measure.

        Raises:
            NoMeasureError: It cannot.
        """

    def stop(self) -> Measured:
        """End measuring; comes once after each `start` that did not raise.

        Raises:
            NoMeasureError: There is nothing that could be relied on.
        """
