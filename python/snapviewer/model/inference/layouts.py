"""Images with their channels last, timed against the usual layout: the two take turns."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from snapviewer.model.inference.running import Runner
from snapviewer.model.inference.timing import Timing, ratio, timing_of
from snapviewer.model.live.inputs import Inputs
from snapviewer.model.quantity import Quantity
from snapviewer.model.work import IMAGE_DIMENSIONS

# Fewer have no spread.
_LEAST_REPEATS = 3
_MOST_REPEATS = 10


@dataclass(frozen=True, slots=True)
class Layouts:
    """Runs in both layouts; `speed_up` is that of the second, by the medians."""

    contiguous: Timing
    channels_last: Timing
    speed_up: Quantity


def time_layouts(runner: Runner, *, repeats: int, is_over: Callable[[], bool]) -> Layouts:
    """Run a copy of the model with channels last, in turn with the model itself.

    Args:
        runner: What to run.
        repeats: How many runs in each layout, at most.
        is_over: Tells whether the time for it is over; asked after each turn.

    Raises:
        Exception: Whatever the model says to the other layout.
    """
    other = _channels_last(runner)
    other.timed_ns()  # the first lays out what the kernels keep
    usual_ns: list[int] = []
    other_ns: list[int] = []
    while len(usual_ns) < min(repeats, _MOST_REPEATS):
        usual_ns.append(runner.timed_ns())
        other_ns.append(other.timed_ns())
        if is_over() and len(usual_ns) >= _LEAST_REPEATS:
            break
    usual = timing_of(usual_ns, "clock around the run, contiguous")
    last = timing_of(other_ns, "clock around the run, channels_last")
    speed_up = ratio(usual.median, last.median, "×", "median contiguous / median channels_last")
    return Layouts(usual, last, speed_up)


def _channels_last(runner: Runner) -> Runner:
    import torch
    from torch.utils import _pytree

    # Tensors that are made without gradients cannot be laid out anew.
    with torch.inference_mode(mode=False), torch.no_grad():
        module = copy.deepcopy(runner.module).to(memory_format=torch.channels_last)

    def laid_out(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.dim() == IMAGE_DIMENSIONS:
            return value.contiguous(memory_format=torch.channels_last)
        return value

    positional, named = _pytree.tree_map(laid_out, (runner.inputs.positional, runner.inputs.named))
    return replace(runner, module=module, inputs=Inputs(positional, named))
