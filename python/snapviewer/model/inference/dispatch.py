"""The operations of a run, recorded and timed with a dispatch mode of torch.

A dispatch mode sees operations as Python or TorchScript calls them: what an operation calls in
turn is part of it, so nothing counts twice. A first run is recorded with its shapes; later ones
keep two timestamps per operation.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from snapviewer.model.graph import Node
from snapviewer.model.inference import running
from snapviewer.model.inference.running import Runner
from snapviewer.model.live.recorder import recording

_OURS = f"{Path(__file__).parents[1]}{os.sep}"


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The operations of a run.

    `functions` are all functions that torch called, and `numbers` their nodes: None for
    bookkeeping. `lines` are the lines of the model's code that called the nodes.
    """

    nodes: tuple[Node, ...]
    functions: tuple[Any, ...]
    numbers: tuple[int | None, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TimedRun:
    """The times of a run, in total and of each node, and how they were measured.

    A run whose operations differ from the recorded one has no times of nodes.
    """

    total_ns: int
    node_ns: tuple[int, ...]
    source: str
    is_like: bool = True


def record_run(runner: Runner, *, has_lines: bool) -> RecordedRun:
    """Run once and return the operations with their shapes."""
    functions: list[Any] = []
    numbers: list[int | None] = []
    lines: list[str] = []
    with recording(runner.module) as nodes:

        def call(function: Any, args: Any, kwargs: Any) -> Any:
            # The recorder runs next, and adds a node unless the operation is bookkeeping.
            count = len(nodes)
            result = function(*args, **kwargs)
            functions.append(function)
            numbers.append(count if len(nodes) > count else None)
            if len(nodes) > count:
                lines.append(_line() if has_lines else "")
            return result

        with _mode(call):
            runner()
    return RecordedRun(tuple(nodes), tuple(functions), tuple(numbers), tuple(lines))


def time_by_dispatch(runner: Runner, like: RecordedRun) -> TimedRun:
    """Run once and time each node, if the run is like the recorded one."""
    mark, elapsed_ns, source = _marks(runner.device)
    seen: list[tuple[Any, Any, Any]] = []

    def call(function: Any, args: Any, kwargs: Any) -> Any:
        before = mark()
        result = function(*args, **kwargs)
        seen.append((function, before, mark()))
        return result

    with _mode(call):
        total_ns = runner.timed_ns()
    if tuple(function for function, _, _ in seen) != like.functions:
        return TimedRun(total_ns, (), source, is_like=False)
    node_ns = tuple(
        elapsed_ns(before, after)
        for number, (_, before, after) in zip(like.numbers, seen, strict=True)
        if number is not None
    )
    return TimedRun(total_ns, node_ns, source)


def run_marked(runner: Runner, around: Callable[[int], Any]) -> None:
    """Run once with a context around each call of torch; `around` gets the number of the call."""
    count = 0

    def call(function: Any, args: Any, kwargs: Any) -> Any:
        nonlocal count
        with around(count):
            count += 1
            return function(*args, **kwargs)

    with _mode(call):
        runner()


def op_of(function: Any) -> str:
    """Return the name of an operation, without its overload."""
    schema = getattr(function, "_schema", None)
    return str(schema.name) if schema is not None else str(function)


def _mode(call: Callable[[Any, Any, Any], Any]) -> Any:
    return _mode_class()(call)


@cache
def _mode_class() -> Any:
    """Return the class of dispatch modes; torch is imported here, not before."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class CallMode(TorchDispatchMode):  # type: ignore[misc] # its base is torch's
        def __init__(self, call: Callable[[Any, Any, Any], Any]) -> None:
            super().__init__()
            self.call = call

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            # Otherwise each operation goes through a wrapper that disables compilation.
            return False

        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return self.call(function, args, kwargs or {})

    return CallMode


def _marks(device: str) -> tuple[Callable[[], Any], Callable[[Any, Any], int], str]:
    """Return how to take a timestamp, how to subtract two, and the name of the clock."""
    if not device.startswith("cuda"):
        return running.clock_ns, lambda before, after: int(after - before), "clock"
    import torch

    def mark() -> Any:
        # The GPU runs asynchronously, so it has to take the timestamps.
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    return mark, lambda before, after: int(before.elapsed_time(after) * 1e6), "GPU events"


def _line() -> str:
    """Return the line of the model's own code that is running; empty if all frames are torch's."""
    import torch

    torchs = f"{Path(torch.__file__).parent}{os.sep}"
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 (inspects callers)
    while frame is not None:
        name = frame.f_code.co_filename
        if name == running.__file__:
            return ""  # reached our own call of the model
        if not name.startswith((_OURS, torchs, "<")):
            return f"{name}:{frame.f_lineno} in {frame.f_code.co_name}"
        frame = frame.f_back
    return ""
