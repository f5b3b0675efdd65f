"""A small network of which everything is known, saved and analyzed, for the tests of promises."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from snapviewer.model import ModelAnalysis, RunOptions, analyze_file
from snapviewer.model.inference import profiling
from snapviewer.model.quantity import Quantity, unavailable
from snapviewer.model.roofline import Roof
from snapviewer.report.model import console


def made_up_roof(*, peak: float, bandwidth: float) -> Roof:
    """A machine of which only the limits are known: FLOP/s and B/s."""

    def measured(value: float, unit: str) -> Quantity:
        return Quantity(value, unit, "measured", "made up")

    nothing = unavailable("%", "made up")
    return Roof(
        device="cpu",
        dtype="float32",
        threads=1,
        peak=measured(peak, "FLOP/s"),
        peak_spread=nothing,
        bandwidth=measured(bandwidth, "B/s"),
        bandwidth_spread=nothing,
        copy_bandwidth=measured(bandwidth, "B/s"),
        triad_bandwidth=measured(bandwidth, "B/s"),
    )


ROOF = made_up_roof(peak=5e10, bandwidth=1e10)
"""Of a machine whose ridge is at 5 FLOPs for each byte; measuring a real one takes two seconds."""

SHORT = RunOptions(budget_s=0.02)


def save_network(path: Path) -> Path:
    """Trace two convolutions with what comes between them, and a linear layer; save the archive.

    Of each convolution the weights of the first of 8 channels are zero: 27 of 216, and 72 of 576.
    """
    import torch
    from torch import nn

    torch.manual_seed(8)
    network = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 5),
    ).eval()
    with torch.no_grad():
        network[0].weight.view(-1)[:27] = 0
        network[3].weight[0] = 0
    torch.jit.trace(network, torch.rand(1, 3, 16, 16)).save(str(path))
    return path


@contextmanager
def known_roof() -> Iterator[None]:
    """Let profiles have a made-up machine, and an environment that asks for nothing."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("PYTORCH_PROFILER_LEVEL", "OMP_NUM_THREADS", "PYTORCH_CUDA_MEMORY_FRACTION"):
            patch.delenv(name, raising=False)
        patch.setattr(profiling, "measure_roof", lambda **_: ROOF)
        yield


def analyzed(path: Path, **options: object) -> ModelAnalysis:
    """Analyze a file with a short run."""
    with known_roof():
        return analyze_file(path, is_run=True, has_system=True, options=SHORT, **options)  # type: ignore[arg-type]


def shown(analysis: ModelAnalysis) -> list[str]:
    """All lines of the console."""
    return list(console.lines_of(analysis))


@contextmanager
def inside(directory: Path) -> Iterator[None]:
    """Work in a directory for a while."""
    before = Path.cwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(before)
