"""The backward times of modules.

Autograd makes a node for each operation of a forward pass and runs it in the backward pass. The
backward time of a call is the time of the nodes that were made during the call. So it needs no
hooks around the module's values, which would turn them into views and break operations in place;
and it holds where the graph does not follow the modules, as with residual connections.

Nodes are numbered in the order in which a thread makes them, so a call has those between two
numbers. When the outermost call ends, the nodes that its outputs reach are each given two hooks,
which read the clock before and after it; the hooks die with the graph. Accumulating
the gradients of parameters is not in these times: it belongs to no call.

What is recomputed for a backward pass (checkpointing) counts for the node that needs it. If a node
runs a backward pass of its own, the time of the inner nodes is theirs, not that node's.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from snapviewer.explorer.recording import calls


class Call:
    """A call of a module; the nodes that it made have the numbers from `start` to before `end`."""

    __slots__ = ("end", "owner", "parent", "start")

    def __init__(self, owner: Any, parent: Call | None, start: int) -> None:
        self.owner = owner
        self.parent = parent
        self.start = self.end = start


class _Running:
    """A running node of the backward pass with the number `task`."""

    __slots__ = ("began_ns", "inner_ns", "overhead_before_ns", "task")

    def __init__(self, task: int) -> None:
        self.task = task
        self.inner_ns = 0
        self.overhead_before_ns = calls.overhead.ns
        self.began_ns = calls.clock_ns()


class _Thread(threading.local):
    def __init__(self) -> None:
        self.running: list[_Running] = []


class BackwardTime:
    """The time of a call in a backward pass: of its own nodes, of passes within them, in total."""

    __slots__ = ("inner_ns", "own_ns", "total_ns")

    def __init__(self) -> None:
        self.own_ns = self.inner_ns = self.total_ns = 0


Finished = Callable[[dict[Call, BackwardTime]], None]


class Backward:
    """Times the nodes of graphs.

    Args:
        waits: Called before the clock is read.
        finished: Called with the times of a backward pass.
    """

    def __init__(self, waits: Sequence[Callable[[], None]], finished: Finished) -> None:
        import torch

        # Private names without public replacements: torch's own checkpointing uses the first, its
        # distributed training the last.
        self.current_task: Callable[[], int] = torch._C._current_graph_task_id  # noqa: SLF001
        """The number of the backward pass that runs on this thread, -1 if there is none."""
        self.next_number: Callable[[], int] = torch._C._autograd._get_sequence_nr  # noqa: SLF001
        """The number of the node that this thread makes next."""
        engine = torch.autograd.Variable._execution_engine  # noqa: SLF001
        self._at_the_end: Callable[[Callable[[], None]], None] = engine.queue_callback
        self._waits = waits
        self._finished = finished
        self._thread = _Thread()
        self._lock = threading.RLock()
        self._tasks: dict[int, dict[Call, BackwardTime]] = {}
        self.is_on = True

    def follow(self, outputs: Iterable[Any], made: Sequence[Call]) -> None:
        """Time the nodes that outputs come from.

        Args:
            outputs: Tensors that the outermost call returned.
            made: That call and all inner calls that made nodes, in the order in which they ended.
        """
        if not made:
            return
        # Of two calls that made the same nodes, the one that ended last is the outer one.
        outer_first = made[::-1]
        in_order = sorted(outer_first, key=lambda call: (call.start, -call.end))
        starts = [call.start for call in in_order]
        first, last = in_order[0].start, max(call.end for call in in_order)
        waiting = [one.grad_fn for one in outputs if one.grad_fn is not None]
        while waiting:
            node = waiting.pop()
            number = node._sequence_nr()  # noqa: SLF001 (what autograd orders nodes by)
            if not first <= number < last or self in node.metadata:
                continue
            call: Call | None = in_order[bisect_right(starts, number) - 1]
            while call is not None and number >= call.end:
                call = call.parent
            if call is not None:
                node.metadata[self] = call
                timer = _Timer(self, call)
                node.register_prehook(timer.begin)
                node.register_hook(timer.end)
            waiting.extend(after for after, _ in node.next_functions if after is not None)

    def forget(self) -> None:
        """Stop timing: hooks that remain on graphs do nothing."""
        self.is_on = False
        self._tasks.clear()

    def begin_node(self) -> None:
        for wait in self._waits:
            wait()
        asked_ns = calls.clock_ns()
        task, running = self.current_task(), self._thread.running
        # The nodes of one pass run one after another: what is still here was left by an error.
        while running and running[-1].task >= task:
            running.pop()
        with self._lock:
            if task not in self._tasks:
                self._tasks[task] = {}
                self._at_the_end(lambda: self._end_task(task))
        calls.overhead.ns += calls.clock_ns() - asked_ns
        running.append(_Running(task))

    def end_node(self, call: Call) -> None:
        running = self._thread.running
        if not running or running[-1].task != self.current_task():
            return
        for wait in self._waits:
            wait()
        ended_ns = calls.clock_ns()
        node = running.pop()
        overhead_ns = calls.overhead.ns - node.overhead_before_ns
        time_ns = ended_ns - node.began_ns - overhead_ns
        with self._lock:
            shares = self._tasks.get(node.task)
            if shares is not None:
                share = shares.setdefault(call, BackwardTime())
                share.own_ns += time_ns - node.inner_ns
                share.inner_ns += node.inner_ns
        if running:
            running[-1].inner_ns += time_ns
        calls.overhead.ns += calls.clock_ns() - ended_ns

    def _end_task(self, task: int) -> None:
        with self._lock:
            shares = self._tasks.pop(task, None)
        if shares and self.is_on:
            self._finished(_summed(shares))


class _Timer:
    """The hooks of one node."""

    __slots__ = ("_backward", "_call")

    def __init__(self, backward: Backward, call: Call) -> None:
        self._backward = backward
        self._call = call

    def begin(self, _: Any) -> None:
        if self._backward.is_on:
            self._backward.begin_node()

    def end(self, *_: Any) -> None:
        if self._backward.is_on:
            self._backward.end_node(self._call)


def _summed(shares: dict[Call, BackwardTime]) -> dict[Call, BackwardTime]:
    """Add the times of calls to the calls around them."""
    for call, share in list(shares.items()):
        taken = share.own_ns + share.inner_ns
        around: Call | None = call
        while around is not None:
            shares.setdefault(around, BackwardTime()).total_ns += taken
            around = around.parent
    return shares
