"""The model benchmarks: what a tensor would lose, at a speed that a whole model can bear.

Measured in processes of their own, as the statistics of checkpoints are.
"""

from __future__ import annotations

from pathlib import Path

from checkpoints import measured, run_python, show_row

QUALITY_LIMIT_GB_S = 0.5
QUALITY_LIMIT_MB = 150.0
QUALITY_BYTES = 1 << 30

_WRITE = """
import sys, torch
torch.manual_seed(1)
rows = int(sys.argv[2]) >> 14
parts = {"tall": torch.randn(rows // 2, 4096), "square": torch.randn(4096, rows // 2)}
torch.save(parts, sys.argv[1])
"""

_OURS = "from snapviewer import _core"
_LOST = "c = _core.read_checkpoint(path); [c.quality(i, spectrum=False) for i in range(2)]"
_NORM = "c = _core.read_checkpoint(path); c.quality(0)"


def run(folder: Path) -> None:
    """Print the table."""
    path = folder / "model-numbers.pth"
    if not path.exists():
        run_python(_WRITE, path, QUALITY_BYTES)
    lost, memory = measured(path, _OURS, _LOST, repeats=3)
    norm, _ = measured(path, _OURS, _NORM, repeats=1)
    size = path.stat().st_size
    speed = size / lost / 1e9
    verdict = "" if speed >= QUALITY_LIMIT_GB_S else "   UNDER"
    print(f"\nround trips and pruning of {size / 2**30:.1f} GiB of float32, from the page cache")
    print(f"  ours                     {speed:8.2f} GB/s (at least {QUALITY_LIMIT_GB_S}){verdict}")
    show_row("memory beyond the start", memory / 1e6, QUALITY_LIMIT_MB, "MB")
    print(f"  with the norm of half of it, by iteration   {norm:6.1f} s")


if __name__ == "__main__":
    run(Path(__file__).resolve().parents[2] / "build" / "bench")
