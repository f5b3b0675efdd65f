"""Timing batches of 1, 2, 4, … examples, within limits of time and memory.

Whether the first dimension is a batch is tested: two examples at once must give the results that
each gives alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from snapviewer import SnapshotError
from snapviewer.model.energy import RunWork, work_by_class
from snapviewer.model.inference import running
from snapviewer.model.inference.dispatch import record_run
from snapviewer.model.inference.metering import UNMETERED, Metering
from snapviewer.model.inference.running import Runner, error_text
from snapviewer.model.inference.timing import Timing, ratio, timing_of
from snapviewer.model.live.inputs import Inputs
from snapviewer.model.quantity import Quantity
from snapviewer.text.sanitize import sanitize

_MAX_BATCH = 256
_REPEATS = 3
# The share of the free memory that a trial may use.
_MEMORY_SHARE = 0.25
# The gain from which a larger batch counts, and the share of the best rate to recommend a batch.
_MIN_GAIN = 1.03
_GOOD_ENOUGH = 0.95
_WITHOUT_GAIN = 2


@dataclass(frozen=True, slots=True)
class BatchRun:
    """Runs with one batch size; `throughput` is in examples per second.

    `energy` is that of a run with the whole batch.
    """

    size: int
    time: Timing
    """Of the whole batch."""
    per_example: Quantity
    throughput: Quantity
    energy: Quantity


@dataclass(frozen=True, slots=True)
class Batches:
    """The sizes that were tried; `advised` is the smallest that is nearly as good as the best.

    `as_given` is the number of examples in the inputs of the other runs.
    """

    runs: tuple[BatchRun, ...]
    advised: int
    ended: str
    """Why no larger one was tried, in a sentence."""
    as_given: int


def time_batches(
    runner: Runner,
    metering: Metering = UNMETERED,
    *,
    run_bytes: float | None,
    free_bytes: float | None,
    budget_s: float,
    reach: Callable[[], None],
) -> Batches:
    """Time batches of growing sizes.

    Args:
        runner: The model and its inputs, which contain the example.
        metering: How to find the energy of a run.
        run_bytes: The memory of a run without the weights, None if unknown.
        free_bytes: The free memory, None if unknown.
        budget_s: When to stop.
        reach: Called before each run; raises to stop.

    Raises:
        SnapshotError: The model accepts no other batch; the message quotes it.
    """
    entries = _entries(runner)
    if not entries:
        raise SnapshotError("it has no input with a first dimension for a batch")
    example_bytes = run_bytes / entries if run_bytes else 0.0
    one, two = _batched(runner, entries, 1), _batched(runner, entries, 2)
    _check(one, two)
    works = _works(metering, one, two)
    end_ns = running.clock_ns() + budget_s * 1e9
    found: list[BatchRun] = []
    without_gain, size, ended = 0, 1, f"a batch of {_MAX_BATCH} is the largest that is tried"
    while size <= _MAX_BATCH:
        if free_bytes and size * example_bytes > _MEMORY_SHARE * free_bytes:
            ended = f"a batch of {size} would take more than a quarter of the free memory"
            break
        if found and running.clock_ns() + 2 * _total_ns(found[-1]) > end_ns:
            ended = f"a batch of {size} would exceed the time budget"
            break
        reach()
        try:
            metered = replace(metering, work=_work_of_batch(works, size))
            run = _timed(_batched(runner, entries, size), size, metered, reach)
        except (RuntimeError, MemoryError) as error:
            ended = f"a batch of {size} failed: {sanitize(str(error), 120)}"
            break
        best = max((_rate(other) for other in found), default=0.0)
        without_gain = 0 if _rate(run) >= _MIN_GAIN * best else without_gain + 1
        found.append(run)
        size *= 2
        if without_gain >= _WITHOUT_GAIN:
            ended = "the last two sizes were no faster per example"
            break
    if not found:
        raise SnapshotError(ended)
    best = max(map(_rate, found))
    advised = next(run.size for run in found if _rate(run) >= _GOOD_ENOUGH * best)
    return Batches(tuple(found), advised, ended, entries)


def _rate(run: BatchRun) -> float:
    return run.throughput.value or 0.0


def _total_ns(run: BatchRun) -> float:
    """Return the time of all runs with a batch, including its warm-up."""
    return (run.time.median.value or 0.0) * (run.time.runs + 1) * 1e9


def _works(metering: Metering, one: Runner, two: Runner) -> tuple[RunWork, RunWork] | None:
    """Return the work of batches of one and of two examples; None if nothing needs it."""
    if metering.work is None:
        return None
    first, second = (
        work_by_class(record_run(runner, has_lines=False).nodes) for runner in (one, two)
    )
    return first, second


def _work_of_batch(works: tuple[RunWork, RunWork] | None, size: int) -> RunWork | None:
    """Return the work of a batch: that of one example, and what each further one adds."""
    if works is None or len(works[0].parts) != len(works[1].parts):
        return None
    names = ("flops", "read_bytes", "written_bytes")
    parts = []
    for one, two in zip(works[0].parts, works[1].parts, strict=True):
        added = {name: getattr(two, name) - getattr(one, name) for name in names}
        whole = {name: getattr(one, name) + (size - 1) * added[name] for name in names}
        parts.append(replace(one, **whole))
    return RunWork(tuple(parts))


def _timed(runner: Runner, size: int, metering: Metering, reach: Callable[[], None]) -> BatchRun:
    def is_over(spent_ns: int) -> bool:
        reach()
        return False

    runner.timed_ns()  # the first selects kernels for these shapes
    times_ns, energy = metering.run(runner, least=_REPEATS, is_over=is_over)
    time = timing_of(times_ns, f"clock around a run with a batch of {size}")
    count = Quantity(float(size), "1", "computed", "")
    return BatchRun(
        size,
        time,
        ratio(time.median, count, "s", "median / batch"),
        ratio(count, time.median, "1/s", "batch / median"),
        energy,
    )


def _entries(runner: Runner) -> int:
    """Return the size of the first dimension of the first input; 0 without any."""
    import torch
    from torch.utils import _pytree

    values = _pytree.tree_leaves((runner.inputs.positional, runner.inputs.named))
    tensors = [value for value in values if isinstance(value, torch.Tensor) and value.dim() >= 2]
    return int(tensors[0].shape[0]) if tensors else 0


def _batched(runner: Runner, entries: int, size: int) -> Runner:
    """Return a runner with a batch of the first example.

    Tensors with the same first dimension as the first input count as batched.
    """
    import torch
    from torch.utils import _pytree

    def batched(value: Any) -> Any:
        is_batched = isinstance(value, torch.Tensor) and value.dim() >= 2
        if not is_batched or value.shape[0] != entries:
            return value
        return value[:1].repeat(size, *[1] * (value.dim() - 1))

    positional, named = _pytree.tree_map(batched, (runner.inputs.positional, runner.inputs.named))
    return replace(runner, inputs=Inputs(positional, named))


def _check(one: Runner, two: Runner) -> None:
    """Check that two examples at once give the results that each gives alone."""
    from torch.utils import _pytree

    alone = _pytree.tree_leaves(one())
    try:
        both = _pytree.tree_leaves(two())
    except Exception as error:  # noqa: BLE001 (a model may raise anything at all)
        raise SnapshotError(
            "the model accepts no batch of 2, as if its sizes were fixed by tracing: "
            f"{error_text(error)}"
        ) from None
    if not all(map(_is_twice, alone, both)):
        raise SnapshotError(
            "two examples at once give other results than each alone: the first dimension of its "
            "inputs is no batch, or its sizes were fixed by tracing"
        )


def _is_twice(alone: Any, both: Any) -> bool:
    import torch

    if not isinstance(alone, torch.Tensor) or not isinstance(both, torch.Tensor):
        return True
    if not alone.is_floating_point() or not alone.dim():
        return True
    if tuple(both.shape) != (2 * alone.shape[0], *alone.shape[1:]):
        return False
    alone, both = alone.detach(), both.detach()
    # Kernels for other shapes round differently.
    scale = float(alone.abs().nan_to_num().max()) if alone.numel() else 0.0
    twice = torch.cat([alone, alone])
    return bool(torch.allclose(both, twice, rtol=1e-2, atol=1e-3 * scale, equal_nan=True))
