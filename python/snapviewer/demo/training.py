"""Runs the demo's training on one device: steps, evaluations, and the trouble that was asked for.

The run has no end of its own; it goes on until the trace has all its events.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from .allocator import DEFAULT_POOL, CachingAllocator, OutOfMemoryError
from .host import HostAllocator, HostBlock
from .model import FREE, Model, Op, Phase, peak_bytes
from .options import DemoOptions
from .pool import MIB, SMALL_SEGMENT, Block, PoolId
from .programs import ProgramBuilder
from .recorder import NO_COMPILE_CONTEXT, TraceFullError
from .stacks import SITE, USER, Stacks

EVALUATE_EVERY = 4  # steps
OOM_EVERY = 3
RECAPTURE_EVERY = 6
FIRST_STREAM = 0x55D0_C8A3_B2C0  # streams are known by the address of their handle

Program = list[Phase]


class Training:
    """One device's run. What `run` leaves behind is in the allocator and its recorder."""

    def __init__(
        self,
        options: DemoOptions,
        allocator: CachingAllocator,
        stacks: Stacks,
        rng: random.Random,
        *,
        annotations: list[dict[str, Any]],
        host: HostAllocator | None,
        on_step: Callable[[], None],
    ) -> None:
        self.options = options
        self.allocator = allocator
        self.recorder = allocator.recorder
        self.stacks = stacks
        self.rng = rng
        self.annotations = annotations
        self.host = host
        self.on_step = on_step
        self.model = Model.with_live_tensors(options.live)
        self.streams = [0, *(FIRST_STREAM + 64 * i for i in range(options.streams - 1))]
        self.live: dict[str, Block] = {}
        self._pinned: list[HostBlock] = []
        self._programs: dict[tuple[str, int, int], Program] = {}
        self._frees_have_stacks = options.context == "all"
        self._lengths = self._sequence_lengths()
        self._make_other_stacks()
        if options.oom:
            self._room, self._too_large_batch = self._memory_limit()

    def run(self) -> None:
        """Train until the trace is full."""
        try:
            self._set_up()
            step = 0
            while True:
                self._train_step(step)
                step += 1
                self.on_step()
        except TraceFullError:
            self.on_step()

    # ---- the script

    def _set_up(self) -> None:
        recorder, parameters = self.recorder, self.model.parameters()
        recorder.is_on = not self.options.before_recording
        for name, count in parameters:
            # A model loaded before recording began has neither events nor stacks.
            frames = self._weight_stack.copy() if recorder.is_on else None
            self.live[f"weight.{name}"] = self.allocator.malloc(count * 4, frames)
        # Recording in the mode 'state' came first: these keep their stacks, but have no events.
        mask = self.model.sequence * self.model.sequence
        for name, size in (("mask", mask), ("rope", self.model.sequence * 64 * 4)):
            self.live[name] = self.allocator.malloc(size, self._buffer_stack.copy())
        recorder.is_on = True
        if self.options.private_pools:
            self._capture(0)

    def _train_step(self, step: int) -> None:
        options, length = self.options, self.rng.choice(self._lengths)
        recorder = self.recorder
        recorder.time_us += self.rng.randrange(800, 2600)  # waiting for data
        if options.oom and step % OOM_EVERY == OOM_EVERY - 1:
            self._forward_backward_within_limit(length)
        else:
            self._forward_backward(self.model.batch, length)
        builder = self._builder(self.model.batch, length)
        self._run_phases(self._cached("clip", lambda: [builder.clip()]))
        kind = "optimizer" if step else "first optimizer"
        self._run_phases(self._cached(kind, lambda: [builder.optimizer(is_first=not step)]))
        self._run_phases(self._cached("zero_grad", lambda: [builder.zero_grad()]))
        self._free("loss")
        if options.leak:
            size = length * self.model.hidden * 2 + 4
            self.live[f"leak{step}"] = self.allocator.malloc(size, self._leak_stack.copy())
        if step % EVALUATE_EVERY == EVALUATE_EVERY - 1:
            self._evaluate()
        if options.private_pools and step % RECAPTURE_EVERY == RECAPTURE_EVERY - 1:
            self._capture(1 + step // RECAPTURE_EVERY % 2)

    def _forward_backward_within_limit(self, length: int) -> None:
        """Try a batch that is too large for the device, then halves of it until one fits.

        Others use the device too, so what is left for us is a limit now and then only; a batch
        of the normal size always fits.
        """
        batch = self._too_large_batch
        while batch > self.model.batch:
            self.allocator.capacity = max(self._room, self.allocator.reserved)
            try:
                self._forward_backward(batch, length)
                return
            except OutOfMemoryError:
                self._drop_step()
                batch //= 2
            finally:
                self.allocator.capacity = None
        self._forward_backward(self.model.batch, length)

    def _forward_backward(self, batch: int, length: int) -> None:
        self._load_batch(batch, length)
        self._run_phases(self._cached(
            "train", lambda: self._training_program(batch, length), batch, length
        ))  # fmt: skip
        self._free("tokens")
        self._free("targets")

    def _load_batch(self, batch: int, length: int) -> None:
        """Copy a batch to the device, by a stream of its own if there is one."""
        size = batch * length * 8
        lane = 1 if len(self.streams) > 1 else 0
        for name in ("tokens", "targets"):
            block = self.allocator.malloc(size, self._input_stack.copy(), stream=self.streams[lane])
            self.live[name] = block
            if lane:
                self.allocator.record_stream(block)
        if self.host is not None:
            host = self.host
            host.recorder.time_us = self.recorder.time_us
            while len(self._pinned) > 4:  # the loader keeps a few batches ahead
                host.free(self._pinned.pop(0))
            self._pinned += [host.malloc(size, self._pin_stack.copy()) for _ in range(2)]

    def _evaluate(self) -> None:
        length = self._lengths[0]
        builder = self._builder(self.model.batch, length, caller="evaluate")
        phases = self._cached("evaluate", lambda: [
            Phase("evaluate", phase.context, phase.ops) for phase in builder.forward(keep=False)
        ])  # fmt: skip
        for _ in range(2):
            self._run_phases(phases)
        self._run_phases(self._cached("generate", lambda: [builder.generate(6)]))
        self.allocator.empty_cache(self._empty_cache_stack.copy())
        self.allocator.record_snapshot()

    def _capture(self, index: int) -> None:
        """Capture a CUDA graph: what it allocates stays in a private pool of its own."""
        pool_id = (0, 1 + index % 2)
        self._free(f"graph{pool_id[1]}.out")
        builder = self._builder(self.model.batch, self._lengths[0], caller="capture")
        phases = self._cached("capture", lambda: [
            Phase(None, phase.context, phase.ops) for phase in builder.forward(keep=False)
        ])  # fmt: skip
        self._run_phases(phases, pool_id)
        size = self.model.batch * self.model.vocabulary * 4
        self.live[f"graph{pool_id[1]}.out"] = self.allocator.malloc(
            size, self._graph_stack.copy(), pool_id=pool_id
        )

    # ---- running programs

    def _run_phases(self, phases: Program, pool_id: PoolId = DEFAULT_POOL) -> None:
        current: str | None = None
        for phase in phases:
            if phase.name != current:
                self._annotate("END", current)
                self._annotate("START", phase.name)
                current = phase.name
            self.recorder.compile_context = phase.context or NO_COMPILE_CONTEXT
            try:
                self._run_ops(phase.ops, pool_id)
            except OutOfMemoryError:
                self._annotate("END", current)
                raise
            finally:
                self.recorder.compile_context = NO_COMPILE_CONTEXT
        self._annotate("END", current)

    def _run_ops(self, ops: list[Op], pool_id: PoolId) -> None:
        live, streams = self.live, self.streams
        malloc, free = self.allocator.malloc, self.allocator.free
        frees_have_stacks = self._frees_have_stacks
        for tensor, size, stack, lane in ops:
            if size > 0:
                live[tensor] = malloc(size, stack.copy(), stream=streams[lane], pool_id=pool_id)
            elif size == FREE:
                free(live.pop(tensor), stack.copy() if frees_have_stacks else None)
            else:
                self.allocator.record_stream(live[tensor])

    def _annotate(self, stage: str, name: str | None) -> None:
        if name is not None and self.options.annotations:
            self.annotations.append(
                {
                    "stage": stage,
                    "name": name,
                    "device": self.allocator.device,
                    "time_us": self.recorder.time_us,
                }
            )

    def _free(self, tensor: str) -> None:
        block = self.live.pop(tensor, None)
        if block is not None:
            stack = self._step_end_stack.copy() if self._frees_have_stacks else None
            self.allocator.free(block, stack)

    def _drop_step(self) -> None:
        """Free everything that only the failed step held, as the exception unwinds."""
        for tensor in [name for name in self.live if not self._outlives_step(name)]:
            self._free(tensor)

    def _outlives_step(self, name: str) -> bool:
        return name.startswith(("weight.", "adam.", "leak", "graph")) or name in ("mask", "rope")

    # ---- making programs

    def _builder(self, batch: int, length: int, caller: str = "train") -> ProgramBuilder:
        return ProgramBuilder(
            self.model,
            self.stacks,
            batch=batch,
            sequence=length,
            caller=caller,
            variant=self._lengths.index(length) + (4 if batch != self.model.batch else 0),
            lanes=len(self.streams),
        )

    def _training_program(self, batch: int, length: int) -> Program:
        builder = self._builder(batch, length)
        return [*builder.forward(keep=True), *builder.backward()]

    def _cached(
        self, kind: str, make: Callable[[], Program], batch: int = 0, length: int = 0
    ) -> Program:
        key = (kind, batch, length)
        if key not in self._programs:
            self._programs[key] = make()
        return self._programs[key]

    def _sequence_lengths(self) -> list[int]:
        """Batches are padded to their longest text, so that few sizes are round numbers."""
        full = self.model.sequence
        shorter = self.rng.sample(range(full * 5 // 8, full), 3)
        return [full, *shorter]

    def _memory_limit(self) -> tuple[int, int]:
        """Find how many bytes normal batches need, and a batch for which that is too little."""
        batch, length = self.model.batch, self._lengths[0]
        state = sum(4 * count for _, count in self.model.parameters())
        step = peak_bytes(self._training_program(batch, length))
        # Weights, Adam's state and its temporary copy; half as much again for fragmentation.
        room = _round_down(4 * state + step * 3 // 2 + 256 * MIB)
        while step < 2 * room:
            step *= 2
            batch *= 2
        return room, batch

    def _make_other_stacks(self) -> None:
        make, train, model = self.stacks.python, f"{USER}/train.py", f"{USER}/model.py"
        self._weight_stack = make("_to_copy", [
            ("convert", f"{SITE}/nn/modules/module.py", 1371), ("to", model, 201),
        ], "train")  # fmt: skip
        self._buffer_stack = make("ones", [("__init__", model, 133)], "train")
        self._input_stack = make("_to_copy", [("next_batch", f"{USER}/data.py", 58)], "train")
        self._pin_stack = make("pin_memory", [("next_batch", f"{USER}/data.py", 55)], "train")
        self._leak_stack = make("mean_dim", [("log_hidden", train, 83)], "train")
        self._graph_stack = make("empty_like", [("capture", train, 117)], "capture")
        self._empty_cache_stack = make("_cuda_emptyCache", [
            ("empty_cache", f"{SITE}/cuda/memory.py", 224),
        ], "evaluate")  # fmt: skip
        self._step_end_stack = self.stacks.freed_in("train_step", train, 90, "train")


def _round_down(size: int) -> int:
    return size // SMALL_SEGMENT * SMALL_SEGMENT
