"""The last two rungs: a stated TDP, and a model of the work. Both are estimates and say so.

A model is a function from work, seconds and setting to terms. New ones are registered:

    @register_energy_model("my board")
    def my_board(work, seconds, setting):
        return (Term("operation", Range(1, 2, 3) * (work.flops * 1e-12), "2 pJ/FLOP, measured"),)

    energy_model(work, seconds, model="my board")
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from snapviewer.model.energy import constants
from snapviewer.model.energy.constants import Assumption, DeviceKind, Range
from snapviewer.model.quantity import Quantity, unavailable


class WorkTotals(Protocol):
    """How much is computed and moved: by a node, by a model."""

    @property
    def flops(self) -> int:
        """Operations, a multiply-add as two."""

    @property
    def read_bytes(self) -> int:
        """What is read from memory."""

    @property
    def written_bytes(self) -> int:
        """What is written to memory."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Where the work is done.

    `temperature_c` is the chip's, None if it is not known; `static_w` the power of the idle
    machine, None for the table's.
    """

    device: DeviceKind = "cpu"
    dtype: str = "float32"
    logical_cpus: int = field(default_factory=lambda: os.cpu_count() or 1)
    temperature_c: float | None = None
    static_w: float | None = None


@dataclass(frozen=True, slots=True)
class Term:
    """One part of an estimate, in joules, and what it assumes."""

    name: str
    joules: Range
    assumption: str

    def quantity(self, model: str) -> Quantity:
        """Return the usual value, as an estimate."""
        return Quantity(self.joules.usual, "J", "estimated", f"{model}: {self.assumption}")


EnergyModel: TypeAlias = Callable[[WorkTotals, float, Setting], tuple[Term, ...]]


@dataclass(frozen=True, slots=True)
class EnergyEstimate:
    """What a model says of a piece of work."""

    model: str
    seconds: float
    terms: tuple[Term, ...]
    flops: int

    @property
    def range(self) -> Range:
        """The joules of all terms: the least, the usual and the most."""
        return sum((term.joules for term in self.terms), Range(0.0, 0.0, 0.0))

    @property
    def energy(self) -> Quantity:
        """All terms together."""
        return Quantity(self.range.usual, "J", "estimated", self._source())

    @property
    def power(self) -> Quantity:
        """The mean power."""
        if self.seconds <= 0:
            return unavailable("W", "the work took no time")
        return Quantity(self.range.usual / self.seconds, "W", "estimated", self._source())

    @property
    def efficiency(self) -> Quantity:
        """What a joule computes."""
        if self.range.usual <= 0:
            return unavailable("FLOP/J", "the model gives no energy")
        return Quantity(self.flops / self.range.usual, "FLOP/J", "estimated", self._source())

    def to_dict(self) -> dict[str, Any]:
        """Return it as the documents have it."""
        return {
            "model": self.model,
            "energy": self.energy.to_dict(),
            "low_j": self.range.low,
            "high_j": self.range.high,
            "power": self.power.to_dict(),
            "efficiency": self.efficiency.to_dict(),
            "terms": {
                term.name: {
                    **term.quantity(self.model).to_dict(),
                    "low": term.joules.low,
                    "high": term.joules.high,
                }
                for term in self.terms
            },
        }

    def _source(self) -> str:
        total = self.range
        return (
            f"model '{self.model}' of {', '.join(term.name for term in self.terms) or 'nothing'}: "
            f"{total.low:.3g} to {total.high:.3g} J"
        )


_MODELS: dict[str, EnergyModel] = {}


def register_energy_model(name: str) -> Callable[[EnergyModel], EnergyModel]:
    """Add a model under a name; a name that is taken is replaced."""

    def add(model: EnergyModel) -> EnergyModel:
        _MODELS[name] = model
        return model

    return add


def energy_models() -> tuple[str, ...]:
    """Return the names of all models.

    >>> "picojoules" in energy_models()
    True
    """
    return tuple(_MODELS)


def energy_model(
    work: WorkTotals, seconds: float, *, setting: Setting | None = None, model: str = "picojoules"
) -> EnergyEstimate:
    """Estimate the energy of a piece of work.

    Args:
        work: How much is computed and moved.
        seconds: How long it takes.
        setting: Where; a processor with float32 if it is not given.
        model: Which model.

    Raises:
        ValueError: There is no such model, or the time is negative.
    """
    if model not in _MODELS:
        raise ValueError(f"no energy model {model!r}; there are: {', '.join(_MODELS)}")
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"a time is at least 0 s, not {seconds}")
    terms = _MODELS[model](work, seconds, setting or Setting())
    return EnergyEstimate(model, seconds, terms, work.flops)


@register_energy_model("picojoules")
def _picojoules(work: WorkTotals, seconds: float, setting: Setting) -> tuple[Term, ...]:
    """Work × picojoules, idle power × time, and what a warm chip leaks besides."""
    operation = constants.OPERATION[setting.device, constants.number_class(setting.dtype)]
    memory = constants.MEMORY[setting.device]
    moved_bytes = work.read_bytes + work.written_bytes
    static_w, static_text = _static_w(setting)
    temperature_c = setting.temperature_c
    above_c = max(
        0.0,
        (constants.ASSUMED_C if temperature_c is None else temperature_c) - constants.REFERENCE_C,
    )
    share = constants.THERMAL.range * above_c
    static_j = static_w * seconds
    return (
        Term("operation", operation.range * (work.flops * 1e-12), _text(operation)),
        Term(
            "memory",
            memory.range * (moved_bytes * 1e-12),
            f"{_text(memory)}; as if no operand were still in a cache",
        ),
        Term("static", static_j, f"{static_text}; {constants.LEFT_OUT}"),
        Term(
            "thermal",
            Range(
                static_j.low * share.low, static_j.usual * share.usual, static_j.high * share.high
            ),
            f"{_text(constants.THERMAL)}: {above_c:g} °C above {constants.REFERENCE_C:g} °C, "
            + ("assumed" if temperature_c is None else "measured"),
        ),
    )


def _static_w(setting: Setting) -> tuple[Range, str]:
    if setting.static_w is not None:
        return Range(setting.static_w, setting.static_w, setting.static_w), "idle power as given"
    static = constants.STATIC[setting.device]
    count = setting.logical_cpus if setting.device == "cpu" else 1
    return static.range * count, f"{_text(static)} × {count}"


def _text(assumption: Assumption) -> str:
    numbers = assumption.range
    return (
        f"{numbers.usual:g} ({numbers.low:g} to {numbers.high:g}) {assumption.unit}, "
        f"{assumption.basis}"
    )


def tdp_estimate(tdp_w: float, utilisation: float, seconds: float) -> Range:
    """Estimate the energy of a run from the power that a chip is built for.

    The usual value is TDP × utilisation × time. A busy chip may well draw half of its share of the
    TDP, as without vector instructions, and at most the whole TDP all the time.

    >>> tdp_estimate(100, 0.5, 2)
    Range(low=50.0, usual=100.0, high=200.0)
    """
    share = min(1.0, max(0.0, utilisation))
    usual = tdp_w * share * seconds
    return Range(usual / 2, usual, max(usual, float(tdp_w * seconds)))
