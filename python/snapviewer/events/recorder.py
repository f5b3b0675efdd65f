"""Record memory events while a model runs, as JSON Lines that the report reads.

An event costs the run 0.4 ms, and 0.08 ms without waiting for the disk: medians of 2,000 steps in a
process with PyTorch, Linux on ext4 on a virtual disk. Half of the 0.08 ms is reading the memory of
the process; what reading CUDA's takes was not measured.
"""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from snapviewer import __version__
from snapviewer.events.event_file import EventFile, complain
from snapviewer.events.memory import (
    MemoryKind,
    MemorySource,
    memory_source,
    torch_version,
)
from snapviewer.events.meter import Meter
from snapviewer.events.safe_values import (
    Value,
    event_name,
    fitting,
    is_good_end,
    is_out_of_memory,
    json_value,
)
from snapviewer.text.sanitize import MAX_NAME_CHARS, error_message, type_name

if TYPE_CHECKING:
    from typing_extensions import Self

_T = TypeVar("_T")


class EventRecorder:
    """Record what happens to memory, and when, in a file that survives the run.

        with EventRecorder("memory_events.jsonl", model_name="ResNet-18") as recorder:
            with recorder.component("unet"):
                model = build()
            recorder.event("model_loaded")
            for batch in loader:
                train(batch)
                recorder.step()

    Entering writes `init`, with what is known of the machine; leaving writes `inference_end`. An
    exception writes `error` instead, or `oom` if memory ran out, and propagates; closing a
    generator early is a normal end. Each event is on disk when the call returns. Every event has
    `timestamp` (Unix seconds), `peak_memory` (the highest so far) and `memory_allocated` (now), in
    bytes; events of a CUDA device also have `cuda_runtime_peak` (the most in use on the device, by
    any process) and `pytorch_runtime_peak` (the most that PyTorch reserved), in MiB.

    A step records how far memory is above a base: the last `before_generate`; without one, the end
    of the last component, and without components the moment of entering.

    Recording never ends a run: what goes wrong after entering is logged once, with `logging`.
    Threads may share a recorder. A forked process writes nothing; each process of a distributed
    run needs its own path. A model with a hook of a recorder can be copied, and keeps recording;
    it can also be pickled, but the unpickled recorder records nothing.

    Args:
        path: The file, JSON Lines; its directory must exist. It may be a pipe with a reader, or
            `/dev/stdout`, where events that cannot be written at once are lost.
        model_name: The name of the model in the report.
        memory: `cuda`, `process` (its resident memory), or `auto`: CUDA if PyTorch sees a device;
            or a `MemorySource` of your own. The log says which.
        device: The CUDA device, as PyTorch names it; None is the current one.
        append: Whether to keep what the file contains; else it is replaced.
        is_synced: Whether an event waits for the disk. If not, events survive the death of the
            process, but not that of the machine.
        resets_peak: Whether to reset the peak when recording begins, which others see, too, in
            `torch.cuda.max_memory_allocated()` or `VmHWM` of the process. A peak that cannot be
            reset is the one since the process began; `peak_since` in the log says which.
        waits_for_device: Whether components and stages synchronize with the device when they begin
            and end; without it their durations mean little. Events and steps never wait.

    Raises:
        OSError: On entering, the file cannot be written.
        RuntimeError: On entering, `memory` is `cuda` and there is no CUDA.
        ValueError: On entering, there is no such device, or `append` finds something other than
            JSON Lines that begin with an event.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        model_name: str | None = None,
        memory: MemoryKind | MemorySource = "auto",
        device: object = None,
        append: bool = False,
        is_synced: bool = True,
        resets_peak: bool = True,
        waits_for_device: bool = True,
    ) -> None:
        self.path = path
        self._model_name = model_name
        self._memory = memory
        self._device = device
        self._append = append
        self._is_synced = is_synced
        self._resets_peak = resets_peak
        self._waits_for_device = waits_for_device
        # Reentrant: a signal handler may record an event while one is being recorded.
        self._lock = threading.RLock()
        self._has_begun = False
        self._meter: Meter | None = None
        self._file: EventFile | None = None
        self._process = 0
        self._has_warned_of_end = False
        self._base_bytes: int | None = None
        self._has_before_generate = False
        self._steps = 0
        self._entered_at = 0.0
        self._step_began_at: float | None = None
        self._failed_in: str | None = None

    def __enter__(self) -> Self:
        if self._has_begun:
            raise RuntimeError("an EventRecorder records once: make another one")
        chosen = self._memory
        # First: if this fails, the log of an earlier run must not be lost.
        source = memory_source(chosen, self._device) if isinstance(chosen, str) else chosen
        self._file = EventFile(self.path, is_appended=self._append, is_synced=self._is_synced)
        self._meter = Meter(source, self._complain)
        self._process = os.getpid()
        self._has_begun = True
        self._entered_at = time.perf_counter()
        facts = {
            "model_name": self._model_name,
            **self._meter.begin(resets_peak=self._resets_peak),
            "torch_version": torch_version(),
            "python_version": platform.python_version(),
            "recorder": f"snapviewer {__version__}",
            "steps_are": "levels",
        }
        known = {name: fact for name, fact in facts.items() if fact is not None}
        self._base_bytes = self._write("init", known)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._is_recording():
            return
        with self._lock:
            own: dict[str, Value] = {"duration": _since(self._entered_at)}
            if self._file is not None and self._file.lost:
                own["lost_events"] = self._file.lost
            if error is None or is_good_end(error):
                self._write("inference_end", own=own)
            else:
                own |= {"error_type": type_name(error), "message": error_message(error)}
                if self._failed_in is not None:
                    own["failed_in"] = self._failed_in
                self._write("oom" if is_out_of_memory(error) else "error", own=own)
            if self._file is not None:
                self._file.close()
            self._file = None

    # The hooks in a copy of a model belong to the same recorder.
    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __getstate__(self) -> dict[str, object]:
        return {"path": os.fspath(self.path)}

    def __setstate__(self, state: Mapping[str, str]) -> None:
        # As if its recording had ended.
        EventRecorder.__init__(self, state["path"])
        self._has_begun = True

    def event(self, name: str, /, **fields: object) -> None:
        """Record an event.

        Args:
            name: Such as `model_loaded`; later steps are measured from `before_generate`.
            fields: More numbers and texts; of anything else, the `repr` is recorded. They override
                what is measured, but not the name and the time. What exceeds 60,000 characters is
                left out; `dropped_fields` says how many.
        """
        if not self._may_record():
            return
        with self._lock:
            name = event_name(name)
            is_base = name == "before_generate"
            level = self._write(name, fields, own={"incremental_memory": 0} if is_base else {})
            if is_base:
                self._base_bytes, self._has_before_generate = level, True
                self._step_began_at = time.perf_counter()

    def step(self, **fields: object) -> None:
        """Record the end of a step of training or generation: `step_0`, `step_1`, ….

        Its duration is the time since the step before, or since `before_generate`.
        """
        if not self._may_record():
            return
        with self._lock:
            began_at = self._step_began_at
            own = {} if began_at is None else {"duration": _since(began_at)}
            self._write(f"step_{self._steps}", fields, own=own, above=self._base_bytes)
            self._step_began_at = time.perf_counter()
            self._steps += 1

    def step_hook(self, *_: object, **__: object) -> None:
        """Record a step, as a hook for `register_step_post_hook` and the like.

        It does nothing before recording begins and after it ends.
        """
        if self._is_recording():
            self.step()

    def on_step_end(self, _pipe: object, step: int, _timestep: object, kept: _T) -> _T:
        """Record a step, as the `callback_on_step_end` of a diffusers pipeline.

        The count goes on when a pipeline starts again; `pipeline_step` is its own number.
        """
        if self._is_recording():
            self.step(pipeline_step=step)
        return kept

    @contextmanager
    def component(self, name: str) -> Iterator[None]:
        """Record the loading of a component: `…_load_start`, then `…_loaded` with its memory.

        If loading fails, the second is not written.
        """
        with self._block(name, "_load_start", "_loaded", is_component=True):
            yield

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Record a stage: `…_start`, then `…_end` with its duration and what it added to memory.

        If it fails, the second is not written.
        """
        with self._block(name, "_start", "_end"):
            yield

    @contextmanager
    def _block(
        self, name: str, start: str, end: str, *, is_component: bool = False
    ) -> Iterator[None]:
        if not self._may_record():
            yield
            return
        name = event_name(name, MAX_NAME_CHARS - 20)  # room for the suffixes
        self._wait()
        before = self._write(f"{name}{start}")
        began_at = time.perf_counter()
        try:
            yield
        except GeneratorExit:
            self._end_block(f"{name}{end}", began_at, before, is_component=is_component)
            raise
        except BaseException:
            # The innermost block comes first. Only its name: the exception keeps tensors alive.
            self._failed_in = self._failed_in or name
            raise
        self._end_block(f"{name}{end}", began_at, before, is_component=is_component)

    def _end_block(
        self, name: str, began_at: float, before: int | None, *, is_component: bool
    ) -> None:
        self._wait()
        own = {"duration": _since(began_at)}
        with self._lock:
            level = self._write(name, own=own, above=before)
            if is_component and not self._steps and not self._has_before_generate:
                self._base_bytes = level

    def _is_recording(self) -> bool:
        # Without the lock, which another thread may have held at the moment of a fork.
        return self._file is not None and self._process == os.getpid()

    def _may_record(self) -> bool:
        """Return whether there is a recording; warn once if it has ended.

        Raises:
            RuntimeError: It has not begun.
        """
        if not self._has_begun:
            raise RuntimeError("recording has not begun: use `with EventRecorder(…) as …:`")
        if self._file is None and self._process == os.getpid() and not self._has_warned_of_end:
            self._has_warned_of_end = True
            self._complain("events after the end of the recording are not recorded")
        return self._is_recording()

    def _write(
        self,
        name: str,
        fields: Mapping[str, object] | None = None,
        *,
        own: Mapping[str, Value] | None = None,
        above: int | None = None,
    ) -> int | None:
        """Measure and write an event; return the level, if that is known.

        Args:
            name: Of the event.
            fields: The caller's, of any size.
            own: Ours: short, and never left out.
            above: The level that memory is measured from.
        """
        if not self._is_recording():
            return None
        with self._lock:
            if self._file is None or self._meter is None:
                return None
            self._failed_in = None
            now: dict[str, object] = {"event": event_name(name), "timestamp": round(time.time(), 6)}
            measured = self._meter.read()
            level = measured.level_bytes
            added = {} if level is None or above is None else {"incremental_memory": level - above}
            given = {event_name(key): json_value(value) for key, value in (fields or {}).items()}
            # `now` twice: first for its place in the line, last because it must not be overridden.
            rest = {**measured.fields, **added, **(own or {}), **fitting(given)}
            self._file.write({**now, **rest, **now})
            return level

    def _wait(self) -> None:
        if self._waits_for_device and self._meter is not None and self._is_recording():
            self._meter.wait()

    def _complain(self, message: str) -> None:
        complain(message, self.path)


def _since(began_at: float) -> float:
    return round(time.perf_counter() - began_at, 6)
