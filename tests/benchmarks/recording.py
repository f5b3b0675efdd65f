"""The recording benchmark: whether modules' times are right, and how much longer a run takes.

The right times are those of modules that wait and read the clock themselves: forward in
runs that are not recorded, backward where they are. The rest is how much longer a run of two
networks takes when its modules are recorded, in percent and for each call of a module. Recorded
times do not contain that, only the run does.

Plain and recorded runs take turns, and the fastest are compared, with one thread. Other programs
do more to the clock than is measured here, so processor time is given, too.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from snapviewer.explorer.recording import (
    calls,
    get_forward_stats,
    record_torch_module_forward_stats,
)
from snapviewer.explorer.timing import ForwardStats

ERROR_LIMIT_PERCENT = 5.0
ROUNDS = 20
WAITS_MS = {"": 1.0, "a": 2.0, "a.x": 3.0, "a.y": 1.5, "b": 5.0, "b.x": 1.0}

Clock = Callable[[], int]
CLOCKS: dict[str, Clock] = {"clock": time.perf_counter_ns, "processor time": time.thread_time_ns}

Taken = dict[str, list[int]]
"""The nanoseconds of each module, by hand."""


def run() -> None:
    """Print the tables, or why there are none."""
    if find_spec("torchvision") is None:
        print("\nrecording: not measured, torchvision is not installed")
        return
    import torch
    import torchvision

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for name, clock_ns in CLOCKS.items():
            _hand_timed(name, clock_ns)
        image, words = torch.randn(1, 3, 224, 224), torch.randn(8, 64, 128)
        _overhead("ResNet-18 at 224, inference", torchvision.models.resnet18().eval(), image)
        _overhead("ResNet-18 at 224, training", torchvision.models.resnet18(), image)
        _overhead("small transformer, inference", _transformer().eval(), words)
        _overhead("small transformer, training", _transformer(), words)
    finally:
        torch.set_num_threads(threads)


def _hand_timed(name: str, clock_ns: Clock) -> None:
    """Compare the fastest calls with the fastest by the modules' own clock."""
    import torch

    there: Taken = {path: [] for path in WAITS_MS}
    back: Taken = {path: [] for path in WAITS_MS}
    model, recorded = _waiting("", clock_ns, there, back), _waiting("", clock_ns, {}, back)
    usual, calls.clock_ns = calls.clock_ns, clock_ns
    try:
        with record_torch_module_forward_stats(recorded):
            for _ in range(ROUNDS):
                model(torch.zeros(1))
                recorded(torch.zeros(1, requires_grad=True)).sum().backward()
    finally:
        calls.clock_ns = usual
    stats = get_forward_stats(recorded)
    print(f"\nrecorded times as a ratio to those by hand, fastest of {ROUNDS}, by {name}")
    print(f"  {'module':8}{'wait':>9}{'own':>8}{'total':>8}{'backward own':>14}{'backward':>10}")
    worst = max(_row(stats, path, there, back) for path in WAITS_MS)
    has_limit = name != "clock"
    limit = f" (limit {ERROR_LIMIT_PERCENT:g})" if has_limit else ""
    verdict = "   OVER" if has_limit and worst > ERROR_LIMIT_PERCENT else ""
    print(f"  furthest from 1: {worst:.2f} %{limit}{verdict}", flush=True)


def _row(stats: ForwardStats, path: str, there: Taken, back: Taken) -> float:
    timing = stats.timings[path]
    assert timing.backward is not None
    assert timing.backward_own is not None
    children = [there[one] for one in WAITS_MS if one and _parent(one) == path]
    own = [total - sum(inner) for total, *inner in zip(there[path], *children, strict=True)]
    below = [times for one, times in back.items() if one == path or _is_below(one, path)]
    backward = [sum(times) for times in zip(*below, strict=True)]
    pairs = (
        (timing.own, own),
        (timing.total, there[path]),
        (timing.backward_own, back[path]),
        (timing.backward, backward),
    )
    ratios = [spread.min_s * 1e9 / min(by_hand) for spread, by_hand in pairs]
    shown = "{:8.4f}{:8.4f}{:14.4f}{:10.4f}".format(*ratios)
    print(f"  {path or '(model)':8}{WAITS_MS[path]:6.1f} ms{shown}")
    return max(abs(one - 1) for one in ratios) * 100


def _parent(path: str) -> str:
    return path.rpartition(".")[0]


def _is_below(path: str, ancestor: str) -> bool:
    return path.startswith(f"{ancestor}." if ancestor else "")


def _waiting(path: str, clock_ns: Clock, there: Taken, back: Taken) -> Any:
    """Return a module that waits, and calls those whose paths are one name longer."""
    import torch

    def wait() -> None:
        end_ns = clock_ns() + round(WAITS_MS[path] * 1e6)
        while clock_ns() < end_ns:
            pass

    class Wait(torch.autograd.Function):  # type: ignore[misc] # its base is torch's
        @staticmethod
        def forward(_: Any, x: Any) -> Any:
            wait()
            return x.clone()

        @staticmethod
        def backward(_: Any, *gradients: Any) -> Any:
            start_ns = clock_ns()
            wait()
            back[path].append(clock_ns() - start_ns)
            return gradients[0]

    class Waiting(torch.nn.Module):  # type: ignore[misc] # its base is torch's
        def forward(self, x: Any) -> Any:
            start_ns = clock_ns()
            for child in self.children():
                x = child(x)
            x = Wait.apply(x)
            if path in there:
                there[path].append(clock_ns() - start_ns)
            return x

    module = Waiting()
    for other in WAITS_MS:
        if other and _parent(other) == path:
            module.add_module(other.rpartition(".")[2], _waiting(other, clock_ns, there, back))
    return module


def _overhead(name: str, model: Any, given: Any) -> None:
    work = _training(model, given) if model.training else _inference(model, given)
    work()
    with record_torch_module_forward_stats(model):
        work()
    count = sum(one.calls for one in get_forward_stats(model).timings.values())
    plain, recorded = [], []
    for _ in range(ROUNDS):
        plain.append(_taken(work))
        with record_torch_module_forward_stats(model):
            recorded.append(_taken(work))
    print(f"\nrecording {name}: {count} calls of modules, fastest of {ROUNDS}")
    for clock, without, with_it in zip(CLOCKS, _turned(plain), _turned(recorded), strict=True):
        fastest = min(without)
        added = min(with_it) - fastest
        print(
            f"  by {clock:16}{fastest / 1e6:8.2f} ms plain, {min(with_it) / 1e6:8.2f} recorded:",
            end="",
        )
        print(f"{100 * added / fastest:6.2f} %, {added / count / 1e3:.1f} µs a call", flush=True)


def _turned(rounds: list[list[int]]) -> list[list[int]]:
    return [list(times) for times in zip(*rounds, strict=True)]


def _taken(work: Callable[[], object]) -> list[int]:
    """Return how long something takes by each clock."""
    gc.collect()
    gc.disable()
    before = [clock_ns() for clock_ns in CLOCKS.values()]
    work()
    after = [clock_ns() for clock_ns in CLOCKS.values()]
    gc.enable()
    return [end - start for start, end in zip(before, after, strict=True)]


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
