"""The machine: what it has, and what a run uses of it.

Each number is a Quantity; what the platform does not report is unavailable, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from snapviewer.model.quantity import Quantity
from snapviewer.model.system.cpu import Cpu, read_cpu, read_temperatures
from snapviewer.model.system.gpu import Gpu, read_gpus
from snapviewer.model.system.memory import MachineMemory, read_memory
from snapviewer.model.system.monitor import GpuUse, SystemMonitor, SystemUse

__all__ = [
    "Cpu",
    "Gpu",
    "GpuUse",
    "MachineMemory",
    "System",
    "SystemMonitor",
    "SystemUse",
    "read_memory",
    "read_system",
]


@dataclass(frozen=True, slots=True)
class System:
    """The machine at one moment; `gpu_note` says why there are no GPUs."""

    cpu: Cpu
    memory: MachineMemory
    gpus: tuple[Gpu, ...]
    gpu_note: str
    temperatures: tuple[tuple[str, Quantity], ...]


def read_system(*, nvml: Any = None) -> System:
    """Read the state of the machine; this takes 0.1 s, during which utilisation is measured.

    Args:
        nvml: A module to use instead of `pynvml`.
    """
    gpus, gpu_note = read_gpus(nvml)
    return System(read_cpu(), read_memory(), gpus, gpu_note, read_temperatures())
