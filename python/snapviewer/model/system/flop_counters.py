"""Floating-point operations as the processor counts them (`perf_event_open`).

Intel counts instructions by the number of results, a multiply-add twice (from Broadwell on: event
0xC7, FP_ARITH_INST_RETIRED); AMD counts FLOPs (from Zen on: event 0x003, retired SSE and AVX
FLOPs). Integer operations and the matrix units of Intel (AMX) are not among them. Before they are
used, the counters have to count a product of known size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from snapviewer.model.nvml import NoAnswerError
from snapviewer.model.system.cpu import PROC
from snapviewer.model.system.perf_events import PerfEvent, PerfEvents
from snapviewer.model.system.probe import small_text

EVENT_SOURCES = Path("/sys/bus/event_source/devices")

_RAW = 4
# The results of an instruction, and the masks of the event with so many: scalar, 2, 4, 8, 16.
_INTEL = {1: 0x03, 2: 0x04, 4: 0x18, 8: 0x60, 16: 0x80}
# Models with only efficient cores, whose event 0xC7 is another one.
_INTEL_EFFICIENT = (0xAF, 0xB6, 0xBE)
_KNOWN_SIDE = 192
_MIN_COUNTED, _MAX_COUNTED = 0.9, 1.5


class FlopCounter(Protocol):
    """Counts a part of the FLOPs of this program; runs under each counter give all of them."""

    def start(self) -> None:
        """Begin to count.

        Raises:
            NoAnswerError: That is not possible.
        """

    def flops(self) -> float:
        """Return the FLOPs since the start."""

    def close(self) -> None:
        """Stop counting."""


class HardwareFlops:
    """One event of the processor, which happens once for so many FLOPs."""

    def __init__(self, event: PerfEvent, flops: int, proc: Path = PROC) -> None:
        self._events = PerfEvents((event,), "floating-point", proc)
        self._flops = flops

    def start(self) -> None:
        self._events.start()

    def flops(self) -> float:
        (count,) = self._events.read()
        return count * self._flops

    def close(self) -> None:
        self._events.close()


def flop_counters(proc: Path = PROC, sources: Path = EVENT_SOURCES) -> tuple[FlopCounter, ...]:
    """Return counters that count correctly on this machine, one to a run: they are few.

    Raises:
        NoAnswerError: There are none; the message says why.
    """
    try:
        cpuinfo = small_text(proc / "cpuinfo")
    except OSError:
        raise NoAnswerError("only Linux has perf_event") from None
    found = tuple(
        HardwareFlops(PerfEvent(_RAW, number), flops, proc)
        for flops, number in _events(cpuinfo, sources)
    )
    check_counters(found)
    return found


def check_counters(counters: Sequence[FlopCounter]) -> None:
    """Let counters count a product of matrices.

    Raises:
        NoAnswerError: They do not work, or count something else.
    """
    import numpy as np

    one = np.ones((_KNOWN_SIDE, _KNOWN_SIDE))
    expected = 2 * _KNOWN_SIDE**3
    counted = 0.0
    for counter in counters:
        with counting(counter):
            before = counter.flops()
            _ = one @ one
            counted += counter.flops() - before
    if not _MIN_COUNTED * expected <= counted <= _MAX_COUNTED * expected:
        raise NoAnswerError(
            f"the counters count {counted:,.0f} of the {expected:,} FLOPs of a known product"
        )


@contextmanager
def counting(counter: FlopCounter) -> Iterator[None]:
    """Count in a `with` block."""
    counter.start()
    try:
        yield
    finally:
        counter.close()


def _events(cpuinfo: str, sources: Path) -> list[tuple[int, int]]:
    """Return the FLOPs of each event and its number.

    Raises:
        NoAnswerError: The processor is not known to count FLOPs.
    """
    fields = dict(re.findall(r"^([^:\n]*?)[ \t]*:[ \t]*(.*)$", cpuinfo, re.MULTILINE))
    vendor, family, model = (fields.get(name, "") for name in ("vendor_id", "cpu family", "model"))
    numbers = [int(text) if text.isdecimal() else -1 for text in (family, model)]
    if vendor == "AuthenticAMD" and numbers[0] >= 0x17:
        is_first = numbers[0] == 0x17 and numbers[1] < 0x30
        mask = 0xFF if is_first else 0x1F if numbers[0] == 0x19 else 0x0F
        return [(1, mask << 8 | 0x03)]
    # Broadwell was the first with this instruction; processors with two kinds of cores have two
    # sources of events instead of `cpu`.
    is_broadwell = "adx" in fields.get("flags", "").split() and (sources / "cpu").exists()
    if vendor == "GenuineIntel" and is_broadwell and numbers[1] not in _INTEL_EFFICIENT:
        return [(flops, mask << 8 | 0xC7) for flops, mask in _INTEL.items()]
    raise NoAnswerError("the floating-point counters of this processor are not known")
