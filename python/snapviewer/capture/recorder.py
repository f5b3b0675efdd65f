"""Records PyTorch's allocations in this process, and writes snapshots of them.

Nothing here initializes CUDA: recording begins when the program does, before its first allocation.
A snapshot is written atomically, when memory runs out before anything is freed.
"""

from __future__ import annotations

import gzip
import json
import os
import pickle
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from snapviewer.files.atomic_write import atomic_write

from .marks import Marks
from .names import Place, place_of, snapshot_path
from .options import CaptureOptions

_MAX_OOM_SNAPSHOTS = 3  # a program may try smaller batches for long


class Recorder:
    """A recording of this process; `attach` begins it, `close` ends it."""

    def __init__(
        self,
        options: CaptureOptions,
        *,
        describe: Callable[[], dict[str, Any]] = dict,
        on_start: Callable[[], None] = lambda: None,
        on_step: Callable[[int], None] = lambda step: None,
    ) -> None:
        """Prepare a recording.

        Args:
            options: What to record and where to.
            describe: Called for each snapshot: further facts to put into it.
            on_start: Called when CUDA is initialized.
            on_step: Called after each optimizer step and what is done then, with its number.
        """
        self.options = options
        self.place: Place = place_of()
        self.step = 0
        self.has_started = False
        self.is_closed = False
        self.written: list[Path] = []
        self._describe = describe
        self._on_start = on_start
        self._on_step = on_step
        self._steps: Counter[int] = Counter()
        self._hooks: list[Any] = []
        self._ooms = 0
        self._process = os.getpid()
        self.marks: Marks | None = None

    def attach(self) -> None:
        """Begin: at once, or when the program initializes CUDA. Needs an imported torch."""
        import torch
        from torch.optim.optimizer import register_optimizer_step_post_hook

        self._hooks.append(register_optimizer_step_post_hook(self._after_step))
        if self.options.has_marks:
            self.marks = Marks()
            self._hooks += self.marks.attach()
        torch.cuda._lazy_call(self._start)  # noqa: SLF001 - PyTorch offers no other way

    def _start(self) -> None:
        import torch

        torch.cuda.memory._record_memory_history(  # noqa: SLF001
            max_entries=self.options.max_entries, stacks=self.options.stacks
        )
        torch._C._cuda_attach_out_of_memory_observer(self._out_of_memory)  # noqa: SLF001
        self.has_started = True
        self._on_start()

    def close(self) -> None:
        """Stop recording; snapshots that were written stay."""
        if self.is_closed:
            return
        self.is_closed = True
        for hook in self._hooks:
            hook.remove()
        if self.has_started:
            import torch

            torch.cuda.memory._record_memory_history(enabled=None)  # noqa: SLF001

    def _after_step(self, optimizer: Any, arguments: Any, keywords: Any) -> None:
        """Count a step: several optimizers of one program step together."""
        self._steps[id(optimizer)] += 1
        if self._steps[id(optimizer)] <= self.step:
            return
        self.step = self._steps[id(optimizer)]
        if self.marks:
            self.marks.step = self.step
        every = self.options.every
        if every and self.step % every == 0:
            self.dump("every", is_last=False)
        self._on_step(self.step)

    def _out_of_memory(self, device: int, requested: int, total: int, free: int) -> None:
        self._ooms += 1
        if self._ooms <= _MAX_OOM_SNAPSHOTS and not self.is_closed:
            self.dump("oom", is_last=False, oom={"device": device, "requested_bytes": requested})

    def dump(self, cause: str, *, is_last: bool, oom: dict[str, int] | None = None) -> Path | None:
        """Write a snapshot; None, and a sentence on stderr, if that is impossible.

        Args:
            cause: Why: `end`, `steps`, `every`, `oom`, `signal`, ….
            is_last: Whether the run ends with it.
            oom: What could not be allocated.
        """
        if not self.has_started or os.getpid() != self._process:
            return None
        path = snapshot_path(
            Path(self.options.output),
            self.place,
            step=self.step,
            cause=cause,
            is_last=is_last,
            is_gzip=self.options.is_gzip,
        )
        facts = {
            "rank": self.place.rank,
            "world_size": self.place.world_size,
            "host": self.place.host,
            "step": self.step,
            "cause": cause,
            "oom": oom,
            "devices": _device_peaks(),
            **self._describe(),
        }
        try:
            _write(path, facts, self.options)
        except OSError as error:
            reason = error.strerror or error
            print(f"snapviewer: no snapshot: {reason}: {path}", file=sys.stderr)  # noqa: T201
            return None
        self.written.append(path)
        self._report({"file": str(path), **facts})
        return path

    def _report(self, result: dict[str, Any]) -> None:
        if self.options.results:
            with suppress(OSError), open(self.options.results, "a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")


def _write(path: Path, facts: dict[str, Any], options: CaptureOptions) -> None:
    import torch

    snapshot = torch.cuda.memory._snapshot()  # noqa: SLF001
    snapshot["recorded" if options.predicted is None else "predicted"] = facts
    if not options.has_times:
        _drop_times(snapshot)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        if path.name.lower().endswith(".gz"):
            # Without a time, the same content gives the same bytes.
            with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
                pickle.dump(snapshot, packed, protocol=4)
        else:
            pickle.dump(snapshot, file, protocol=4)


def _drop_times(snapshot: dict[str, Any]) -> None:
    """Remove what was measured on this machine; annotations are placed by their times only."""
    for trace in snapshot["device_traces"]:
        for event in trace:
            event.pop("time_us", None)
    snapshot.pop("external_annotations", None)


def _device_peaks() -> list[dict[str, Any]]:
    """Return what PyTorch itself counted, per device that was used."""
    import torch

    peaks = []
    for device in range(torch.cuda.device_count()):
        stats = torch.cuda.memory_stats(device)
        if stats.get("reserved_bytes.all.peak"):
            peaks.append(
                {
                    "device": device,
                    "peak_requested_bytes": stats.get("requested_bytes.all.peak"),
                    "peak_allocated_bytes": stats["allocated_bytes.all.peak"],
                    "peak_reserved_bytes": stats["reserved_bytes.all.peak"],
                    "retries": stats["num_alloc_retries"],
                    "ooms": stats["num_ooms"],
                }
            )
    return peaks
