"""Reads memory for a recording, whatever goes wrong: peaks never fall, and nothing raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from snapviewer.events.memory import MemorySource, Reading
from snapviewer.events.safe_values import Value, json_value, kind_of, message_of, name_of

_Answer = TypeVar("_Answer")

_MB = 2**20


@dataclass(frozen=True, slots=True)
class Measured:
    """What an event says of memory, by the names of the log; the level, if it could be read."""

    level_bytes: int | None
    fields: Mapping[str, object] = field(default_factory=dict)


class Meter:
    """A source of memory and the most that was read of it.

    Args:
        source: What is read.
        complain: What to do with a sentence about what went wrong; it comes once.
    """

    def __init__(self, source: MemorySource, complain: Callable[[str], None]) -> None:
        self._source = source
        self._complain = complain
        self._has_complained = False
        self._peaks: dict[str, int] = {}

    def begin(self, *, resets_peak: bool) -> dict[str, object]:
        """Tell what is known of the source, and from when on its peak counts."""
        is_reset = resets_peak and self._asked(lambda source: source.reset_peak()) is True
        return {
            "memory_source": self._asked(lambda source: source.name),
            "peak_since": "entry" if is_reset else "process_start",
            **(self._asked(_facts) or {}),
        }

    def read(self) -> Measured:
        """Measure memory; where that fails, there is still the peak until now."""
        reading = self._asked(_reading)
        if reading is not None:
            # Someone else may reset the source's peaks while we record.
            self._note("peak_memory", max(reading.peak_bytes, reading.level_bytes))
            self._note("cuda_runtime_peak", reading.device_used_bytes)
            self._note("pytorch_runtime_peak", reading.reserved_peak_bytes)
        fields: dict[str, object] = {
            name: size_bytes if name == "peak_memory" else round(size_bytes / _MB, 3)
            for name, size_bytes in self._peaks.items()
        }
        if reading is None:
            return Measured(None, fields)
        return Measured(reading.level_bytes, fields | {"memory_allocated": reading.level_bytes})

    def wait(self) -> None:
        """Wait for the work of the device; its errors will be met by whoever uses it next."""
        self._asked(lambda source: source.wait())

    def _note(self, name: str, size_bytes: int | None) -> None:
        if size_bytes is not None:
            self._peaks[name] = max(self._peaks.get(name, 0), size_bytes)

    def _asked(self, question: Callable[[MemorySource], _Answer]) -> _Answer | None:
        try:
            return question(self._source)
        except Exception as error:  # noqa: BLE001 - a source may be someone's own
            if not self._has_complained:
                self._has_complained = True
                why = message_of(error) or kind_of(error)
                self._complain(f"memory cannot be read, the run goes on: {why}")
            return None


# A source of someone's own may answer anything.


def _facts(source: MemorySource) -> dict[str, Value]:
    return {name_of(name): json_value(fact) for name, fact in source.facts().items()}


def _reading(source: MemorySource) -> Reading:
    said = source.read()
    reserved, used = said.reserved_peak_bytes, said.device_used_bytes
    return Reading(
        level_bytes=_size(said.level_bytes),
        peak_bytes=_size(said.peak_bytes),
        reserved_peak_bytes=None if reserved is None else _size(reserved),
        device_used_bytes=None if used is None else _size(used),
    )


def _size(said: int) -> int:
    """Return a number of bytes.

    Raises:
        ValueError: It is none; other errors if it is no number.
    """
    size_bytes = int(said)
    if not 0 <= size_bytes < 2**63:
        raise ValueError("the source tells a size that no memory has")
    return size_bytes
