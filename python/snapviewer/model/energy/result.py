"""The energy of a run, and the ways in which it was looked for."""

from __future__ import annotations

from dataclasses import dataclass

from snapviewer.model.energy.assumptions import Assumption
from snapviewer.model.energy.estimate import EnergySetting, Term, carbon_of, energy_model
from snapviewer.model.energy.work import WorkTotals
from snapviewer.model.quantity import Quantity, unavailable


@dataclass(frozen=True, slots=True)
class Attempt:
    """A way to find the energy: whether it was used, and what it reported or why it failed."""

    name: str
    is_used: bool
    message: str


@dataclass(frozen=True, slots=True)
class Energy:
    """The energy of a run.

    `low_j` and `high_j` bound an estimate and are None for a measured energy. `idle` is the power
    of the machine before the run and `above_idle` the energy that the run added to it, if the idle
    machine was watched. `beside` is what other sensors measured at the same time, such as the
    processor during a run on a GPU; it is not part of `energy`. `terms` are the parts of an energy
    that `model` estimated for hardware as in `setting`.
    """

    seconds: Quantity
    energy: Quantity
    power: Quantity
    peak_power: Quantity
    carbon: Quantity
    efficiency: Quantity
    idle: Quantity
    above_idle: Quantity
    low_j: float | None = None
    high_j: float | None = None
    domains: tuple[tuple[str, Quantity], ...] = ()
    beside: tuple[tuple[str, Quantity], ...] = ()
    attempts: tuple[Attempt, ...] = ()
    model: str | None = None
    terms: tuple[Term, ...] = ()
    setting: EnergySetting | None = None

    @property
    def is_modelled(self) -> bool:
        """Whether an energy model estimated it."""
        return self.model is not None

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """The assumptions of all terms, each once."""
        return tuple(dict.fromkeys(row for term in self.terms for row in term.assumptions))


def energy_without_run(
    work: WorkTotals | None, why: str, *, model: str, carbon_intensity: float | None
) -> Energy:
    """Estimate the energy of the work alone, for a model that was not run.

    Args:
        work: What a run computes and moves; None if that is not known.
        why: Why there is no measured energy.
        model: The energy model.
        carbon_intensity: Grams of CO2 per kilowatt-hour; the world average if None.
    """
    estimate = energy_model(work, 0.0, model=model) if work is not None else None
    energy = estimate.energy if estimate else unavailable("J", why)
    return Energy(
        seconds=unavailable("s", why),
        energy=energy,
        power=unavailable("W", why),
        peak_power=unavailable("W", why),
        carbon=carbon_of(energy, carbon_intensity),
        efficiency=estimate.efficiency if estimate else unavailable("FLOP/J", why),
        idle=unavailable("W", why),
        above_idle=unavailable("J", why),
        low_j=estimate.range.low if estimate else None,
        high_j=estimate.range.high if estimate else None,
        model=estimate.model if estimate else None,
        terms=estimate.terms if estimate else (),
    )
