"""Kills a job again and again while it writes, and checks what is left each time.

`python tests/support/kills.py DIRECTORY JOB KILLS` prints how many kills hit. Only those count that
come while a temporary file is there: SIGKILL is sent a random moment after the job made one, within
the time that an undisturbed job keeps it. Jobs are forks of this process, which has no threads.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support import writing_jobs
from support.writing_jobs import JOBS, Job, state_of

MAX_TRIES_PER_KILL = 40
EVENTS = 20_000


def main(directory: Path, name: str, kills: int) -> None:
    """Kill a job until enough kills have hit."""
    job, work, inputs, old = JOBS[name], directory / "work", directory / "inputs", None
    writing_jobs.prepare(inputs, events=EVENTS)
    writing_jobs.reset(work, inputs, None)
    if job.replaces:
        assert _ended(_started(job, work)) == 0
        writing_jobs.spoil_output(work)
        writing_jobs.spoil_settings(work)
        old = directory / "old"
        writing_jobs.reset(old, work, None)
    before = state_of(work)
    assert _ended(_started(job, work)) == 0
    whole = state_of(work)
    writing_jobs.reset(work, inputs, old)
    seconds = _seconds_of_writing(job, work)
    moments, hits, tries = random.Random(name), 0, 0
    while hits < kills and tries < kills * MAX_TRIES_PER_KILL:
        tries += 1
        writing_jobs.reset(work, inputs, old)
        if _killed_while_writing(job, work, moments.uniform(0, seconds)):
            hits += 1
            _check(job, work, before, whole)
    print(f"{hits} kills while writing, of {tries}")
    sys.exit(0 if hits else 1)


def _check(job: Job, work: Path, before: dict[str, str], whole: dict[str, str]) -> None:
    """The files are the old ones or the new ones, and the next run is not disturbed."""
    kept = {path: digest for path, digest in state_of(work).items() if not _is_part(path)}
    assert kept in (before, whole) or _is_unfinished_entry(kept, before, whole), kept
    assert _ended(_started(job, work)) == 0
    left = state_of(work)
    assert {path: left.get(path) for path in whole} == whole, left
    # The cache removes what is unfinished after a day: another process may be at it.
    assert not any(_is_part(path) and not path.startswith("cache") for path in left), left


def _started(job: Job, directory: Path) -> int:
    """Start a job in a process of its own, and return its number."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.chdir(directory)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
            code = writing_jobs.run_job(job)
        finally:
            os._exit(code)
    return child


def _ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _killed_while_writing(job: Job, directory: Path, seconds: float) -> bool:
    """Kill a job some time after it began to write; return whether it had not ended."""
    child = _started(job, directory)
    while not _is_writing(directory):
        if os.waitpid(child, os.WNOHANG) != (0, 0):
            return False
    time.sleep(seconds)
    is_writing = _is_writing(directory)
    os.kill(child, signal.SIGKILL)
    return _ended(child) == -signal.SIGKILL and is_writing


def _seconds_of_writing(job: Job, directory: Path) -> float:
    """How long an undisturbed job keeps a temporary file."""
    child, seconds, began = _started(job, directory), 0.0, time.perf_counter()
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if _is_writing(directory):
            seconds = time.perf_counter() - began
        elif not seconds:
            began = time.perf_counter()
    return seconds


def _is_writing(directory: Path) -> bool:
    places = (directory, directory / "cache", directory / "config")
    return any(_is_part(name) for place in places for name in _names(place))


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []


def _is_part(path: str) -> bool:
    """Whether it is a temporary file, or in a temporary directory."""
    return any(name.endswith((".part", ".new")) for name in path.split(os.sep))


def _is_unfinished_entry(
    kept: dict[str, str], before: dict[str, str], whole: dict[str, str]
) -> bool:
    """Whether a checksum is in the cache before its bundle, which is how an entry begins."""
    more = set(kept) - set(before)
    return len(more) == 1 and kept.items() <= whole.items() and more.pop().endswith(".sum")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
