"""Starts a script in a child process that records it, and waits for it.

Signals go to the child, which writes what it has; what it prints passes through.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from .options import CaptureOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

_FORWARDED = ("SIGTERM", "SIGUSR1", "SIGHUP")


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run ended: the child's exit code (128 + its signal), and the snapshots it wrote."""

    code: int
    snapshots: tuple[dict[str, Any], ...]


def run_script(
    command: Sequence[str],
    options: CaptureOptions,
    *,
    environment: Mapping[str, str] | None = None,
    stdout: IO[Any] | None = None,
    is_silent: bool = False,
) -> Ran:
    """Run `SCRIPT …` or `-m MODULE …` while it is recorded.

    Args:
        command: The script and its arguments.
        options: What to record.
        environment: Variables to add.
        stdout: Where the script prints to, if not where this process does.
        is_silent: Whether what the script prints is dropped.
    """
    with tempfile.TemporaryDirectory(prefix="snapviewer-") as directory:
        results = Path(directory) / "results.jsonl"
        options = replace(options, results=str(results))
        child = subprocess.Popen(
            [sys.executable, "-m", "snapviewer.capture.child", *command],
            env={**os.environ, **(environment or {}), **options.to_environment()},
            stdout=subprocess.DEVNULL if is_silent else stdout,
            stderr=subprocess.DEVNULL if is_silent else None,
        )
        with _forwarding(child):
            code = _wait(child)
        lines = results.read_text("utf-8").splitlines() if results.exists() else []
    return Ran(128 - code if code < 0 else code, tuple(map(json.loads, lines)))


def _wait(child: subprocess.Popen[Any]) -> int:
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:  # the terminal sent it to the child, too
            continue


@contextmanager
def _forwarding(child: subprocess.Popen[Any]) -> Iterator[None]:
    def forward(number: int, frame: object) -> None:
        with suppress(ProcessLookupError):
            child.send_signal(number)

    before: dict[int, Any] = {}
    for name in _FORWARDED:
        number = getattr(signal, name, None)
        if number is not None:
            with suppress(ValueError):  # not the main thread
                before[number] = signal.signal(number, forward)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
