"""Runs a job again and again, each time with another write that fails; see `faults.c`.

`LD_PRELOAD=faults.so python tests/support/faults.py DIRECTORY JOB LASTS` prints a JSON line for
each run. Every run is a fork of this process, which is much faster than a new one.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support import writing_jobs
from support.writing_jobs import JOBS, Job

SOURCE = Path(__file__).with_name("faults.c")
SECONDS_PER_RUN = 60


def build(directory: Path) -> Path:
    """Compile the library."""
    library = directory / "faults.so"
    command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return library


def runs_of(library: Path, directory: Path, job: str, *, lasts: bool) -> list[dict[str, Any]]:
    """What came of a job with every single write failing, one after the other."""
    done = subprocess.run(
        [sys.executable, __file__, str(directory), job, str(int(lasts))],
        env={**os.environ, "LD_PRELOAD": str(library), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def _forked(job: Job, directory: Path, number: int, *, lasts: bool) -> dict[str, Any]:
    """Run a job in a process of its own, whose n-th write fails."""
    counts, report = os.pipe()
    child = os.fork()
    if child == 0:
        os.chdir(directory)
        printed = os.open(directory.parent / "words", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(printed, stream)
        faults = ctypes.CDLL(None)
        faults.fault_set(number, int(lasts))
        code = 99
        try:
            code = writing_jobs.run_job(job)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 98
        finally:
            faults_count = faults.fault_count()
            faults.fault_set(0, 0)
            os.write(report, str(faults_count).encode())
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    os.close(report)
    _, status = os.waitpid(child, 0)
    calls = int(os.read(counts, 99) or b"-1")
    os.close(counts)
    words = (directory.parent / "words").read_text(errors="replace")
    code = os.waitstatus_to_exitcode(status)
    state = writing_jobs.state_of(directory)
    return {"at": number, "code": code, "calls": calls, "words": words, "state": state}


def main(directory: Path, name: str, *, lasts: bool) -> None:
    """Print what comes of a job without a fault, then with each."""
    job = JOBS[name]
    inputs, work, old = directory / "inputs", directory / "work", None
    if not inputs.exists():
        writing_jobs.prepare(inputs)
    os.environ |= {"SNAPVIEWER_CACHE": "cache", "SNAPVIEWER_CONFIG": "config"}
    if job.replaces:
        old = directory / "old"
        writing_jobs.reset(work, inputs, None)
        assert _forked(job, work, 0, lasts=False)["code"] == 0
        writing_jobs.spoil_output(work)
        writing_jobs.spoil_settings(work)
        writing_jobs.reset(old, work, None)
    writing_jobs.reset(work, inputs, old)
    print(json.dumps({"at": -1, "state": writing_jobs.state_of(work)}))
    whole = _forked(job, work, 0, lasts=False)
    print(json.dumps(whole), flush=True)
    for number in range(1, whole["calls"] + 1):
        writing_jobs.reset(work, inputs, old)
        print(json.dumps(_forked(job, work, number, lasts=lasts)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], lasts=sys.argv[3] == "1")
