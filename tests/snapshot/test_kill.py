"""A conversion that is killed leaves either nothing or a whole bundle, and never litter for long.

`SNAPVIEWER_KILLS` sets how many moments to try for each kind of output; the default is small.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support import program

KILLS = int(os.environ.get("SNAPVIEWER_KILLS", "12"))
KINDS = ("out.zip", "out")


class Undisturbed(NamedTuple):
    """The snapshot to convert, how long that takes here, and what the bundle then says."""

    source: Path
    seconds: float
    info: dict[str, Any]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """A demo snapshot large enough that a conversion can be caught in the act."""
    from snapviewer.demo import DemoOptions, write_demo

    directory = tmp_path_factory.mktemp("undisturbed")
    source, output = directory / "demo.pickle", directory / "out.zip"
    write_demo(source, DemoOptions(events=200_000))
    process = _convert(source, output)
    started = time.monotonic()
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return Undisturbed(source, time.monotonic() - started, _info(output))


# Python has begun when it says so: a signal before that is Python's business, not ours.
_PROGRAM = """
import sys
from snapviewer.cli import main
print("ready", flush=True)
sys.exit(main())
"""


def _convert(source: Path, output: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start a conversion and return when the program, not only Python, has begun."""
    arguments = ["convert", "-i", str(source), "-o", str(output), *options]
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def _info(bundle: Path) -> dict[str, Any]:
    """What `info` says of a bundle, apart from where it is and how it is packed."""
    ran = program.run("info", bundle, "--json")
    assert ran.code == 0, ran.err
    info: dict[str, Any] = json.loads(ran.out)
    return {key: value for key, value in info.items() if key not in ("file", "format")}


def _stop_at(process: subprocess.Popen[bytes], seconds: float, how: signal.Signals) -> bytes:
    """Send a signal after some time, unless the process has ended, and give its last words."""
    time.sleep(seconds)
    process.send_signal(how)
    _, err = process.communicate(timeout=60)
    return err


@pytest.fixture(params=KINDS)
def output(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Where a conversion writes: a bundle of each kind."""
    return tmp_path / str(request.param)


def test_a_killed_conversion_leaves_nothing_or_a_whole_bundle(
    output: Path, undisturbed: Undisturbed
) -> None:
    moments, outcomes = random.Random(output.name), []

    for _ in range(KILLS):
        process = _convert(undisturbed.source, output)
        _stop_at(process, moments.uniform(0, undisturbed.seconds), signal.SIGKILL)
        outcomes.append(output.exists())
        if output.exists():
            assert _info(output) == undisturbed.info
            _remove(output)

    _assert_tidied_by_the_next(undisturbed, output)
    assert not all(outcomes), "every kill came too late to test anything"


def test_a_conversion_killed_while_it_replaces_a_bundle_leaves_a_whole_one(
    output: Path, undisturbed: Undisturbed
) -> None:
    moments = random.Random(output.name)
    assert program.run("convert", "-i", undisturbed.source, "-o", output).code == 0

    for _ in range(max(1, KILLS // 3)):
        process = _convert(undisturbed.source, output, "--force")
        # The last third is where the old bundle makes way for the new one.
        seconds = undisturbed.seconds * moments.uniform(0.2, 1.05)
        _stop_at(process, seconds, signal.SIGKILL)
        if output.exists():
            assert _info(output) == undisturbed.info

    _assert_tidied_by_the_next(undisturbed, output, "--force")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_an_interrupted_conversion_tidies_up(
    output: Path, share: float, undisturbed: Undisturbed
) -> None:
    process = _convert(undisturbed.source, output)

    err = _stop_at(process, undisturbed.seconds * share, signal.SIGINT).decode()

    assert "Traceback" not in err
    assert _messages(err) in ([], ["snapviewer: interrupted"])
    if output.exists():  # the signal came when all was done, perhaps while Python was ending
        assert process.returncode in (0, 130, -signal.SIGINT), err
        assert _info(output) == undisturbed.info
        assert list(output.parent.iterdir()) == [output]
    else:
        assert process.returncode == 130, err
        assert list(output.parent.iterdir()) == []


def _assert_tidied_by_the_next(undisturbed: Undisturbed, output: Path, *options: str) -> None:
    """Whatever kills left beside the output is gone after the next conversion to it."""
    last = program.run("convert", "-i", undisturbed.source, "-o", output, *options)
    assert last.code == 0, last.err
    assert list(output.parent.iterdir()) == [output]
    assert _info(output) == undisturbed.info


def _messages(err: str) -> list[str]:
    """The lines that stand when progress, which overwrites itself, is over."""
    lines = (line.rpartition("\r")[2].strip() for line in err.splitlines())
    return [line for line in lines if line]


def _remove(output: Path) -> None:
    if output.is_dir():
        for path in output.iterdir():
            path.unlink()
        output.rmdir()
    else:
        output.unlink()
