"""NVIDIA GPUs: model, memory, utilisation, temperature, power, clocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from snapviewer.model.nvml import NoAnswerError, NvmlGpu, all_gpus, close_nvml, open_nvml
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.system.probe import probe

# The bits of NVML's "clocks event reasons" that mean throttling.
_SLOWED_BY = {
    0x4: "power limit",
    0x8: "hardware slowdown",
    0x20: "heat (driver)",
    0x40: "heat (hardware)",
    0x80: "power brake",
}


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU at one moment; `slowed` is 1 if it is throttled, and its source names the reasons."""

    name: str
    memory_total: Quantity
    memory_used: Quantity
    utilisation: Quantity
    memory_utilisation: Quantity
    temperature: Quantity
    power: Quantity
    power_limit: Quantity
    clock: Quantity
    slowed: Quantity


def read_gpus(nvml: Any = None) -> tuple[tuple[Gpu, ...], str]:
    """Read the state of all GPUs.

    Args:
        nvml: A module to use instead of `pynvml`.

    Returns:
        The GPUs, and the reason if there are none.
    """
    try:
        nvml = open_nvml(nvml)
    except NoAnswerError as error:
        return (), str(error)
    try:
        gpus = tuple(read_gpu(gpu) for gpu in all_gpus(nvml))
        return gpus, "" if gpus else "NVML sees no GPU"
    except NoAnswerError as error:
        return (), str(error)
    finally:
        close_nvml(nvml)


def read_gpu(gpu: NvmlGpu) -> Gpu:
    """Read the state of a GPU."""
    return Gpu(
        name=_name(gpu),
        memory_total=_probe("B", gpu, lambda: gpu.ask("nvmlDeviceGetMemoryInfo").total),
        memory_used=memory_used(gpu),
        utilisation=utilisation(gpu),
        memory_utilisation=_probe(
            "%", gpu, lambda: gpu.ask("nvmlDeviceGetUtilizationRates").memory
        ),
        temperature=temperature(gpu),
        power=power(gpu),
        power_limit=_probe("W", gpu, lambda: gpu.ask("nvmlDeviceGetPowerManagementLimit") / 1000),
        clock=_probe(
            "MHz", gpu, lambda: gpu.ask("nvmlDeviceGetClockInfo", gpu.constant("NVML_CLOCK_SM"))
        ),
        slowed=slowed(gpu),
    )


def memory_used(gpu: NvmlGpu) -> Quantity:
    """Return the used memory of a GPU, of all programs."""
    return _probe("B", gpu, lambda: gpu.ask("nvmlDeviceGetMemoryInfo").used)


def utilisation(gpu: NvmlGpu) -> Quantity:
    """Return the share of the last moments in which a GPU was busy."""
    return _probe("%", gpu, lambda: gpu.ask("nvmlDeviceGetUtilizationRates").gpu)


def temperature(gpu: NvmlGpu) -> Quantity:
    """Return the temperature of a GPU."""
    return _probe(
        "°C",
        gpu,
        lambda: gpu.ask("nvmlDeviceGetTemperature", gpu.constant("NVML_TEMPERATURE_GPU")),
    )


def power(gpu: NvmlGpu) -> Quantity:
    """Return the power draw of a GPU."""
    return _probe("W", gpu, lambda: gpu.ask("nvmlDeviceGetPowerUsage") / 1000)


def slowed(gpu: NvmlGpu) -> Quantity:
    """Return 1 if a GPU is throttled, else 0; the source names the reasons."""
    try:
        bits = int(_reasons(gpu))
    except NoAnswerError as error:
        return unavailable("", str(error))
    reasons = [text for bit, text in _SLOWED_BY.items() if bits & bit]
    source = f"NVML: {', '.join(reasons)}" if reasons else "NVML"
    return Quantity(float(bool(reasons)), "", "measured", source)


def _reasons(gpu: NvmlGpu) -> Any:
    """Call the current function, or the one that drivers before 535 have."""
    try:
        return gpu.ask("nvmlDeviceGetCurrentClocksEventReasons")
    except NoAnswerError:
        return gpu.ask("nvmlDeviceGetCurrentClocksThrottleReasons")


def _probe(unit: str, gpu: NvmlGpu, read: Callable[[], float | None]) -> Quantity:
    return probe(unit, f"NVML of {gpu.name}", read)


def _name(gpu: NvmlGpu) -> str:
    try:
        name = gpu.ask("nvmlDeviceGetName")
    except NoAnswerError:
        return gpu.name
    return (name.decode(errors="replace") if isinstance(name, bytes) else str(name))[:200]
