"""Made-up training runs with a leak of a known slope, or with none, among what looks like one.

A run has weights, an optimizer's state that the first step makes, activations and gradients that
come and go, noise of random sizes and lifetimes, a warm-up, caches that fill, and a workspace.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Case:
    """What a run is like. `slope` is 0 without a leak."""

    seed: int
    slope: int = 0
    steps: int = 24
    leak: str = "list"  # or "growing": one tensor that is replaced by a larger one
    every: int = 1  # steps between the leak's allocations
    first: int = 0  # the first step that leaks
    has_noise: bool = True
    cache: int = 0  # entries of a cache that fills, one a step
    marks: str = "optimizer"  # how steps can be seen: "optimizer", "marks" or "period"


def cases_with() -> list[Case]:
    """Return runs that leak."""
    cases = []
    for number in range(20):
        cases.append(
            Case(
                seed=number,
                slope=(1 + number % 7) * 300_000,
                steps=16 + 4 * (number % 5),
                leak="growing" if number % 4 == 3 else "list",
                every=2 if number % 5 == 2 else 1,
                first=6 if number % 6 == 5 else 0,
                has_noise=number % 3 != 0,
                cache=5 if number % 2 else 0,
                marks=("optimizer", "marks")[number % 2],
            )
        )
    return cases


def cases_without() -> list[Case]:
    """Return runs that do not leak."""
    return [
        Case(
            seed=100 + number,
            steps=16 + 4 * (number % 5),
            has_noise=number % 3 != 0,
            cache=(0, 3, 7, 10)[number % 4],
            marks=("optimizer", "marks")[number % 2],
        )
        for number in range(20)
    ]


class _Run:
    def __init__(self, case: Case) -> None:
        self.case, self.random = case, Random(case.seed)
        self.events: list[dict[str, Any]] = []
        self.live: dict[int, tuple[int, list[dict[str, Any]]]] = {}
        self.next_address = 0x7F00_0000_0000
        self.step = 0

    def alloc(self, size: int, *frames: tuple[str, str, int]) -> int:
        address = self.next_address
        self.next_address += (size + 511) // 512 * 512
        stack = [{"name": name, "filename": file, "line": line} for name, file, line in frames]
        self.live[address] = (size, stack)
        self._event("alloc", address, size, stack)
        return address

    def free(self, address: int) -> None:
        size, stack = self.live.pop(address)
        self._event("free_requested", address, size, stack)
        self._event("free_completed", address, size, stack)

    def _event(self, action: str, address: int, size: int, frames: list[dict[str, Any]]) -> None:
        event = {"action": action, "addr": address, "size": size, "stream": 0, "frames": frames}
        event["time_us"] = 1_700_000_000_000_000 + len(self.events)
        if self.case.marks == "marks":
            event["user_metadata"] = f"step={self.step}"
        self.events.append(event)


MAIN = ("<module>", "/home/me/train.py", 10)
CALL = ("_call_impl", "/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", 1700)
STEP = ("step", "/venv/lib/python3.12/site-packages/torch/optim/adamw.py", 200)
LEAK = "leak.py:7 remember"


def line(name: str, number: int) -> tuple[str, str, int]:
    """Return a frame of the model's code."""
    return (name, "/home/me/model.py", number)


def snapshot(case: Case) -> dict[str, Any]:
    """Return a run as PyTorch would have recorded it."""
    run = _Run(case)
    remember = ("remember", "/home/me/leak.py", 7)
    weights = [run.alloc(2 * MIB + n * 4096, line("__init__", 3), MAIN) for n in range(6)]
    states: list[int] = []
    noise: list[tuple[int, int]] = []
    growing: int | None = None
    grown = 0
    for step in range(case.steps):
        run.step = step
        if step == 0:
            run.alloc(8_519_680, line("forward", 20), CALL, MAIN)
        batch = run.alloc(MIB, ("load", "/home/me/data.py", 5), MAIN)
        made = []
        for layer in range(6):
            made.append(run.alloc(3 * MIB + layer, line("forward", 21 + layer), CALL, MAIN))
            if case.has_noise and run.random.random() < 0.5:
                until = step + run.random.choice([0, 0, 1, 2, 3])
                size = run.random.randrange(1000, 2 * MIB)
                noise.append((until, run.alloc(size, line("noise", 40), CALL, MAIN)))
        if step < 2:  # warm-up
            noise.append((step + 2, run.alloc(9 * MIB, line("warm_up", 44), MAIN)))
        if step < case.cache:
            run.alloc(700_000, ("lookup", "/home/me/cache.py", 9), CALL, MAIN)
        if case.slope and step >= case.first and (step - case.first) % case.every == 0:
            size = case.slope * case.every
            if case.leak == "list":
                run.alloc(size, remember, CALL, MAIN)
            else:
                grown += size
                new = run.alloc(grown, remember, CALL, MAIN)
                if growing is not None:
                    run.free(growing)
                growing = new
        gradients = []
        for address in reversed(made):
            gradients.append(run.alloc(run.live[weights[0]][0], line("backward", 60), MAIN))
            run.free(address)
        if step == 0:
            states = [run.alloc(run.live[one][0], STEP, MAIN) for one in weights * 2]
        scratch = run.alloc(4 * MIB, STEP, MAIN)
        run.free(scratch)
        for address in (*gradients, batch):
            run.free(address)
        for until, address in [one for one in noise if one[0] <= step]:
            run.free(address)
            noise.remove((until, address))
    assert len(states) == 12
    blocks = [
        {"address": at, "size": (size + 511) // 512 * 512, "requested_size": size,
         "state": "active_allocated", "frames": stack}
        for at, (size, stack) in sorted(run.live.items())
    ]  # fmt: skip
    segments = [
        {"device": 0, "address": one["address"], "total_size": one["size"],
         "allocated_size": one["size"], "active_size": one["size"],
         "requested_size": one["requested_size"], "stream": 0, "segment_type": "large",
         "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": [one]}
        for one in blocks
    ]  # fmt: skip
    return {"segments": segments, "device_traces": [run.events]}
