"""NVIDIA's GPUs: what they are and what they do at one moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from snapviewer.model.nvml import NoAnswerError, NvmlGpu, all_gpus, close_nvml, open_nvml
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.system.asking import asked

# The bits of NVML's "clocks event reasons" that mean: slower than it could be.
_SLOWED_BY = {
    0x4: "power limit",
    0x8: "hardware slowdown",
    0x20: "heat (driver)",
    0x40: "heat (hardware)",
    0x80: "power brake",
}


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU at one moment; `slowed` is 0 or 1 and its source names the reasons."""

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
    """Look at all GPUs.

    Args:
        nvml: A module to use instead of `pynvml`.

    Returns:
        The GPUs, and why there are none if there are none.
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
    """Look at a GPU."""
    return Gpu(
        name=_name(gpu),
        memory_total=_asked("B", gpu, lambda: gpu.ask("nvmlDeviceGetMemoryInfo").total),
        memory_used=memory_used(gpu),
        utilisation=utilisation(gpu),
        memory_utilisation=_asked(
            "%", gpu, lambda: gpu.ask("nvmlDeviceGetUtilizationRates").memory
        ),
        temperature=temperature(gpu),
        power=power(gpu),
        power_limit=_asked("W", gpu, lambda: gpu.ask("nvmlDeviceGetPowerManagementLimit") / 1000),
        clock=_asked(
            "MHz", gpu, lambda: gpu.ask("nvmlDeviceGetClockInfo", gpu.constant("NVML_CLOCK_SM"))
        ),
        slowed=slowed(gpu),
    )


def memory_used(gpu: NvmlGpu) -> Quantity:
    """Tell how much of a GPU's memory is taken, by whomever."""
    return _asked("B", gpu, lambda: gpu.ask("nvmlDeviceGetMemoryInfo").used)


def utilisation(gpu: NvmlGpu) -> Quantity:
    """Tell the share of the last moments in which a GPU had something to do."""
    return _asked("%", gpu, lambda: gpu.ask("nvmlDeviceGetUtilizationRates").gpu)


def temperature(gpu: NvmlGpu) -> Quantity:
    """Tell how warm a GPU is."""
    return _asked(
        "°C",
        gpu,
        lambda: gpu.ask("nvmlDeviceGetTemperature", gpu.constant("NVML_TEMPERATURE_GPU")),
    )


def power(gpu: NvmlGpu) -> Quantity:
    """Tell what a GPU draws."""
    return _asked("W", gpu, lambda: gpu.ask("nvmlDeviceGetPowerUsage") / 1000)


def slowed(gpu: NvmlGpu) -> Quantity:
    """Tell whether a GPU runs slower than it could, 1 or 0; the source names the reasons."""
    try:
        bits = int(_reasons(gpu))
    except NoAnswerError as error:
        return unavailable("", str(error))
    reasons = [text for bit, text in _SLOWED_BY.items() if bits & bit]
    source = f"NVML: {', '.join(reasons)}" if reasons else "NVML"
    return Quantity(float(bool(reasons)), "", "measured", source)


def _reasons(gpu: NvmlGpu) -> Any:
    """Ask by the function's name of the present, then by that of drivers before 535."""
    try:
        return gpu.ask("nvmlDeviceGetCurrentClocksEventReasons")
    except NoAnswerError:
        return gpu.ask("nvmlDeviceGetCurrentClocksThrottleReasons")


def _asked(unit: str, gpu: NvmlGpu, ask: Callable[[], float | None]) -> Quantity:
    return asked(unit, f"NVML of {gpu.name}", ask)


def _name(gpu: NvmlGpu) -> str:
    try:
        name = gpu.ask("nvmlDeviceGetName")
    except NoAnswerError:
        return gpu.name
    return (name.decode(errors="replace") if isinstance(name, bytes) else str(name))[:200]
