"""Records the calls of a model's modules.

# Invariants

A call's own time and the times of the calls that it makes directly add up to its time, to the
nanosecond, on each thread. A module that is called within a call of itself is part of that: its own
time counts for the outer call, and its total is not counted again.

A call that ends with an exception has no times, but those of its caller are right. No tensor or
module is kept alive.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any

from snapviewer.explorer.recording import values
from snapviewer.explorer.recording.backward import Backward, BackwardTime, Call
from snapviewer.explorer.recording.devices import Devices, Peak
from snapviewer.explorer.recording.flow import Producers
from snapviewer.explorer.recording.notes import Notes
from snapviewer.explorer.recording.paths import KnownModule, Paths, nearest
from snapviewer.explorer.recording.totals import CallTotals, is_within, relative_to
from snapviewer.explorer.recording.values import Named, TensorRecord, shapes_of, storage_of
from snapviewer.explorer.timing import FlowStep, ForwardStats
from snapviewer.text.sanitize import MAX_NAME_CHARS, sanitize

MAX_STEPS = 20_000
_MAX_SHARED = 5


class Frame:
    """A running call; `again` is the outermost running call of the same module."""

    __slots__ = (
        "again",
        "call",
        "done",
        "flow",
        "inner_ns",
        "inputs",
        "is_recomputed",
        "known",
        "made",
        "parent",
        "peak",
        "place",
        "repeated_ns",
        "returned",
        "step",
        "storages",
        "totals",
    )

    def __init__(
        self, known: KnownModule, totals: CallTotals, parent: Frame | None, *, is_recomputed: bool
    ) -> None:
        self.known = known
        self.totals = totals
        self.parent = parent
        self.is_recomputed = is_recomputed
        self.again: Frame | None = None
        self.inner_ns = self.repeated_ns = self.place = 0
        self.inputs: Sequence[TensorRecord] = ()
        self.storages: frozenset[int] = frozenset()
        self.peak: Peak | None = None
        self.call: Call | None = None
        self.done: list[Call] = []
        # Shared with the outermost call.
        self.made: list[Call] = [] if parent is None else parent.made
        self.returned: list[weakref.ref[Any]] = [] if parent is None else parent.returned
        self.flow: list[_Step] = [] if parent is None else parent.flow
        self.step: _Step | None = None


class _Step:
    """A call in the flow; its outputs are known when it ends."""

    __slots__ = ("depth", "inputs", "outputs", "sources", "totals")

    def __init__(self, totals: CallTotals, depth: int) -> None:
        self.totals = totals
        self.depth = depth
        self.sources: tuple[str, ...] = ()
        self.inputs: Sequence[TensorRecord] = ()
        self.outputs: Sequence[TensorRecord] = ()


class _Thread(threading.local):
    def __init__(self) -> None:
        self.stack: list[Frame] = []


class Recorder:
    """One recording of a model, or several that add up."""

    def __init__(self, parts: Mapping[str, Any], *, resets_peak: bool) -> None:
        self.paths = Paths(parts)
        self.names = frozenset(parts)
        self.is_listening = False
        self._thread = _Thread()
        self._lock = threading.RLock()
        self._totals: dict[str, CallTotals] = {}
        self._flow: list[_Step] = []
        self._runs: Counter[str] = Counter()
        self._producers = Producers()
        self._notes = Notes(counts_memory=resets_peak)
        self._resets_peak = resets_peak
        self._devices = Devices(resets_peak=resets_peak)
        self.waits = self._devices.waits
        self._backward: Backward | None = None
        self.begin(parts)

    def begin(self, parts: Mapping[str, Any]) -> None:
        """Start recording, or continue after an end."""
        self.is_listening = True
        self._devices = Devices(resets_peak=self._resets_peak)
        self.waits = self._devices.waits
        for part in parts.values():
            self._notes.attempt(self._see, part)
        self._backward = None
        try:
            self._backward = Backward(self.waits, self._add_backward)
        except AttributeError as error:
            self._notes.no_backward = f"this version of torch does not support it ({error})"

    def end(self) -> None:
        """Release everything that is only needed while modules run."""
        self.is_listening = False
        if self._backward is not None:
            self._backward.forget()
        self._producers = Producers()
        self._notes.devices(self._devices)

    def stats(self, path: str = "") -> ForwardStats:
        """Return what was recorded so far of the module at a path and those below it."""
        flow = [step for step in list(self._flow) if is_within(step.totals.path, path)]
        steps = [
            FlowStep(
                order,
                step.totals.path,
                step.totals.type_name,
                step.depth,
                step.sources,
                shapes_of(step.inputs),
                shapes_of(step.outputs),
            )
            for order, step in enumerate(flow)
        ]
        runs = self._runs["whole"] or self._runs["outermost"]
        notes = self._notes.sentences(has_calls=bool(runs))
        totals = [one for one in list(self._totals.values()) if is_within(one.path, path)]
        timings = ((one.path, one.timing()) for one in totals)
        return relative_to(
            ForwardStats(
                {way: timing for way, timing in timings if timing is not None},
                tuple(steps),
                runs,
                (*notes, *_of_shared(self.paths, self._totals)),
            ),
            path,
        )

    def find(self, module: Any) -> KnownModule | None:
        """Return the entry of a module; None if it does not belong to the model."""
        known = self.paths.find(module)
        if known is not None or not self._thread.stack:
            return known
        running = ((one.totals.path, one.known.module()) for one in reversed(self._thread.stack))
        return self.paths.learn(module, running)

    def enter(self, known: KnownModule, module: Any, args: Any, kwargs: Any) -> Frame:
        """Begin a call."""
        stack = self._thread.stack
        backward = self._backward
        is_recomputed = backward is not None and backward.current_task() != -1
        around = stack[-1] if stack else None
        parent = around if around is not None and around.is_recomputed == is_recomputed else None
        path = nearest(known.paths, "" if parent is None else parent.totals.path)
        frame = Frame(known, self._totals_at(path), parent, is_recomputed=is_recomputed)
        frame.place = len(stack)
        if not is_recomputed:
            frame.again = next((one for one in stack if one.totals is frame.totals), None)
            self._begin_step(frame)
            self._notes.attempt(self._describe_inputs, frame, module, args, kwargs)
            frame.peak = self._notes.attempt(self._devices.begin)
        else:
            self._notes.recomputed += 1
        if backward is not None:
            around_call = None if parent is None else parent.call
            frame.call = Call(frame.totals, around_call, backward.next_number())
        stack.append(frame)
        return frame

    def leave(self, frame: Frame, time_ns: int, result: Any, *, has_failed: bool) -> None:
        """End a call."""
        stack = self._thread.stack
        del stack[frame.place :]
        call, backward = frame.call, self._backward
        if call is not None and backward is not None:
            call.end = backward.next_number()
            if call.end > call.start:
                frame.made.append(call)
                if frame.parent is not None:
                    frame.parent.done.append(call)
        if not has_failed:
            self._notes.attempt(self._describe_outputs, frame, result)
        if not frame.is_recomputed:
            grown = self._notes.attempt(self._devices.end, frame.peak)
            self._count(frame, time_ns, grown, has_failed=has_failed)
        if frame.parent is None and backward is not None and frame.made:
            self._notes.attempt(self._follow, backward, frame)

    def _follow(self, backward: Backward, frame: Frame) -> None:
        # Not only the outputs of the outermost call: a module may store a loss elsewhere.
        with _no_overrides():
            alive = [tensor for one in frame.returned if (tensor := one()) is not None]
            backward.follow(alive, frame.made)

    def _see(self, part: Any) -> None:
        for tensor in (*part.parameters(), *part.buffers()):
            self._devices.see(tensor.device)
            self._devices.add(tensor, is_held=True)

    def _totals_at(self, path: str) -> CallTotals:
        totals = self._totals.get(path)
        return self._totals.setdefault(path, CallTotals(path)) if totals is None else totals

    def _begin_step(self, frame: Frame) -> None:
        if frame.parent is None:
            # A run is a call of the model; if only parts are called, all calls.
            if not frame.totals.path:
                self._flow = []
            frame.flow = self._flow
        if len(frame.flow) < MAX_STEPS:
            depth = 0 if frame.parent is None else frame.place
            frame.step = _Step(frame.totals, depth)
            frame.flow.append(frame.step)
        else:
            self._notes.flow_is_cut = True

    def _count(self, frame: Frame, time_ns: int, grown: int | None, *, has_failed: bool) -> None:
        own_ns = time_ns - frame.inner_ns
        if frame.parent is not None:
            frame.parent.inner_ns += time_ns
        totals, again = frame.totals, frame.again
        with self._lock:
            if again is not None:
                again.repeated_ns += own_ns
            if has_failed:
                self._notes.failed += 1
                return
            totals.calls += 1
            totals.type_name = _type_of(frame.known.module()) or totals.type_name
            if grown is not None:
                totals.allocated_bytes = max(grown, totals.allocated_bytes or 0)
            if again is None:
                totals.total.add(time_ns)
                totals.own.add(own_ns + frame.repeated_ns)
            if frame.parent is None:
                self._runs["outermost"] += 1
                self._runs["whole"] += not totals.path

    def _describe_inputs(self, frame: Frame, module: Any, args: Any, kwargs: Any) -> None:
        known = frame.known
        if known.argument_names is None:
            known.argument_names = values.argument_names(module)
            self._notes.of_module(frame.totals.path, module)
        with _no_overrides():
            tensors = values.inputs_of(known.argument_names, args, kwargs)
            frame.inputs = values.tensor_records(tensors)
            storages = (storage_of(tensor) for _, tensor in tensors)
            frame.storages = frozenset(one[0] for one in storages if one is not None)
            if frame.step is not None:
                frame.step.inputs = frame.inputs
                frame.step.sources = self._producers.sources(tensors, _done(frame.parent))
            for _, tensor in tensors:
                self._devices.see(tensor.device)
                self._devices.add(tensor)

    def _describe_outputs(self, frame: Frame, result: Any) -> None:
        with _no_overrides():
            tensors = values.outputs_of(result)
            if frame.made:
                graded = (tensor for _, tensor in tensors if tensor.requires_grad)
                frame.returned.extend(map(weakref.ref, graded))
            if frame.is_recomputed:
                return
            for _, tensor in tensors:
                self._devices.add(tensor)
            outputs = values.tensor_records(tensors)
            totals, module = frame.totals, frame.known.module()
            if not tensors and isinstance(result, _LATER):
                self._notes.later.add(totals.path)
            totals.inputs, totals.outputs = frame.inputs, outputs
            totals.activation_bytes = _new_bytes(tensors, frame.storages, module)
            if frame.step is not None:
                frame.step.outputs = outputs
            self._producers.returned(totals.path, tensors)

    def _add_backward(self, shares: dict[Call, BackwardTime]) -> None:
        with self._lock:
            repeated: Counter[Call] = Counter()
            outer = {call: _outermost(call) for call in shares}
            for call, share in shares.items():
                repeated[outer[call]] += share.own_ns
            for call, share in shares.items():
                if outer[call] is call:
                    call.owner.backward.add(share.total_ns)
                    call.owner.backward_own.add(repeated[call])


_LATER = (GeneratorType, CoroutineType, AsyncGeneratorType)


def _done(frame: Frame | None) -> list[list[Call]]:
    """Return the ended calls of each running call, the innermost first."""
    levels = []
    while frame is not None:
        levels.append(frame.done)
        frame = frame.parent
    return levels


def _outermost(call: Call) -> Call:
    """Return the outermost call of the same module around a call."""
    found, around = call, call.parent
    while around is not None:
        if around.owner is call.owner:
            found = around
        around = around.parent
    return found


def _new_bytes(tensors: list[Named], old: frozenset[int], module: Any) -> int:
    """Return the bytes of the tensors' storages that did not exist before the call."""
    storages = [one for _, tensor in tensors if (one := storage_of(tensor)) is not None]
    new = {key: size for key, size in storages if key not in old}
    if new:
        kept = (*module._parameters.values(), *module._buffers.values())  # noqa: SLF001
        for tensor in kept:
            held = None if tensor is None else storage_of(tensor)
            if held is not None:
                new.pop(held[0], None)
    return sum(new.values())


def _type_of(module: Any) -> str:
    if module is None:
        return ""  # a replica ran, and the module is gone
    # Of a ScriptModule, the original class.
    return str(module.__dict__.get("original_name", type(module).__name__))


def _of_shared(paths: Paths, totals: Mapping[str, CallTotals]) -> list[str]:
    shared = [ways for ways in paths.shared() if any(way in totals for way in ways)]
    said = [sanitize(" = ".join(ways), MAX_NAME_CHARS) for ways in shared[:_MAX_SHARED]]
    if len(shared) > _MAX_SHARED:
        said.append(f"and {len(shared) - _MAX_SHARED:,} more")
    rule = "a call counts for the path that is nearest to the caller, or else for the first"
    return [f"modules with several paths: {', '.join(said)}; {rule}"] if said else []


def _no_overrides() -> Any:
    """Disable overrides by tensor subclasses and modes while tensors are inspected."""
    return _override_guard()()


@cache
def _override_guard() -> Any:
    import torch

    return torch._C.DisableTorchFunction  # noqa: SLF001 (the public one leaves modes on)
