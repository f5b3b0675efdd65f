"""Small models of the kinds that people deploy, for tests that run live modules."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    """A layer of a GPT: causal attention and two linear layers, each behind a norm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, positions, width = x.shape
        parts = self.qkv(self.norm_1(x)).split(width, dim=2)
        query, key, value = (
            part.view(batch, positions, self.heads, width // self.heads).transpose(1, 2)
            for part in parts
        )
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, positions, width))
        return x + self.down(functional.gelu(self.up(self.norm_2(x))))


class Gpt(nn.Module):
    """A language model whose last layer has the weights of its first."""

    def __init__(
        self, *, vocabulary: int, width: int, heads: int, layers: int, positions: int
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.tokens(ids) + self.positions(places)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Detr(nn.Module):
    """A detector: convolutions, then a transformer with learned queries."""

    def __init__(self, *, width: int, heads: int, layers: int, queries: int, classes: int) -> None:
        super().__init__()
        channels = (3, 8, 16, 24, 32)
        self.backbone = nn.Sequential(
            *(
                nn.Sequential(nn.Conv2d(before, after, 3, 2, 1), nn.BatchNorm2d(after), nn.ReLU())
                for before, after in pairwise(channels)
            )
        )
        self.project = nn.Conv2d(channels[-1], width, 1)
        self.transformer = nn.Transformer(
            width, heads, layers, layers, dim_feedforward=128, batch_first=True
        )
        self.queries = nn.Parameter(torch.rand(queries, width))
        self.classes = nn.Linear(width, classes + 1)
        self.boxes = nn.Linear(width, 4)

    def forward(self, image: torch.Tensor) -> Any:
        features = self.project(self.backbone(image)).flatten(2).transpose(1, 2)
        found = self.transformer(features, self.queries.expand(image.shape[0], -1, -1))
        return self.classes(found), self.boxes(found).sigmoid()


class Counter(nn.Module):
    """Writes into a buffer of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        return x + self.calls


def _product(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x @ weight


class Forks(nn.Module):
    """Computes two products at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(4, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one = torch.jit.fork(_product, x, self.weight)
        two = torch.jit.fork(_product, x, self.weight)
        return torch.jit.wait(one) + torch.jit.wait(two)
