"""The profiling benchmark: how much longer a run takes when each of its operations is timed.

Plain and profiled runs take turns, and the fastest of each are compared, with one thread: what
other programs do to two threads is many times what is measured here. For the same reason the time
is that of the processor, beside that of the clock.
"""

from __future__ import annotations

import os
import time
from importlib.util import find_spec

from snapviewer.model.inference import Profile, profile, running

OVERHEAD_LIMIT_PERCENT = 5.0
REPEATS = 40
BUDGET_S = 20.0


def run() -> None:
    """Print the tables, or why there are none."""
    if find_spec("torchvision") is None:
        print("\nprofiling: not measured, torchvision is not installed")
        return
    # Memory and the lines of the code are looked at in runs that are not timed.
    os.environ["PYTORCH_PROFILER_LEVEL"] = "1"
    usual = running.clock_ns
    for name, clock_ns in (("clock", usual), ("processor time", time.thread_time_ns)):
        running.clock_ns = clock_ns
        try:
            result = _profiled()
        finally:
            running.clock_ns = usual
        print(f"\nprofiling ResNet-18 at 224 by {name}: {len(result.nodes)} operations", end=", ")
        print(f"fastest of {result.plain.runs}, {result.threads} thread")
        _table(result, has_limit=clock_ns is not usual)


def _profiled() -> Profile:
    import torch
    import torchvision

    model, image = torchvision.models.resnet18(), torch.randn(1, 3, 224, 224)
    return profile(model, image, threads=1, repeats=REPEATS, budget_s=BUDGET_S)


def _table(result: Profile, *, has_limit: bool) -> None:
    for name, timing in (("plain run", result.plain), ("profiled run", result.profiled)):
        fastest, median = (1e3 * (one.value or 0) for one in (timing.fastest, timing.median))
        print(f"  {name:25}{fastest:8.2f} ms   (median {median:.2f})")
    overhead = result.overhead.value or 0.0
    limit = f" (limit {OVERHEAD_LIMIT_PERCENT:g})" if has_limit else ""
    verdict = "   OVER" if has_limit and overhead > OVERHEAD_LIMIT_PERCENT else ""
    print(f"  {'overhead':25}{overhead:8.2f} %{limit}{verdict}", flush=True)


if __name__ == "__main__":
    run()
