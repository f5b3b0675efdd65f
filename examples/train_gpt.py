"""Trains a small GPT on random tokens; try `snapviewer predict examples/train_gpt.py --gpu t4`.

`--layers`, `--width`, `--batch` and `--context` set its size.
"""

from __future__ import annotations

import argparse

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

VOCABULARY = 50_304


class Block(nn.Module):  # type: ignore[misc, unused-ignore]
    """Attention and a feed-forward network, each with a residual connection."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return what the next block gets."""
        batch, length, width = x.shape
        parts = self.qkv(self.before_attention(x)).chunk(3, dim=-1)
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.before_mlp(x))


class Gpt(nn.Module):  # type: ignore[misc, unused-ignore]
    """Embeddings, blocks, and a head."""

    def __init__(self, layers: int, width: int, context: int) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(context, width)
        self.layers = nn.ModuleList(Block(width, width // 64) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        x = self.tokens(tokens) + self.places.weight[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def main() -> None:
    """Train for some steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, usual in {"layers": 12, "width": 768, "context": 1024, "batch": 8}.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    options = parser.parse_args()
    model = Gpt(options.layers, options.width, options.context).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(10):
        tokens = torch.randint(VOCABULARY, (options.batch, options.context), device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(tokens)
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step + 1}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
