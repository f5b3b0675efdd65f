"""Runs that record their memory, each in its own process: freed memory is reused.

python tests/support/recorded_runs.py training|leak LOG
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from snapviewer.events import EventRecorder

MB = 2**20
STEPS = 10
LEAK_BYTES = 8 * MB
# 32 MiB with four bytes each: so large that they never reuse freed memory.
WEIGHTS = (2048, 4096)


def training(path: str) -> None:
    """Train a small network on random numbers."""
    import torch

    with EventRecorder(path, model_name="a small MLP") as recorder:
        with recorder.component("mlp"):
            layers = [torch.nn.Linear(*WEIGHTS), torch.nn.ReLU(), torch.nn.Linear(WEIGHTS[1], 10)]
            model = torch.nn.Sequential(*layers)
            optimizer = torch.optim.AdamW(model.parameters())
        recorder.event("model_loaded", layers=len(layers))
        optimizer.register_step_post_hook(recorder.step_hook)
        inputs, targets = torch.randn(8, WEIGHTS[0]), torch.randint(0, 10, (8,))
        with recorder.stage("forward"):
            model(inputs)
        recorder.event("before_generate")
        for _ in range(STEPS):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(inputs), targets).backward()
            optimizer.step()


def leak(path: str) -> None:
    """Keep something of every step."""
    kept = []
    with EventRecorder(path, memory="process") as recorder:
        for _ in range(STEPS):
            kept.append(bytearray(b"x") * LEAK_BYTES)
            recorder.step()


RUNS = {"training": training, "leak": leak}


def record(run: str, path: Path) -> None:
    """Record a run in a new process."""
    command = [sys.executable, "-W", "error", __file__, run, str(path)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")


if __name__ == "__main__":
    RUNS[sys.argv[1]](sys.argv[2])
