"""Measures the energy of a run by the best way that the machine offers.

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
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from snapviewer.model.energy.carbon import carbon_of
from snapviewer.model.energy.constants import Range
from snapviewer.model.energy.estimate import Setting, WorkTotals, energy_model, tdp_estimate
from snapviewer.model.energy.gpu import GpuCounter, GpuPower
from snapviewer.model.energy.rapl import POWERCAP, Rapl
from snapviewer.model.energy.result import Attempt, Energy
from snapviewer.model.energy.rungs import Measured, Rung
from snapviewer.model.energy.watch import LADDER, Period, Watch
from snapviewer.model.nvml import NoAnswerError, close_nvml, find_gpu, open_nvml
from snapviewer.model.quantity import Quantity, Status, unavailable
from snapviewer.model.system.cpu import processor_temperature

if TYPE_CHECKING:
    from typing_extensions import Self


class EnergyMeter:
    """Measures what happens inside a `with` block.

    Args:
        device: Where the work is done: `cpu`, `cuda` or `cuda:1`.
        tdp_w: The power that the chip is built for, for an estimate where nothing is measured.
        utilisation: The share of the chip that is busy, for that estimate; the measured share of
            the processors' time if it is not given, and all of a GPU.
        idle_s: How long to watch the idle machine before the run; 0 for not at all.
        interval_s: How often a GPU's power is read.
        model: The model of the last rung.
        nvml: A module to use instead of `pynvml`.
        powercap: Where Linux shows the processor's counters.
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
        self._run: Watch | None = None
        self._idle: Period | None = None
        self._period: Period | None = None

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        self._idle = self._period = None
        try:
            rungs, refusals = self._rungs()
            if self._idle_s > 0:
                self._idle = self._watched_idle(rungs, refusals)
            self._wait_for_gpu()
            self._run = Watch(rungs, refusals)
        except BaseException:  # such as Ctrl+C while the idle machine is watched
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                self._wait_for_gpu()
        finally:
            if self._run is not None:
                self._period = self._run.end()
            self._run = None
            self._stack.close()

    def result(
        self,
        *,
        runs: int = 1,
        work: WorkTotals | None = None,
        setting: Setting | None = None,
        carbon_intensity: float | None = None,
    ) -> Energy:
        """Tell the energy of one of the runs in the block.

        Args:
            runs: How many there were, all alike.
            work: What one of them computes, for the model of the last rung and for FLOP/J.
            setting: Where, for that model.
            carbon_intensity: Grams of CO2 for a kilowatt-hour; the world's average if not given.

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
        # The processor's counters say nothing of a GPU's energy.
        used, best = period.best(LADDER[:2] if self._is_gpu else LADDER) or ("", None)
        estimate: Range | None = None
        terms: tuple[tuple[str, Quantity], ...] = ()
        unused: list[tuple[str, str]] = []
        if best is not None:
            energy = Quantity(best.joules / runs, "J", "measured", best.source)
        else:
            used, estimate, source, unused, terms = self._estimate(period, runs, work, setting)
            why = "; ".join(
                f"{name}: {said}"
                for name, said in (*period.answers, *unused)
                if isinstance(said, str)
            )
            energy = (
                unavailable("J", why)
                if estimate is None
                else Quantity(estimate.usual, "J", "estimated", source)
            )
        return Energy(
            seconds=Quantity(seconds, "s", "measured", f"clock, mean of {runs}"),
            energy=energy,
            power=_divided(energy, seconds, "W"),
            peak_power=_peak(best),
            carbon=carbon_of(energy, carbon_intensity),
            efficiency=_efficiency(energy, work),
            idle=self._idle_power(used if best is not None else None),
            above_idle=self._above_idle(energy, used, seconds),
            low_j=estimate.low if estimate else None,
            high_j=estimate.high if estimate else None,
            domains=_domains(best, runs) if best else (),
            beside=tuple(
                domain
                for name, said in period.answers
                if isinstance(said, Measured) and name == Rapl.name and self._is_gpu
                for domain in _domains(said, runs)
            ),
            attempts=_attempts(period, used, unused, energy),
            terms=terms,
        )

    def _rungs(self) -> tuple[list[Rung], list[tuple[str, str]]]:
        """Return the rungs to try, and those that do not suit with the reason."""
        rapl = Rapl(self._powercap)
        gpu_names = (GpuCounter.name, GpuPower.name)
        if not self._is_gpu:
            return [rapl], [(name, "the run is on the processor") for name in gpu_names]
        try:
            nvml = open_nvml(self._nvml)
            self._stack.callback(close_nvml, nvml)
            gpu = find_gpu(nvml, self._gpu_index)
        except NoAnswerError as error:
            return [rapl], [(name, str(error)) for name in gpu_names]
        return [GpuCounter(gpu), GpuPower(gpu, interval_s=self._interval_s), rapl], []

    def _watched_idle(self, rungs: Sequence[Rung], refusals: Sequence[tuple[str, str]]) -> Period:
        self._wait_for_gpu()
        idle = Watch(rungs, refusals)
        try:
            time.sleep(self._idle_s)
        finally:
            period = idle.end()
        return period

    def _wait_for_gpu(self) -> None:
        """Wait for the GPU's work, which goes on while the processor is already further."""
        torch = sys.modules.get("torch")
        if self._is_gpu and torch is not None and torch.cuda.is_available():
            torch.cuda.synchronize(self._gpu_index)

    def _estimate(
        self, period: Period, runs: int, work: WorkTotals | None, setting: Setting | None
    ) -> tuple[str, Range | None, str, list[tuple[str, str]], tuple[tuple[str, Quantity], ...]]:
        """Return the rung that estimates, what it says and why, those above it, and its terms."""
        unused: list[tuple[str, str]] = []
        if self._tdp_w is not None:
            share, share_text = self._share(period)
            joules = tdp_estimate(self._tdp_w, share, period.seconds / runs)
            source = (
                f"TDP {self._tdp_w:g} W as given × utilisation {share:.0%} {share_text} × time: "
                f"{joules.low:.3g} to {joules.high:.3g} J"
            )
            return "TDP estimate", joules, source, unused, ()
        unused.append(("TDP estimate", "no TDP was given"))
        if work is not None:
            where = setting or self._setting()
            modelled = energy_model(work, period.seconds / runs, setting=where, model=self._model)
            terms = tuple((term.name, term.quantity(self._model)) for term in modelled.terms)
            return "energy model", modelled.range, modelled.energy.source, unused, terms
        unused.append(("energy model", "the work of the run is not known"))
        return "", None, "", unused, ()

    def _setting(self) -> Setting:
        if self._is_gpu:
            return Setting(device="gpu")
        return Setting(temperature_c=processor_temperature().value)

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
        said = dict(self._idle.answers).get(used or "", "nothing measures the energy here")
        if isinstance(said, str):
            return unavailable("W", said)
        return Quantity(
            said.joules / self._idle.seconds,
            "W",
            "measured",
            f"{said.source}, {self._idle.seconds:.3g} s before the run",
        )

    def _above_idle(self, energy: Quantity, used: str, seconds: float) -> Quantity:
        idle = self._idle_power(used if energy.status == "measured" else None)
        if idle.value is None or energy.value is None:
            return unavailable("J", idle.source)
        return Quantity(
            energy.value - idle.value * seconds,
            "J",
            "computed",
            "energy of the run less the idle machine's in the same time",
        )


def _divided(energy: Quantity, seconds: float, unit: str) -> Quantity:
    if energy.value is None:
        return unavailable(unit, energy.source)
    if seconds <= 0:
        return unavailable(unit, "the run took no time")
    return Quantity(energy.value / seconds, unit, energy.status, f"{energy.source}, mean")


def _peak(best: Measured | None) -> Quantity:
    if best is None or best.peak_w is None:
        return unavailable("W", "only sampled power shows its peak")
    return Quantity(best.peak_w, "W", "measured", best.source)


def _efficiency(energy: Quantity, work: WorkTotals | None) -> Quantity:
    if work is None:
        return unavailable("FLOP/J", "the work of the run is not known")
    if not energy.value:
        return unavailable("FLOP/J", energy.source)
    status: Status = "estimated" if energy.status == "estimated" else "computed"
    return Quantity(work.flops / energy.value, "FLOP/J", status, f"FLOPs / ({energy.source})")


def _domains(measured: Measured, runs: int) -> tuple[tuple[str, Quantity], ...]:
    return tuple(
        (domain.name, Quantity(domain.joules / runs, "J", "measured", measured.source))
        for domain in measured.domains
    )


def _attempts(
    period: Period, used: str, unused: Sequence[tuple[str, str]], energy: Quantity
) -> tuple[Attempt, ...]:
    attempts = [
        Attempt(name, name == used, said if isinstance(said, str) else said.source)
        for name, said in (*period.answers, *unused)
    ]
    if used and not any(attempt.is_used for attempt in attempts):
        attempts.append(Attempt(used, True, energy.source))
    return tuple(attempts)
