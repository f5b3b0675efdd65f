"""Timing batches of 1, 2, 4, … examples, within limits of time and memory.

Whether the first dimension is a batch is tested: two examples at once must give the results that
each gives alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from snapviewer import SnapshotError
from snapviewer.model.inference import running
from snapviewer.model.inference.running import Runner, error_text
from snapviewer.model.inference.timing import Timing, ratio, timing_of
from snapviewer.model.live.inputs import Inputs
from snapviewer.model.quantity import Quantity
from snapviewer.text.sanitize import sanitize

_MAX_BATCH = 256
# Short runs are repeated for a while, so that one interrupted run does not dominate.
_REPEATS = 3
_MAX_REPEATS = 50
_LONG_ENOUGH_NS = 20_000_000
# The share of the free memory that a trial may use.
_MEMORY_SHARE = 0.25
# The gain from which a larger batch counts, and the share of the best rate to recommend a batch.
_MIN_GAIN = 1.03
_GOOD_ENOUGH = 0.95
_WITHOUT_GAIN = 2


@dataclass(frozen=True, slots=True)
class BatchRun:
    """Runs with one batch size."""

    size: int
    time: Timing
    per_example: Quantity
    throughput: Quantity


@dataclass(frozen=True, slots=True)
class Batches:
    """The sizes that were tried; `advised` is the smallest that is nearly as good as the best."""

    runs: tuple[BatchRun, ...]
    advised: int
    ended: str
    """Why no larger one was tried, in a sentence."""


def time_batches(
    runner: Runner,
    *,
    run_bytes: float | None,
    free_bytes: float | None,
    budget_s: float,
    reach: Callable[[], None],
) -> Batches:
    """Time batches of growing sizes.

    Args:
        runner: The model and its inputs, which contain the example.
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
    _check(_batched(runner, entries, 1), _batched(runner, entries, 2))
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
            run = _timed(_batched(runner, entries, size), size, reach)
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
    return Batches(tuple(found), advised, ended)


def _rate(run: BatchRun) -> float:
    return run.throughput.value or 0.0


def _total_ns(run: BatchRun) -> float:
    """Return the time of all runs with a batch, including its warm-up."""
    return (run.time.median.value or 0.0) * (run.time.runs + 1) * 1e9


def _timed(runner: Runner, size: int, reach: Callable[[], None]) -> BatchRun:
    runner.timed_ns()  # the first selects kernels for these shapes
    times_ns: list[int] = []
    while len(times_ns) < _REPEATS or (
        len(times_ns) < _MAX_REPEATS and sum(times_ns) < _LONG_ENOUGH_NS
    ):
        reach()
        times_ns.append(runner.timed_ns())
    time = timing_of(times_ns, f"clock around a run with a batch of {size}")
    count = Quantity(float(size), "1", "computed", "")
    return BatchRun(
        size,
        time,
        ratio(time.median, count, "s", "median / batch"),
        ratio(count, time.median, "1/s", "batch / median"),
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
