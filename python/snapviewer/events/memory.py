"""Sources of memory numbers for a recording: a CUDA device, or this process.

`torch` is imported when a source is chosen, `psutil` only where the system has nothing better.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, Protocol, TypeAlias

MemoryKind: TypeAlias = Literal["auto", "cuda", "process"]
Fact: TypeAlias = str | int


@dataclass(frozen=True, slots=True)
class Reading:
    """Memory at one moment.

    Attributes:
        level_bytes: Allocated now; for a process, resident.
        peak_bytes: The highest level so far.
        reserved_peak_bytes: The most that PyTorch reserved on the device, if there is one.
        device_used_bytes: In use on the device now, by any process, if known.
    """

    level_bytes: int
    peak_bytes: int
    reserved_peak_bytes: int | None = None
    device_used_bytes: int | None = None


class MemorySource(Protocol):
    """Something whose memory can be recorded."""

    @property
    def name(self) -> str:
        """The name in the log: `cuda` or `process`."""

    def facts(self) -> Mapping[str, Fact]:
        """Return what is known of the device: `device_name`, `device_total_memory`, ….

        Raises:
            OSError, RuntimeError, ValueError: It is not available.
        """

    def read(self) -> Reading:
        """Read the memory in use now.

        Raises:
            OSError, RuntimeError, ValueError: It cannot be read.
        """

    def reset_peak(self) -> bool:
        """Reset the peak to the present level; return whether that is possible."""

    def wait(self) -> None:
        """Wait until the device has done its work, so that durations include it.

        Raises:
            RuntimeError: The work failed.
        """


def memory_source(kind: MemoryKind = "auto", device: object = None) -> MemorySource:
    """Choose a source.

    Args:
        kind: `cuda`, `process`, or `auto`: CUDA if PyTorch is installed and sees a device.
        device: A CUDA device as PyTorch names it, such as 1 or "cuda:1"; None is the current one.

    Raises:
        RuntimeError: `kind` is `cuda`, and there is no CUDA.
        ValueError: There is no such kind or device.
    """
    if kind not in ("auto", "cuda", "process"):
        raise ValueError(f"memory is 'auto', 'cuda' or 'process', not {kind!r}")
    if kind != "process":
        torch = _torch()
        if torch is not None and torch.cuda.is_available():
            return CudaMemory(torch, _device_index(torch, device))
        if kind == "cuda":
            reason = "PyTorch is not installed" if torch is None else "PyTorch sees no CUDA device"
            raise RuntimeError(
                f"{reason}: install a PyTorch with CUDA and check the driver with `nvidia-smi`, "
                "or record the memory of the process with memory='process'"
            )
    return ProcessMemory(_process_reader())


def _torch() -> Any:
    """Import PyTorch; None if it is not installed or cannot be loaded."""
    with suppress(ImportError, OSError, RuntimeError):
        return import_module("torch")
    return None


def torch_version() -> str | None:
    """Return the version of PyTorch without importing it; None if it is not installed."""
    loaded = getattr(sys.modules.get("torch"), "__version__", None)
    if loaded is not None:
        return str(loaded)
    from importlib import metadata

    with suppress(metadata.PackageNotFoundError):
        return metadata.version("torch")
    return None


def _device_index(torch: Any, device: object) -> int:
    try:
        chosen = torch.device("cuda" if device is None else device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"no CUDA device {device!r}: {error}") from None
    index = torch.cuda.current_device() if chosen.index is None else chosen.index
    if chosen.type != "cuda" or index >= torch.cuda.device_count():
        count = torch.cuda.device_count()
        raise ValueError(f"no CUDA device {device!r}: there are {count}, from 'cuda:0' on")
    return int(index)


class CudaMemory:
    """What PyTorch's allocator holds on a CUDA device, and how full the device is."""

    name = "cuda"

    def __init__(self, torch: Any, index: int) -> None:
        self._torch = torch
        self._index = index

    def facts(self) -> Mapping[str, Fact]:
        properties = self._torch.cuda.get_device_properties(self._index)
        return {
            "device_name": str(properties.name),
            "device_index": self._index,
            "device_total_memory": int(properties.total_memory),
        }

    def read(self) -> Reading:
        # One call: `memory_allocated()` and the like each collect all of these statistics.
        stats = self._torch.cuda.memory_stats(self._index)
        used = None
        # Some drivers do not know, and after a failed kernel every call to CUDA fails.
        with suppress(RuntimeError):
            free, total = self._torch.cuda.mem_get_info(self._index)
            used = int(total) - int(free)
        return Reading(
            level_bytes=int(stats.get("allocated_bytes.all.current", 0)),
            peak_bytes=int(stats.get("allocated_bytes.all.peak", 0)),
            reserved_peak_bytes=int(stats.get("reserved_bytes.all.peak", 0)),
            device_used_bytes=used,
        )

    def reset_peak(self) -> bool:
        self._torch.cuda.reset_peak_memory_stats(self._index)
        return True

    def wait(self) -> None:
        self._torch.cuda.synchronize(self._index)


class ProcessMemory:
    """The resident memory of this process."""

    name = "process"

    def __init__(self, reader: Callable[[], Reading]) -> None:
        self.read = reader

    def facts(self) -> Mapping[str, Fact]:
        facts: dict[str, Fact] = {"device_name": f"{platform.system()} {platform.machine()}"}
        with suppress(AttributeError, OSError, ValueError):
            facts["device_total_memory"] = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if self.read is read_usage:
            facts["note"] = "memory_allocated is the peak: without psutil nothing else is known"
        return facts

    def reset_peak(self) -> bool:
        if self.read is not read_proc:
            return False
        try:
            with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
                file.write("5")  # the high-water mark, and nothing else
        except OSError:
            return False
        return True

    def wait(self) -> None:
        """Return at once: a process does its own work."""


def _process_reader() -> Callable[[], Reading]:
    """Return the best reader that this system has.

    Raises:
        RuntimeError: There is none.
    """
    with suppress(OSError, ValueError):
        read_proc()
        return read_proc
    with suppress(ImportError):
        return psutil_reader(import_module("psutil"))
    with suppress(ImportError):
        read_usage()
        return read_usage
    raise RuntimeError("this system does not report a process's memory: `pip install psutil`")


def read_proc(path: str = "/proc/self/status") -> Reading:
    """Read what Linux reports on this process.

    Raises:
        OSError: There is no such file.
        ValueError: It has no such lines.
    """
    with open(path, "rb") as file:
        return reading_of_status(file.read())


def reading_of_status(status: bytes) -> Reading:
    r"""Find the memory in the text of `/proc/self/status`.

    Raises:
        ValueError: It is not there.

    >>> reading_of_status(b"Name:\tpython\nVmHWM:\t 20 kB\nVmRSS:\t 12 kB\n")
    Reading(level_bytes=12288, peak_bytes=20480, reserved_peak_bytes=None, device_used_bytes=None)
    """
    sizes = {}
    for line in status.splitlines():
        if line.startswith((b"VmRSS:", b"VmHWM:")):
            sizes[line[:5]] = int(line.split()[1]) * 1024
    if b"VmRSS" not in sizes:
        raise ValueError("the system does not report the memory of this process")
    level = sizes[b"VmRSS"]
    # The kernel updates these two at different moments, and some kernels lack the second.
    return Reading(level, max(level, sizes.get(b"VmHWM", 0)))


def psutil_reader(psutil: Any) -> Callable[[], Reading]:
    """Return a function that asks psutil, which knows the peak only on Windows."""
    process = psutil.Process()

    def read_psutil() -> Reading:
        try:
            memory = process.memory_info()
        except psutil.Error as error:
            raise RuntimeError(str(error)) from None
        peak = getattr(memory, "peak_wset", 0)
        with suppress(ImportError):
            peak = peak or read_usage().peak_bytes
        return Reading(int(memory.rss), max(int(memory.rss), int(peak)))

    return read_psutil


def read_usage() -> Reading:
    """Read the high-water mark, where the level is not known.

    Raises:
        ImportError: This is Windows.
    """
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak *= 1 if sys.platform == "darwin" else 1024
    return Reading(peak, peak)
