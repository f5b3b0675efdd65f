"""How a recorded script may end: what is left of it, and under which name."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

import snapviewer
from snapviewer import _core
from snapviewer.capture.options import CaptureOptions
from support import recorded
from support.torch_marks import torch_marks

pytestmark = [
    *torch_marks(),
    pytest.mark.slow,
    pytest.mark.skipif(_core.null_device() is None, reason="no null device on this system"),
]

BEGIN = """\
import os, signal, sys, torch
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    optimizer.zero_grad()
    model(torch.randn(8, 64, device="cuda")).sum().backward()
    optimizer.step()
step()
"""


def run(folder: Path, rest: str, **options: Any) -> tuple[int, str, dict[str, str]]:
    """Run a script; return its exit code, its output, and the cause of each snapshot by name."""
    script, results = folder / "train.py", folder / "results"
    script.write_text(BEGIN + rest)
    capture = CaptureOptions(output=str(folder / "run.pickle"), results=str(results), **options)
    code, log = recorded.run([str(script)], capture)
    lines = results.read_text().splitlines() if results.exists() else []
    wrote = {Path(line["file"]).name: line["cause"] for line in map(json.loads, lines)}
    for name in wrote:
        assert snapviewer.load(folder / name).devices[0].reconciles
    assert {path.name for path in folder.glob("*.p*") if path != script} == {*wrote}
    return code, log, wrote


def test_a_script_that_ends_leaves_the_output(tmp_path: Path) -> None:
    code, log, wrote = run(tmp_path, "print('hello')\n")

    assert (code, log, wrote) == (0, "hello\n", {"run.pickle": "end"})


def test_a_run_ends_after_its_steps(tmp_path: Path) -> None:
    code, log, wrote = run(tmp_path, "while True: step()\n", steps=3)

    assert (code, log, wrote) == (0, "", {"run.pickle": "steps"})
    assert snapviewer.load(tmp_path / "run.pickle").metadata["recorded"]["step"] == 3


def test_a_run_ends_after_its_seconds(tmp_path: Path) -> None:
    code, _, wrote = run(tmp_path, "while True: step()\n", seconds=0.5)

    assert (code, wrote) == (0, {"run.pickle": "seconds"})


def test_snapshots_come_every_few_steps(tmp_path: Path) -> None:
    _, _, wrote = run(tmp_path, "for _ in range(4): step()\n", every=2)

    expected = {"run_step2_every.pickle": "every", "run_step4_every.pickle": "every"}
    assert wrote == {**expected, "run.pickle": "end"}


def test_a_script_that_raises_leaves_a_snapshot_and_its_traceback(tmp_path: Path) -> None:
    code, log, wrote = run(tmp_path, "raise RuntimeError('no')\n")

    assert (code, wrote) == (1, {"run.pickle": "error"})
    assert log.startswith("Traceback (most recent call last):\n  File")
    assert log.endswith("RuntimeError: no\n")
    assert "runpy" not in log


def test_a_script_that_exits_keeps_its_code(tmp_path: Path) -> None:
    assert run(tmp_path, "sys.exit(7)\n")[::2] == (7, {"run.pickle": "error"})


def test_os_exit_leaves_a_snapshot(tmp_path: Path) -> None:
    assert run(tmp_path, "os._exit(5)\n")[::2] == (5, {"run.pickle": "exit"})


def test_sigusr1_writes_a_snapshot_and_the_script_goes_on(tmp_path: Path) -> None:
    code, log, wrote = run(tmp_path, "os.kill(os.getpid(), signal.SIGUSR1)\nprint('on')\n")

    assert (code, log) == (0, "on\n")
    assert wrote == {"run_step1_signal.pickle": "signal", "run.pickle": "end"}


def test_sigterm_writes_a_snapshot_and_ends_the_script(tmp_path: Path) -> None:
    code, log, wrote = run(tmp_path, "os.kill(os.getpid(), signal.SIGTERM)\nprint('on')\n")

    assert (code, log, wrote) == (143, "", {"run_step1_sigterm.pickle": "sigterm"})


def test_an_out_of_memory_that_ends_the_script_leaves_two_snapshots(tmp_path: Path) -> None:
    code, log, wrote = run(tmp_path, "torch.empty(1 << 40, device='cuda')\n")

    assert code == 1
    assert "OutOfMemoryError: CUDA out of memory. Tried to allocate" in log
    assert wrote == {"run_step1_oom.pickle": "oom", "run.pickle": "error"}


def test_a_worker_that_is_forked_writes_nothing(tmp_path: Path) -> None:
    rest = "if not os.fork(): os._exit(0)\nos.wait()\n"

    assert run(tmp_path, rest)[::2] == (0, {"run.pickle": "end"})


def test_a_script_without_cuda_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "cpu.py").write_text("print('no GPU')\n")
    capture = CaptureOptions(output=str(tmp_path / "run.pickle"))

    code, log = recorded.run([str(tmp_path / "cpu.py")], capture)

    assert (code, log) == (0, "no GPU\n")
    assert [path.name for path in tmp_path.iterdir()] == ["cpu.py"]


def test_the_output_can_be_gzipped(tmp_path: Path) -> None:
    _, _, wrote = run(tmp_path, "", is_gzip=True)

    assert wrote == {"run.pickle.gz": "end"}
    assert snapviewer.load(tmp_path / "run.pickle.gz").format == "gzip pickle"


def test_code_can_record_a_block(tmp_path: Path) -> None:
    rest = f"""
import snapviewer
with snapviewer.record({str(tmp_path / "block.pickle")!r}, model=model) as recorder:
    step()
try:
    with snapviewer.record({str(tmp_path / "failed.pickle")!r}):
        raise KeyError
except KeyError:
    pass
os._exit(0)
"""
    script = tmp_path / "code.py"
    script.write_text(BEGIN.replace("step()\n", "", 1) + rest)
    environment = CaptureOptions(output=str(tmp_path / "run.pickle"), has_marks=False)

    recorded.run([str(script)], environment)

    names = {path.name for path in tmp_path.glob("*.pickle")}
    assert names >= {"block.pickle", "failed_step0_error.pickle"}
    content = pickle.loads((tmp_path / "block.pickle").read_bytes())
    assert content["recorded"]["step"] == 1
