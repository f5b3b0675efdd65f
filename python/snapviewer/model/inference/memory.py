"""The memory that a run allocates, operation by operation, from the profiler of torch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from snapviewer.model.inference.dispatch import RecordedRun, run_marked
from snapviewer.model.inference.running import Runner
from snapviewer.model.inference.torch_profiler import run_profiled
from snapviewer.model.quantity import Quantity, unavailable

_MARK = "snapviewer operation "


class Change(NamedTuple):
    """Memory allocated (positive) or freed (negative), and the call of torch that did it."""

    time_ns: int
    address: int
    size_bytes: int
    call: int | None


@dataclass(frozen=True, slots=True)
class RunMemory:
    """The memory of a run.

    `peak` is the highest total of live allocations of the run itself: activations and scratch,
    without parameters and inputs. `reused` counts allocations at an address that the run had
    freed; `sizes` counts allocations by the power of two that their size reaches. `device_peak` is
    the peak of a GPU, with parameters.
    """

    peak: Quantity
    peak_at: int | None
    """The node that ran at the peak; None between nodes."""
    allocations: Quantity
    total: Quantity
    largest: Quantity
    reused: Quantity
    kept: Quantity
    device_peak: Quantity
    sizes: tuple[tuple[int, int], ...]


def measure_memory(
    runner: Runner, recorded: RecordedRun
) -> tuple[RunMemory, dict[int, tuple[int, int]]]:
    """Run once under the profiler of torch, which is slow, so this run is not timed.

    Returns:
        The memory, and for each node its number of allocations and their bytes.
    """
    import torch

    is_gpu = runner.device.startswith("cuda")
    if is_gpu:
        torch.cuda.reset_peak_memory_stats(runner.device)

    def run() -> int:
        run_marked(runner, lambda number: torch.profiler.record_function(f"{_MARK}{number}"))
        runner.wait()
        return 0

    _, tree = run_profiled(run, has_memory=True)
    kind = "cuda" if is_gpu else "cpu"
    changes = sorted(_changes(tree, kind), key=lambda change: change.time_ns)
    device_peak = (
        Quantity(
            float(torch.cuda.max_memory_allocated(runner.device)),
            "B",
            "measured",
            "torch.cuda.max_memory_allocated of the run",
        )
        if is_gpu
        else unavailable("B", "the model ran on the processor")
    )
    return summarize(changes, recorded.numbers, device_peak)


def summarize(
    changes: Sequence[Change], numbers: Sequence[int | None], device_peak: Quantity
) -> tuple[RunMemory, dict[int, tuple[int, int]]]:
    """Replay allocations and frees.

    Args:
        changes: In the order in which they happened.
        numbers: The node of each call of torch.
        device_peak: The peak of a GPU.
    """
    live: dict[int, int] = {}
    freed: set[int] = set()
    by_node: dict[int, tuple[int, int]] = {}
    sizes: dict[int, int] = {}
    count = total = largest = reused = live_bytes = peak = 0
    peak_at: int | None = None
    for _, address, size_bytes, call in changes:
        if size_bytes < 0:
            # What was allocated before the run, such as a cache, does not count.
            if address in live:
                live_bytes -= live.pop(address)
                freed.add(address)
            continue
        if size_bytes == 0:
            continue
        number = numbers[call] if call is not None and call < len(numbers) else None
        live_bytes += size_bytes - live.pop(address, 0)
        live[address] = size_bytes
        count, total, largest = count + 1, total + size_bytes, max(largest, size_bytes)
        reused += address in freed
        power = 1 << (size_bytes.bit_length() - 1)
        sizes[power] = sizes.get(power, 0) + 1
        if number is not None:
            calls, taken_bytes = by_node.get(number, (0, 0))
            by_node[number] = (calls + 1, taken_bytes + size_bytes)
        if live_bytes > peak:
            peak, peak_at = live_bytes, number

    def measured(value: float, unit: str, what: str) -> Quantity:
        return Quantity(float(value), unit, "measured", f"torch profiler, one run: {what}")

    memory = RunMemory(
        peak=measured(peak, "B", "peak of live allocations, without parameters and inputs"),
        peak_at=peak_at,
        allocations=measured(count, "1", "allocations"),
        total=measured(total, "B", "all allocations"),
        largest=measured(largest, "B", "largest allocation"),
        reused=measured(reused, "1", "allocations at a freed address"),
        kept=measured(live_bytes, "B", "not freed at the end, such as caches of the model"),
        device_peak=device_peak,
        sizes=tuple(sorted(sizes.items())),
    )
    return memory, by_node


def _changes(events: Iterable[Any], kind: str) -> Iterator[Change]:
    """Walk through the tree of the profiler, without recursion."""
    waiting: list[tuple[Any, int | None]] = [(event, None) for event in events]
    while waiting:
        event, call = waiting.pop()
        if event.tag.name == "Allocation":
            memory = event.typed[1]
            # Some builds call a CUDA device "hip": everything but a processor counts.
            if (memory.device.type == "cpu") == (kind == "cpu"):
                yield Change(event.start_time_ns, memory.ptr, memory.alloc_size, call)
            continue
        if event.name.startswith(_MARK):
            call = int(event.name.removeprefix(_MARK))
        waiting.extend((child, call) for child in event.children)
