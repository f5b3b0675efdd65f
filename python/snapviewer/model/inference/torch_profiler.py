"""The times of operations from the profiler of torch.

It has the least overhead. Measured on ResNet-18 at 224, 69 operations in 61 ms on one thread of a
busy machine: mostly 0 to 3 %, once 4.5 %, against 3 to 6 % for a dispatch mode, whose Python code
is cold after each convolution.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from snapviewer.model.inference.dispatch import RecordedRun, TimedRun, op_of, time_by_dispatch
from snapviewer.model.inference.running import Runner

SOURCE = "torch profiler"


def time_run(runner: Runner, like: RecordedRun) -> TimedRun:
    """Run once and time each node, if the run is like the recorded one.

    The profiler is not used for a GPU, which has timing events of its own, nor if it does not see
    the operations that were recorded.
    """
    if not runner.device.startswith("cuda"):
        try:
            run = time_by_profiler(runner, like)
        except Exception:  # noqa: BLE001 (the model raises it again below)
            run = None
        if run is not None and run.is_like:
            return run
    return time_by_dispatch(runner, like)


def time_by_profiler(runner: Runner, like: RecordedRun) -> TimedRun:
    """Run once under the profiler; the total time excludes its start and end."""
    wanted = [op_of(function) for function in like.functions]
    total_ns, events = run_profiled(runner.timed_ns)
    seen = list(_outermost(events, frozenset(wanted)))
    if [event.name for event in seen] != wanted:
        return TimedRun(total_ns, (), SOURCE, is_like=False)
    node_ns = tuple(
        int(event.duration_time_ns)
        for number, event in zip(like.numbers, seen, strict=True)
        if number is not None
    )
    return TimedRun(total_ns, node_ns, SOURCE)


def run_profiled(work: Callable[[], int], *, has_memory: bool = False) -> tuple[int, list[Any]]:
    """Call a function under the profiler; return its result, and the events as trees."""
    import torch

    with _silenced():
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=has_memory
        ) as profiler:
            result = work()
        return result, list(profiler.profiler.kineto_results.experimental_event_tree())


def _outermost(events: Iterable[Any], names: frozenset[str]) -> Iterator[Any]:
    """Yield the operations that no other one calls, in order of their start."""
    waiting = [*events][::-1]
    while waiting:
        event = waiting.pop()
        if event.tag.name == "TorchOp" and event.name in names:
            yield event
        else:
            waiting.extend(reversed(event.children))


@contextmanager
def _silenced() -> Iterator[None]:
    """Keep the profiler from writing to the terminal."""
    name = "KINETO_LOG_LEVEL"
    before = os.environ.get(name)
    os.environ.setdefault(name, "99")
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(name, None)
