"""Programs for what-ifs: some that strain the allocator, and pairs that differ in one thing."""

from __future__ import annotations

from dataclasses import dataclass

_CHURN = """
import random
import torch

random.seed({seed})
streams = [torch.cuda.default_stream(), torch.cuda.Stream()]
alive = []
try:
    for step in range(700):
        with torch.cuda.stream(streams[random.random() < {second}]):
            size = int(2 ** random.uniform(9, {top}))
            alive.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        if step % 97 == 96 and {empties}:
            torch.cuda.empty_cache()
        most = 10 + 30 * (step // 150 % 2)
        while len(alive) > most and random.random() < 0.9:
            del alive[random.randrange(len(alive))]
except torch.OutOfMemoryError:
    pass
"""


def churn(seed: int, *, second: float = 0.0, top: float = 28.5, empties: bool = False) -> str:
    """Return a program with blocks of all sizes; some on a second stream."""
    return _CHURN.format(seed=seed, second=second, top=top, empties=empties)


_PAIR = """
import random
import torch

random.seed(7)
FACTOR = {factor}

def weights():
    return [torch.empty(3_000_000 + 70_000 * at, device="cuda") for at in range(12)]

def states(weights):
    return [torch.empty(max(1, round(one.numel() * FACTOR)), device="cuda") for one in weights]

def logits(step):
    return torch.empty(20_000_000 + 1_000_000 * (step % 5), device="cuda")

def activations():
    return [torch.empty(random.randrange(100, 4_000_000), device="cuda") for _ in range(30)]

held = weights()
kept = states(held) if FACTOR else []
for step in range(6):
    made = activations()
    if {has_logits}:
        wide = logits(step)
        del wide
    if {has_activations}:
        del made[::2]
    rest = activations()
    del made, rest
"""


@dataclass(frozen=True, slots=True)
class Pair:
    """The changes that turn one program into the other."""

    name: str
    other: str
    without: tuple[str, ...] = ()
    scale: tuple[tuple[str, float], ...] = ()


def pair_source(
    *, factor: str = "1.0", has_logits: bool = True, has_activations: bool = True
) -> str:
    return _PAIR.format(factor=factor, has_logits=has_logits, has_activations=has_activations)


PAIRS = (
    Pair("no logits", pair_source(has_logits=False), without=("logits",)),
    Pair("no states", pair_source(factor="0"), without=("states",)),
    Pair("states of 8 bits", pair_source(factor="0.25"), scale=(("states", 0.25),)),
    Pair("half of the states", pair_source(factor="0.5"), scale=(("states", 0.5),)),
    Pair("states sharded over 8", pair_source(factor="0.125"), scale=(("states", 0.125),)),
    Pair(
        "neither logits nor states",
        pair_source(factor="0", has_logits=False),
        without=("logits", "states"),
    ),
    Pair("twice the states", pair_source(factor="2"), scale=(("states", 2.0),)),
)
