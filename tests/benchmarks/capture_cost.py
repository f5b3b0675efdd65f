"""What `record` costs: 100 optimizer steps of a small GPT on the null device, with and without it.

Kernels take no time there, so that all of a step is PyTorch's work on the host, and the ratio is an
upper bound: on a real GPU the host's work is partly hidden behind the kernels.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from snapviewer import _core
from snapviewer.capture.gpus import find_gpu
from snapviewer.capture.launch import run_script
from snapviewer.capture.null_device import prepare
from snapviewer.capture.options import CaptureOptions

STEPS = 100
ROUNDS = 3
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "train_gpt.py"
SCRIPT = f"""\
import sys, time
sys.path.insert(0, {str(EXAMPLE.parent)!r})
import torch
from train_gpt import Gpt
model = Gpt(layers=4, width=256, context=128).cuda()
optimizer = torch.optim.AdamW(model.parameters())
def step():
    optimizer.zero_grad()
    model(torch.zeros(4, 128, dtype=torch.long, device="cuda")).sum().backward()
    optimizer.step()
for _ in range(5):
    step()
begin = time.perf_counter()
for _ in range({STEPS}):
    step()
open(sys.argv[1], "w").write(str(time.perf_counter() - begin))
"""
WAYS = {"plain": None, "recorded": False, "recorded with marks": True}


def run() -> None:
    """Print the table, or why there is none."""
    if find_spec("torch") is None or _core.null_device() is None:
        print("\ncost of record: not measured, it needs torch and Linux")
        return
    environment = prepare().environment(find_gpu("a100-40gb"))
    fastest = dict.fromkeys(WAYS, float("inf"))
    with tempfile.TemporaryDirectory() as directory:
        for _ in range(ROUNDS):
            for name, has_marks in WAYS.items():
                taken = _taken(Path(directory), environment, has_marks)
                fastest[name] = min(fastest[name], taken)
    print(f"\ncost of record: {STEPS} steps on the null device, fastest of {ROUNDS}")
    for name, taken in fastest.items():
        print(f"  {name:20}{taken:8.3f} s{taken / fastest['plain']:8.2f} x")


def _taken(directory: Path, environment: dict[str, str], has_marks: bool | None) -> float:
    script, result = directory / "train.py", directory / "seconds"
    script.write_text(SCRIPT)
    command = [str(script), str(result)]
    if has_marks is None:
        subprocess.run([sys.executable, *command], env={**os.environ, **environment}, check=True)
    else:
        options = CaptureOptions(output=str(directory / "x.pickle"), has_marks=has_marks)
        assert run_script(command, options, environment=environment).code == 0
    return float(result.read_text())


if __name__ == "__main__":
    run()
