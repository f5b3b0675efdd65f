"""The FLOPs of a run as the processor counts them, operation by operation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from snapviewer.model.inference.dispatch import RecordedRun, run_marked
from snapviewer.model.inference.running import Runner
from snapviewer.model.nvml import NoAnswerError
from snapviewer.model.system.flop_counters import FlopCounter, counting

SOURCE = "hardware counters (perf_event)"


class CountedRun(NamedTuple):
    """The FLOPs of each node, and of the whole run."""

    node_flops: tuple[float, ...]
    flops: float


def count_run(runner: Runner, recorded: RecordedRun, counters: Sequence[FlopCounter]) -> CountedRun:
    """Run once under each counter; these runs are not timed.

    Raises:
        NoAnswerError: A counter failed, or a run had other operations than the recorded one.
    """
    calls = [0.0] * len(recorded.functions)
    total = 0.0
    for counter in counters:
        counted = _Pass(counter, calls)
        with counting(counter):
            before = counter.flops()
            run_marked(runner, counted.around)
            if counted.failure is None:
                total += counter.flops() - before
        if counted.failure is not None:
            raise counted.failure
        if counted.seen != len(calls):
            raise NoAnswerError("the counted run had other operations than the first")
    numbers = zip(recorded.numbers, calls, strict=True)
    return CountedRun(tuple(flops for number, flops in numbers if number is not None), total)


@dataclass(slots=True)
class _Pass:
    """A run under one counter, which adds to the FLOPs of each call.

    An error inside a run of TorchScript would become one of torch, so it is kept until after.
    """

    counter: FlopCounter
    calls: list[float]
    seen: int = 0
    failure: NoAnswerError | None = None

    @contextmanager
    def around(self, number: int) -> Iterator[None]:
        before = self._flops()
        yield
        self.seen = number + 1
        if number < len(self.calls):
            self.calls[number] += self._flops() - before

    def _flops(self) -> float:
        try:
            return self.counter.flops()
        except NoAnswerError as error:
            self.failure = error
            return 0.0
