"""The call tree of any moment beside reading the file, and the icicle of it."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

from baseline import best

import snapviewer
from snapviewer import demo

EVENTS = 1_000_000
STACKS = 10_000
DEPTH = 60
TREES = 100
TREE_LIMIT_MS = 50.0
DRAW_LIMIT_MS = 16.0
SIZE = (2400, 600)
ROW = 18


def run(folder: Path) -> None:
    """Print the tables."""
    path = folder / f"demo-{EVENTS}.pickle"
    if not path.exists():
        demo.write_demo(path, demo.DemoOptions(events=EVENTS))
    _sized(path, f"{EVENTS:,} events")
    many = folder / f"stacks-{STACKS}.json"
    if not many.exists():
        _write_many(many)
    _sized(many, f"{STACKS:,} stacks of {DEPTH} frames")


def _write_many(path: Path) -> None:
    """Write a snapshot in which every allocation has a stack of its own."""
    import json

    order = random.Random(1)
    events = []
    for number in range(STACKS):
        frames = [
            {"name": f"f{depth}", "filename": f"/me/m{depth % 7}.py", "line": order.randrange(3)}
            for depth in range(DEPTH - 1)
        ]
        frames.insert(0, {"name": "leaf", "filename": "/me/leaf.py", "line": number})
        events.append(
            {
                "action": "alloc",
                "addr": 4096 * (number + 1),
                "size": order.randrange(1, 1 << 24),
                "stream": 0,
                "time_us": 1_700_000_000_000_000 + number,
                "frames": frames,
            }
        )
    path.write_text(json.dumps({"segments": [], "device_traces": [events]}))


def _sized(path: Path, what: str) -> None:
    read = best(lambda: snapviewer.load(path), repeats=3)
    print(f"\nthe call tree of {what}")
    print(f"  {'read to lifetimes':24}{read * 1e3:8.0f} ms")
    for frames in ("folded", "all"):
        device = snapviewer.load(path).devices[0]
        device.colors()  # as a window has them
        start = time.perf_counter()
        tree = device.tree(frames=frames)
        first = time.perf_counter() - start
        print(f"  {frames}: {len(tree):,} nodes")
        _row("first, with its paths", first, first / read, "× reading", 1.0)
        took = _times(device, frames)
        _row("any moment, median", took[len(took) // 2], 0, "ms", TREE_LIMIT_MS)
        _row("any moment, 95 %", took[len(took) * 95 // 100], 0, "ms", TREE_LIMIT_MS)
        _draw(device.tree(frames=frames))


def _times(device: Any, frames: str) -> list[float]:
    order, took = random.Random(1), []
    for _ in range(TREES):
        event = order.randrange(int(device.events))
        start = time.perf_counter()
        device.tree(event, frames=frames)
        took.append(time.perf_counter() - start)
    return sorted(took)


def _draw(tree: Any) -> None:
    image, took = None, []
    for _ in range(20):
        start = time.perf_counter()
        icicle = tree.icicle(width=SIZE[0], row=ROW)
        icicle.boxes(least=34, height=SIZE[1])
        image = icicle.image(height=SIZE[1], previous=image)
        took.append(time.perf_counter() - start)
    took.sort()
    _row("icicle, median", took[len(took) // 2], 0, "ms", DRAW_LIMIT_MS)


def _row(what: str, seconds: float, ratio: float, unit: str, limit: float) -> None:
    value = ratio or seconds * 1e3
    verdict = "" if value <= limit else "  TOO SLOW"
    shown = f"{value:8.2f} {unit}" if ratio else ""
    print(f"  {what:24}{seconds * 1e3:8.2f} ms {shown} (limit {limit:g} {unit}){verdict}")


if __name__ == "__main__":
    target = Path(__file__).resolve().parents[2] / "build" / "bench"
    target.mkdir(parents=True, exist_ok=True)
    run(target)
