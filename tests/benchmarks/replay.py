"""The replay of the allocator beside reading the file, the state at any event, and its map."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from baseline import best

import snapviewer
from snapviewer import Allocator, demo

EVENTS = 1_000_000
MANY_LIVE = 100_000
STATES = 400
REPLAY_LIMIT = 1.5
MEDIAN_LIMIT_MS = 4.0
TAIL_LIMIT_MS = 16.0
CURVES_LIMIT_BYTES = 16.0
MAP_SIZE = (2400, 600)
MAP_LIMIT_MS = 16.0
WHATIF_LIMIT_S = 0.25

# Resident memory would count what the heap keeps for later; this counts what is in use.
_CURVES = """
import ctypes, sys, snapviewer
class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "abcdefghij"]
mallinfo = ctypes.CDLL(None).mallinfo2
mallinfo.restype = Mallinfo
def in_use():
    info = mallinfo()
    return info.e + info.h  # mapped on their own, and inside the heap
[device] = snapviewer.load(sys.argv[1]).devices
device.allocator
before = in_use()
device.curves.peaks
print(in_use() - before)
"""


def run(folder: Path) -> None:
    """Print the tables."""
    _sized(folder / f"demo-{EVENTS}.pickle", demo.DemoOptions(events=EVENTS))
    many = demo.DemoOptions(events=EVENTS, live=MANY_LIVE)
    _sized(folder / f"demo-{EVENTS}-live-{MANY_LIVE}.pickle", many)


def _sized(path: Path, options: demo.DemoOptions) -> None:
    if not path.exists():
        demo.write_demo(path, options)
    read = best(lambda: snapviewer.load(path), repeats=3)
    replay = min(_replay(path) for _ in range(3))
    device = snapviewer.load(path).devices[0]
    allocator = device.allocator
    live = f", {options.live:,} live in the last third" if options.live else ""
    print(f"\nthe replay of {options.events:,} events{live}")
    print(f"  {'read to lifetimes':24}{read * 1e3:8.0f} ms")
    _row("replay", replay * 1e3, "ms", replay / read, "× reading", REPLAY_LIMIT)
    whatif = best(lambda: snapviewer.whatif(device), repeats=3)
    each = whatif * 1e6 / options.events
    _row("what-if, one run", whatif * 1e3, "ms", each, "s a million events", WHATIF_LIMIT_S)
    print(f"  {'as recorded':24}{allocator.as_recorded:,} of {allocator.placements:,} placements")
    order = random.Random(1)
    allocator.state(0)  # makes what later ones begin with
    took = []
    # Only then are as many alive as the options say.
    first = options.events * 2 // 3 if options.live else 0
    for _ in range(STATES):
        event = order.randrange(first, options.events)
        start = time.perf_counter()
        state = allocator.state(event)
        took.append(time.perf_counter() - start)
    took.sort()
    median, tail = took[STATES // 2] * 1e3, took[STATES * 95 // 100] * 1e3
    blocks = len(state.block_size)
    _row("a state, median", median, "ms", median, f"ms, {blocks:,} blocks", MEDIAN_LIMIT_MS)
    _row("a state, 95 %", tail, "ms", tail, "ms", TAIL_LIMIT_MS)
    _map(allocator, [order.randrange(first, options.events) for _ in range(STATES)])
    command = [sys.executable, "-c", _CURVES, str(path)]
    ran = subprocess.run(command, check=True, capture_output=True, text=True)
    each = int(ran.stdout) / options.events
    _row("curves", each, "bytes an event", each, "bytes", CURVES_LIMIT_BYTES)


def _map(allocator: Allocator, events: list[int]) -> None:
    """Time new maps: the state, its layout and its pixels, at several scales."""
    width, height = MAP_SIZE
    took, picture = [], None
    for place, event in enumerate(events):
        start = time.perf_counter()
        state = allocator.state(event)
        row_bytes = int(state.segment_size.max()) >> place % 6
        rows = state.map(width=width, row_bytes=row_bytes)
        top = max(rows.height - height, 0) * (place % 10) // 10
        picture = rows.image(top=top, height=height, selected=0, previous=picture)
        took.append(time.perf_counter() - start)
    took.sort()
    median, tail = took[len(took) // 2] * 1e3, took[len(took) * 95 // 100] * 1e3
    text = f"ms, {width} × {height}"
    _row("a map, median", median, "ms", median, text, MAP_LIMIT_MS)
    _row("a map, 95 %", tail, "ms", tail, text, MAP_LIMIT_MS)


def _replay(path: Path) -> float:
    device = snapviewer.load(path).devices[0]
    start = time.perf_counter()
    assert device.allocator is not None
    return time.perf_counter() - start


def _row(name: str, amount: float, unit: str, ratio: float, what: str, limit: float) -> None:
    verdict = "" if ratio <= limit else "   OVER"
    text = f"  {name:24}{amount:8.1f} {unit}   {ratio:.2f} {what} (limit {limit:g}){verdict}"
    print(text, flush=True)


if __name__ == "__main__":
    bench = Path(__file__).resolve().parents[2] / "build" / "bench"
    bench.mkdir(parents=True, exist_ok=True)
    run(bench)
