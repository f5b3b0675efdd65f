"""Trials: runs with other numbers of threads, and with the channels_last layout."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from snapviewer.model.inference.running import Runner, thread_count
from snapviewer.model.inference.timing import Timing, ratio, timing_of
from snapviewer.model.live.inputs import Inputs
from snapviewer.model.quantity import Quantity
from snapviewer.model.work import IMAGE_DIMENSIONS
from snapviewer.text.units import count_of

_MAX_THREAD_RUNS = 5
_MIN_LAYOUT_RUNS = 3  # fewer have no spread
_MAX_LAYOUT_RUNS = 10


@dataclass(frozen=True, slots=True)
class ThreadRun:
    """Runs with one number of threads.

    `speed_up` is relative to one thread, from the fastest runs, which other programs disturbed
    least; `efficiency` is the speed-up per thread.
    """

    threads: int
    time: Timing
    speed_up: Quantity
    efficiency: Quantity


def thread_counts(maximum: int) -> tuple[int, ...]:
    """Return the numbers of threads to try: all up to 4, else powers of two and the maximum.

    >>> thread_counts(3), thread_counts(12)
    ((1, 2, 3), (1, 2, 4, 8, 12))
    """
    if maximum <= 4:
        return tuple(range(1, max(maximum, 1) + 1))
    powers = (2**power for power in range(maximum.bit_length()))
    return (*(count for count in powers if count < maximum), maximum)


def time_threads(
    runner: Runner,
    maximum: int,
    *,
    repeats: int,
    is_over: Callable[[int], bool],
) -> tuple[ThreadRun, ...]:
    """Run with 1 to `maximum` threads, and restore the number of threads.

    Args:
        runner: The model and its inputs.
        maximum: The largest number of threads.
        repeats: The maximum number of runs with each number.
        is_over: Returns whether to stop, given the nanoseconds of the runs so far.
    """
    found: list[ThreadRun] = []
    for count in thread_counts(maximum):
        with thread_count(count):
            runner.timed_ns()  # the first starts threads
            times_ns: list[int] = []
            while len(times_ns) < min(repeats, _MAX_THREAD_RUNS):
                times_ns.append(runner.timed_ns())
                if is_over(sum(times_ns)):
                    break
        time = timing_of(times_ns, f"clock around the run with {count_of(count, 'thread')}")
        one = found[0].time.fastest if found else time.fastest
        speed_up = ratio(one, time.fastest, "×", "fastest with 1 thread / fastest with these")
        efficiency = ratio(
            speed_up, Quantity(float(count), "1", "computed", ""), "%", "speed-up / threads", 100
        )
        found.append(ThreadRun(count, time, speed_up, efficiency))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Layouts:
    """Runs in both layouts; `speed_up` is that of channels_last, by the medians."""

    contiguous: Timing
    channels_last: Timing
    speed_up: Quantity


def time_layouts(runner: Runner, *, repeats: int, is_over: Callable[[], bool]) -> Layouts:
    """Run a copy of the model with channels last, alternating with the model itself.

    Args:
        runner: The model and its inputs.
        repeats: The maximum number of runs in each layout.
        is_over: Returns whether to stop; called after each pair of runs.

    Raises:
        Exception: Whatever the model raises in the other layout.
    """
    other = _channels_last(runner)
    other.timed_ns()  # the first prepares what the kernels keep
    usual_ns: list[int] = []
    other_ns: list[int] = []
    while len(usual_ns) < min(repeats, _MAX_LAYOUT_RUNS):
        usual_ns.append(runner.timed_ns())
        other_ns.append(other.timed_ns())
        if is_over() and len(usual_ns) >= _MIN_LAYOUT_RUNS:
            break
    usual = timing_of(usual_ns, "clock around the run, contiguous")
    last = timing_of(other_ns, "clock around the run, channels_last")
    speed_up = ratio(usual.median, last.median, "×", "median contiguous / median channels_last")
    return Layouts(usual, last, speed_up)


def _channels_last(runner: Runner) -> Runner:
    import torch
    from torch.utils import _pytree

    # Tensors made in inference mode cannot change their layout.
    with torch.inference_mode(mode=False), torch.no_grad():
        module = copy.deepcopy(runner.module).to(memory_format=torch.channels_last)

    def laid_out(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dim() == IMAGE_DIMENSIONS:
            return value.contiguous(memory_format=torch.channels_last)
        return value

    positional, named = _pytree.tree_map(laid_out, (runner.inputs.positional, runner.inputs.named))
    return replace(runner, module=module, inputs=Inputs(positional, named))
