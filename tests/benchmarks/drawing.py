"""The drawing benchmarks: a frame's time, beside the time to copy a buffer of its size.

A walk of 200 pans and zooms goes from the whole trace down to single events and back, the same for
every file; nothing is kept from frame to frame.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import snapviewer
from snapviewer import Device, Timeline, demo

SIZE = (2400, 1000)
STEPS = 200
Window = tuple[tuple[float, float], tuple[int, int]]


@dataclass(frozen=True)
class Case:
    """A snapshot, and what its frames may take in milliseconds at the 95th percentile."""

    name: str
    options: demo.DemoOptions
    order: str = "allocation"
    limit_ms: float | None = None


MILLION = demo.DemoOptions(events=1_000_000)
CASES = (
    Case("100k events", demo.DemoOptions(events=100_000)),
    Case("1M", MILLION, limit_ms=8),
    Case("5M", demo.DemoOptions(events=5_000_000), limit_ms=10),
    Case("1M, 20,000 live", demo.DemoOptions(events=1_000_000, live=20_000), limit_ms=12),
    Case("1M, 200,000 live", demo.DemoOptions(events=1_000_000, live=200_000), limit_ms=30),
    Case("1M by call stack", MILLION, order="stack", limit_ms=20),
)
GROWTH_LIMIT = 2.0
PAN_LIMIT_MS = 2.0
PICK_LIMIT_MS = 0.1
FILTER_LIMIT_MS = 15.0
BUILD_LIMIT_MS = 50.0
FILTERS = ("forward", "size>=1MiB", "model.py lifetime<100", "!backward size<1KiB", "step")


def run(folder: Path) -> None:
    """Print the tables."""
    floor = _copy_ms()
    width, height = SIZE
    print(
        f"\ndrawing {width} × {height} pixels and ids; copying as many bytes takes {floor:.2f} ms"
    )
    print("(milliseconds, median and 95th percentile; × is the ratio of the median to the copy)")
    medians = {}
    for case in CASES:
        device = _device(folder, case)
        timeline = device.timeline(case.order)
        windows = walk(int(device.events), timeline.peak_bytes)
        seconds = [_seconds(_drawing(timeline, window)) for window in windows]
        median, high = _percentiles(seconds)
        medians[case.name] = median
        verdict = _verdict(high, case.limit_ms)
        print(
            f"  {case.name:20}{median:7.2f}{high:7.2f}   {median / floor:5.1f}×{verdict}",
            flush=True,
        )
    growth = medians["5M"] / medians["100k events"]
    print(f"  median(5M) / median(100k): {growth:.2f}{_verdict(growth, GROWTH_LIMIT)}")
    for case in CASES:
        _others(case, _device(folder, case))


def _drawing(timeline: Timeline, window: Window) -> Callable[[], object]:
    events, bytes_ = window
    return lambda: timeline.image(events=events, bytes=bytes_, size=SIZE)


def _others(case: Case, device: Device) -> None:
    timeline = device.timeline(case.order)
    pick, high_pick = _percentiles(_picks(device, timeline))
    pan, high_pan = _percentiles(_pans(device, timeline))
    build = min(_seconds(lambda: device.timeline(case.order)) for _ in range(5)) * 1e3
    changes = [partial(device.timeline, case.order, text) for text in FILTERS]
    changed = _percentiles([_seconds(change) for change in changes * 3])[0]
    is_plain = case.options in (MILLION, CASES[0].options) and case.order == "allocation"
    build_limit, filter_limit = (BUILD_LIMIT_MS, FILTER_LIMIT_MS) if is_plain else (None, None)
    print(f"{case.name}")
    print(f"  pan of 5 %           {pan:7.2f} {high_pan:6.2f} ms{_verdict(pan, PAN_LIMIT_MS)}")
    print(f"  pick                 {pick:7.3f} {high_pick:6.3f} ms{_verdict(pick, PICK_LIMIT_MS)}")
    print(f"  the index            {build:7.1f} ms{_verdict(build, build_limit)}")
    print(f"  a changed filter     {changed:7.1f} ms{_verdict(changed, filter_limit)}")


def walk(events: int, peak: int) -> Iterator[Window]:
    """Yield windows: from the whole down to single events and a few bytes, four times."""
    dice = random.Random(4)
    for step in range(STEPS):
        if step % (STEPS // 4) == 0:
            left, width, low, height = 0.0, float(events), 0.0, float(peak)
        yield (left, left + width), (int(low), int(low + height) + 1)
        match dice.randrange(4):
            case 0:
                left += width * dice.uniform(-0.2, 0.2)
            case 1:
                low += height * dice.uniform(-0.2, 0.2)
            case 2:
                # In fifty steps, about thirteen of which are these, down to twenty events.
                zoom = (20 / events) ** (1 / 13) * dice.uniform(0.8, 1.25)
                centre, width = left + width * dice.random(), max(20.0, width * zoom)
                left = centre - width / 2
            case _:
                zoom = dice.uniform(0.5, 1.1)
                centre, height = low + height * dice.random(), max(1000.0, min(peak, height * zoom))
                low = centre - height / 2
        left = min(max(left, 0.0), events - width)
        low = min(max(low, 0.0), peak - height)


def _pans(device: Device, timeline: Timeline) -> Iterator[float]:
    """Pan by a twentieth of the window, with what stays taken from the picture before."""
    events, (columns, _) = int(device.events), SIZE
    width = events / 10
    bytes_ = (0, timeline.peak_bytes)
    picture = timeline.image(events=(0, width), bytes=bytes_, size=SIZE)
    for step in range(1, 100):
        left = width / columns * (columns // 20) * step
        start = time.perf_counter()
        picture = timeline.image(
            events=(left, left + width), bytes=bytes_, size=SIZE, previous=picture
        )
        yield time.perf_counter() - start


def _picks(device: Device, timeline: Timeline) -> Iterator[float]:
    dice = random.Random(5)
    totals = timeline.totals
    for _ in range(1000):
        event = dice.randrange(int(device.events))
        byte = dice.randrange(int(totals[event]) or 1)
        yield _seconds(partial(timeline.at, event, byte))


def _device(folder: Path, case: Case) -> Device:
    live = f"-live-{case.options.live}" if case.options.live else ""
    path = folder / f"demo-{case.options.events}{live}.pickle"
    if not path.exists():
        demo.write_demo(path, case.options)
    return snapviewer.load(path).devices[0]


def _copy_ms() -> float:
    """Return the milliseconds to copy what a frame writes: 4 + 4 bytes of colour and id a pixel."""
    source = np.ones(SIZE[0] * SIZE[1], np.uint64)
    target = source.copy()
    return min(_seconds(lambda: np.copyto(target, source)) for _ in range(20)) * 1e3


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    kept = work()
    seconds = time.perf_counter() - start
    del kept
    return seconds


def _percentiles(seconds: Iterator[float] | list[float]) -> tuple[float, float]:
    """Return the median and the 95th percentile in milliseconds."""
    median, high = np.percentile(list(seconds), (50, 95)) * 1e3
    return float(median), float(high)


def _verdict(value: float, limit: float | None) -> str:
    if limit is None:
        return ""
    return f"   (limit {limit:g}){'' if value <= limit else '   OVER'}"
