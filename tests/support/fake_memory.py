"""A device whose memory a test sets, and a reader of what was recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from snapviewer.events.memory import Fact, Reading


@dataclass
class FakeMemory:
    """A device whose memory a test sets."""

    level: int = 0
    peak: int = 0
    reserved: int | None = None
    used: int | None = None
    name: str = "cuda"
    waits: int = 0
    failure: Exception | None = None
    known: Mapping[str, Fact] = field(default_factory=dict)

    def set(self, level: int) -> None:
        self.level = level
        self.peak = max(self.peak, level)

    def facts(self) -> Mapping[str, Fact]:
        return self.known

    def read(self) -> Reading:
        if self.failure is not None:
            raise self.failure
        return Reading(self.level, self.peak, self.reserved, self.used)

    def reset_peak(self) -> bool:
        self.peak = self.level
        return True

    def wait(self) -> None:
        self.waits += 1


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def events_of(path: Path) -> list[dict[str, Any]]:
    """Every line of a log, each of which is an object."""
    lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b"", "the last line ends"
    return [json.loads(line, parse_constant=_refuse) for line in lines]


def names_of(path: Path) -> list[str]:
    return [event["event"] for event in events_of(path)]
