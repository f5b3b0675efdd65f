"""The explorer's benchmarks: large models are looked at about as fast as torch walks through them.

The times are beside torch's own `named_modules` and `named_parameters` of the same model, in the
same run, and for a file beside reading it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from baseline import best

import snapviewer
from snapviewer.explorer.checkpoint import tree_of_checkpoint
from snapviewer.explorer.compare import compare_trees
from snapviewer.explorer.live import tree_of_module
from snapviewer.report.tree.diagram import as_svg
from snapviewer.report.tree.text import as_text

MODULES = 50_000
TENSORS = 10_000
TREE_LIMIT = 8.0
FILE_LIMIT_MS_A_TENSOR = 0.06


def run(folder: Path) -> None:
    """Print the tables."""
    _trees()
    _files(folder)


def _trees() -> None:
    model = large_model(MODULES)
    if model is None:
        print("\nno torch: live models are not measured")
        return
    baseline = best(lambda: _walk(model), repeats=5)
    print(f"\na live model of {MODULES:,} modules")
    print(f"  torch's own walk         {baseline * 1e3:8.0f} ms")
    tree = tree_of_module(model)
    for name, work, limit in (
        ("tree with all sums", lambda: tree_of_module(model), TREE_LIMIT),
        ("as text", lambda: as_text(tree), None),
        ("as a diagram", lambda: as_svg(tree), None),
        ("compared with itself", lambda: compare_trees(tree, tree), None),
    ):
        _row(name, best(work, repeats=5), baseline, limit)


def large_model(modules: int) -> Any:
    """Make a model of so many modules, five to a block; None without torch."""
    try:
        from torch import nn
    except ImportError:
        return None
    made = (
        nn.ModuleDict(
            {"a": nn.Linear(2, 2), "b": nn.ReLU(), "n": nn.LayerNorm(2), "d": nn.Dropout()}
        )
        for _ in range(modules // 5)
    )
    return nn.Sequential(*made)


def _walk(model: Any) -> None:
    list(model.named_modules())
    list(model.named_parameters())


def _files(folder: Path) -> None:
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from support.pth_writer import T, write_safetensors

    path = folder / "explorer.safetensors"
    names = [f"layers.{n // 2}.{'attn' if n % 2 else 'mlp'}.weight" for n in range(TENSORS)]
    write_safetensors(path, {name: T("float32", (2, 2)) for name in names})
    baseline = best(lambda: snapviewer.read_checkpoint(path), repeats=5)
    checkpoint = snapviewer.read_checkpoint(path)
    seconds = best(lambda: tree_of_checkpoint(checkpoint), repeats=5)
    print(f"\na file of {TENSORS:,} tensors")
    print(f"  reading it               {baseline * 1e3:8.0f} ms")
    _row("tree with all sums", seconds, baseline, None)
    each = seconds * 1e3 / TENSORS
    verdict = "" if each <= FILE_LIMIT_MS_A_TENSOR else "   OVER"
    print(f"  a tensor                 {each:8.3f} ms (limit {FILE_LIMIT_MS_A_TENSOR}){verdict}")


def _row(name: str, seconds: float, baseline: float, limit: float | None) -> None:
    ratio = seconds / baseline
    shown = "" if limit is None else f" (limit {limit:g})"
    verdict = "   OVER" if limit is not None and ratio > limit else ""
    print(f"  {name:25}{seconds * 1e3:8.0f} ms   {ratio:5.1f}×{shown}{verdict}", flush=True)


if __name__ == "__main__":
    run(Path(__file__).resolve().parents[2] / "build" / "bench")
