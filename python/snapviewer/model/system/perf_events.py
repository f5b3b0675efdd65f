"""The performance counters of Linux (`perf_event_open`), for all threads of this program.

The kernel counts for each thread that exists at the start, and for the threads that these start.
Many machines do not permit it, and most virtual ones have no counters.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from snapviewer.model.nvml import NoAnswerError
from snapviewer.model.system.cpu import PROC
from snapviewer.model.system.probe import small_text

_SYSCALL = {"x86_64": 298, "aarch64": 241, "riscv64": 241}
# Inherited by new threads (bit 1); without the kernel (5) and the hypervisor (6), which would need
# more rights.
_FLAGS = 1 << 1 | 1 << 5 | 1 << 6
# Each number comes with the time for which it was enabled and for which it was counted.
_READ_FORMAT = 1 | 2
_ATTRIBUTE = struct.Struct("=IIQQQQQIIQ")
_CLOSE_ON_EXEC = 8
_MAX_THREADS = 512


class PerfEvent(NamedTuple):
    """An event: the type and the number that the kernel knows it by."""

    kind: int
    number: int


class PerfEvents:
    """Counts events in all threads of this program, from `start` to `close`.

    Args:
        events: The events.
        what: The counters, as in "the processor has no cache counters".
        proc: The directory of the process file system.
    """

    def __init__(self, events: Sequence[PerfEvent], what: str, proc: Path = PROC) -> None:
        self._events = tuple(events)
        self._what = what
        self._proc = proc
        self._files: list[tuple[int, int]] = []

    def start(self) -> None:
        """Begin to count.

        Raises:
            NoAnswerError: That is not possible; the message says why.
        """
        number = _SYSCALL.get(platform.machine())
        if sys.platform != "linux" or number is None:
            raise NoAnswerError(f"not supported on {sys.platform} {platform.machine()}")
        try:
            threads = sorted(int(name) for name in os.listdir(self._proc / "self" / "task"))
            for thread in threads[:_MAX_THREADS]:
                for place, event in enumerate(self._events):
                    self._files.append((place, _open(number, event, thread)))
        except (OSError, ValueError, AttributeError) as error:
            self.close()
            raise NoAnswerError(self._reason(error)) from None

    def read(self) -> tuple[float, ...]:
        """Return how often each event has happened since the start.

        Raises:
            NoAnswerError: The counters cannot be read.
        """
        counts = [0.0] * len(self._events)
        try:
            for place, file in self._files:
                count, wanted, running = struct.unpack("=QQQ", os.read(file, 24))
                counts[place] += count * wanted / running if running else 0.0
        except (OSError, struct.error) as error:
            raise NoAnswerError(f"the counters cannot be read: {error}") from None
        return tuple(counts)

    def close(self) -> None:
        """Stop counting."""
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
        if number in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV, errno.EINVAL):
            return f"the processor has no {self._what} counters, as in virtual machines"
        return f"perf_event: {error}"[:200]


def _open(number: int, event: PerfEvent, thread: int) -> int:
    """Open a counter of a thread; it counts from now on.

    Raises:
        OSError: The kernel refuses.
    """
    attribute = _ATTRIBUTE.pack(
        event.kind, _ATTRIBUTE.size, event.number, 0, 0, _READ_FORMAT, _FLAGS, 0, 0, 0
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
