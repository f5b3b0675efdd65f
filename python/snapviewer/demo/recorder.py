"""The clock and the trace of one device, as PyTorch records them."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from itertools import cycle
from typing import Any

Frames = list[dict[str, Any]]

NO_COMPILE_CONTEXT = ("N/", "A")


class TraceFullError(Exception):
    """The trace has all the events that were asked for."""


class Recorder:
    """The clock and the trace of one device; a ring keeps only the newest `keep` events."""

    def __init__(
        self,
        rng: random.Random,
        start_us: int,
        empty_frames: Frames,
        *,
        total: int,
        keep: int,
    ) -> None:
        self.time_us = start_us
        self.remaining = total
        self.is_on = False
        self.is_ring = total > keep
        self.trace: list[dict[str, Any]] | deque[dict[str, Any]] = (
            deque(maxlen=keep) if self.is_ring else []
        )
        self.compile_context = NO_COMPILE_CONTEXT
        # Pauses between calls are short, uneven, and often nothing at all.
        pauses = [int(rng.expovariate(1 / 9)) for _ in range(4093)]
        self._pauses: Iterator[int] = cycle(pauses)
        self.empty_frames = empty_frames  # one list for the whole snapshot, as in real files

    def tick(self) -> None:
        """Let a few microseconds pass."""
        self.time_us += next(self._pauses)

    def event(self, action: str, addr: int, size: int, stream: int, frames: Frames | None) -> None:
        """Append one event, as PyTorch writes it.

        Raises:
            TraceFullError: This was the last event to record.
        """
        self._append({"action": action, "addr": addr}, size, stream, frames)

    def oom(self, device_free: int, size: int, stream: int, frames: Frames | None) -> None:
        """Append an `oom` event, which has `device_free` in place of an address."""
        self._append({"action": "oom", "device_free": device_free}, size, stream, frames)

    def _append(self, event: dict[str, Any], size: int, stream: int, frames: Frames | None) -> None:
        if not self.is_on:
            return
        # Concatenating makes a new string for each event, which is what real files hold.
        head, tail = self.compile_context
        self.trace.append(
            {
                **event,
                "size": size,
                "stream": stream,
                "time_us": self.time_us,
                "compile_context": head + tail,
                "user_metadata": "",
                "frames": self.empty_frames if frames is None else frames,
            }
        )
        self.remaining -= 1
        if not self.remaining:
            raise TraceFullError
