"""Small modules whose times are known: a clock that only they move."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn


class Clock:
    """A clock that stands still unless it is moved by the time that something took."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns

    def take(self, time_ns: int) -> None:
        self.now_ns += time_ns


class Spending(torch.autograd.Function):
    """Passes a tensor on; takes some time on the way there and on the way back."""

    @staticmethod
    def forward(ctx: Any, x: Any, clock: Clock, there_ns: int, back_ns: int) -> Any:
        ctx.clock, ctx.back_ns = clock, back_ns
        ctx.save_for_backward(x)
        clock.take(there_ns)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        _ = ctx.saved_tensors  # checkpointing computes it now
        ctx.clock.take(ctx.back_ns)
        return gradients[0], None, None, None


class Takes(nn.Module):
    """Takes some time before each of its children and after the last one."""

    def __init__(self, clock: Clock, own_ns: int, *children: nn.Module, back_ns: int = 0) -> None:
        super().__init__()
        self.clock, self.own_ns, self.back_ns = clock, own_ns, back_ns
        self.parts = nn.ModuleList(children)

    def forward(self, x: Any) -> Any:
        for part in self.parts:
            x = part(self.spend(x))
        return self.spend(x)

    def spend(self, x: Any) -> Any:
        return Spending.apply(x, self.clock, self.own_ns, self.back_ns)


class Does(nn.Module):
    """Does what a function says, and holds what it is given."""

    def __init__(self, work: Callable[..., Any], **children: nn.Module) -> None:
        super().__init__()
        self.work = work
        for name, child in children.items():
            self.add_module(name, child)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.work(self, *args, **kwargs)


class SlowToLookAt(Mapping[str, Any]):
    """An argument that takes time each time that someone looks what is in it."""

    def __init__(self, clock: Clock, time_ns: int) -> None:
        self._clock, self._time_ns = clock, time_ns

    def __getitem__(self, key: str) -> Any:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        self._clock.take(self._time_ns)
        return iter(())

    def __len__(self) -> int:
        return 0


class Block(nn.Module):
    """A residual block, with operations in place where people have them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Any) -> Any:
        y = self.conv2(self.relu(self.conv1(x)))
        y += x
        return self.relu(y)
