"""Runs of which the time and the energy are found together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import NamedTuple

from snapviewer.model.energy import EnergyMeter, RunWork
from snapviewer.model.inference.running import Runner
from snapviewer.model.quantity import Quantity, unavailable

_MAX_RUNS = 50
# Short runs are repeated for a while, so that one interrupted run does not dominate.
_LONG_ENOUGH_NS = 20_000_000


class MeteredRuns(NamedTuple):
    """The times of some runs, and the energy of one of them."""

    times_ns: list[int]
    energy: Quantity


@dataclass(frozen=True, slots=True)
class Metering:
    """How to find the energy of runs.

    `meter` makes a meter, None to do without; `work` is what a run computes, None if unknown.
    """

    meter: Callable[[], EnergyMeter] | None = None
    work: RunWork | None = None

    def run(self, runner: Runner, *, least: int, is_over: Callable[[int], bool]) -> MeteredRuns:
        """Run at least so many times, and more if that takes a moment only.

        Args:
            runner: The model and its inputs, which has run before.
            least: The number of runs that are enough if they take long.
            is_over: Returns whether to stop, given the nanoseconds of the runs so far.
        """
        times_ns: list[int] = []
        meter = self.meter() if self.meter else None
        with meter or nullcontext():
            while len(times_ns) < _MAX_RUNS and (
                len(times_ns) < least or sum(times_ns) < _LONG_ENOUGH_NS
            ):
                times_ns.append(runner.timed_ns())
                if is_over(sum(times_ns)):
                    break
        if meter is None:
            return MeteredRuns(times_ns, unavailable("J", "its energy was not looked for"))
        return MeteredRuns(times_ns, meter.result(runs=len(times_ns), work=self.work).energy)


UNMETERED = Metering()
