"""While somebody's model runs: its prints do not spoil the answer, and Ctrl-C ends it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from snapviewer.cli.model import prints_aside, stoppable

# Native code that lets other threads run, and does not look for signals; Python does nothing about
# the signal either, whether it comes before that code or in it.
ENDLESS = """
import hashlib, signal
from snapviewer.cli import model
model._GRACE_S = 0.1
signal.signal(signal.SIGINT, lambda *_: None)
with model.stoppable():
    print("runs", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
"""


def test_what_is_printed_past_python_goes_to_standard_error(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with prints_aside():
        os.write(1, b"HELLO\n")
        print("from Python")
    print("the answer")

    out, err = capfd.readouterr()
    assert (out, err) == ("the answer\n", "HELLO\nfrom Python\n")


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
def test_native_code_that_never_returns_is_ended_by_ctrl_c() -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert program.stdout is not None
    assert program.stdout.readline() == b"runs\n"

    program.send_signal(signal.SIGINT)
    _, err = program.communicate(timeout=60)

    assert (program.returncode, err.strip()) == (130, b"interrupted")


def test_afterwards_signals_are_as_they_were() -> None:
    with stoppable():
        pass

    assert signal.set_wakeup_fd(-1) == -1
