"""The mark `memory`, in real runs of pytest: on the null device, and without a GPU."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import recorded

pytestmark = pytest.mark.torch

TESTS = """
import pytest
import torch

@pytest.mark.memory(limit="4MiB")
def test_at_the_limit():
    torch.empty(1 << 20, device="cuda")

@pytest.mark.memory(limit=(4 << 20) - 1)
def test_a_byte_above():
    torch.empty(1 << 20, device="cuda")

@pytest.mark.memory("1GiB")
def test_far_below():
    torch.empty(1 << 20, device="cuda")

@pytest.mark.memory(limit="1GiB")
def test_that_fails_for_another_reason():
    raise RuntimeError("something else")

def test_without_a_limit():
    torch.empty(1 << 30, device="cuda")

@pytest.mark.memory(limit="much")
def test_with_nonsense():
    pass

@pytest.mark.memory
def test_with_nothing():
    pass
"""
RUN = """
import pytest
pytest.main({arguments!r})
"""


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    file = tmp_path / "test_memory.py"
    file.write_text(TESTS)
    plugins = ["-p", "snapviewer.pytest_plugin", "-p", "no:cacheprovider"]
    options = ["-rA", "--strict-markers", f"--rootdir={tmp_path}", "-c", os.devnull]
    return [str(file), *plugins, *options]


def _outcomes(log: str) -> dict[str, str]:
    found = re.findall(r"^(PASSED|FAILED|SKIPPED) .*?::test_(\w+)", log, re.MULTILINE)
    return {name: outcome for outcome, name in found}


def test_a_test_that_holds_more_than_its_limit_fails(arguments: list[str], tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(RUN.format(arguments=arguments))

    code, log = recorded.run([str(script)], None)

    assert code == 0, log
    assert _outcomes(log) == {
        "at_the_limit": "PASSED",
        "a_byte_above": "FAILED",
        "far_below": "PASSED",
        "that_fails_for_another_reason": "FAILED",
        "without_a_limit": "PASSED",
        "with_nonsense": "FAILED",
        "with_nothing": "FAILED",
    }
    assert "the peak of device 0, 4,194,304 B, is over 4,194,303 B" in log
    assert "RuntimeError: something else" in log
    assert log.count('the mark `memory` takes a limit, such as limit="2GiB"') >= 2


def test_without_a_gpu_it_is_skipped_and_says_how_to_run_it(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments, "-k", "test_at_the_limit"],
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 skipped" in done.stdout
    assert "`snapviewer predict -m pytest` runs the test without one" in done.stdout
