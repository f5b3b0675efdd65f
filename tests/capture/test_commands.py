"""`predict` and `record` as people run them: examples, verdicts, ranks, failures."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import snapviewer
from snapviewer import _core
from snapviewer.capture.gpus import find_gpu
from snapviewer.capture.null_device import prepare
from support.program import Ran
from support.torch_marks import torch_marks

pytestmark = [
    *torch_marks(),
    pytest.mark.slow,
    pytest.mark.skipif(_core.null_device() is None, reason="no null device on this system"),
]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SMALL = {
    "train_gpt.py": "--layers 2 --width 128 --batch 2 --context 64",
    "train_resnet.py": "--layers 18 --batch 2",
    "train_llama.py": "--layers 2 --width 128 --batch 2 --context 64",
}
STEP = """\
import os, torch
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    model(torch.randn(8, 64, device="cuda")).sum().backward()
    optimizer.step()
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*words: str) -> Ran:
    """Run a command; no limit on addresses, of which the null device reserves many."""
    ran = subprocess.run(
        [sys.executable, "-m", "snapviewer", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def predict(*words: str) -> dict[str, Any]:
    ran = run("predict", *words, "--json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    assert isinstance(document, dict)
    return document


@pytest.mark.parametrize("example", SMALL)
def test_an_example_is_predicted_and_opens(example: str, tmp_path: Path) -> None:
    found = predict(str(EXAMPLES / example), *SMALL[example].split(), "--gpu", "a100-40gb")

    snapshot = snapviewer.load(tmp_path / found["snapshot"])
    (device,) = (each for each in snapshot.devices if each.events)
    assert found["fits"]
    assert device.reconciles
    assert device.curves.peaks["allocated"] == found["peak_allocated_bytes"]
    assert device.curves.peaks["reserved"] == found["peak_reserved_bytes"]
    assert device.clock() is None, "a prediction has an order, and no times"
    assert snapshot.metadata["predicted"]["step"] == 3
    assert bool(found["cudnn_workspaces"]) == (example == "train_resnet.py")
    if found["cudnn_workspaces"]:
        assert found["cudnn_workspaces"]["peak_allocated_bytes"] > found["peak_allocated_bytes"]


def test_the_viewer_of_pytorch_accepts_a_prediction(tmp_path: Path) -> None:
    from torch.cuda import _memory_viz

    (tmp_path / "train.py").write_text(STEP + "step()\n")
    found = predict("train.py")
    content = pickle.loads((tmp_path / found["snapshot"]).read_bytes())

    assert "<html" in _memory_viz.trace_plot(content).lower()
    assert "Linear" in _memory_viz.trace(content) or "alloc" in _memory_viz.trace(content)
    assert _memory_viz.segsum(content)


def test_a_script_that_does_not_fit_names_the_step_and_the_line(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(STEP + "step()\nx = torch.empty(3 << 30, device='cuda')\n")

    ran = run("predict", "train.py", "--capacity", "2GiB")

    assert ran.code == 0
    assert "does not fit: more than 2.00 GiB" in ran.out
    assert "Runs out of memory in step 2, allocating 12.0 GiB\n  at train.py:8" in ran.out


def test_a_sweep_finds_the_largest_value(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import sys, torch\n"
        "x = torch.empty(int(sys.argv[1]) << 20, dtype=torch.uint8, device='cuda')\n"
    )

    ran = run("predict", "train.py", "{mib}", "--sweep", "mib=1..4", "--capacity", "3MiB")

    assert ran.code == 0, ran.err
    # Up to 1 MiB is in a segment of 2 MiB, more in one of 20.
    assert ran.out.splitlines()[-1] == "The largest mib that fits NVIDIA A100-SXM4-80GB: 1"
    assert re.fullmatch(r"mib=\d: (fits|does not fit): .*", ran.out.splitlines()[0])


def test_a_value_that_the_user_sets_decides_a_size(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\nmask = torch.ones(9, device='cuda')\nn = int(mask.sum().item())\n"
        "if n:\n    x = torch.empty(n << 20, dtype=torch.uint8, device='cuda')\n"
    )

    without = predict("train.py")
    with_it = predict("train.py", "--force", "--value", "mask.sum().item()=7.0")

    assert without["peak_allocated_bytes"] < 1 << 20
    assert 7 << 20 < with_it["peak_allocated_bytes"] < 8 << 20


@pytest.mark.parametrize(
    ("rest", "sentence"),
    [
        ("raise KeyError('x')\n", "the script failed with exit code 1"),
        ("import sys; sys.exit(3)\n", "the script failed with exit code 3"),
    ],
)
def test_a_script_that_fails_is_no_prediction(rest: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(STEP + rest)

    ran = run("predict", "train.py")

    assert ran.code == 1
    assert sentence in ran.err


def test_a_script_that_never_steps_is_predicted_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import ctypes, torch\ntorch.ones(9, device='cuda')\n"
        "out = ctypes.byref(ctypes.c_void_p())\n"
        "ctypes.CDLL(None).cuGetProcAddress(b'cuNotThere', out, 12000, ctypes.c_ulonglong(0))\n"
    )

    ran = run("predict", "train.py")

    assert ran.code == 0, ran.err
    assert "The script made no optimizer step" in ran.out
    assert "PyTorch asked for cuNotThere, which is missing" in ran.out


def test_a_script_without_cuda_is_no_prediction(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("pass\n")

    ran = run("predict", "train.py")

    assert ran.code == 1
    assert "the script did not use CUDA: there is nothing to predict" in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def null_environment() -> dict[str, str]:
    return {**os.environ, **prepare().environment(find_gpu("a100-40gb"), devices=4)}


def test_each_rank_of_torchrun_writes_its_own_snapshot(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        STEP + "step()\nif os.environ['RANK'] == '2': torch.empty(1 << 40, device='cuda')\n"
    )
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "3",
    ]

    ran = subprocess.run(
        [*command, "-m", "snapviewer", "record", "train.py"],
        env=null_environment(), capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip

    names = {path.name for path in tmp_path.glob("*.pickle")}
    assert {"train_rank0.pickle", "train_rank1.pickle"} <= names, ran.stderr
    assert "train_rank2_step1_oom.pickle" in names
    for name in names:
        assert all(device.reconciles for device in snapviewer.load(tmp_path / name).devices)


def test_a_script_that_is_killed_leaves_nothing_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(STEP + f"step()\nos.kill(os.getpid(), {signal.SIGKILL:d})\n")

    ran = subprocess.run(
        [sys.executable, "-m", "snapviewer", "record", "train.py"],
        env=null_environment(), capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip

    assert ran.returncode == 1
    assert ran.stderr == "snapviewer: the script ended with exit code 137, and wrote no snapshot\n"
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]
