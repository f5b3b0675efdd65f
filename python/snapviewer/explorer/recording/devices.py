"""Waits for the devices of a model, and counts the memory that a call allocates on them.

A GPU runs asynchronously, so each reading of the clock waits for it. While a CUDA graph is being
captured there is nothing to wait for, and waiting would break the capture.

PyTorch counts the peak since its counter was last reset, so the peak of one call needs a reset when
the call begins. `torch.cuda.max_memory_allocated()` then returns the peak since the last call
began; the value without resets is kept and noted. Calls on several threads share the counter: each
gets the peak of all.

Nothing counts the memory of the CPU, so the storages of the tensors that modules take and return
are counted for as long as they live. That is a lower bound: temporary tensors inside an operation,
and those that no module takes or returns, are not seen.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol


class MemoryCounter(Protocol):
    """The memory counters of a device, in bytes."""

    def allocated(self) -> int: ...
    def peak(self) -> int: ...
    def reset_peak(self) -> None: ...


class Peak:
    """The memory of a call by device: at its beginning, and the peak so far."""

    __slots__ = ("most", "start")

    def __init__(self) -> None:
        self.start: dict[str, int] = {}
        self.most: dict[str, int] = {}

    def grown(self) -> int | None:
        """Return the peak growth since the beginning; None if nothing counted."""
        if not self.start:
            return None
        return sum(self.most[name] - start for name, start in self.start.items())


class Devices:
    """The devices that tensors of a model were seen on."""

    def __init__(self, *, resets_peak: bool) -> None:
        self.waits: list[Callable[[], None]] = []
        """What to call before the clock is read."""
        self._names: list[str] = []
        self._counters: dict[str, MemoryCounter] = {}
        self._is_on_cpu = False
        self._resets_peak = resets_peak

    def see(self, device: Any) -> None:
        """Wait for a device, and count its memory, from now on."""
        name = str(device)
        if device.type == "cpu":
            self._is_on_cpu = True
        if device.type in ("cpu", "meta") or name in self._names:
            return
        self._names.append(name)
        self.waits.append(_wait_of(device))
        if device.type == "cuda" and self._resets_peak:
            self._counters[name] = _Cuda(device)

    def names(self) -> tuple[str, ...]:
        """Return the devices that are waited for."""
        return tuple(self._names)

    def add(self, tensor: Any, *, is_held: bool = False) -> None:
        """Count the storage of a tensor on the CPU; not if the model holds it."""
        if tensor.device.type == "cpu":
            _cpu.add(tensor.untyped_storage(), is_held=is_held)

    def begin(self) -> Peak | None:
        """Start counting the memory of a call; None if nothing counts it."""
        counters = self._counting()
        return _shared.begin(counters) if counters else None

    def end(self, peak: Peak | None) -> int | None:
        """Return the peak growth of memory during a call."""
        return None if peak is None else _shared.end(peak, self._counting())

    def _counting(self) -> dict[str, MemoryCounter]:
        """Return what counts memory: devices, or the CPU where it is the only one."""
        return {"cpu": _cpu} if self._is_on_cpu and not self._names else self._counters

    def peaks(self) -> dict[str, int]:
        """Return the peak of each device, as its counter would be without resets."""
        return {name: _shared.highest[name] for name in self._counters if name in _shared.highest}


class _Shared:
    """The open calls of all recorders: they share the counters of the devices."""

    def __init__(self) -> None:
        self.highest: dict[str, int] = {}
        self._open: list[Peak] = []
        # Reentrant: garbage that is collected meanwhile may call modules.
        self._lock = threading.RLock()

    def begin(self, counters: dict[str, MemoryCounter]) -> Peak:
        with self._lock:
            self._note(counters)
            peak = Peak()
            for name, counter in counters.items():
                counter.reset_peak()
                peak.start[name] = peak.most[name] = counter.allocated()
            self._open.append(peak)
            return peak

    def end(self, peak: Peak, counters: dict[str, MemoryCounter]) -> int | None:
        with self._lock:
            self._note(counters)
            self._open = [one for one in self._open if one is not peak]
            return peak.grown()

    def _note(self, counters: dict[str, MemoryCounter]) -> None:
        for name, counter in counters.items():
            now = counter.peak()
            self.highest[name] = max(self.highest.get(name, 0), now)
            for one in self._open:
                if name in one.start:
                    one.most[name] = max(one.most[name], now)


_shared = _Shared()


class _CpuStorages:
    """Counts the storages of CPU tensors from when they are first seen until they are freed."""

    def __init__(self) -> None:
        self._alive: dict[int, weakref.ref[Any]] = {}
        self._now = self._most = 0
        # Reentrant: a storage may be freed meanwhile.
        self._lock = threading.RLock()

    def add(self, storage: Any, *, is_held: bool) -> None:
        key, size = int(storage._cdata), 0 if is_held else int(storage.nbytes())  # noqa: SLF001

        def freed(_: object) -> None:
            with self._lock:
                self._alive.pop(key, None)
                self._now -= size

        with self._lock:
            if key not in self._alive:
                # The Python object of a storage lives as long as the storage itself.
                self._alive[key] = weakref.ref(storage, freed)
                self._now += size
                self._most = max(self._most, self._now)

    def allocated(self) -> int:
        return self._now

    def peak(self) -> int:
        return self._most

    def reset_peak(self) -> None:
        self._most = self._now


_cpu = _CpuStorages()


class _Cuda:
    def __init__(self, device: Any) -> None:
        import torch

        self._cuda, self._device = torch.cuda, device

    def allocated(self) -> int:
        return int(self._cuda.memory_allocated(self._device))

    def peak(self) -> int:
        return int(self._cuda.max_memory_allocated(self._device))

    def reset_peak(self) -> None:
        self._cuda.reset_peak_memory_stats(self._device)


def _wait_of(device: Any) -> Callable[[], None]:
    """Return a function that waits for a device; it does nothing if torch cannot wait."""
    import torch

    kind = getattr(torch, device.type, None)
    wait: Callable[..., None] | None = getattr(kind, "synchronize", None)
    if wait is None:
        return lambda: None
    if device.type != "cuda":
        return wait if device.type == "mps" else lambda: wait(device)

    def wait_for_cuda() -> None:
        if not torch.cuda.is_current_stream_capturing():
            wait(device)

    return wait_for_cuda
