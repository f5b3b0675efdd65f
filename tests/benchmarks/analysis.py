"""Groups, categories, steps and leaks beside reading the file, and `group by callstack`."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from baseline import best

import snapviewer
from snapviewer import demo
from snapviewer._core import GROUPINGS

EVENTS = 1_000_000
GROUP_LIMIT_MS = 20.0
CATEGORIES_LIMIT = 0.5
RECOLOUR_LIMIT_MS = 100.0
QUERY_LIMIT_S = 1.0
QUERY_EVENTS = 2_600_000  # 0.9M allocations
_QUERY = "select callstack, sum(size) from allocs group by callstack"


def run(folder: Path) -> None:
    """Print the table."""
    path = folder / f"demo-{EVENTS}.pickle"
    if not path.exists():
        demo.write_demo(path, demo.DemoOptions(events=EVENTS))
    read = best(lambda: snapviewer.load(path), repeats=3)
    device = snapviewer.load(path).devices[0]
    print(f"\nquestions about {EVENTS:,} events, {len(device.allocations):,} allocations")
    print(f"  {'read to lifetimes':24}{read * 1e3:8.0f} ms")
    device.colors("stack")  # the stacks as text, which drawing needs anyway
    took = _took(lambda: device.categories)
    _row("categories", took * 1e3, took / read, "× reading", CATEGORIES_LIMIT)
    _row("steps", _took(lambda: device.steps) * 1e3)
    _row("leaks", _took(lambda: device.leaks) * 1e3)
    events = [EVENTS * part // 7 for part in range(1, 7)]
    for by in GROUPINGS:
        first, *rest = [_took(partial(device.alive, event, by, top=200)) for event in events]
        took = max(rest) * 1e3
        _row(f"by {by}", took, took, f"ms, {first * 1e3:.0f} at first", GROUP_LIMIT_MS)
    took = _took(lambda: device.colors("category")) * 1e3
    _row("colour by category", took, took, "ms", RECOLOUR_LIMIT_MS)
    took = _took(lambda: device.timeline("category")) * 1e3
    _row("stack by category", took, took, "ms", RECOLOUR_LIMIT_MS)
    _query(folder)


def _query(folder: Path) -> None:
    path, bundle = folder / f"demo-{QUERY_EVENTS}.pickle", folder / f"demo-{QUERY_EVENTS}.zip"
    if not bundle.exists():
        demo.write_demo(path, demo.DemoOptions(events=QUERY_EVENTS))
        snapviewer.convert(path, bundle)
        path.unlink()
    snapshot = snapviewer.load(bundle)
    took = _took(lambda: snapshot.query(_QUERY, max_rows=100_000, max_seconds=60))
    _row("group by callstack", took * 1e3, took, "s", QUERY_LIMIT_S)


def _took(ask: Callable[[], object]) -> float:
    start = time.perf_counter()
    ask()
    return time.perf_counter() - start


def _row(
    name: str, took_ms: float, value: float | None = None, what: str = "", limit: float = 0
) -> None:
    line = f"  {name:24}{took_ms:8.1f} ms"
    if value is not None:
        verdict = "" if value <= limit else "   TOO SLOW"
        line += f"{value:10.2f} {what} (limit {limit}){verdict}"
    print(line)
