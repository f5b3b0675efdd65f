"""The memory-events benchmark: the time of a report grows linearly with the log.

The times are beside `json.load` of the same file: what any program in Python pays first.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

from baseline import best

from snapviewer.events import analyze, as_html, as_markdown, read_log, report_on

SIZES = (10_000, 100_000)
RATIO_LIMIT = 40.0
GROWTH_LIMIT = 13.0
MARKDOWN_LIMIT_KB = 60.0
MIB = 2**20


def run(folder: Path) -> None:
    """Print the table."""
    totals = [_sized(folder / f"events-{size}.json", size) for size in SIZES]
    growth = totals[1] / totals[0]
    verdict = "" if growth <= GROWTH_LIMIT else "   OVER"
    print(f"  growth with 10× the events {growth:.1f}× (limit {GROWTH_LIMIT}){verdict}", flush=True)


def _sized(path: Path, size: int) -> float:
    if not path.exists():
        path.write_text(json.dumps(_log(size)))
    baseline = best(lambda: json.loads(path.read_text()), repeats=5)
    read = best(lambda: read_log(path), repeats=3)
    log = read_log(path)
    analyzed = best(lambda: analyze(log), repeats=3)
    analysis = analyze(log)
    markdown = best(lambda: as_markdown(report_on(analysis)), repeats=3)
    html = best(lambda: as_html(report_on(analysis)), repeats=3)
    total = read + analyzed + markdown + html
    print(f"\na log of {size:,} memory events, {path.stat().st_size / 1e6:.1f} MB")
    print(f"  json.load                {baseline * 1e3:8.0f} ms")
    for name, seconds in (
        ("read", read),
        ("analyze", analyzed),
        ("report as Markdown", markdown),
        ("report as HTML", html),
    ):
        print(f"  {name:25}{seconds * 1e3:8.0f} ms   {seconds / baseline:5.1f}×")
    verdict = "" if total / baseline <= RATIO_LIMIT else "   OVER"
    ratio = f"{total / baseline:5.1f}× (limit {RATIO_LIMIT:g})"
    print(f"  {'all':25}{total * 1e3:8.0f} ms   {ratio}{verdict}")
    length = len(as_markdown(report_on(analysis)).encode()) / 1e3
    verdict = "" if length <= MARKDOWN_LIMIT_KB else "   OVER"
    print(f"  {'length of the Markdown':25}{length:8.1f} KB (limit {MARKDOWN_LIMIT_KB:g}){verdict}")
    return total


def _log(size: int) -> list[dict[str, object]]:
    """Steps of a run that leaks a little, in stages, with a few unknown events."""
    order = random.Random(1)
    log: list[dict[str, object]] = [
        {"event": "init", "peak_memory": 0},
        {"event": "t5_loaded", "incremental_memory": 10_000 * MIB},
        {"event": "dit_loaded", "incremental_memory": 8_000 * MIB},
        {"event": "model_loaded", "peak_memory": 19_000 * MIB},
    ]
    for number in range(size - len(log)):
        time = {"timestamp": 1_751_963_745 + number / 10}
        kind = number % 10
        if kind == 8:
            log.append({"event": "dit_forward_start", **time})
        elif kind == 9:
            log.append({"event": "dit_forward_end", "peak_memory": 20_000 * MIB, **time})
        elif kind == 7:
            log.append({"event": f"mark {order.randrange(1000)}", **time})
        else:
            level = 600 * MIB + 100 * number + order.randrange(10 * MIB)
            log.append({"event": f"step_{number}", "incremental_memory": level, **time})
    return log


if __name__ == "__main__":
    run(Path(__file__).resolve().parents[2] / "build" / "bench")
