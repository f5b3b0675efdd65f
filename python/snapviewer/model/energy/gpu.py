"""The first two rungs: a GPU's energy counter, and its power sampled."""

from __future__ import annotations

from contextlib import suppress

from snapviewer.model.energy.rungs import Domain, Measured, NoMeasureError
from snapviewer.model.nvml import NoAnswerError, NvmlGpu
from snapviewer.model.sampling import Course, Sampler


class GpuCounter:
    """The energy counter of a card (Volta and newer), in millijoules since the driver started.

    The whole card is measured, whoever uses it.
    """

    name = "NVML energy counter"

    def __init__(self, gpu: NvmlGpu) -> None:
        self._gpu = gpu
        self._start_mj = 0

    def start(self) -> None:
        self._start_mj = self._read_mj()

    def stop(self) -> Measured:
        used_mj = self._read_mj() - self._start_mj
        if used_mj < 0:
            raise NoMeasureError("the counter went back: the driver was reloaded")
        if used_mj == 0:
            raise NoMeasureError("the counter did not move: the run is shorter than its step")
        return Measured(
            (Domain(self._gpu.name, used_mj / 1000),),
            f"NVML energy counter of {self._gpu.name} (the whole card)",
        )

    def _read_mj(self) -> int:
        try:
            return int(self._gpu.ask("nvmlDeviceGetTotalEnergyConsumption"))
        except NoAnswerError as error:
            raise NoMeasureError(str(error)) from None


class GpuPower:
    """The power of a card, read again and again and summed up by trapezoids.

    Cards average their power over up to a second, so that short runs are blurred.
    """

    name = "NVML sampled power"

    def __init__(self, gpu: NvmlGpu, *, interval_s: float = 0.05) -> None:
        self._gpu = gpu
        self._interval_s = interval_s
        self._course = Course()
        self._sampler: Sampler | None = None

    def start(self) -> None:
        try:
            self._read_w()
        except NoAnswerError as error:
            raise NoMeasureError(str(error)) from None
        self._course = Course()
        self._sampler = Sampler(self._sample, interval_s=self._interval_s)
        self._sampler.__enter__()

    def stop(self) -> Measured:
        if self._sampler is not None:
            self._sampler.__exit__(None, None, None)
        course, self._sampler = self._course, None
        if course.count < 2:
            raise NoMeasureError("the card stopped to tell its power")
        return Measured(
            (Domain(self._gpu.name, course.area),),
            f"NVML power of {self._gpu.name} (the whole card), {course.count} readings, one each "
            f"{self._interval_s:g} s, trapezoids",
            peak_w=course.peak,
        )

    def _sample(self) -> None:
        with suppress(NoAnswerError):  # a gap, which the trapezoid bridges
            self._course.add(self._read_w())

    def _read_w(self) -> float:
        return float(self._gpu.ask("nvmlDeviceGetPowerUsage")) / 1000
