"""Trials: runs with other numbers of threads, in the channels_last layout and in another dtype."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from snapviewer import SnapshotError
from snapviewer.model.energy import work_by_class
from snapviewer.model.inference.dispatch import RecordedRun, TimedRun, record_run
from snapviewer.model.inference.metering import Metering
from snapviewer.model.inference.running import Runner, thread_count
from snapviewer.model.inference.timing import Timing, ratio, timing_of
from snapviewer.model.inference.torch_profiler import time_run
from snapviewer.model.live.inputs import Inputs
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.work import IMAGE_DIMENSIONS
from snapviewer.text.units import count_of

_MAX_THREAD_RUNS = 5
_MIN_LAYOUT_RUNS = 3  # fewer have no spread
_MAX_LAYOUT_RUNS = 10


@dataclass(frozen=True, slots=True)
class ThreadRun:
    """Runs with one number of threads.

    `speed_up` is relative to one thread, from the fastest runs, which other programs disturbed
    least; `efficiency` is the speed-up per thread; `energy` is that of a run.
    """

    threads: int
    time: Timing
    speed_up: Quantity
    efficiency: Quantity
    energy: Quantity


class ThreadTrials(NamedTuple):
    """Runs with several numbers of threads.

    `node_ns` has the times of each node in profiled runs with one thread and with the most.
    """

    runs: tuple[ThreadRun, ...] = ()
    node_ns: Mapping[int, Sequence[tuple[int, ...]]] = {}


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
    metering: Metering,
    *,
    like: RecordedRun | None = None,
    repeats: int,
    is_over: Callable[[int], bool],
) -> ThreadTrials:
    """Run with 1 to `maximum` threads, and restore the number of threads.

    Args:
        runner: The model and its inputs.
        maximum: The largest number of threads.
        metering: How to find the energy of a run.
        like: The operations; if known, each is timed with one thread and with the most.
        repeats: The maximum number of runs with each number.
        is_over: Returns whether to stop, given the nanoseconds of the runs so far.
    """
    found: list[ThreadRun] = []
    node_ns: dict[int, list[tuple[int, ...]]] = {}
    counts = thread_counts(maximum)
    for count in counts:
        has_nodes = len(counts) > 1 and count in (1, counts[-1])
        with thread_count(count):
            runner.timed_ns()  # the first starts threads
            least = min(repeats, _MAX_THREAD_RUNS)
            times_ns, energy = metering.run(runner, least=least, is_over=is_over)
            if like is not None and has_nodes:
                node_ns[count] = _node_times(runner, like, least, is_over)
        time = timing_of(times_ns, f"clock around the run with {count_of(count, 'thread')}")
        one = found[0].time.fastest if found else time.fastest
        speed_up = ratio(one, time.fastest, "×", "fastest with 1 thread / fastest with these")
        efficiency = ratio(
            speed_up, Quantity(float(count), "1", "computed", ""), "%", "speed-up / threads", 100
        )
        found.append(ThreadRun(count, time, speed_up, efficiency, energy))
    return ThreadTrials(tuple(found), node_ns)


def _node_times(
    runner: Runner, like: RecordedRun, count: int, is_over: Callable[[int], bool]
) -> list[tuple[int, ...]]:
    """Return the times of each node in some runs that are like the recorded one."""
    runs: list[TimedRun] = []
    while len(runs) < count:
        runs.append(time_run(runner, like))
        if is_over(sum(run.total_ns for run in runs)):
            break
    return [run.node_ns for run in runs if run.is_like]


@dataclass(frozen=True, slots=True)
class Layouts:
    """Runs in both layouts; `speed_up` is that of channels_last, by the medians.

    `energy` is that of a run with channels_last, of the runs in `energy_runs`.
    """

    contiguous: Timing
    channels_last: Timing
    speed_up: Quantity
    energy: Quantity
    energy_runs: Timing


def time_layouts(
    runner: Runner, metering: Metering, *, repeats: int, is_over: Callable[[], bool]
) -> Layouts:
    """Run a copy of the model with channels last, alternating with the model itself.

    Args:
        runner: The model and its inputs.
        metering: How to find the energy of a run.
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
    # Alternating runs are too short for a meter.
    times_ns, energy = metering.run(other, least=_MIN_LAYOUT_RUNS, is_over=lambda _: is_over())
    runs = timing_of(times_ns, "clock around the runs for energy, channels_last")
    return Layouts(usual, last, speed_up, energy, runs)


def _channels_last(runner: Runner) -> Runner:
    import torch

    def laid_out(value: Any) -> Any:
        if value.dim() == IMAGE_DIMENSIONS:
            return value.contiguous(memory_format=torch.channels_last)
        return value

    return _changed(runner, laid_out, memory_format=torch.channels_last)


def _changed(runner: Runner, changed: Callable[[Any], Any], **to: Any) -> Runner:
    """Return a copy of a model, moved `to` something, with changed input tensors."""
    import torch
    from torch.utils import _pytree

    # Tensors made in inference mode cannot change their layout.
    with torch.inference_mode(mode=False), torch.no_grad():
        module = copy.deepcopy(runner.module).to(**to)

    def each(value: Any) -> Any:
        return changed(value) if isinstance(value, torch.Tensor) else value

    positional, named = _pytree.tree_map(each, (runner.inputs.positional, runner.inputs.named))
    return replace(runner, module=module, inputs=Inputs(positional, named))


@dataclass(frozen=True, slots=True)
class DtypeRun:
    """Runs of a copy of the model in another dtype.

    `difference` is the largest difference of its outputs, relative to their largest value.
    """

    dtype: str
    time: Timing
    difference: Quantity
    energy: Quantity


def time_dtype(
    runner: Runner, dtype: str, metering: Metering, *, repeats: int, is_over: Callable[[int], bool]
) -> DtypeRun:
    """Run a copy of the model whose floating-point numbers have another dtype.

    Args:
        runner: The model and its inputs.
        dtype: The name of the dtype.
        metering: How to find the energy of a run; its work is replaced by that in the dtype.
        repeats: The maximum number of runs.
        is_over: Returns whether to stop, given the nanoseconds of the runs so far.

    Raises:
        SnapshotError: A single run takes too long.
        Exception: Whatever the model raises in this dtype.
    """
    import torch

    number = getattr(torch, dtype)
    other = _changed(
        runner, lambda value: value.to(number) if value.is_floating_point() else value, dtype=number
    )
    difference = _difference(runner(), other())
    first_ns = other.timed_ns()
    if is_over(first_ns):
        # Processors without instructions for a dtype emulate it, far slower.
        raise SnapshotError(f"a run takes {first_ns / 1e9:.3g} s, too long for the time budget")
    nodes = record_run(other, has_lines=False).nodes
    times_ns, energy = replace(metering, work=work_by_class(nodes)).run(
        other, least=min(repeats, _MIN_LAYOUT_RUNS), is_over=is_over
    )
    return DtypeRun(
        dtype, timing_of(times_ns, f"clock around the run in {dtype}"), difference, energy
    )


def _difference(usual: Any, other: Any) -> Quantity:
    """Compare the outputs of two runs."""
    import torch
    from torch.utils import _pytree

    largest = difference = 0.0
    for one, two in zip(_pytree.tree_leaves(usual), _pytree.tree_leaves(other), strict=True):
        if isinstance(one, torch.Tensor) and one.is_floating_point() and one.numel():
            largest = max(largest, float(one.abs().max()))
            difference = max(difference, float((one - two.to(one.dtype)).abs().max()))
    if not largest or not math.isfinite(difference):
        return unavailable("%", "the outputs have no finite numbers to compare")
    source = "largest difference / largest output, random inputs"
    return Quantity(100 * difference / largest, "%", "measured", source)
