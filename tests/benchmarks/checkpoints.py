"""The checkpoint benchmarks: structure of a file larger than memory, statistics at memory's speed.

Both are measured in processes of their own, so that what a process needs can be distinguished from
what was there before, and beside torch doing the same.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

STRUCTURE_LIMIT_MS = 10.0
STRUCTURE_LIMIT_MB = 30.0
STATS_LIMIT_GB_S = 2.0
STATS_LIMIT_MB = 100.0
STATS_LIMIT_RATIO = 0.2
STATS_BYTES = 2 << 30

# 96 layers as of a language model of 56 billion parameters: 112 GiB that take no room on the disk.
_WRITE_LARGE = """
import sys, torch
from torch._subclasses.fake_tensor import FakeTensorMode
sizes = {"q_proj": (8192, 8192), "k_proj": (8192, 8192), "v_proj": (8192, 8192),
         "o_proj": (8192, 8192), "up_proj": (20480, 8192), "down_proj": (8192, 20480)}
with FakeTensorMode():
    state = {f"model.layers.{layer}.{name}.weight": torch.empty(*size, dtype=torch.bfloat16)
             for layer in range(100) for name, size in sizes.items()}
with torch.serialization.skip_data(materialize_fake_tensors=True):
    torch.save(state, sys.argv[1])
"""

_WRITE_NUMBERS = """
import sys, torch
torch.manual_seed(1)
parts = {f"layer.{index}": torch.randn(1 << 26) for index in range(int(sys.argv[2]) >> 28)}
torch.save(parts, sys.argv[1])
"""

_MEASURE = """
import json, sys, time
def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
{imports}
path = sys.argv[1]
before = peak()
times = []
for _ in range({repeats}):
    start = time.perf_counter()
    {work}
    times.append(time.perf_counter() - start)
print(json.dumps([min(times), peak() - before]))
"""

_OURS = "from snapviewer import _core"
_TORCH = "import mmap, torch\ntorch.serialization.set_default_mmap_options(mmap.MAP_SHARED)"

_TORCH_STATS = """
def stats(x):
    finite = x[torch.isfinite(x)]
    n = finite.numel()
    mean = finite.mean(dtype=torch.float64)
    d = finite.double() - mean
    m2, m3, m4 = d.square().mean(), d.pow(3).mean(), d.pow(4).mean()
    low, high = finite.min(), finite.max()
    histogram = torch.histc(finite, 64, low.item(), high.item())
    p = histogram[histogram > 0] / n
    tiny = torch.finfo(x.dtype).tiny
    return (n, mean, d.square().sum().div(n - 1).sqrt(), low, high, (x == 0).sum(), x.isnan().sum(),
            x.isinf().sum(), ((x != 0) & (x.abs() < tiny)).sum(), x.abs().sum(dtype=torch.float64),
            torch.linalg.vector_norm(x, dtype=torch.float64), m3 / m2.pow(1.5),
            m4 / m2.square() - 3,
            -(p * p.log2()).sum(), histogram)
"""


def run(folder: Path) -> None:
    """Print the tables."""
    _structure(folder / "checkpoint-large.pth")
    _statistics(folder / "checkpoint-numbers.pth")


def _structure(path: Path) -> None:
    if not path.exists():
        run_python(_WRITE_LARGE, path)
    work = "checkpoint = _core.read_checkpoint(path); checkpoint.tensors; checkpoint.ledger"
    # The first call of a process pays for what it has not touched yet: the best of several.
    ours, memory = min(measured(path, _OURS, work, repeats=1) for _ in range(5))
    again, _ = measured(path, _OURS, work, repeats=10)
    load = 'torch.load(path, mmap=True, weights_only=True, map_location="cpu")'
    torch, torch_memory = measured(path, _TORCH, load, repeats=3)
    print(f"\na checkpoint of {path.stat().st_size / 2**30:.0f} GiB, 600 tensors: its structure")
    print(f"  torch.load, mapped       {torch * 1e3:8.1f} ms   {torch_memory / 1e6:6.1f} MB")
    show_row("read_checkpoint, first", ours * 1e3, STRUCTURE_LIMIT_MS, "ms", ours / torch)
    show_row("read_checkpoint, again", again * 1e3, STRUCTURE_LIMIT_MS, "ms", again / torch)
    show_row("memory beyond the start", memory / 1e6, STRUCTURE_LIMIT_MB, "MB")


def _statistics(path: Path) -> None:
    if not path.exists():
        run_python(_WRITE_NUMBERS, path, STATS_BYTES)
    all_ours = "c = _core.read_checkpoint(path); [c.stats(i) for i in range(len(c.tensors))]"
    ours, memory = measured(path, _OURS, all_ours, repeats=5)
    load = "[stats(x) for x in torch.load(path, mmap=True, weights_only=True).values()]"
    torch, torch_memory = measured(path, _TORCH + _TORCH_STATS, load, repeats=2)
    speed = path.stat().st_size / ours / 1e9
    print(f"\nstatistics of {path.stat().st_size / 2**30:.1f} GiB of float32, 15 numbers a tensor")
    print(f"  torch, the same set      {torch * 1e3:8.0f} ms   {torch_memory / 1e6:6.0f} MB")
    ratio = ours / torch
    verdict = "" if ratio <= STATS_LIMIT_RATIO else "   OVER"
    print(
        f"  ours                     {ours * 1e3:8.0f} ms   {ratio:.3f}× "
        f"(limit {STATS_LIMIT_RATIO}){verdict}"
    )
    verdict = "" if speed >= STATS_LIMIT_GB_S else "   UNDER"
    print(f"  from the page cache      {speed:8.2f} GB/s (at least {STATS_LIMIT_GB_S}){verdict}")
    show_row("memory beyond the start", memory / 1e6, STATS_LIMIT_MB, "MB")


def show_row(name: str, value: float, limit: float, unit: str, ratio: float | None = None) -> None:
    """Print a value beside what it may be at most."""
    beside = "" if ratio is None else f"   {ratio:.4f}×"
    verdict = "" if value <= limit else "   OVER"
    print(f"  {name:25}{value:8.2f} {unit} (limit {limit:g}){beside}{verdict}", flush=True)


def measured(path: Path, imports: str, work: str, repeats: int) -> tuple[float, int]:
    """Return the seconds of the best run, and how much memory the runs took at most."""
    script = _MEASURE.format(imports=imports, work=work, repeats=repeats)
    seconds, memory = json.loads(run_python(script, path))
    return float(seconds), int(memory)


def run_python(script: str, *arguments: object) -> str:
    """Run a script in a process of its own and return what it prints."""
    command = [sys.executable, "-W", "ignore", "-c", script, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    run(Path(__file__).resolve().parents[2] / "build" / "bench")
