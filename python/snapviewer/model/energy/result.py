"""The energy of a run, and what each rung of the ladder said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from snapviewer.model.quantity import Quantity


@dataclass(frozen=True, slots=True)
class Attempt:
    """A rung of the ladder: whether it gave the energy, and what it says."""

    rung: str
    is_used: bool
    says: str


@dataclass(frozen=True, slots=True)
class Energy:
    """The energy of a run.

    `low_j` and `high_j` bound an estimate and are None for a measured energy. `idle` is the power
    of the machine before the run and `above_idle` the energy that the run added to it, where that
    was asked for. `beside` is what other rungs measured at the same time, such as the processor
    during a run on a GPU; it is not part of `energy`.
    """

    seconds: Quantity
    energy: Quantity
    power: Quantity
    peak_power: Quantity
    carbon: Quantity
    efficiency: Quantity
    idle: Quantity
    above_idle: Quantity
    low_j: float | None
    high_j: float | None
    domains: tuple[tuple[str, Quantity], ...]
    beside: tuple[tuple[str, Quantity], ...]
    attempts: tuple[Attempt, ...]
    terms: tuple[tuple[str, Quantity], ...] = ()
    """The parts of a modelled energy, each with what it assumes."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as the documents have it."""
        return {
            **{
                name: getattr(self, name).to_dict()
                for name in (
                    "seconds",
                    "energy",
                    "power",
                    "peak_power",
                    "carbon",
                    "efficiency",
                    "idle",
                    "above_idle",
                )
            },
            "low_j": self.low_j,
            "high_j": self.high_j,
            "domains": {name: quantity.to_dict() for name, quantity in self.domains},
            "terms": {name: quantity.to_dict() for name, quantity in self.terms},
            "beside": {name: quantity.to_dict() for name, quantity in self.beside},
            "attempts": [
                {"rung": attempt.rung, "is_used": attempt.is_used, "says": attempt.says}
                for attempt in self.attempts
            ],
        }
