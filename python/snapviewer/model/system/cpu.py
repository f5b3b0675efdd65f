"""The processor: model, frequency, utilisation, caches, temperature."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from snapviewer.model.nvml import NoAnswerError
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.system.cgroup import cpu_quota
from snapviewer.model.system.probe import probe, probe_errors, psutil, small_text

PROC = Path("/proc")
CPUS = Path("/sys/devices/system/cpu")

# The names in Linux of the sensors in processors of Intel, AMD and Arm.
_PROCESSOR_CHIPS = ("coretemp", "k10temp", "zenpower", "cpu_thermal", "cpu-thermal", "soc_thermal")


@dataclass(frozen=True, slots=True)
class Cpu:
    """The processor at one moment; `usable_cpus` is what this program may use."""

    name: str
    architecture: str
    logical_cpus: Quantity
    physical_cpus: Quantity
    usable_cpus: Quantity
    frequency: Quantity
    highest_frequency: Quantity
    utilisation: Quantity
    load: Quantity
    caches: tuple[tuple[str, Quantity], ...]


def read_cpu(*, proc: Path = PROC, cpus: Path = CPUS, watch_s: float = 0.1) -> Cpu:
    """Read the state of the processor.

    Args:
        proc: The directory of the process file system.
        cpus: The directory of the processors.
        watch_s: The seconds over which utilisation is measured.
    """
    return Cpu(
        name=_name(proc),
        architecture=platform.machine(),
        logical_cpus=probe("CPUs", "os.cpu_count", os.cpu_count),
        physical_cpus=probe("cores", "psutil", lambda: psutil().cpu_count(logical=False)),
        usable_cpus=usable_cpus(proc),
        frequency=frequency(),
        highest_frequency=probe("MHz", "psutil", lambda: _frequency_mhz("max")),
        utilisation=probe("%", "psutil", lambda: psutil().cpu_percent(interval=watch_s)),
        load=probe("runnable", "load of the last minute", lambda: os.getloadavg()[0]),
        caches=_caches(cpus),
    )


def frequency() -> Quantity:
    """Return the current frequency, the mean of all processors."""
    return probe("MHz", "psutil", lambda: _frequency_mhz("current"))


def _frequency_mhz(which: str) -> float | None:
    frequencies = psutil().cpu_freq()
    # Virtual machines report 0 if they do not know it.
    return float(getattr(frequencies, which)) or None if frequencies is not None else None


def usable_cpus(proc: Path = PROC) -> Quantity:
    """Return how many processors this program may use, by affinity and control group."""
    try:
        count: float = len(os.sched_getaffinity(0))
        source = "affinity"
    except (AttributeError, OSError):
        count, source = os.cpu_count() or 1, "os.cpu_count"
    quota = cpu_quota(proc)
    if quota is not None and quota < count:
        count, source = quota, "quota of the control group"
    return Quantity(count, "CPUs", "measured", source)


def read_temperatures() -> tuple[tuple[str, Quantity], ...]:
    """Read all temperature sensors; without any, return a pair with the reason."""
    try:
        found = psutil().sensors_temperatures()
    except NoAnswerError as error:
        return (("machine", unavailable("°C", str(error))),)
    except probe_errors():
        return (("machine", unavailable("°C", "psutil does not report it on this system")),)
    sensors = [
        (
            f"{chip} {sensor.label}".strip(),
            Quantity(float(sensor.current), "°C", "measured", "psutil"),
        )
        for chip, chip_sensors in sorted(found.items())
        for sensor in chip_sensors
        if sensor.current is not None
    ]
    if not sensors:
        return (("machine", unavailable("°C", "no sensor is visible, as in virtual machines")),)
    return tuple(sensors)


def processor_temperature() -> Quantity:
    """Return the temperature of the processor, the highest of its sensors."""
    sensors = read_temperatures()
    own = [reading for name, reading in sensors if name.lower().startswith(_PROCESSOR_CHIPS)]
    if not own:
        if sensors[0][1].value is None:
            return sensors[0][1]
        return unavailable("°C", "no sensor is known to be that of the processor")
    return max(own, key=lambda reading: reading.value or 0.0)


def throttle_count(cpus: Path = CPUS) -> Quantity:
    """Return how often cores were throttled for heat since the machine started."""
    files = sorted(cpus.glob("cpu[0-9]*/thermal_throttle/core_throttle_count"))
    if not files:
        return unavailable("times", "the system does not count it")
    return probe("times", "Linux", lambda: float(sum(int(small_text(file)) for file in files)))


def _name(proc: Path) -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.*)$", small_text(proc / "cpuinfo"), re.MULTILINE)
    except OSError:
        found = None
    name = found.group(1) if found else platform.processor() or platform.machine()
    return name.strip()[:200]


def _caches(cpus: Path) -> tuple[tuple[str, Quantity], ...]:
    """Read the sizes of the caches of the first processor."""
    caches = []
    for index in sorted((cpus / "cpu0" / "cache").glob("index[0-9]*")):
        try:
            level, kind, size = (
                small_text(index / name).strip() for name in ("level", "type", "size")
            )
        except OSError:
            continue
        letter = {"Data": "d", "Instruction": "i"}.get(kind, "")
        shown = re.fullmatch(r"(\d{1,12})([KMG]?)", size)
        if shown:
            unit_bytes = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[shown.group(2)]
            quantity = Quantity(float(int(shown.group(1)) * unit_bytes), "B", "measured", "Linux")
            caches.append((f"L{level[:2]}{letter}", quantity))
    if not caches:
        return (("caches", unavailable("B", "the system does not report their sizes")),)
    return tuple(caches)


def last_cache_bytes(cpus: Path = CPUS) -> int | None:
    """Return the size of the largest cache; None if unknown."""
    sizes = [quantity.value for _, quantity in _caches(cpus) if quantity.value is not None]
    return int(max(sizes)) if sizes else None
