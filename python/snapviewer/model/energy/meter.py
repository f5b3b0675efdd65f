"""Measures the energy of a run in the best way that the machine offers.

with EnergyMeter(tdp_w=65) as meter:
    for _ in range(50):
        model(inputs)
print(meter.result(runs=50).energy)
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snapviewer.model.energy.assumptions import Range
from snapviewer.model.energy.estimate import (
    EnergySetting,
    Term,
    carbon_of,
    energy_model,
    tdp_estimate,
)
from snapviewer.model.energy.gpu import GpuCounter, GpuPower
from snapviewer.model.energy.rapl import POWERCAP, Rapl
from snapviewer.model.energy.result import Attempt, Energy
from snapviewer.model.energy.sensors import Measurement, Period, Reading, Sensor
from snapviewer.model.energy.work import WorkTotals
from snapviewer.model.nvml import NoAnswerError, close_nvml, find_gpu, open_nvml
from snapviewer.model.quantity import Quantity, Status, unavailable
from snapviewer.model.system.cpu import processor_temperature

if TYPE_CHECKING:
    from typing_extensions import Self

_GPU_SENSORS = (GpuCounter.name, GpuPower.name)


@dataclass(frozen=True, slots=True)
class _Estimate:
    """An estimated energy; `refusals` are the better ways to estimate it that did not apply."""

    name: str = ""
    joules: Range | None = None
    source: str = ""
    terms: tuple[Term, ...] = ()
    setting: EnergySetting | None = None
    refusals: tuple[tuple[str, str], ...] = ()


class EnergyMeter:
    """Measures what happens inside a `with` block.

    Args:
        device: Where the work is done: `cpu`, `cuda` or `cuda:1`.
        tdp_w: The thermal design power of the chip, for an estimate if no sensor works.
        utilisation: The busy share of the chip, for that estimate; by default the measured share
            of the processors' time, and all of a GPU.
        idle_s: How long to watch the idle machine before the run; 0 skips it.
        interval_s: The seconds between readings of a GPU's power.
        model: The energy model to use if there is no sensor and no TDP.
        nvml: A module to use instead of `pynvml`.
        powercap: Where Linux exposes the counters of the processor.
    """

    def __init__(
        self,
        *,
        device: str = "cpu",
        tdp_w: float | None = None,
        utilisation: float | None = None,
        idle_s: float = 0.0,
        interval_s: float = 0.05,
        model: str = "picojoules",
        nvml: Any = None,
        powercap: Path = POWERCAP,
    ) -> None:
        kind, _, index = device.partition(":")
        if kind not in ("cpu", "cuda") or not (index or "0").isdecimal():
            raise ValueError(f"energy is measured on 'cpu' or 'cuda:0', not {device!r}")
        if tdp_w is not None and not 0 < tdp_w < float("inf"):
            raise ValueError(f"a TDP is more than 0 W, not {tdp_w}")
        self._is_gpu = kind == "cuda"
        self._gpu_index = int(index or "0")
        self._tdp_w = tdp_w
        self._utilisation = utilisation
        self._idle_s = idle_s
        self._interval_s = interval_s
        self._model = model
        self._nvml = nvml
        self._powercap = powercap
        self._stack = ExitStack()
        self._measurement: Measurement | None = None
        self._idle: Period | None = None
        self._period: Period | None = None

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        self._idle = self._period = None
        try:
            sensors, refusals = self._sensors()
            if self._idle_s > 0:
                self._idle = self._measure_idle(sensors, refusals)
            self._wait_for_gpu()
            self._measurement = Measurement(sensors, refusals)
        except BaseException:  # such as Ctrl+C while the idle machine is watched
            self._stack.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        try:
            if kind is None:
                self._wait_for_gpu()
        finally:
            if self._measurement is not None:
                self._period = self._measurement.end()
            self._measurement = None
            self._stack.close()

    def result(
        self,
        *,
        runs: int = 1,
        work: WorkTotals | None = None,
        setting: EnergySetting | None = None,
        carbon_intensity: float | None = None,
    ) -> Energy:
        """Return the energy of one of the runs in the block.

        Args:
            runs: How many runs there were, all alike.
            work: What one of them computes, for the energy model and for FLOP/J.
            setting: The hardware, for the energy model.
            carbon_intensity: Grams of CO2 per kilowatt-hour; the world average by default.

        Raises:
            RuntimeError: The block is not over.
            ValueError: There was less than one run.
        """
        if self._period is None:
            raise RuntimeError("the energy is known after the `with` block")
        if runs < 1:
            raise ValueError(f"a block has at least one run, not {runs}")
        period = self._period
        seconds = period.seconds / runs
        # The counters of the processor do not include a GPU.
        used, best = period.best(_GPU_SENSORS if self._is_gpu else period.answers) or ("", None)
        estimate = _Estimate()
        if best is not None:
            energy = Quantity(best.joules / runs, "J", "measured", best.source)
        else:
            estimate = self._estimate(period, runs, work, setting)
            used = estimate.name
            energy = _estimated(estimate, period)
        return Energy(
            seconds=Quantity(seconds, "s", "measured", f"clock, mean of {runs}"),
            energy=energy,
            power=_divided(energy, seconds, "W"),
            peak_power=_peak(best),
            carbon=carbon_of(energy, carbon_intensity),
            efficiency=_efficiency(energy, work),
            idle=self._idle_power(used if best is not None else None),
            above_idle=self._above_idle(energy, used, seconds),
            low_j=estimate.joules.low if estimate.joules else None,
            high_j=estimate.joules.high if estimate.joules else None,
            domains=_domains(best, runs),
            beside=_domains(period.answers.get(Rapl.name), runs) if self._is_gpu else (),
            attempts=_attempts(period, used, estimate, energy),
            model=self._model if estimate.setting else None,
            terms=estimate.terms,
            setting=estimate.setting,
        )

    def _sensors(self) -> tuple[list[Sensor], dict[str, str]]:
        """Return the sensors to try, and those that do not apply with the reason."""
        rapl = Rapl(self._powercap)
        if not self._is_gpu:
            return [rapl], dict.fromkeys(_GPU_SENSORS, "the run is on the processor")
        try:
            nvml = open_nvml(self._nvml)
            self._stack.callback(close_nvml, nvml)
            gpu = find_gpu(nvml, self._gpu_index)
        except NoAnswerError as error:
            return [rapl], dict.fromkeys(_GPU_SENSORS, str(error))
        return [GpuCounter(gpu), GpuPower(gpu, interval_s=self._interval_s), rapl], {}

    def _measure_idle(self, sensors: Sequence[Sensor], refusals: dict[str, str]) -> Period:
        self._wait_for_gpu()
        idle = Measurement(sensors, refusals)
        try:
            time.sleep(self._idle_s)
        finally:
            period = idle.end()
        return period

    def _wait_for_gpu(self) -> None:
        """Wait until the GPU has finished what was queued."""
        torch = sys.modules.get("torch")
        if self._is_gpu and torch is not None and torch.cuda.is_available():
            torch.cuda.synchronize(self._gpu_index)

    def _estimate(
        self, period: Period, runs: int, work: WorkTotals | None, setting: EnergySetting | None
    ) -> _Estimate:
        seconds = period.seconds / runs
        if self._tdp_w is not None:
            share, share_text = self._share(period)
            joules = tdp_estimate(self._tdp_w, share, seconds)
            source = (
                f"TDP {self._tdp_w:g} W as given × utilisation {100 * share:.0f} % {share_text} "
                f"× time: {joules.low:.3g} to {joules.high:.3g} J"
            )
            return _Estimate("TDP estimate", joules, source)
        refusals = (("TDP estimate", "no TDP was given"),)
        if work is not None:
            setting = setting or self._setting()
            found = energy_model(work, seconds, setting=setting, model=self._model)
            return _Estimate(
                "energy model", found.range, found.energy.source, found.terms, setting, refusals
            )
        return _Estimate(refusals=(*refusals, ("energy model", "the work of the run is unknown")))

    def _setting(self) -> EnergySetting:
        if self._is_gpu:
            return EnergySetting(device="gpu")
        return EnergySetting(temperature_c=processor_temperature().value)

    def _share(self, period: Period) -> tuple[float, str]:
        if self._utilisation is not None:
            return min(1.0, max(0.0, self._utilisation)), "as given"
        if self._is_gpu:
            return 1.0, "assumed"
        whole_s = period.seconds * (os.cpu_count() or 1)
        return min(1.0, period.cpu_seconds / whole_s) if whole_s > 0 else 1.0, "measured"

    def _idle_power(self, used: str | None) -> Quantity:
        if self._idle is None:
            return unavailable("W", "the idle machine was not watched")
        answer = self._idle.answers.get(used or "", "nothing measures the energy here")
        if isinstance(answer, str):
            return unavailable("W", answer)
        return Quantity(
            answer.joules / self._idle.seconds,
            "W",
            "measured",
            f"{answer.source}, {self._idle.seconds:.3g} s before the run",
        )

    def _above_idle(self, energy: Quantity, used: str, seconds: float) -> Quantity:
        idle = self._idle_power(used if energy.status == "measured" else None)
        if idle.value is None or energy.value is None:
            return unavailable("J", idle.source)
        return Quantity(
            energy.value - idle.value * seconds,
            "J",
            "computed",
            "energy of the run − idle power × time",
        )


def _estimated(estimate: _Estimate, period: Period) -> Quantity:
    if estimate.joules is not None:
        return Quantity(estimate.joules.usual, "J", "estimated", estimate.source)
    answers = (*period.answers.items(), *estimate.refusals)
    whys = [f"{name}: {why}" for name, why in answers if isinstance(why, str)]
    return unavailable("J", "; ".join(whys))


def _divided(energy: Quantity, seconds: float, unit: str) -> Quantity:
    if energy.value is None:
        return unavailable(unit, energy.source)
    if seconds <= 0:
        return unavailable(unit, "the run took no time")
    return Quantity(energy.value / seconds, unit, energy.status, f"{energy.source}, mean")


def _peak(best: Reading | None) -> Quantity:
    if best is None or best.peak_w is None:
        return unavailable("W", "only sampled power has a peak")
    return Quantity(best.peak_w, "W", "measured", best.source)


def _efficiency(energy: Quantity, work: WorkTotals | None) -> Quantity:
    if work is None:
        return unavailable("FLOP/J", "the work of the run is unknown")
    if not energy.value:
        return unavailable("FLOP/J", energy.source)
    status: Status = "estimated" if energy.status == "estimated" else "computed"
    return Quantity(work.flops / energy.value, "FLOP/J", status, f"FLOPs / ({energy.source})")


def _domains(answer: Reading | str | None, runs: int) -> tuple[tuple[str, Quantity], ...]:
    if not isinstance(answer, Reading):
        return ()
    return tuple(
        (domain.name, Quantity(domain.joules / runs, "J", "measured", answer.source))
        for domain in answer.domains
    )


def _attempts(
    period: Period, used: str, estimate: _Estimate, energy: Quantity
) -> tuple[Attempt, ...]:
    attempts = [
        Attempt(name, name == used, answer if isinstance(answer, str) else answer.source)
        for name, answer in (*period.answers.items(), *estimate.refusals)
    ]
    if estimate.name:
        attempts.append(Attempt(used, True, energy.source))
    return tuple(attempts)
