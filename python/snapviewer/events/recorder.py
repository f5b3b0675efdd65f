"""Records memory events while a model runs: what the report reads, a JSON object a line.

An event costs the run 0.4 ms, and 0.08 ms without waiting for the disk: medians of 2,000 steps in a
process with PyTorch, Linux on ext4 on a virtual disk. Half of the 0.08 ms is the system telling the
memory of the process; what CUDA takes to tell was not measured.
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
    fitting,
    is_good_end,
    is_out_of_memory,
    json_value,
    kind_of,
    message_of,
    name_of,
)
from snapviewer.text.sanitize import MAX_NAME_CHARS

if TYPE_CHECKING:
    from typing_extensions import Self

_Anything = TypeVar("_Anything")


class EventRecorder:
    """Writes what happens to memory, and when, into a file that survives the run.

        with EventRecorder("memory_events.jsonl", model_name="ResNet-18") as recorder:
            with recorder.component("unet"):
                model = build()
            recorder.event("model_loaded")
            for batch in loader:
                train(batch)
                recorder.step()

    Entering writes `init`, with what is known of the machine; leaving writes `inference_end`. An
    exception writes `error` instead, or `oom` if memory ran out, and goes on its way; a generator
    that is closed early has ended well. Each event is on disk when the call returns. Every event
    has `timestamp` (Unix seconds), `peak_memory` (the most so far) and `memory_allocated` (now), in
    bytes; of a CUDA device also `cuda_runtime_peak` (the most that was seen in use on the device,
    by whomever) and `pytorch_runtime_peak` (the most that PyTorch reserved), in MB of 2**20 bytes.

    A step tells how far memory is above a base: the last `before_generate`; until there is one, the
    end of the last component, and without components the moment of entering.

    Recording does not end a run: what goes wrong after entering is logged once, by `logging`, and
    the run goes on. Threads may share a recorder. A process that was forked writes nothing; each
    process of a distributed run needs a path of its own. A model that has a hook of a recorder can
    be copied, and goes on recording; and it can be pickled, where the recorder that comes back
    records nothing.

    Args:
        path: The file, JSON Lines; its directory must be there. It may be a pipe that someone
            reads, or `/dev/stdout`; events that are not taken at once are lost there.
        model_name: What the report calls the model.
        memory: `cuda`, `process` (what is resident), or `auto`: CUDA if PyTorch sees a device;
            or something of your own that can be read. The log says which.
        device: The CUDA device, as PyTorch names it; None is the current one.
        append: Whether to keep what the file says already; else it is replaced.
        is_synced: Whether an event waits for the disk. Without, events survive the death of the
            process, but not that of the machine.
        resets_peak: Whether peaks begin anew when recording begins, also for others who ask for
            them: `torch.cuda.max_memory_allocated()`, or `VmHWM` of the process. What cannot be
            reset is the peak since the process began; `peak_since` in the log says which.
        waits_for_device: Whether components and stages wait for the device when they begin and end,
            as their durations mean little otherwise. Events and steps never wait.

    Raises:
        OSError: On entering, the file cannot be written.
        RuntimeError: On entering, there is no CUDA, but it was asked for.
        ValueError: On entering, there is no such device, or `append` finds something else
            than JSON Lines that begin with an event.
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
        # A signal's handler may record an event while one is being recorded.
        self._lock = threading.RLock()
        self._has_begun = False
        self._meter: Meter | None = None
        self._file: EventFile | None = None
        self._process = 0
        self._is_told_of_end = False
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
        # First: what is wrong with the machine must not cost the log of an earlier run.
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
                own |= {"error_type": kind_of(error), "message": message_of(error)}
                if self._failed_in is not None:
                    own["failed_in"] = self._failed_in
                self._write("oom" if is_out_of_memory(error) else "error", own=own)
            if self._file is not None:
                self._file.close()
            self._file = None

    # A copy of a model has hooks of the same recorder.
    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __getstate__(self) -> dict[str, object]:
        return {"path": os.fspath(self.path)}

    def __setstate__(self, state: Mapping[str, str]) -> None:
        # As one that recorded elsewhere: it never will here.
        EventRecorder.__init__(self, state["path"])
        self._has_begun = True

    def event(self, name: str, /, **fields: object) -> None:
        """Record that something happened.

        Args:
            name: What, such as `model_loaded`; `before_generate` is what later steps are measured
                from.
            fields: What else there is to say: numbers and texts; of anything else, its `repr`.
                They take the place of what is measured, but not of the name and the time. Of more
                than 60,000 characters, the longest are left out; `dropped_fields` says how many.
        """
        if not self._may_record():
            return
        with self._lock:
            name = name_of(name)
            is_base = name == "before_generate"
            level = self._write(name, fields, own={"incremental_memory": 0} if is_base else {})
            if is_base:
                self._base_bytes, self._has_before_generate = level, True
                self._step_began_at = time.perf_counter()

    def step(self, **fields: object) -> None:
        """Record that a step of training or of generation was done: `step_0`, `step_1`, ….

        The duration is that since the step before, or since `before_generate`.
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
        """Record a step: a hook for whoever calls it, such as `register_step_post_hook`.

        It does nothing before recording began and after it ended.
        """
        if self._is_recording():
            self.step()

    def on_step_end(
        self, _pipe: object, step: int, _timestep: object, kept: _Anything
    ) -> _Anything:
        """Record a step: `callback_on_step_end` of a pipeline of diffusers.

        Steps are counted on where a pipeline begins again; `pipeline_step` is its own number.
        """
        if self._is_recording():
            self.step(pipeline_step=step)
        return kept

    @contextmanager
    def component(self, name: str) -> Iterator[None]:
        """Record a part of a model being loaded: `…_load_start`, then `…_loaded` with its memory.

        If loading fails, the second is not written.
        """
        with self._block(name, "_load_start", "_loaded", is_component=True):
            yield

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Record a stage: `…_start`, then `…_end` with its duration and what it left in memory.

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
        name = name_of(name, MAX_NAME_CHARS - 20)  # there is room for what it did
        self._wait()
        before = self._write(f"{name}{start}")
        began_at = time.perf_counter()
        try:
            yield
        except GeneratorExit:
            self._end_block(f"{name}{end}", began_at, before, is_component=is_component)
            raise
        except BaseException:
            # The innermost comes first. Not the exception itself: it would keep tensors alive.
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
        # A lock may have been held by another thread at the moment of a fork: do not ask for it.
        return self._file is not None and self._process == os.getpid()

    def _may_record(self) -> bool:
        """Tell whether there is a recording; complain if there was one.

        Raises:
            RuntimeError: There was none yet.
        """
        if not self._has_begun:
            raise RuntimeError("nothing is being recorded yet: use `with EventRecorder(…) as …:`")
        if self._file is None and self._process == os.getpid() and not self._is_told_of_end:
            self._is_told_of_end = True
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
            name: What it is called.
            fields: What others say, and as much as they like.
            own: What we say: little, and never left out.
            above: The level that the event is measured from.
        """
        if not self._is_recording():
            return None
        with self._lock:
            if self._file is None or self._meter is None:
                return None
            self._failed_in = None
            now: dict[str, object] = {"event": name_of(name), "timestamp": round(time.time(), 6)}
            measured = self._meter.read()
            level = measured.level_bytes
            added = {} if level is None or above is None else {"incremental_memory": level - above}
            told = {name_of(key): json_value(value) for key, value in (fields or {}).items()}
            # Twice: what is first stands first, what is last counts.
            said = {**measured.fields, **added, **(own or {}), **fitting(told)}
            self._file.write({**now, **said, **now})
            return level

    def _wait(self) -> None:
        if self._waits_for_device and self._meter is not None and self._is_recording():
            self._meter.wait()

    def _complain(self, message: str) -> None:
        complain(message, self.path)


def _since(began_at: float) -> float:
    return round(time.perf_counter() - began_at, 6)
