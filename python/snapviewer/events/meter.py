"""Memory as a recording needs it: peaks never fall, and nothing raises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from snapviewer.events.memory import MemorySource, Reading
from snapviewer.events.safe_values import Value, event_name, json_value
from snapviewer.text.sanitize import error_message, type_name

_Answer = TypeVar("_Answer")

_MIB = 2**20


@dataclass(frozen=True, slots=True)
class MemoryFields:
    """The fields of an event about memory; and the level, if it could be read."""

    level_bytes: int | None
    fields: Mapping[str, object] = field(default_factory=dict)


class Meter:
    """A source of memory, and the peaks that were read from it.

    Args:
        source: What is read.
        complain: Called once with a sentence, if something goes wrong.
    """

    def __init__(self, source: MemorySource, complain: Callable[[str], None]) -> None:
        self._source = source
        self._complain = complain
        self._has_complained = False
        self._peaks: dict[str, int] = {}

    def begin(self, *, resets_peak: bool) -> dict[str, object]:
        """Return what is known of the source, and since when its peak counts."""
        is_reset = resets_peak and self._ask(lambda source: source.reset_peak()) is True
        return {
            "memory_source": self._ask(lambda source: source.name),
            "peak_since": "entry" if is_reset else "process_start",
            **(self._ask(_facts) or {}),
        }

    def read(self) -> MemoryFields:
        """Read the memory; if that fails, return the peaks so far."""
        reading = self._ask(_reading)
        if reading is not None:
            # Others may reset the source's peaks while we record.
            self._note("peak_memory", max(reading.peak_bytes, reading.level_bytes))
            self._note("cuda_runtime_peak", reading.device_used_bytes)
            self._note("pytorch_runtime_peak", reading.reserved_peak_bytes)
        fields: dict[str, object] = {
            name: size_bytes if name == "peak_memory" else round(size_bytes / _MIB, 3)
            for name, size_bytes in self._peaks.items()
        }
        if reading is None:
            return MemoryFields(None, fields)
        return MemoryFields(reading.level_bytes, fields | {"memory_allocated": reading.level_bytes})

    def wait(self) -> None:
        """Wait for the device; its errors are left to whoever uses it next."""
        self._ask(lambda source: source.wait())

    def _note(self, name: str, size_bytes: int | None) -> None:
        if size_bytes is not None:
            self._peaks[name] = max(self._peaks.get(name, 0), size_bytes)

    def _ask(self, question: Callable[[MemorySource], _Answer]) -> _Answer | None:
        try:
            return question(self._source)
        except Exception as error:  # noqa: BLE001 - a source may be someone's own
            if not self._has_complained:
                self._has_complained = True
                why = error_message(error) or type_name(error)
                self._complain(f"memory cannot be read, the run goes on: {why}")
            return None


def _facts(source: MemorySource) -> dict[str, Value]:
    return {event_name(name): json_value(fact) for name, fact in source.facts().items()}


def _reading(source: MemorySource) -> Reading:
    reading = source.read()  # of a source of the user's own, this may be anything
    reserved, used = reading.reserved_peak_bytes, reading.device_used_bytes
    return Reading(
        level_bytes=_size(reading.level_bytes),
        peak_bytes=_size(reading.peak_bytes),
        reserved_peak_bytes=None if reserved is None else _size(reserved),
        device_used_bytes=None if used is None else _size(used),
    )


def _size(number: int) -> int:
    """Return a number of bytes as an integer.

    Raises:
        ValueError: It is out of range; other errors if it is not a number.
    """
    size_bytes = int(number)
    if not 0 <= size_bytes < 2**63:
        raise ValueError("the source returned a size that no memory has")
    return size_bytes
