"""Real recordings, made here: small programs on the null device, under any settings.

`recorded("ragged", conf="expandable_segments:True")` returns a snapshot that PyTorch itself wrote.
Recordings are kept in build/recorded, under a digest of everything that they depend on. Importing
torch takes seconds: one process imports it, and forks for each program.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import importlib.metadata
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snapviewer.capture.options import CaptureOptions

PROGRAMS = Path(__file__).with_name("recorded_programs.py")
_KEPT = Path(__file__).resolve().parents[2] / "build" / "recorded"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A snapshot, and what PyTorch itself counted when it wrote it."""

    path: Path
    results: tuple[dict[str, Any], ...]  # one per snapshot, the last one is `path`

    @property
    def facts(self) -> dict[str, Any]:
        return self.results[-1]

    @property
    def devices(self) -> list[dict[str, Any]]:
        return list(self.facts["devices"])


def recorded(
    program: str,
    *,
    conf: str = "",
    gpu: str = "a100-40gb",
    capacity: int | None = None,
    devices: int = 1,
    stacks: str = "python",
    workspace_bytes: int = 0,
    variables: dict[str, str] | None = None,
) -> Recorded:
    """Record a program, unless its recording is kept.

    Args:
        program: A function of `recorded_programs`, or the source text of a script.
        conf: What $PYTORCH_ALLOC_CONF (and $PYTORCH_CUDA_ALLOC_CONF) is set to.
        gpu: A GPU of `gpus.toml`.
        capacity: Its usable bytes, if others.
        devices: How many there are.
        stacks: "python" or "all".
        workspace_bytes: What each call of cuDNN takes as its workspace.
        variables: Further variables of its environment.
    """
    from snapviewer.capture.gpus import find_gpu
    from snapviewer.capture.options import CaptureOptions

    device = _null_device()
    chosen = find_gpu(gpu)
    chosen = chosen if capacity is None else chosen.with_capacity(capacity)
    variables = variables or {}
    environment = device.environment(chosen, devices=devices, workspace_bytes=workspace_bytes)
    declared = [environment["SNAPVIEWER_NULL_DEVICE"], variables]
    is_text = "\n" in program
    source = program if is_text else f"{PROGRAMS.read_text()}\n{program}"
    key = json.dumps([source, conf, stacks, _implementation(), declared])
    directory = _KEPT / hashlib.sha256(key.encode()).hexdigest()[:24]
    if not (directory / "done.json").exists():
        directory.mkdir(parents=True, exist_ok=True)
        script = directory / "program.py"
        if is_text:
            script.write_text(program)
        log_of_results = directory / f"results-{os.getpid()}.jsonl"
        options = CaptureOptions(
            output=str(directory / "snap.pickle"),
            stacks=stacks,
            results=str(log_of_results),
            predicted={"stubs": list(device.stubs), "gpu": chosen.key},
        )
        code, log = run(
            [str(script)] if is_text else [str(PROGRAMS), program],
            options,
            environment | variables | {"PYTORCH_ALLOC_CONF": conf, "PYTORCH_CUDA_ALLOC_CONF": conf},
        )
        assert code == 0, f"{program[:80]}: exit code {code}\n{log}"
        log_of_results.replace(directory / "done.json")
    lines = (directory / "done.json").read_text().splitlines()
    results = tuple(map(json.loads, lines))
    return Recorded(Path(results[-1]["file"]), results)


def run(
    command: list[str], options: CaptureOptions | None, environment: dict[str, str] | None = None
) -> tuple[int, str]:
    """Run a script as `snapviewer record` would in its child; return its exit code and output.

    Without options, it only runs on the null device.
    """
    from snapviewer.capture.gpus import find_gpu

    environment = environment or _null_device().environment(find_gpu("a100-40gb"))
    server = _Server.shared(environment)
    declared = options.to_environment() if options else {}
    return server.run({"command": command, "environment": {**environment, **declared}})


@cache
def _null_device() -> Any:
    from snapviewer.capture.null_device import prepare

    return prepare()


@cache
def _implementation() -> str:
    """A digest of what records: changed code records again."""
    import snapviewer.capture

    digest = hashlib.sha256(importlib.metadata.version("torch").encode())
    for library in _null_device().libraries:
        digest.update(library.read_bytes())
    for path in sorted(Path(snapviewer.capture.__path__[0]).glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class _Server:
    """A process that has imported torch, and forks for each program."""

    _one: _Server | None = None

    def __init__(self, environment: dict[str, str]) -> None:
        support = str(Path(__file__).parent)
        path = os.pathsep.join(filter(None, [support, os.environ.get("PYTHONPATH", "")]))
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env={**os.environ, **environment, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self._close)

    @classmethod
    def shared(cls, environment: dict[str, str]) -> _Server:
        if cls._one is None:
            cls._one = cls(environment)
        return cls._one

    def run(self, job: dict[str, Any]) -> tuple[int, str]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        code, log = json.loads(self._process.stdout.readline())
        return code, log

    def _close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def _serve(jobs: IO[str], answers: IO[str]) -> None:
    import tempfile

    # What takes long: optimizers import the second when they first step.
    import_module("torch")
    import_module("torch._dynamo")
    from snapviewer.capture import child, options

    for line in jobs:
        job = json.loads(line)
        with tempfile.TemporaryFile("w+") as log:
            process = os.fork()
            if not process:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
                os.environ.update(job["environment"])
                ctypes.CDLL(None).snapviewer_read_profile()
                leave, code = os._exit, 99
                try:
                    run = child.main if options.VARIABLE in os.environ else _run_plainly
                    code = run(job["command"])
                    sys.stdout.flush()
                finally:
                    leave(code)
            _, status = os.waitpid(process, 0)
            log.seek(0)
            answers.write(
                json.dumps([os.waitstatus_to_exitcode(status), log.read()[-8000:]]) + "\n"
            )
            answers.flush()


def _run_plainly(command: list[str]) -> int:
    import runpy
    import traceback

    sys.argv[:] = command
    try:
        runpy.run_path(command[0], run_name="__main__")
    except Exception:  # any of the script's
        traceback.print_exc()
        return 1
    finally:
        atexit._run_exitfuncs()
    return 0


if __name__ == "__main__":
    _serve(sys.stdin, sys.stdout)
