"""All rungs at work at the same time, and what they say in the end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from snapviewer.model.energy.gpu import GpuCounter, GpuPower
from snapviewer.model.energy.rapl import Rapl
from snapviewer.model.energy.rungs import Measured, NoMeasureError, Rung

LADDER = (GpuCounter.name, GpuPower.name, Rapl.name)


@dataclass(frozen=True, slots=True)
class Period:
    """What all rungs say of a time, the best first: what they measured, or why they did not."""

    seconds: float
    cpu_seconds: float
    answers: tuple[tuple[str, Measured | str], ...]

    def best(self, names: Sequence[str]) -> tuple[str, Measured] | None:
        """Return the first of some rungs that measured something."""
        for name, said in self.answers:
            if name in names and isinstance(said, Measured):
                return name, said
        return None


class Watch:
    """Rungs at work from now on.

    Args:
        rungs: Those to try.
        refusals: Those that need no trial, and why.
    """

    def __init__(self, rungs: Sequence[Rung], refusals: Sequence[tuple[str, str]]) -> None:
        self._answers: list[tuple[str, Measured | str]] = list(refusals)
        self._working: list[Rung] = []
        for rung in rungs:
            try:
                rung.start()
            except NoMeasureError as error:
                self._answers.append((rung.name, str(error)))
            else:
                self._working.append(rung)
        self._cpu_s = time.process_time()
        self._start_s = time.perf_counter()

    def end(self) -> Period:
        """Stop all rungs and gather what they say."""
        seconds = time.perf_counter() - self._start_s
        cpu_seconds = time.process_time() - self._cpu_s
        for rung in self._working:
            try:
                self._answers.append((rung.name, rung.stop()))
            except NoMeasureError as error:
                self._answers.append((rung.name, str(error)))
        answers = sorted(self._answers, key=lambda answer: LADDER.index(answer[0]))
        return Period(seconds, cpu_seconds, tuple(answers))
