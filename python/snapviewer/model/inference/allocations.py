"""The memory that a run asks for, operation by operation, from torch's profiler."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from snapviewer.model.inference.listening import Recorded, marked
from snapviewer.model.inference.running import Runner
from snapviewer.model.inference.torch_profiler import profiled
from snapviewer.model.quantity import Quantity, unavailable

_MARK = "snapviewer operation "


class Change(NamedTuple):
    """Memory taken (positive) or given back (negative), and the call of torch that did it."""

    time_ns: int
    address: int
    size_bytes: int
    call: int | None


@dataclass(frozen=True, slots=True)
class Memory:
    """How a run uses memory.

    `peak` is the most that was alive at once of what the run itself took: activations and scratch,
    without parameters and inputs. `reused` are allocations at an address that the run had given
    back before; `sizes` tells how many were of at least a power of two bytes. `device_peak` is all
    that a GPU held, parameters too.
    """

    peak: Quantity
    peak_at: int | None
    """The node that ran then; None between nodes."""
    allocations: Quantity
    total: Quantity
    largest: Quantity
    reused: Quantity
    kept: Quantity
    device_peak: Quantity
    sizes: tuple[tuple[int, int], ...]


def watch_memory(runner: Runner, recorded: Recorded) -> tuple[Memory, dict[int, tuple[int, int]]]:
    """Run once under torch's profiler, which is slow, so this run is not timed.

    Returns:
        The memory, and for each node how often it asked for some and for how many bytes.
    """
    import torch

    is_gpu = runner.device.startswith("cuda")
    if is_gpu:
        torch.cuda.reset_peak_memory_stats(runner.device)

    def run() -> int:
        marked(runner, lambda number: torch.profiler.record_function(f"{_MARK}{number}"))
        runner.wait()
        return 0

    _, tree = profiled(run, has_memory=True)
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
    return summarized(changes, recorded.numbers, device_peak)


def summarized(
    changes: Sequence[Change], numbers: Sequence[int | None], device_peak: Quantity
) -> tuple[Memory, dict[int, tuple[int, int]]]:
    """Follow what was taken and given back, in the order of time.

    Args:
        changes: In the order in which they happened.
        numbers: The node that each call of torch is.
        device_peak: What a GPU says.
    """
    live: dict[int, int] = {}
    given_back: set[int] = set()
    by_node: dict[int, tuple[int, int]] = {}
    sizes: dict[int, int] = {}
    count = total = largest = reused = live_bytes = peak = 0
    peak_at: int | None = None
    for _, address, size_bytes, call in changes:
        if size_bytes < 0:
            # What was there before the run, such as a cache, is not the run's.
            if address in live:
                live_bytes -= live.pop(address)
                given_back.add(address)
            continue
        if size_bytes == 0:
            continue
        number = numbers[call] if call is not None and call < len(numbers) else None
        live_bytes += size_bytes - live.pop(address, 0)
        live[address] = size_bytes
        count, total, largest = count + 1, total + size_bytes, max(largest, size_bytes)
        reused += address in given_back
        power = 1 << (size_bytes.bit_length() - 1)
        sizes[power] = sizes.get(power, 0) + 1
        if number is not None:
            calls, taken_bytes = by_node.get(number, (0, 0))
            by_node[number] = (calls + 1, taken_bytes + size_bytes)
        if live_bytes > peak:
            peak, peak_at = live_bytes, number

    def told(value: float, unit: str, what: str) -> Quantity:
        return Quantity(float(value), unit, "measured", f"torch's profiler, one run: {what}")

    memory = Memory(
        peak=told(peak, "B", "most alive at once, without parameters and inputs"),
        peak_at=peak_at,
        allocations=told(count, "1", "allocations"),
        total=told(total, "B", "all allocations together"),
        largest=told(largest, "B", "largest allocation"),
        reused=told(reused, "1", "allocations at an address given back before"),
        kept=told(live_bytes, "B", "still alive at the end, such as caches of the model"),
        device_peak=device_peak,
        sizes=tuple(sorted(sizes.items())),
    )
    return memory, by_node


def _changes(events: Iterable[Any], kind: str) -> Iterator[Change]:
    """Walk through the profiler's tree; a deep one must not end in recursion."""
    waiting: list[tuple[Any, int | None]] = [(event, None) for event in events]
    while waiting:
        event, call = waiting.pop()
        if event.tag.name == "Allocation":
            memory = event.typed[1]
            # A CUDA device is an "hip" one for some builds; whatever is no processor counts.
            if (memory.device.type == "cpu") == (kind == "cpu"):
                yield Change(event.start_time_ns, memory.ptr, memory.alloc_size, call)
            continue
        if event.name.startswith(_MARK):
            call = int(event.name.removeprefix(_MARK))
        waiting.extend((child, call) for child in event.children)
