"""The hit rate of the last-level cache, from the performance counters of Linux.

The kernel counts for each thread of this program that exists at the start, and for the threads
that these start. Many machines do not permit it, and most virtual ones have no such counter.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from contextlib import suppress
from pathlib import Path

from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.system.probe import small_text

PROC = Path("/proc")

_SYSCALL = {"x86_64": 298, "aarch64": 241, "riscv64": 241}
_HARDWARE = 0
_CACHE_REFERENCES, _CACHE_MISSES = 2, 3
# Inherited by new threads (bit 1); without the kernel (5) and the hypervisor (6), which would need
# more rights.
_FLAGS = 1 << 1 | 1 << 5 | 1 << 6
# Each number comes with the time for which it was enabled and for which it was counted.
_READ_FORMAT = 1 | 2
_ATTRIBUTE = struct.Struct("=IIQQQQQIIQ")
_CLOSE_ON_EXEC = 8
_MAX_THREADS = 512


class CacheCounters:
    """Counts accesses to the last-level cache and misses, from `start` to `stop`."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._files: list[tuple[int, int]] = []
        self._why = "the counters were not started"

    def start(self) -> None:
        """Begin to count; if that is not possible, `stop` returns the reason."""
        self._files = []
        number = _SYSCALL.get(platform.machine())
        if sys.platform != "linux" or number is None:
            self._why = f"not supported on {sys.platform} {platform.machine()}"
            return
        try:
            threads = sorted(int(name) for name in os.listdir(self._proc / "self" / "task"))
            for thread in threads[:_MAX_THREADS]:
                for event in (_CACHE_REFERENCES, _CACHE_MISSES):
                    self._files.append((event, _open(number, event, thread)))
        except (OSError, ValueError, AttributeError) as error:
            self._close()
            self._why = self._reason(error)

    def stop(self) -> Quantity:
        """Return the share of accesses that were hits."""
        if not self._files:
            return unavailable("%", self._why)
        counts = {_CACHE_REFERENCES: 0.0, _CACHE_MISSES: 0.0}
        try:
            for event, file in self._files:
                count, wanted, running = struct.unpack("=QQQ", os.read(file, 24))
                counts[event] += count * wanted / running if running else 0.0
        except (OSError, struct.error) as error:
            return unavailable("%", f"the counters cannot be read: {error}")
        finally:
            self._close()
        accesses, misses = counts[_CACHE_REFERENCES], counts[_CACHE_MISSES]
        if accesses <= 0:
            return unavailable("%", "the counters counted nothing")
        hits = max(0.0, 1 - misses / accesses) * 100
        return Quantity(hits, "%", "measured", f"perf_event, {accesses:.3g} last-cache accesses")

    def _close(self) -> None:
        for _, file in self._files:
            with suppress(OSError):
                os.close(file)
        self._files = []

    def _reason(self, error: Exception) -> str:
        number = getattr(error, "errno", None)
        if number in (errno.EACCES, errno.EPERM):
            with suppress(OSError):
                level = small_text(self._proc / "sys/kernel/perf_event_paranoid").strip()[:8]
                return f"perf_event is not permitted (kernel.perf_event_paranoid is {level})"
            return "perf_event is not permitted"
        if number in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
            return "the processor has no cache counters, as in virtual machines"
        return f"perf_event: {error}"[:200]


def _open(number: int, event: int, thread: int) -> int:
    """Open a counter of a thread; it counts from now on.

    Raises:
        OSError: The kernel refuses.
    """
    attribute = _ATTRIBUTE.pack(
        _HARDWARE, _ATTRIBUTE.size, event, 0, 0, _READ_FORMAT, _FLAGS, 0, 0, 0
    )
    library = ctypes.CDLL(None, use_errno=True)
    file = int(
        library.syscall(
            ctypes.c_long(number),
            ctypes.c_char_p(attribute),
            ctypes.c_int(thread),
            ctypes.c_int(-1),
            ctypes.c_int(-1),
            ctypes.c_ulong(_CLOSE_ON_EXEC),
        )
    )
    if file < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return file
