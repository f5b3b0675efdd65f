"""Energy where no sensor measures it: from a TDP, or from a model of the work; and its carbon.

An energy model is a function from work, seconds and setting to terms. To register another:

    @register_energy_model("my board")
    def my_board(work, seconds, setting):
        return (Term("operation", Range(1, 2, 3) * (work.flops * 1e-12), "2 pJ/FLOP, measured"),)

    energy_model(work, seconds, model="my board")
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from snapviewer.model.energy import assumptions
from snapviewer.model.energy.assumptions import Assumption, DeviceKind, Range
from snapviewer.model.energy.work import WorkTotals, parts_of
from snapviewer.model.quantity import Quantity, unavailable

WORLD_G_PER_KWH = 481.0
WORLD_SOURCE = "world average of 2023 (Ember, yearly electricity data, 2024)"

_JOULES_PER_KWH = 3.6e6


@dataclass(frozen=True, slots=True)
class EnergySetting:
    """The hardware that does the work.

    `temperature_c` is that of the chip, None if unknown; `static_w` is the power of the idle
    machine, None to use the assumed one.
    """

    device: DeviceKind = "cpu"
    dtype: str = "float32"
    logical_cpus: int = field(default_factory=lambda: os.cpu_count() or 1)
    temperature_c: float | None = None
    static_w: float | None = None


@dataclass(frozen=True, slots=True)
class Term:
    """One part of an estimate, and what it assumes, in words and as rows of a table."""

    name: str
    joules: Range
    assumption: str
    assumptions: tuple[Assumption, ...] = ()

    def quantity(self, model: str) -> Quantity:
        """Return the usual value, as an estimate."""
        return Quantity(self.joules.usual, "J", "estimated", f"{model}: {self.assumption}")


EnergyModel: TypeAlias = Callable[[WorkTotals, float, EnergySetting], tuple[Term, ...]]


@dataclass(frozen=True, slots=True)
class EnergyEstimate:
    """The energy that a model estimates for some work."""

    model: str
    seconds: float
    terms: tuple[Term, ...]
    flops: int

    @property
    def range(self) -> Range:
        """The sum of all terms, in joules."""
        return sum((term.joules for term in self.terms), Range(0.0, 0.0, 0.0))

    @property
    def energy(self) -> Quantity:
        """The usual energy."""
        return Quantity(self.range.usual, "J", "estimated", self._source())

    @property
    def power(self) -> Quantity:
        """The mean power."""
        if self.seconds <= 0:
            return unavailable("W", "the work took no time")
        return Quantity(self.range.usual / self.seconds, "W", "estimated", self._source())

    @property
    def efficiency(self) -> Quantity:
        """The operations per joule."""
        if self.range.usual <= 0:
            return unavailable("FLOP/J", "the model gives no energy")
        return Quantity(self.flops / self.range.usual, "FLOP/J", "estimated", self._source())

    def _source(self) -> str:
        total = self.range
        return (
            f"model '{self.model}' of {', '.join(term.name for term in self.terms) or 'nothing'}: "
            f"{total.low:.3g} to {total.high:.3g} J"
        )


_MODELS: dict[str, EnergyModel] = {}


def register_energy_model(name: str) -> Callable[[EnergyModel], EnergyModel]:
    """Register a model under a name, in place of one that has it."""

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
    work: WorkTotals,
    seconds: float,
    *,
    setting: EnergySetting | None = None,
    model: str = "picojoules",
) -> EnergyEstimate:
    """Estimate the energy of a piece of work.

    Args:
        work: What is computed and moved.
        seconds: How long it takes.
        setting: The hardware; a processor computing in float32 by default.
        model: The name of the model.

    Raises:
        ValueError: There is no such model, or the time is negative.
    """
    if model not in _MODELS:
        raise ValueError(f"no energy model {model!r}; there are: {', '.join(_MODELS)}")
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"a time is at least 0 s, not {seconds}")
    terms = _MODELS[model](work, seconds, setting or EnergySetting())
    return EnergyEstimate(model, seconds, terms, work.flops)


@register_energy_model("picojoules")
def _picojoules(work: WorkTotals, seconds: float, setting: EnergySetting) -> tuple[Term, ...]:
    """Return work × picojoules, idle power × time, and the leakage of a warm chip."""
    static, thermal = assumptions.STATIC[setting.device], assumptions.THERMAL
    static_w, static_text = _static_w(setting, static)
    temperature_c = setting.temperature_c
    above_c = max(
        0.0,
        (assumptions.ASSUMED_C if temperature_c is None else temperature_c)
        - assumptions.REFERENCE_C,
    )
    static_j = static_w * seconds
    return (
        *_terms_of_work(work, setting),
        Term(
            "static",
            static_j,
            f"{static_text}; {assumptions.LEFT_OUT}",
            () if setting.static_w is not None else (static,),
        ),
        Term(
            "thermal",
            static_j * (thermal.range * above_c),
            f"{thermal}: {above_c:g} °C above {assumptions.REFERENCE_C:g} °C, "
            + ("assumed" if temperature_c is None else "measured"),
            (thermal,),
        ),
    )


def _terms_of_work(work: WorkTotals, setting: EnergySetting) -> tuple[Term, Term]:
    """Return the energy of arithmetic, and of moving operands, by the class of each operation."""
    operation_j = memory_j = Range(0.0, 0.0, 0.0)
    memory, cache = assumptions.MEMORY[setting.device], assumptions.CACHE
    used: dict[Assumption, None] = {}
    moved: dict[Assumption, None] = {memory: None, cache: None}
    for part in parts_of(work, setting.dtype):
        kind = assumptions.CLASSES[part.operation]
        flop = assumptions.operation_of(setting.device, part.dtype, kind.name)
        moved_bytes = part.read_bytes + part.written_bytes
        fetched = assumptions.fetched_bytes(part.flops, moved_bytes, part.dtype, kind.name)
        operation_j += flop.range * kind.arithmetic.range * (part.flops * 1e-12)
        memory_j += memory.range * kind.traffic.range * (moved_bytes * 1e-12)
        memory_j += cache.range * fetched * 1e-12
        used |= dict.fromkeys((flop, kind.arithmetic))
        moved |= dict.fromkeys((kind.traffic, kind.reuse))
    return (
        Term("operation", operation_j, _list("FLOPs × the energy of each", used), tuple(used)),
        Term("memory", memory_j, _list("bytes × the energy of each", moved), tuple(moved)),
    )


def _list(what: str, used: Iterable[Assumption]) -> str:
    numbers = ", ".join(f"{row.name} {row.range.usual:g} {row.unit}" for row in used)
    return f"{what}: {numbers or 'no operations'}"


def _static_w(setting: EnergySetting, static: Assumption) -> tuple[Range, str]:
    if setting.static_w is not None:
        return Range(setting.static_w, setting.static_w, setting.static_w), "idle power as given"
    count = setting.logical_cpus if setting.device == "cpu" else 1
    return static.range * count, f"{static} × {count}"


def tdp_estimate(tdp_w: float, utilisation: float, seconds: float) -> Range:
    """Estimate the energy of a run from the thermal design power of a chip.

    The usual value is TDP × utilisation × time. A busy chip may draw half of that, for example
    without vector instructions, and at most the whole TDP all the time.

    >>> tdp_estimate(100, 0.5, 2)
    Range(low=50.0, usual=100.0, high=200.0)
    """
    share = min(1.0, max(0.0, utilisation))
    usual = tdp_w * share * seconds
    return Range(usual / 2, usual, max(usual, float(tdp_w * seconds)))


def carbon_of(energy: Quantity, intensity_g_per_kwh: float | None = None) -> Quantity:
    """Return the carbon dioxide of an energy.

    Args:
        energy: Joules.
        intensity_g_per_kwh: Grams of CO2 per kilowatt-hour; the world average by default.

    Returns:
        Grams. They are an estimate even if the energy was measured, because the intensity is an
        average.

    Raises:
        ValueError: The intensity is negative or not a number.

    >>> carbon_of(Quantity(3.6e6, "J", "measured", "RAPL"), 50).value
    50.0
    """
    if energy.value is None:
        return unavailable("g CO2", energy.source)
    intensity, source = WORLD_G_PER_KWH, WORLD_SOURCE
    if intensity_g_per_kwh is not None:
        intensity, source = intensity_g_per_kwh, "as given"
    if not 0 <= intensity < float("inf"):
        raise ValueError(f"a carbon intensity is at least 0 g/kWh, not {intensity}")
    grams = energy.value / _JOULES_PER_KWH * intensity
    return Quantity(grams, "g CO2", "estimated", f"energy × {intensity:g} g CO2/kWh, {source}")
