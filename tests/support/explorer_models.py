"""Small live models of every kind that the explorer meets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn


class Net(nn.Module):
    """Layers of many types, a tied weight, a module that is used twice, buffers of both kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.bn = nn.BatchNorm2d(8)
        self.blocks = nn.Sequential(nn.Linear(8, 8), nn.ReLU(inplace=True), nn.Dropout(0.1))
        self.tied = nn.Linear(8, 8)
        self.tied.weight = self.blocks[0].weight
        self.same = self.bn
        self.lstm = nn.LSTM(8, 4, 2, bidirectional=True)
        self.attention = nn.MultiheadAttention(8, 2)
        self.table = nn.Embedding(10, 4)
        self.norm = nn.LayerNorm(8)
        self.norm.weight.requires_grad_(False)
        self.register_buffer("scale", torch.ones(2), persistent=False)

    def forward(self, image: torch.Tensor) -> Any:
        features = self.same(self.bn(self.conv(image))).mean((2, 3))
        return self.norm(self.tied(self.blocks(features)))


class Rude(nn.Module):
    """Fails wherever it is asked for anything."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def extra_repr(self) -> str:
        raise ZeroDivisionError

    @property
    def weight(self) -> Any:
        raise KeyError("no weight")


class Refusing(nn.Module):
    """Does not even let its parts be seen."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__dict__":
            raise RuntimeError("\x1b[31mno")
        return super().__getattribute__(name)


class Pipeline:
    """No module, but holds some."""

    def __init__(self) -> None:
        self.unet = nn.Linear(2, 3)
        self.decoder = nn.Linear(3, 2)
        self.name = "pipeline"

    @property
    def components(self) -> Any:
        raise RuntimeError("not loaded")


class Duck:
    """Is like a module in what can be asked of it, and no more."""

    def __init__(self, *children: Duck) -> None:
        self._children = children
        self._weight = torch.zeros(3)

    def named_children(self) -> Iterator[tuple[str, Duck]]:
        return ((f"child{number}", child) for number, child in enumerate(self._children))

    def named_parameters(self, *, recurse: bool = True) -> Iterator[tuple[str, torch.Tensor]]:
        assert not recurse
        yield "weight", self._weight


def deep(levels: int) -> nn.Module:
    """A chain of modules, each in the one before."""
    inner: nn.Module = nn.Linear(1, 1)
    for _ in range(levels):
        outer = nn.Module()
        outer.add_module("m", inner)
        inner = outer
    return inner
