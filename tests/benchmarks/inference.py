"""The profiling benchmark: how much longer a run takes when each of its operations is timed.

Plain and profiled runs take turns. The fastest of each are compared, with one thread: what other
programs do to two threads is many times what is measured here.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

OVERHEAD_LIMIT_PERCENT = 5.0
REPEATS = 40
BUDGET_S = 20.0


def run() -> None:
    """Print the table, or why there is none."""
    if find_spec("torchvision") is None:
        print("\nprofiling: not measured, torchvision is not installed")
        return
    import torch
    import torchvision

    from snapviewer.model.inference import profile

    # Memory and the lines of the code are looked at in runs that are not timed.
    os.environ["PYTORCH_PROFILER_LEVEL"] = "1"
    model = torchvision.models.resnet18()
    result = profile(
        model, torch.randn(1, 3, 224, 224), threads=1, repeats=REPEATS, budget_s=BUDGET_S
    )
    print(f"\nprofiling ResNet-18 at 224, {len(result.nodes)} operations, {result.plain.runs} runs")
    for name, timing in (
        ("plain run", result.plain),
        ("profiled run", result.profiled),
        ("all operations of it", result.in_nodes),
    ):
        fastest, median = (1e3 * (one.value or 0) for one in (timing.fastest, timing.median))
        print(f"  {name:25}{fastest:8.2f} ms   (median {median:.2f})")
    overhead = result.overhead.value or 0.0
    verdict = "" if overhead <= OVERHEAD_LIMIT_PERCENT else "   OVER"
    print(f"  {'overhead':25}{overhead:8.2f} % (limit {OVERHEAD_LIMIT_PERCENT:g}){verdict}")


if __name__ == "__main__":
    run()
