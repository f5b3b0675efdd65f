"""Makes realistic memory snapshots of any size: the embedded default, and what tests use.

A small transformer is trained on a simulation of PyTorch's caching allocator, which records what
`torch.cuda.memory._record_memory_history()` would. The result is the dict that `_snapshot()`
returns, with the same keys in the same order and the same sharing of objects, so that its pickle
is made of the same opcodes as a real one.

Cost: an event takes about 3 µs and 500 bytes of memory to make, 1.5 µs and 100 bytes more to
pickle, and 110 to 150 bytes in the file; with 200,000 live allocations twice the time.
"""

from __future__ import annotations

import os
import pickle
import random
from collections.abc import Callable
from typing import IO, Any

from snapviewer.files.atomic_write import atomic_write
from snapviewer.gc_pause import gc_pause

from . import cpp_pickle
from .allocator import CachingAllocator
from .host import HostAllocator
from .options import DemoOptions
from .recorder import Recorder
from .stacks import Stacks
from .training import Training

__all__ = ["DemoOptions", "Progress", "dump", "snapshot", "write_demo"]

Progress = Callable[[int, int], None]

START_US = 1_767_225_600_000_000  # the first moment of 2026
BASE_ADDRESS = 0x7F2C_0000_0000
EXPANDABLE_BASE_ADDRESS = 0x0003_0000_0000
UNLIMITED = 1 << 62
DEFAULT_OPTIONS = DemoOptions()


def snapshot(
    options: DemoOptions = DEFAULT_OPTIONS, *, progress: Progress | None = None
) -> dict[str, Any]:
    """Make the dict that `torch.cuda.memory._snapshot()` would return.

    Args:
        options: What happens in it.
        progress: Called now and then with the number of events made, and of all to make.

    >>> demo = snapshot(DemoOptions(events=1000))
    >>> list(demo), len(demo["device_traces"][0])
    (['segments', 'device_traces', 'allocator_settings', 'external_annotations'], 1000)
    """
    with gc_pause():
        return _snapshot(options, progress)


def dump(snapshot: dict[str, Any], file: IO[bytes], *, protocol: int = 4) -> None:
    """Write a snapshot as a pickle.

    Args:
        snapshot: What `snapshot()` returned.
        file: Where to, open for writing bytes.
        protocol: 4 or 5 as Python's pickle writes them, or 2 as PyTorch's C++ code does, which
            records neither compile contexts nor user metadata.

    Raises:
        ValueError: The protocol is another one.
    """
    if protocol not in (2, 4, 5):
        raise ValueError(f"protocol must be 2, 4 or 5, not {protocol}")
    with gc_pause():
        if protocol == 2:
            cpp_pickle.dump(snapshot, file)
        else:
            pickle.dump(snapshot, file, protocol=protocol)


def write_demo(
    path: str | os.PathLike[str],
    options: DemoOptions = DEFAULT_OPTIONS,
    *,
    protocol: int = 4,
    progress: Progress | None = None,
) -> None:
    """Make a snapshot and write it to `path`, which is complete or as it was before.

    Raises:
        OSError: The directory cannot be written to.
        ValueError: The protocol is not 2, 4 or 5.
    """
    with atomic_write(path) as file:
        dump(snapshot(options, progress=progress), file, protocol=protocol)


def _snapshot(options: DemoOptions, progress: Progress | None) -> dict[str, Any]:
    stacks = Stacks(compiled=options.compiled)
    total = options.events + options.events // 3 + 1 if options.ring else options.events
    segments: list[dict[str, Any]] = []
    traces: list[list[dict[str, Any]]] = []
    annotations: list[dict[str, Any]] = []
    empty_frames: list[dict[str, Any]] = []
    host: HostAllocator | None = None
    for device in range(options.devices):
        rng = random.Random(f"{options.seed}/{device}")
        start_us = START_US + rng.randrange(1_000_000)
        recorder = Recorder(rng, start_us, empty_frames, total=total, keep=options.events)
        allocator = CachingAllocator(
            recorder,
            device=device,
            base_address=EXPANDABLE_BASE_ADDRESS if options.expandable else BASE_ADDRESS,
            expandable=options.expandable,
        )
        if options.host and host is None:
            host = HostAllocator(
                Recorder(rng, start_us, empty_frames, total=UNLIMITED, keep=options.events)
            )
            host.recorder.is_on = True
        on_step = _device_progress(progress, recorder, device, options.devices, total)
        training = Training(
            options,
            allocator,
            stacks,
            rng,
            annotations=annotations,
            host=host if device == 0 else None,
            on_step=on_step,
        )
        training.run()
        segments += allocator.segments()
        traces.append(list(recorder.trace))
    annotations.sort(key=lambda annotation: int(annotation["time_us"]))
    result = {
        "segments": segments,
        "device_traces": traces,
        "allocator_settings": _allocator_settings(options),
        "external_annotations": annotations,
    }
    if host is not None:
        result["host_segments"] = host.segments()
        result["host_traces"] = list(host.recorder.trace)
    return result


def _device_progress(
    progress: Progress | None, recorder: Recorder, device: int, devices: int, total: int
) -> Callable[[], None]:
    def on_step() -> None:
        if progress is not None:
            progress((device + 1) * total - recorder.remaining, devices * total)

    return on_step


def _allocator_settings(options: DemoOptions) -> dict[str, Any]:
    return {
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True" if options.expandable else "",
        "max_split_size": -1,
        "garbage_collection_threshold": 0.0,
        "expandable_segments": options.expandable,
        "pinned_num_register_threads": 1,
        "release_lock_on_cudamalloc": False,
        "pinned_use_cuda_host_register": False,
        "graph_capture_record_stream_reuse": False,
        "roundup_power2_divisions": {str(1 << power): 0 for power in range(16)},
    }
