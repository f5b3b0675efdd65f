"""Small programs that train or infer on a GPU, for `recorded.py`: `recorded_programs.py NAME`.

Each is a function. They are recorded on the null device, so that values are zero.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.attention import SDPBackend, sdpa_kernel

SIZE = 256


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(SIZE, 4 * SIZE), nn.GELU(), nn.Linear(4 * SIZE, SIZE)).cuda()


def train(model: nn.Module, optimizer: torch.optim.Optimizer, *, steps: int = 3) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(64, SIZE, device="cuda")).square().mean().backward()
        optimizer.step()


def sgd() -> None:
    model = mlp()
    train(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))


def adamw_loop() -> None:
    model = mlp()
    train(model, torch.optim.AdamW(model.parameters(), foreach=False))


def adamw_foreach() -> None:
    model = mlp()
    train(model, torch.optim.AdamW(model.parameters(), foreach=True))


def adamw_fused() -> None:
    model = mlp()
    train(model, torch.optim.AdamW(model.parameters(), fused=True))


def adafactor() -> None:
    model = mlp()
    train(model, torch.optim.Adafactor(model.parameters()))


def grad_scaler() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(torch.randn(64, SIZE, device="cuda")).square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def autocast() -> None:
    model = mlp()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(torch.randn(64, SIZE, device="cuda")).float().square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def _attention(backend: SDPBackend) -> None:
    shape = (2, 4, 128, 64)
    q, k, v = (
        torch.randn(shape, device="cuda", dtype=torch.float16, requires_grad=True) for _ in range(3)
    )
    with sdpa_kernel(backend):
        F.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()


def attention_flash() -> None:
    _attention(SDPBackend.FLASH_ATTENTION)


def attention_efficient() -> None:
    _attention(SDPBackend.EFFICIENT_ATTENTION)


def attention_math() -> None:
    _attention(SDPBackend.MATH)


def attention_cudnn() -> None:
    _attention(SDPBackend.CUDNN_ATTENTION)


def compiled() -> None:
    """One graph: our hooks must not break it."""
    model = mlp()
    fast = torch.compile(model, fullgraph=True)
    train(fast, torch.optim.SGD(model.parameters(), lr=0.1))


def data_parallel() -> None:
    torch.distributed.init_process_group("nccl")
    model = nn.parallel.DistributedDataParallel(mlp())
    train(model, torch.optim.AdamW(model.parameters()))


def fully_sharded() -> None:
    from torch.distributed.fsdp import fully_shard

    torch.distributed.init_process_group("nccl")
    layers = nn.Sequential(*(mlp() for _ in range(4)))
    for layer in layers:
        fully_shard(layer)
    model = fully_shard(layers)
    train(model, torch.optim.AdamW(model.parameters()))


def checkpointing() -> None:
    from torch.utils.checkpoint import checkpoint

    layers = nn.ModuleList(mlp() for _ in range(4))
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        x = torch.randn(64, SIZE, device="cuda", requires_grad=True)
        for layer in layers:
            x = checkpoint(layer, x, use_reentrant=False)
        x.sum().backward()
        optimizer.step()


def convolution() -> None:
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
    ).cuda()  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        F.cross_entropy(
            model(torch.randn(8, 3, 64, 64, device="cuda")),
            torch.zeros(8, dtype=torch.long, device="cuda"),
        ).backward()
        optimizer.step()


def batch_norm() -> None:
    model = nn.Sequential(nn.Linear(SIZE, SIZE), nn.BatchNorm1d(SIZE), nn.ReLU()).cuda()
    train(model, torch.optim.SGD(model.parameters(), lr=0.1))


def lstm() -> None:
    model = nn.LSTM(64, 128, num_layers=2, bidirectional=True, dropout=0.1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        output, _ = model(torch.randn(20, 8, 64, device="cuda"))
        output.sum().backward()
        optimizer.step()


def embedding() -> None:
    model = nn.Sequential(nn.Embedding(1000, 64), nn.LayerNorm(64), nn.Linear(64, 1000)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        optimizer.zero_grad()
        tokens = torch.randint(0, 1000, (4, 32), device="cuda")
        F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).backward()
        optimizer.step()


def mixture_of_experts() -> None:
    gate = nn.Linear(SIZE, 4).cuda()
    experts = nn.ModuleList(mlp() for _ in range(4))
    x = torch.randn(64, SIZE, device="cuda")
    chosen = gate(x).argmax(-1)
    output = torch.zeros_like(x)
    for number, expert in enumerate(experts):
        rows = (chosen == number).nonzero().flatten()
        if rows.numel():
            output[rows] = expert(x[rows])
    output.sum()


def cuda_graph() -> None:
    model = mlp()
    x = torch.randn(64, SIZE, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        model(x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)
    graph.replay()
    del y


def memory_pool() -> None:
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        inside = torch.empty(3 << 20, device="cuda")
    outside = torch.empty(3 << 20, device="cuda")
    del inside, outside


def streams() -> None:
    side = torch.cuda.Stream()
    for _ in range(3):
        x = torch.empty(1 << 20, device="cuda")
        with torch.cuda.stream(side):
            y = x * 2
            x.record_stream(side)
        del x
        torch.empty(1 << 20, device="cuda")
        torch.cuda.current_stream().wait_stream(side)
        del y


def empty_cache() -> None:
    blocks = [torch.empty(n << 20, dtype=torch.uint8, device="cuda") for n in (1, 3, 12, 30)]
    del blocks[1:3]
    torch.cuda.empty_cache()
    blocks.append(torch.empty(5 << 20, dtype=torch.uint8, device="cuda"))


def pinned() -> None:
    host = [torch.empty(n, pin_memory=True) for n in (100, 10_000, 1_000_000)]
    device = [each.to("cuda", non_blocking=True) for each in host]
    del host[1]
    device[0].to("cpu")


def ragged() -> None:
    """Sizes that split and round blocks, freed in another order than they came."""
    sizes = [700_000 * (1 + number * 7 % 11) for number in range(40)]
    held = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in sizes]
    del held[::2]
    held += [torch.empty(size // 3, dtype=torch.uint8, device="cuda") for size in sizes]
    del held[::3]
    held += [torch.empty(size * 4, dtype=torch.uint8, device="cuda") for size in sizes]


def out_of_memory() -> None:
    """Runs out of memory, frees, and tries again with less; the cache is released on the way."""
    free, _ = torch.cuda.mem_get_info()
    held = [torch.empty(free // 8, dtype=torch.uint8, device="cuda") for _ in range(3)]
    cached = [torch.empty(free // 8, dtype=torch.uint8, device="cuda") for _ in range(3)]
    del cached
    big = torch.empty(free // 2, dtype=torch.uint8, device="cuda")  # after a retry
    try:
        torch.empty(free // 2, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        del big
    held.append(torch.empty(free // 4, dtype=torch.uint8, device="cuda"))


def two_devices() -> None:
    first, second = torch.ones(1 << 20, device="cuda:0"), torch.ones(1 << 21, device="cuda:1")
    first.to("cuda:1").add_(second[: 1 << 20])


def _mib(count: float) -> torch.Tensor:
    return torch.empty(int(count * 2**20), dtype=torch.uint8, device="cuda")


def _too_much(count: float) -> None:
    try:
        _mib(count)
    except torch.OutOfMemoryError:
        return
    raise AssertionError("there was enough")


def _pieces() -> list[torch.Tensor]:
    """Fills the device with segments of 20 MiB, of which 2 MiB stay in use."""
    blocks = []
    while True:
        try:
            blocks.append(_mib(2))
        except torch.OutOfMemoryError:
            break
    return blocks[::10]


def oom_demand() -> None:
    held = [_mib(50) for _ in range(12)]
    _too_much(600)
    del held


def oom_fragmentation() -> None:
    held = _pieces()
    _too_much(30)
    del held


def oom_other_stream() -> None:
    with torch.cuda.stream(torch.cuda.Stream()):
        held = _pieces()
    _too_much(15)
    del held


def oom_memory_pool() -> None:
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        held = [_mib(100) for _ in range(8)]
    del held
    _too_much(400)


def oom_outside() -> None:
    """Something in the process takes memory from the device behind PyTorch's back."""
    big = _mib(800)
    del big
    torch.cuda.empty_cache()
    pointer = ctypes.c_void_p()
    assert ctypes.CDLL(None).cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(600 << 20)) == 0
    held = _mib(100)
    _too_much(500)
    del held


class _Gpt(nn.Module):  # type: ignore[misc]
    """A small transformer of the usual layers."""

    def __init__(self, width: int = 512, layers: int = 6, words: int = 8192) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        layer = partial(nn.TransformerEncoderLayer, width, 8, 4 * width, 0.0, F.gelu)
        self.layers = nn.ModuleList(layer(batch_first=True) for _ in range(layers))
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens)
        for layer in self.layers:
            x = layer(x)
        out: torch.Tensor = self.head(x)
        return out


def gpt(between: Callable[[int], object] = lambda _: None) -> None:
    """Trains with sequences of other lengths each step; `between` runs after each."""
    model = _Gpt().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    for step, length in enumerate((256, 512, 384, 640, 200, 512, 700, 256)):
        tokens = torch.zeros(8, length, dtype=torch.long, device="cuda")
        loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        between(step)


def gpt_empty_cache() -> None:
    gpt(lambda step: torch.cuda.empty_cache() if step == 3 else None)


def gpt_streams() -> None:
    side = torch.cuda.Stream()
    gpt(partial(_copies, side))


def _copies(side: torch.cuda.Stream, step: int) -> None:
    """Uses memory on another stream, and frees it before that stream is done."""
    for size in (1 << 18, 3 << 20, 5 << 20):
        x = torch.empty(size * (1 + step % 3), device="cuda")
        with torch.cuda.stream(side):
            y = x * 2
            x.record_stream(side)
        del x, y


def gpt_pools() -> None:
    pool = torch.cuda.MemPool()
    gpt(partial(_pooled, pool))


def _pooled(pool: torch.cuda.MemPool, step: int) -> None:
    with torch.cuda.use_mem_pool(pool):
        held = [torch.empty(size * (1 + step % 2), device="cuda") for size in (1 << 16, 7 << 20)]
    del held


def gpt_all() -> None:
    """Streams, pools and `empty_cache` together."""
    side, pool = torch.cuda.Stream(), torch.cuda.MemPool()

    def between(step: int) -> None:
        _copies(side, step)
        _pooled(pool, step)
        if step in (2, 5):
            torch.cuda.empty_cache()

    gpt(between)


def gpt_fraction() -> None:
    """Under a limit, without which nothing is collected as garbage."""
    torch.cuda.set_per_process_memory_fraction(0.08)
    gpt()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
