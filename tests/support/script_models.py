"""Models that tests save as TorchScript: small, and between them with most of what code can do."""

from __future__ import annotations

import enum
import math
from typing import Dict, List, NamedTuple, Optional, Tuple  # noqa: UP035 (TorchScript wants these)

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Recurrent(nn.Module):
    def __init__(self, layer: type[nn.Module] = nn.LSTM) -> None:
        super().__init__()
        self.layer = layer(8, 16, batch_first=True, num_layers=2, bidirectional=True)
        self.out = nn.Linear(32, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.layer(x)[0])


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(32)
        self.qkv = nn.Linear(32, 96)
        self.out = nn.Linear(32, 32)
        self.mlp = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))
        self.register_buffer("mask", torch.tril(torch.ones(16, 16)).view(1, 1, 16, 16))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.size()
        q, k, v = self.qkv(self.norm(x)).split(32, dim=2)
        q = q.view(batch, length, 4, width // 4).transpose(1, 2)
        k = k.view(batch, length, 4, width // 4).transpose(1, 2)
        v = v.view(batch, length, 4, width // 4).transpose(1, 2)
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf"))
        y = (F.softmax(scores, dim=-1) @ v).transpose(1, 2).contiguous().view(batch, length, width)
        x = x + self.out(y)
        return x + self.mlp(x)


class Gpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(50, 32)
        self.places = nn.Embedding(16, 32)
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.head = nn.Linear(32, 50, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.places(torch.arange(tokens.size(1)))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class Detr(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1)
        )
        self.transformer = nn.Transformer(32, 4, 1, 1)
        self.queries = nn.Parameter(torch.rand(10, 32))
        self.rows = nn.Parameter(torch.rand(50, 16))
        self.columns = nn.Parameter(torch.rand(50, 16))
        self.classes = nn.Linear(32, 92)

    def forward(self, image: Tensor) -> Dict[str, Tensor]:  # noqa: UP006
        h = self.backbone(image)
        height, width = h.shape[-2:]
        columns = self.columns[:width].unsqueeze(0).repeat(height, 1, 1)
        rows = self.rows[:height].unsqueeze(1).repeat(1, width, 1)
        places = torch.cat([columns, rows], dim=-1).flatten(0, 1).unsqueeze(1)
        h = self.transformer(places + h.flatten(2).permute(2, 0, 1), self.queries.unsqueeze(1))
        return {"classes": self.classes(h.transpose(0, 1))}


class Cells(nn.Module):
    """A loop over the steps of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.one = nn.LSTMCell(8, 16)
        self.other = nn.GRUCell(8, 16)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(x.size(1), 16)
        c = torch.zeros(x.size(1), 16)
        g = h
        outs: List[Tensor] = []  # noqa: UP006
        for step in range(x.size(0)):
            h, c = self.one(x[step], (h, c))
            g = self.other(x[step], g)
            outs.append(h + g)
        return torch.stack(outs)


class Odds(nn.Module):
    """Layers and functions that few models use."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(3, 4, 3, 2, 1, 1)
        self.group = nn.GroupNorm(2, 4)
        self.prelu = nn.PReLU()
        self.scale = nn.Upsample(scale_factor=2.0, mode="bilinear")
        self.line = nn.Conv1d(4, 6, 3, groups=2, padding="same")
        self.instance = nn.InstanceNorm2d(4)
        self.edge = nn.ReflectionPad2d(1)

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:  # noqa: UP006
        y = self.instance(self.group(self.prelu(self.scale(self.up(x)))))
        y = F.interpolate(F.pad(self.edge(y), (1, 1), "constant", 0.0), size=[7, 9])
        z = F.adaptive_avg_pool1d(self.line(F.normalize(y, dim=1).flatten(2)), 3)
        w = torch.einsum("bij,bkj->bik", z, z)
        u = torch.where(w > 0, w, -w).topk(2, dim=-1)[0]
        w = w.masked_fill(torch.triu(torch.ones(6, 6), diagonal=1).to(torch.bool), 0.0)
        v = w.std(dim=-1, keepdim=True) + w.var(1, keepdim=True)
        hot = F.one_hot(torch.arange(4) % 3, 3).float()
        s = torch.logsumexp(hot, 1) + hot.max(1)[0] + hot.amax(1)
        r = w[:, 1:, ::2].mean((1, 2)).cumsum(0).chunk(2, 0)[0]
        a = F.scaled_dot_product_attention(w, w, w).roll(1, 2).flip(1)
        return u, v * a, s.sum() + r + F.unfold(y, 2).sum()


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Pair(NamedTuple):
    one: Tensor
    number: int


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x)


def doubled(x: Tensor, times: int = 2) -> Tensor:
    return x * times


class Flow(nn.Module):
    """Loops, conditions, forks, tuples with names, dictionaries, optional arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()
        self.sizes = {"a": 1, "b": 2}
        self.names = {1: "x", 5: "y"}
        self.numbers = [1, 2, 3]
        self.tables = [torch.zeros(2), torch.ones(3)]
        self.by_name = nn.ModuleDict({"k": nn.Linear(4, 4)})

    def forward(self, x: Tensor, y: Optional[Tensor] = None, n: int = 3) -> Tensor:  # noqa: UP045
        later = torch.jit.fork(doubled, x, 3)
        other = torch.jit.fork(self.inner, x)
        pair = Pair(x, 0)
        total = 0
        for i in range(n):
            total += i
            if i == 2:
                break
        for _, size in self.sizes.items():
            total += size
        for table in self.tables:
            total += table.size(0)
        while True:
            total += 1
            if total > 20:
                break
        assert total > 0, "no"
        w = torch.jit.wait(later) + torch.jit.wait(other)
        if y is not None:
            w = w + y
        if pair.number > 2 or 5 not in self.names:
            w = w @ w
        for layer in self.by_name.values():
            w = layer(w)
        with torch.no_grad():
            w = w.detach()
        if "{} {}".format("a", total) == "a 21":
            w = torch.cat([w] * total)
        many = [a * 2 for a in self.numbers]
        return w.reshape(-1, sum(many) // 3)


class Choice(nn.Module):
    """What it computes depends on what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.small = nn.Linear(4, 4)
        self.large = nn.Linear(4, 64)

    def forward(self, x: Tensor) -> Tensor:
        seen = [x]
        if x.sum() > 0:
            seen.append(x)
            x = self.large(x)
        else:
            seen.append(x)
            seen.append(x)
            x = self.small(x)
        if len(seen) != 2:
            x = torch.relu(x)
        return x


class Turns(nn.Module):
    """How often it turns depends on what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        while x.sum() > 0:
            x = self.linear(x)
        return x


class LeNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 5)
        self.linear = nn.Linear(6 * 14 * 14, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(F.max_pool2d(F.relu(self.conv(x)), 2).flatten(1))


class Both(nn.Module):
    def forward(self, x: Tensor, named: Dict[str, Tensor]) -> Tensor:  # noqa: UP006
        return x + named["k"]


class Sound(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cut = nn.Conv1d(1, 4, 10, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.cut(x[:, None])


class Video(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cut = nn.Conv2d(3, 4, 16, 16)

    def forward(self, x: Tensor) -> Tensor:
        return self.cut(x.reshape(x.size(0) * x.size(1), x.size(2), x.size(3), -1))


class Patches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cut = nn.Conv2d(3, 8, 12, 12)
        self.places = nn.Parameter(torch.zeros(1, 1 + 20 * 20, 8))
        self.token = nn.Parameter(torch.zeros(1, 1, 8))

    def forward(self, x: Tensor) -> Tensor:
        patches = self.cut(x).flatten(2).transpose(1, 2)
        return torch.cat([self.token, patches], dim=1) + self.places
