"""`make bench`: each speed as a ratio to CPython's `pickle.load` of the same file in the same run.

Snapshots are made once, in build/bench. `python tests/benchmarks/run.py 100000 1000000` takes only
these sizes.
"""

from __future__ import annotations

import pickle
import platform
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import analysis
import capture_cost
import checkpoints
import drawing
import explorer_app
import inference
import models
import recording
import replay
import startup
import tree
import window
from baseline import REPEATS, best, pickle_load

import events
import explorer
import snapviewer
from snapviewer import demo

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "bench"
SIZES = (100_000, 1_000_000, 5_000_000)

READ_LIMITS = {100_000: 0.12}
READ_LIMIT = 0.07
CONVERT_LIMIT = 0.35
OPEN_LIMIT = 0.03
UNLIKE_LIMIT = 0.35
GROWTH_LIMIT = 5.5
ZIP_BYTES_LIMIT = 18
MEMORY_BYTES_LIMIT = 80


def main() -> None:
    """Print every table."""
    sizes = [int(size) for size in sys.argv[1:]] or list(SIZES)
    FOLDER.mkdir(parents=True, exist_ok=True)
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    print(f"{time.strftime('%Y-%m-%d')}, best of {REPEATS}; ratios to pickle.load with gc off\n")
    reading = {size: _sizes(size) for size in sizes}
    if {1_000_000, 5_000_000} <= set(sizes):
        growth = reading[5_000_000] / reading[1_000_000]
        print(f"\ngrowth of reading from 1M to 5M: {growth:.2f}× (limit {GROWTH_LIMIT})")
    _unlike()
    replay.run(FOLDER)
    tree.run(FOLDER)
    analysis.run(FOLDER)
    startup.run(FOLDER)
    drawing.run(FOLDER)
    window.run(FOLDER)
    checkpoints.run(FOLDER)
    events.run(FOLDER)
    models.run(FOLDER)
    explorer.run(FOLDER)
    inference.run()
    recording.run()
    capture_cost.run()
    explorer_app.run()


def _sizes(size: int) -> float:
    path = FOLDER / f"demo-{size}.pickle"
    if not path.exists():
        demo.write_demo(path, demo.DemoOptions(events=size))
    baseline = best(lambda: pickle_load(path), repeats=3)
    read = best(lambda: snapviewer.load(path))
    bundle, directory = FOLDER / "demo.zip", FOLDER / "demo"
    convert = best(lambda: snapviewer.convert(path, bundle, force=True), repeats=3)
    to_directory = best(lambda: snapviewer.convert(path, directory, force=True), repeats=3)
    opened = best(lambda: snapviewer.load(bundle))
    zip_bytes = bundle.stat().st_size / size
    loaded, peak = _memory(path)
    print(f"{size:,} events, {path.stat().st_size / size:.0f} bytes each")
    print(f"  pickle.load       {baseline * 1e3:8.0f} ms")
    _row("read to lifetimes", read, baseline, READ_LIMITS.get(size, READ_LIMIT))
    _row("convert to a zip", convert, baseline, CONVERT_LIMIT)
    _row("convert to a directory", to_directory, baseline, CONVERT_LIMIT)
    _row("open the zip", opened, baseline, OPEN_LIMIT)
    print(f"  zip               {zip_bytes:8.1f} bytes an event (limit {ZIP_BYTES_LIMIT})")
    print(f"  memory            {loaded / size:8.1f} bytes an event once loaded,")
    print(f"                    {peak / size:8.1f} at most meanwhile (limit {MEMORY_BYTES_LIMIT})")
    bundle.unlink()
    shutil.rmtree(directory)
    return read


def _unlike() -> None:
    """Time files unlike the demo: the fast path must fall back without falling off a cliff."""
    print("\nfiles unlike the demo: read to lifetimes")
    for name, write in _ODD_FILES.items():
        path = FOLDER / f"{name.replace(' ', '-')}.pickle"
        if not path.exists():
            write(path)
        _compare(name, path)
    for path in sorted((ROOT.parent / "shared" / "snapshots").glob("*.pickle")):
        if path.stat().st_size > 1_000_000:
            _compare(path.stem, path)


def _compare(name: str, path: Path) -> None:
    baseline = best(lambda: pickle_load(path))
    _row(name, best(lambda: snapviewer.load(path)), baseline, UNLIKE_LIMIT)


def _row(name: str, seconds: float, baseline: float, limit: float) -> None:
    ratio = seconds / baseline
    verdict = "" if ratio <= limit else "   OVER"
    print(f"  {name:24}{seconds * 1e3:8.1f} ms   {ratio:.3f}× (limit {limit}){verdict}", flush=True)


_MEMORY = """
import sys, snapviewer
def anonymous(key):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))
before = anonymous("RssAnon")
open("/proc/self/clear_refs", "w").write("5")
peaks = []
snap = snapviewer.load(sys.argv[1], progress=lambda *_: peaks.append(anonymous("RssAnon")))
print(anonymous("RssAnon") - before, max([*peaks, anonymous("RssAnon")]) - before)
"""


def _memory(path: Path) -> tuple[int, int]:
    """Return the bytes beyond the mapped file once loaded, and the most at any report."""
    command = [sys.executable, "-c", _MEMORY, str(path)]
    loaded, peak = subprocess.run(
        command, check=True, capture_output=True, text=True
    ).stdout.split()
    return int(loaded), int(peak)


def _write(path: Path, snapshot: object, protocol: int = 4) -> None:
    with path.open("wb") as file:
        pickle.dump(snapshot, file, protocol=protocol)


def _shuffled(path: Path) -> None:
    order = random.Random(1)
    snapshot = demo.snapshot(demo.DemoOptions(events=300_000))
    for trace in snapshot["device_traces"]:
        for place, event in enumerate(trace):
            keys = list(event)
            order.shuffle(keys)
            trace[place] = {key: event[key] for key in keys}
    _write(path, snapshot)


def _other_keys(path: Path) -> None:
    snapshot = demo.snapshot(demo.DemoOptions(events=300_000))
    for trace in snapshot["device_traces"]:
        for place, event in enumerate(trace):
            trace[place] = {**event, "counter": place, "label": str(place % 7)}
    _write(path, snapshot)


def _own_lists(path: Path) -> None:
    snapshot = demo.snapshot(demo.DemoOptions(events=300_000))
    for trace in snapshot["device_traces"]:
        for event in trace:
            event["frames"] = list(event["frames"])
    _write(path, snapshot)


def _deep(path: Path) -> None:
    snapshot = demo.snapshot(demo.DemoOptions(events=20_000))
    deep: dict[int, list[object]] = {}
    for trace in snapshot["device_traces"]:
        for event in trace:
            frames = event["frames"]
            event["frames"] = deep.setdefault(id(frames), (frames * 50)[:1500])
    _write(path, snapshot)


_ODD_FILES: dict[str, Callable[[Path], None]] = {
    "protocol 2 by C++": lambda path: demo.write_demo(
        path, demo.DemoOptions(events=300_000), protocol=2
    ),
    "protocol 2 by CPython": lambda path: _write(
        path, demo.snapshot(demo.DemoOptions(events=300_000)), protocol=2
    ),
    "compiled stacks": lambda path: demo.write_demo(
        path, demo.DemoOptions(events=300_000, compiled=True)
    ),
    "stacks of 1,500 frames": _deep,
    "keys in random order": _shuffled,
    "other keys": _other_keys,
    "a list of frames an event": _own_lists,
}


if __name__ == "__main__":
    main()
