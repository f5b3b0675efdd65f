"""Measures what a run uses of the machine.

with SystemMonitor() as monitor:
    run()
print(monitor.result().cpu_utilisation)
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from snapviewer.model.nvml import NoAnswerError, NvmlGpu, all_gpus, close_nvml, open_nvml
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.sampling import SampledQuantity, Sampler
from snapviewer.model.system import gpu as gpus
from snapviewer.model.system.cache_hits import CacheCounters
from snapviewer.model.system.counters import (
    BusyShare,
    Counters,
    busy_share,
    change,
    read_counters,
)
from snapviewer.model.system.cpu import PROC, frequency, processor_temperature, usable_cpus
from snapviewer.model.system.memory import resident

if TYPE_CHECKING:
    from typing_extensions import Self


# The share of the processors that other programs may take before a report mentions it.
_SHARED = 0.25


@dataclass(frozen=True, slots=True)
class GpuUse:
    """The use of a GPU by all programs; `slowed` is the share of time in which it was throttled."""

    name: str
    utilisation: Quantity
    utilisation_peak: Quantity
    memory_peak: Quantity
    temperature_peak: Quantity
    power: Quantity
    power_peak: Quantity
    slowed: Quantity


@dataclass(frozen=True, slots=True)
class SystemUse:
    """The use of the machine during a run.

    `program_cpus` is how many processors this program kept busy, `cpu_efficiency` the share of
    those that it may use. Disk is what this process read and wrote; network is that of the whole
    machine.
    """

    seconds: Quantity
    cpu_utilisation: Quantity
    cpu_utilisation_peak: Quantity
    program_cpus: Quantity
    cpu_efficiency: Quantity
    frequency: Quantity
    cache_hits: Quantity
    temperature_peak: Quantity
    slowed_for_heat: Quantity
    memory_peak: Quantity
    disk_read: Quantity
    disk_written: Quantity
    network_received: Quantity
    network_sent: Quantity
    gpus: tuple[GpuUse, ...]
    gpu_note: str

    @property
    def is_shared(self) -> bool:
        """Whether other programs took more than a quarter of the processors."""
        busy, own, cpus = self.cpu_utilisation.value, self.program_cpus.value, os.cpu_count() or 1
        return busy is not None and own is not None and busy / 100 - own / cpus > _SHARED


class SystemMonitor:
    """Samples the machine inside a `with` block, a few times a second.

    Args:
        interval_s: The seconds between samples.
        nvml: A module to use instead of `pynvml`.
        proc: The directory of the process file system.
    """

    def __init__(self, *, interval_s: float = 0.2, nvml: Any = None, proc: Path = PROC) -> None:
        self._interval_s = interval_s
        self._proc = proc
        self._nvml = nvml
        self._stack = ExitStack()
        self._sampled: dict[str, SampledQuantity] = {}
        self._gpus: tuple[NvmlGpu, ...] = ()
        self._gpu_note = ""
        self._cache = CacheCounters()
        self._before: Counters | None = None
        self._start_s = self._cpu_s = 0.0
        self._result: SystemUse | None = None

    def __enter__(self) -> Self:
        self._result = None
        self._stack = ExitStack()
        self._gpus, self._gpu_note = self._open_gpus()
        self._sampled = {name: SampledQuantity(read) for name, read in self._readings().items()}
        self._before = read_counters(self._proc)
        self._cache.start()
        self._stack.enter_context(Sampler(self._sample, interval_s=self._interval_s))
        self._cpu_s, self._start_s = time.process_time(), time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        seconds = time.perf_counter() - self._start_s
        cpu_seconds = time.process_time() - self._cpu_s
        cache_hits = self._cache.stop()
        after = read_counters(self._proc)
        self._stack.close()
        if self._before is not None:
            self._result = self._gathered(seconds, cpu_seconds, cache_hits, self._before, after)

    def result(self) -> SystemUse:
        """Return what was used.

        Raises:
            RuntimeError: The block is not over.
        """
        if self._result is None:
            raise RuntimeError("the use of the machine is known after the `with` block")
        return self._result

    def _open_gpus(self) -> tuple[tuple[NvmlGpu, ...], str]:
        try:
            nvml = open_nvml(self._nvml)
            self._stack.callback(close_nvml, nvml)
            found = all_gpus(nvml)
        except NoAnswerError as error:
            return (), str(error)
        return found, "" if found else "NVML sees no GPU"

    def _readings(self) -> dict[str, Callable[[], Quantity]]:
        """Return the functions that are sampled."""
        readings: dict[str, Callable[[], Quantity]] = {
            "busy": BusyShare().read,
            "frequency": frequency,
            "memory": resident,
            "temperature": processor_temperature,
        }
        for gpu in self._gpus:
            for name, read in _GPU_READINGS.items():
                readings[f"{gpu.name} {name}"] = _bound(read, gpu)
        return readings

    def _sample(self) -> None:
        for sampled in self._sampled.values():
            sampled.sample()

    def _gathered(
        self,
        seconds: float,
        cpu_seconds: float,
        cache_hits: Quantity,
        before: Counters,
        after: Counters,
    ) -> SystemUse:
        sampled = self._sampled
        program_cpus = _program_cpus(cpu_seconds, seconds)
        return SystemUse(
            seconds=Quantity(seconds, "s", "measured", "clock"),
            cpu_utilisation=busy_share(before.processors, after.processors),
            cpu_utilisation_peak=sampled["busy"].peak(),
            program_cpus=program_cpus,
            cpu_efficiency=_efficiency(program_cpus),
            frequency=sampled["frequency"].mean(),
            cache_hits=cache_hits,
            temperature_peak=sampled["temperature"].peak(),
            slowed_for_heat=change(before.throttles, after.throttles),
            memory_peak=_memory_peak(
                before.memory_peak, after.memory_peak, sampled["memory"].peak()
            ),
            disk_read=change(before.disk_read, after.disk_read),
            disk_written=change(before.disk_written, after.disk_written),
            network_received=change(before.received, after.received),
            network_sent=change(before.sent, after.sent),
            gpus=tuple(self._gpu_use(gpu) for gpu in self._gpus),
            gpu_note=self._gpu_note,
        )

    def _gpu_use(self, gpu: NvmlGpu) -> GpuUse:
        sampled = {name: self._sampled[f"{gpu.name} {name}"] for name in _GPU_READINGS}
        return GpuUse(
            name=gpu.name,
            utilisation=sampled["utilisation"].mean(),
            utilisation_peak=sampled["utilisation"].peak(),
            memory_peak=sampled["memory"].peak(),
            temperature_peak=sampled["temperature"].peak(),
            power=sampled["power"].mean(),
            power_peak=sampled["power"].peak(),
            slowed=sampled["slowed"].mean(),
        )


_GPU_READINGS: dict[str, Callable[[NvmlGpu], Quantity]] = {
    "utilisation": gpus.utilisation,
    "memory": gpus.memory_used,
    "temperature": gpus.temperature,
    "power": gpus.power,
    "slowed": gpus.slowed,
}


def _bound(read: Callable[[NvmlGpu], Quantity], gpu: NvmlGpu) -> Callable[[], Quantity]:
    return lambda: read(gpu)


def _program_cpus(cpu_seconds: float, seconds: float) -> Quantity:
    if seconds <= 0:
        return unavailable("CPUs", "the run took no time")
    return Quantity(cpu_seconds / seconds, "CPUs", "measured", "processor time / time")


def _efficiency(program_cpus: Quantity) -> Quantity:
    usable = usable_cpus()
    if program_cpus.value is None or not usable.value:
        return unavailable("%", program_cpus.source)
    return Quantity(
        program_cpus.value / usable.value * 100,
        "%",
        "computed",
        f"{program_cpus.source}, of {usable.value:g} CPUs ({usable.source})",
    )


def _memory_peak(before: Quantity, after: Quantity, sampled: Quantity) -> Quantity:
    """Return the peak of the kernel if it is from this run, else the highest sample."""
    if before.value is not None and after.value is not None and after.value > before.value:
        return Quantity(after.value, "B", "measured", "peak of the kernel")
    return sampled
