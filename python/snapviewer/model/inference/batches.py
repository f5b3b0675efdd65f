"""Batches of 1, 2, 4, … examples: what each brings, as far as time and memory go.

That the first dimension is a batch is not believed but tried: two examples at once must give what
each gives alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from snapviewer import SnapshotError
from snapviewer.model.inference import running
from snapviewer.model.inference.running import Runner
from snapviewer.model.inference.steps import said_by
from snapviewer.model.inference.timing import Timing, ratio, timing_of
from snapviewer.model.live.inputs import Inputs
from snapviewer.model.quantity import Quantity
from snapviewer.text.sanitize import sanitize

_MOST = 256
# Short runs are repeated for a while: one that is interrupted would be most of three.
_REPEATS = 3
_MOST_REPEATS = 50
_LONG_ENOUGH_NS = 20_000_000
# Of the memory that is free, so much may go into a trial.
_MEMORY_SHARE = 0.25
# A larger batch must bring this much more to count, and the smallest that is this good is advised.
_LEAST_GAIN = 1.03
_GOOD_ENOUGH = 0.95
_WITHOUT_GAIN = 2


@dataclass(frozen=True, slots=True)
class BatchRun:
    """Runs with a batch of one size."""

    size: int
    time: Timing
    per_example: Quantity
    throughput: Quantity


@dataclass(frozen=True, slots=True)
class Batches:
    """The sizes that were tried; `advised` is the smallest nearly as good as the best."""

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
        runner: What to run; its inputs hold the example.
        run_bytes: What a run with its inputs takes beside the weights, None if not known.
        free_bytes: The memory that is free, None if not known.
        budget_s: When to stop.
        reach: Called before each run; raises to stop.

    Raises:
        SnapshotError: The model takes no other batch; the message says what it said.
    """
    entries = _entries(runner)
    if not entries:
        raise SnapshotError("it has no input with a first dimension for a batch")
    example_bytes = run_bytes / entries if run_bytes else 0.0
    _check(_batched(runner, entries, 1), _batched(runner, entries, 2))
    end_ns = running.clock_ns() + budget_s * 1e9
    found: list[BatchRun] = []
    without_gain, size, ended = 0, 1, f"a batch of {_MOST} is the largest that is tried"
    while size <= _MOST:
        if free_bytes and size * example_bytes > _MEMORY_SHARE * free_bytes:
            ended = f"a batch of {size} would take more than a quarter of the free memory"
            break
        if found and running.clock_ns() + 2 * _total_ns(found[-1]) > end_ns:
            ended = f"a batch of {size} would take longer than the time for it"
            break
        reach()
        try:
            run = _timed(_batched(runner, entries, size), size, reach)
        except (RuntimeError, MemoryError) as error:
            ended = f"a batch of {size} failed: {sanitize(str(error), 120)}"
            break
        best = max((_rate(other) for other in found), default=0.0)
        without_gain = 0 if _rate(run) >= _LEAST_GAIN * best else without_gain + 1
        found.append(run)
        size *= 2
        if without_gain >= _WITHOUT_GAIN:
            ended = "the last two sizes brought nothing more"
            break
    if not found:
        raise SnapshotError(ended)
    best = max(map(_rate, found))
    advised = next(run.size for run in found if _rate(run) >= _GOOD_ENOUGH * best)
    return Batches(tuple(found), advised, ended)


def _rate(run: BatchRun) -> float:
    return run.throughput.value or 0.0


def _total_ns(run: BatchRun) -> float:
    """Return what all runs with a batch took, its warm-up too."""
    return (run.time.median.value or 0.0) * (run.time.runs + 1) * 1e9


def _timed(runner: Runner, size: int, reach: Callable[[], None]) -> BatchRun:
    runner.timed_ns()  # the first chooses kernels for these shapes
    times_ns: list[int] = []
    while len(times_ns) < _REPEATS or (
        len(times_ns) < _MOST_REPEATS and sum(times_ns) < _LONG_ENOUGH_NS
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
    """Return how many entries the first input has along its first dimension; 0 without any."""
    import torch
    from torch.utils import _pytree

    values = _pytree.tree_leaves((runner.inputs.positional, runner.inputs.named))
    tensors = [value for value in values if isinstance(value, torch.Tensor) and value.dim() >= 2]
    return int(tensors[0].shape[0]) if tensors else 0


def _batched(runner: Runner, entries: int, size: int) -> Runner:
    """Return a runner with a batch of the first example.

    What has as many entries along its first dimension as the first input is taken for batched.
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
    """See whether two examples at once give what each gives alone."""
    from torch.utils import _pytree

    alone = _pytree.tree_leaves(one())
    try:
        both = _pytree.tree_leaves(two())
    except Exception as error:  # noqa: BLE001 (a model may raise anything at all)
        raise SnapshotError(
            "the model takes no batch of 2, as if its sizes were traced in; it said: "
            f"{said_by(error)}"
        ) from None
    if not all(map(_is_twice, alone, both)):
        raise SnapshotError(
            "two examples at once give other results than each alone: the first dimension of its "
            "inputs is no batch, or its sizes were traced in"
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
    # Kernels for other shapes round otherwise.
    scale = float(alone.abs().nan_to_num().max()) if alone.numel() else 0.0
    twice = torch.cat([alone, alone])
    return bool(torch.allclose(both, twice, rtol=1e-2, atol=1e-3 * scale, equal_nan=True))
