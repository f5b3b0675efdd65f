"""The measured limits of the machine: peak rate and memory bandwidth (the roofline).

Work has an arithmetic intensity: operations per byte moved. Below the ridge (the peak rate divided
by the bandwidth) it is memory-bound, above it compute-bound.

# Cost

Less than two seconds, once per process and way to measure.
"""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from snapviewer.model.kernels import Backend, Kernels, Stream, kernels_of
from snapviewer.model.nvml import NoAnswerError
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.system.cpu import last_cache_bytes
from snapviewer.model.system.probe import psutil

Bound: TypeAlias = Literal["memory-bound", "compute-bound", "unknown"]

_MATMUL_S, _STREAM_S = 0.6, 0.3
_MIN_REPEATS, _MAX_REPEATS = 3, 25
_MIB = 2**20
# A median below this share of the best is a sign of disturbance.
_STEADY = 0.75


@dataclass(frozen=True, slots=True)
class Roof:
    """The limits of a machine for numbers of one dtype.

    A spread is how far the median of the repeats is below the best.
    """

    device: str
    dtype: str
    threads: int
    peak: Quantity
    peak_spread: Quantity
    bandwidth: Quantity
    bandwidth_spread: Quantity
    copy_bandwidth: Quantity
    triad_bandwidth: Quantity

    @property
    def ridge(self) -> Quantity:
        """The intensity above which work is compute-bound."""
        if self.peak.value is None or not self.bandwidth.value:
            missing = self.peak if self.peak.value is None else self.bandwidth
            return unavailable("FLOP/B", missing.source)
        return Quantity(
            self.peak.value / self.bandwidth.value, "FLOP/B", "computed", "peak rate / bandwidth"
        )

    def attainable(self, intensity: float) -> Quantity:
        """Return the highest rate that work of an intensity (FLOP/B) can reach."""
        if self.ridge.value is None or self.peak.value is None or self.bandwidth.value is None:
            return unavailable("FLOP/s", self.ridge.source)
        rate = min(self.peak.value, intensity * self.bandwidth.value)
        return Quantity(rate, "FLOP/s", "computed", "lower of peak rate and intensity × bandwidth")


def bound_of(intensity: float | None, roof: Roof) -> Bound:
    """Return what bounds work of an intensity, in FLOP/B."""
    ridge = roof.ridge.value
    if intensity is None or ridge is None or math.isnan(intensity):
        return "unknown"
    return "memory-bound" if intensity < ridge else "compute-bound"


_measured: dict[tuple[str, str, str, int | None], Roof] = {}
_one_at_a_time = threading.Lock()


def measure_roof(
    *,
    threads: int | None = None,
    device: str = "cpu",
    dtype: str = "float32",
    backend: Backend = "auto",
) -> Roof:
    """Measure the machine; later calls return what the first one measured.

    Args:
        threads: The number of threads; the setting of the library by default.
        device: The device, as PyTorch names it.
        dtype: The type of the numbers.
        backend: The library: `torch`, `numpy`, or `auto`: PyTorch if it is loaded.

    Raises:
        ValueError: The library does not support the device or the dtype, or is not installed.
    """
    if threads is not None and threads < 1:
        raise ValueError(f"at least one thread is needed, not {threads}")
    kernels = kernels_of(backend, device=device, dtype=dtype)
    key = (kernels.name, device, dtype, threads)
    with _one_at_a_time:
        if key not in _measured:
            _measured[key] = _measure(kernels, device, dtype, threads)
        return _measured[key]


def _measure(kernels: Kernels, device: str, dtype: str, threads: int | None) -> Roof:
    with kernels.threads(threads) as count:
        if threads is not None and count != threads:
            why = f"{kernels.name} cannot set the number of its threads; PyTorch can"
            peak, peak_spread = unavailable("FLOP/s", why), unavailable("%", why)
        else:
            peak, peak_spread = _peak(kernels, count)
        size_bytes = _array_bytes()
        copy, triad = (
            _bandwidth(stream, kernels, size_bytes) for stream in kernels.streams(size_bytes)
        )
    bandwidth, bandwidth_spread = max(copy, triad, key=lambda measured: measured[0].value or 0.0)
    return Roof(
        device=device,
        dtype=dtype,
        threads=count if threads is None else threads,
        peak=peak,
        peak_spread=peak_spread,
        bandwidth=bandwidth,
        bandwidth_spread=bandwidth_spread,
        copy_bandwidth=copy[0],
        triad_bandwidth=triad[0],
    )


def _peak(kernels: Kernels, threads: int) -> tuple[Quantity, Quantity]:
    """Measure matrix products, as large as the time allows."""
    side = 256
    while True:
        product = kernels.matmul(side)
        product()  # the first also starts threads
        seconds = min(_seconds_of(product) for _ in range(2))
        # Twice the side takes eight times as long.
        if seconds * 8 * 6 > _MATMUL_S or side >= 8192:
            break
        side *= 2
    flops = 2 * side**3
    rates = [flops / seconds for seconds in _repeated(product, _MATMUL_S)]
    return _best(rates, "FLOP/s", f"{kernels.name} product of {side}² matrices, {threads} threads")


def _bandwidth(stream: Stream, kernels: Kernels, size_bytes: int) -> tuple[Quantity, Quantity]:
    stream.run()  # the first also maps the pages
    rates = [stream.moved_bytes / seconds for seconds in _repeated(stream.run, _STREAM_S)]
    what = f"{kernels.name} {stream.name} over arrays of {size_bytes // _MIB} MiB"
    return _best(rates, "B/s", what)


def _array_bytes() -> int:
    """Return the size of an array that exceeds the last cache, if memory allows it."""
    wanted = min(max(2 * (last_cache_bytes() or 0), 32 * _MIB), 512 * _MIB)
    try:
        available = int(psutil().virtual_memory().available)
    except (NoAnswerError, OSError, RuntimeError):
        available = 2**30
    return max(min(wanted, available // 8), 4 * _MIB) // 4096 * 4096


def _repeated(work: Callable[[], None], budget_s: float) -> list[float]:
    """Return the seconds of as many repeats as fit into the time, within limits."""
    seconds = [_seconds_of(work)]
    while len(seconds) < _MAX_REPEATS:
        is_enough = len(seconds) >= _MIN_REPEATS
        if sum(seconds) >= (budget_s if is_enough else 2 * budget_s):
            break
        seconds.append(_seconds_of(work))
    return seconds


def _seconds_of(work: Callable[[], None]) -> float:
    start_ns = time.perf_counter_ns()
    work()
    return max(time.perf_counter_ns() - start_ns, 1) / 1e9


def _best(rates: Sequence[float], unit: str, what: str) -> tuple[Quantity, Quantity]:
    """Return the best of the repeats, and how far below it the median is.

    The best, because it is a limit, and other programs can only slow this one down.
    """
    best, median = max(rates), statistics.median(rates)
    source = f"{what}, best of {len(rates)}"
    if median < _STEADY * best:
        source += ", unsteady: other programs were running or the clock changed"
    return (
        Quantity(best, unit, "measured", source),
        Quantity((1 - median / best) * 100, "%", "measured", f"{source}, median below it"),
    )
