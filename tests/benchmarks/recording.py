"""The recording benchmark: whether modules' times are right, and how much longer a run takes.

The right times are those of modules that wait for a known time, by the same clock, in forward and
in backward. The rest is how much longer a run of two networks takes when its modules are recorded,
in percent and for each call of a module: plain and recorded runs take turns, and the fastest of
each are compared. Times that are recorded do not contain this, only the run does.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from baseline import best

from snapviewer.explorer.recording import get_forward_stats, record_torch_module_forward_stats
from snapviewer.explorer.timing import ForwardStats

ERROR_LIMIT_PERCENT = 5.0
ROUNDS = 30
WAITS_MS = {"": 1.0, "a": 2.0, "a.x": 3.0, "a.y": 0.5, "b": 5.0, "b.x": 0.2}


def run() -> None:
    """Print the tables, or why there are none."""
    if find_spec("torchvision") is None:
        print("\nrecording: not measured, torchvision is not installed")
        return
    import torch
    import torchvision

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # what other programs do to two is more than what is measured here
    try:
        _hand_timed()
        image, words = torch.randn(1, 3, 224, 224), torch.randn(8, 64, 128)
        _overhead("ResNet-18 at 224, inference", torchvision.models.resnet18().eval(), image)
        _overhead("ResNet-18 at 224, training", torchvision.models.resnet18(), image)
        _overhead("small transformer, inference", _transformer().eval(), words)
        _overhead("small transformer, training", _transformer(), words)
    finally:
        torch.set_num_threads(threads)


def _hand_timed() -> None:
    """Compare the medians with the times that the modules are known to take."""
    import torch

    model = _waiting("")
    with record_torch_module_forward_stats(model):
        for _ in range(ROUNDS):
            model(torch.zeros(1, requires_grad=True)).sum().backward()
    stats = get_forward_stats(model)
    print(f"\nrecorded times of modules that wait, as a ratio to the wait, median of {ROUNDS}")
    print(f"  {'module':8}{'wait':>9}{'own':>8}{'total':>8}{'backward own':>14}{'backward':>10}")
    worst = max(_row(stats, path) for path in WAITS_MS)
    verdict = "" if worst <= ERROR_LIMIT_PERCENT else "   OVER"
    print(f"  furthest from 1: {worst:.2f} % (limit {ERROR_LIMIT_PERCENT:g}){verdict}", flush=True)


def _row(stats: ForwardStats, path: str) -> float:
    own_s = WAITS_MS[path] / 1e3
    total_s = sum(
        wait / 1e3 for one, wait in WAITS_MS.items() if one == path or one.startswith(path)
    )
    timing = stats.timings[path]
    assert timing.backward is not None and timing.backward_own is not None
    ratios = (
        timing.own.median_s / own_s,
        timing.total.median_s / total_s,
        timing.backward_own.median_s / own_s,
        timing.backward.median_s / total_s,
    )
    own, total, back_own, back = ratios
    print(f"  {path or '(model)':8}{own_s * 1e3:6.1f} ms", end="")
    print(f"{own:8.4f}{total:8.4f}{back_own:14.4f}{back:10.4f}")
    return max(abs(one - 1) for one in ratios) * 100


def _waiting(path: str) -> Any:
    """Return a module that waits, and calls those whose paths are one name longer."""
    import torch

    def wait(*_: Any) -> None:
        end_ns = time.perf_counter_ns() + round(WAITS_MS[path] * 1e6)
        while time.perf_counter_ns() < end_ns:
            pass

    class Wait(torch.autograd.Function):  # type: ignore[misc] # its base is torch's
        @staticmethod
        def forward(_: Any, x: Any) -> Any:
            wait()
            return x.clone()

        @staticmethod
        def backward(_: Any, *gradients: Any) -> Any:
            wait()
            return gradients[0]

    class Waiting(torch.nn.Module):  # type: ignore[misc] # its base is torch's
        def forward(self, x: Any) -> Any:
            for child in self.children():
                x = child(x)
            return Wait.apply(x)

    module = Waiting()
    for other in WAITS_MS:
        parent, _, name = other.rpartition(".")
        if other and parent == path:
            module.add_module(name, _waiting(other))
    return module


def _overhead(name: str, model: Any, given: Any) -> None:
    work = _training(model, given) if model.training else _inference(model, given)
    work()
    with record_torch_module_forward_stats(model):
        work()
    count = sum(one.calls for one in get_forward_stats(model).timings.values())
    plain, recorded = [], []
    for _ in range(ROUNDS):
        plain.append(best(work, repeats=1))
        with record_torch_module_forward_stats(model):
            recorded.append(best(work, repeats=1))
    added = min(recorded) - min(plain)
    print(f"\nrecording {name}: {count} calls of modules, fastest of {ROUNDS}, 1 thread")
    print(f"  {'plain run':25}{min(plain) * 1e3:8.2f} ms")
    print(f"  {'recorded run':25}{min(recorded) * 1e3:8.2f} ms")
    print(f"  {'overhead':25}{100 * added / min(plain):8.2f} %, {added / count * 1e6:.1f} µs a call")


def _inference(model: Any, given: Any) -> Callable[[], object]:
    import torch

    def work() -> None:
        with torch.no_grad():
            model(given)

    return work


def _training(model: Any, given: Any) -> Callable[[], object]:
    def work() -> None:
        model.zero_grad()
        model(given).sum().backward()

    return work


def _transformer() -> Any:
    import torch

    layer = torch.nn.TransformerEncoderLayer(128, 4, 512, batch_first=True, norm_first=True)
    return torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)


if __name__ == "__main__":
    run()
