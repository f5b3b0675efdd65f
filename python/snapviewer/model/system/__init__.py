"""The machine: what it has, and what a run uses of it.

Each number is a Quantity; what the platform hides is unavailable and says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from snapviewer.model.quantity import Quantity
from snapviewer.model.system.cpu import Cpu, read_cpu, read_temperatures
from snapviewer.model.system.gpu import Gpu, read_gpus
from snapviewer.model.system.memory import Memory, read_memory
from snapviewer.model.system.monitor import GpuUse, SystemMonitor, SystemUse

__all__ = [
    "Cpu",
    "Gpu",
    "GpuUse",
    "Memory",
    "System",
    "SystemMonitor",
    "SystemUse",
    "read_memory",
    "read_system",
]


@dataclass(frozen=True, slots=True)
class System:
    """The machine at one moment. `gpu_note` says why there are no GPUs, where there are none."""

    cpu: Cpu
    memory: Memory
    gpus: tuple[Gpu, ...]
    gpu_note: str
    temperatures: tuple[tuple[str, Quantity], ...]


def read_system(*, nvml: Any = None) -> System:
    """Look at the machine; takes a tenth of a second, in which the utilisation is measured.

    Args:
        nvml: A module to use instead of `pynvml`.
    """
    gpus, gpu_note = read_gpus(nvml)
    return System(read_cpu(), read_memory(), gpus, gpu_note, read_temperatures())
