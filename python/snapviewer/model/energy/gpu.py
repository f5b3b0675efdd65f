"""GPU sensors: the energy counter, and sampled power."""

from __future__ import annotations

from contextlib import suppress

from snapviewer.model.energy.sensors import Domain, NoReadingError, Reading
from snapviewer.model.nvml import NoAnswerError, NvmlGpu
from snapviewer.model.sampling import Sampler, TimeIntegral


class GpuCounter:
    """The energy counter of a card (Volta and newer), in millijoules since the driver started.

    It counts the whole card, for all programs.
    """

    name = "NVML energy counter"

    def __init__(self, gpu: NvmlGpu) -> None:
        self._gpu = gpu
        self._start_mj = 0

    def start(self) -> None:
        self._start_mj = self._read_mj()

    def stop(self) -> Reading:
        used_mj = self._read_mj() - self._start_mj
        if used_mj < 0:
            raise NoReadingError("the counter decreased: the driver was reloaded")
        if used_mj == 0:
            raise NoReadingError("the counter did not change: the run is too short")
        return Reading(
            (Domain(self._gpu.name, used_mj / 1000),),
            f"NVML energy counter of {self._gpu.name} (the whole card)",
        )

    def _read_mj(self) -> int:
        try:
            return int(self._gpu.ask("nvmlDeviceGetTotalEnergyConsumption"))
        except NoAnswerError as error:
            raise NoReadingError(str(error)) from None


class GpuPower:
    """The sampled power of a card, integrated with the trapezoidal rule.

    Cards average their power over up to a second, which blurs short runs.
    """

    name = "NVML sampled power"

    def __init__(self, gpu: NvmlGpu, *, interval_s: float = 0.05) -> None:
        self._gpu = gpu
        self._interval_s = interval_s
        self._integral = TimeIntegral()
        self._sampler: Sampler | None = None

    def start(self) -> None:
        try:
            self._read_w()
        except NoAnswerError as error:
            raise NoReadingError(str(error)) from None
        self._integral = TimeIntegral()
        self._sampler = Sampler(self._sample, interval_s=self._interval_s)
        self._sampler.__enter__()

    def stop(self) -> Reading:
        if self._sampler is not None:
            self._sampler.__exit__(None, None, None)
        integral, self._sampler = self._integral, None
        if integral.count < 2:
            raise NoReadingError("the card stopped reporting its power")
        return Reading(
            (Domain(self._gpu.name, integral.area),),
            f"NVML power of {self._gpu.name} (the whole card), {integral.count} readings, one "
            f"every {self._interval_s:g} s, trapezoidal rule",
            peak_w=integral.peak,
        )

    def _sample(self) -> None:
        with suppress(NoAnswerError):  # a gap, which the trapezoidal rule bridges
            self._integral.add(self._read_w())

    def _read_w(self) -> float:
        return float(self._gpu.ask("nvmlDeviceGetPowerUsage")) / 1000
