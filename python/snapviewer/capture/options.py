"""What a capture does, as the parent process passes it to the one that runs the script."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import Any

VARIABLE = "SNAPVIEWER_CAPTURE"


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """How a run is recorded, when it ends, and where its snapshots go."""

    output: str  # the snapshot's path; others are named after it
    steps: int | None = None  # optimizer steps after which the run ends
    seconds: float | None = None  # time after which it ends, from CUDA's initialization on
    every: int | None = None  # optimizer steps between snapshots
    max_entries: int = 1_000_000
    stacks: str = "python"  # or "all", with C++ frames
    is_gzip: bool = False
    has_marks: bool = True
    has_times: bool = True  # a prediction has none: they would be those of another machine
    results: str | None = None  # a file for what was written, one JSON line each
    predicted: dict[str, Any] | None = None  # facts about the null device; None on a real GPU
    values: tuple[tuple[str, float], ...] = field(default=())  # what reads from the device return

    def to_environment(self) -> dict[str, str]:
        """Return the variable that carries these options."""
        return {VARIABLE: json.dumps(asdict(self))}

    @classmethod
    def from_environment(cls) -> CaptureOptions:
        """Read what `to_environment` returned."""
        document = json.loads(os.environ[VARIABLE])
        document["values"] = tuple((text, value) for text, value in document["values"])
        return cls(**document)
