"""A pytest plugin that runs the collected tests once per mutant, each time in a fork.

Tests are collected once, which is most of the cost of a short run. A first fork runs all of them
unmutated and notes which call which function; those that fail there are left out, such as tests
that read the sources. Each mutant then meets the tests that reach its function, until one fails.
A fixture that several tests share is noted for the whole file.

`MUTANTS` names the file that lists the mutants, where the results go, and how long it may take.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mutmut.mutation import trampoline

_PARALLEL = os.cpu_count() or 1
_DONE, _FAILED = 0, 1


@dataclass
class Reached:
    """A test that passes: its file, its time, and the functions that it calls."""

    file: str
    seconds: float
    functions: set[str]


@dataclass
class Fork:
    """A process that runs tests, its deadline, and its folder for temporary files."""

    mutant: str
    deadline: float
    folder: str = field(default_factory=lambda: tempfile.mkdtemp(prefix="mutant-"))
    pid: int = 0


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Run the tests once as they are, and then for each mutant."""
    job = json.loads(Path(os.environ.pop("MUTANTS")).read_text())
    end = time.monotonic() + job["seconds"]
    items = {item.nodeid: item for item in session.items}
    notes = Path(job["results"]).with_suffix(".notes")
    first = _fork(session, "stats", end, lambda: _note(session, notes))
    _wait([first], Path(os.devnull))
    tests = {
        name: Reached(file, seconds, set(functions))
        for name, (file, seconds, functions) in _read(notes).items()
    }
    running: list[Fork] = []
    results = Path(job["results"])
    for mutant in job["mutants"]:
        order = _tests_of(tests, mutant.rsplit("__mutmut_", 1)[0])
        if not order:
            _append(results, mutant, "untested")
            continue
        if time.monotonic() > end:
            break
        chosen = [items[name] for name in order]
        seconds = 20 + 10 * sum(tests[name].seconds for name in order)
        running.append(_fork(session, mutant, time.monotonic() + seconds, _until_failure(chosen)))
        while len(running) >= _PARALLEL:
            running = _wait(running, results)
    while running:
        running = _wait(running, results)
    return True


def _tests_of(tests: dict[str, Reached], function: str) -> list[str]:
    """Return the tests that reach a function, quick files first, quick tests of a file first."""
    found = [name for name, test in tests.items() if function in test.functions]
    cost: dict[str, float] = defaultdict(float)
    for name in found:
        cost[tests[name].file] += tests[name].seconds
    return sorted(
        found, key=lambda name: (cost[tests[name].file], tests[name].file, tests[name].seconds)
    )


def _fork(session: pytest.Session, mutant: str, deadline: float, run: Callable[[], int]) -> Fork:
    fork = Fork(mutant, deadline)
    fork.pid = os.fork()
    if fork.pid:
        return fork
    code = _FAILED
    try:
        os.setsid()
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        trampoline.set_mutant_under_test(mutant)
        temporary: Any = session.config._tmp_path_factory  # type: ignore[attr-defined]
        temporary._given_basetemp = Path(fork.folder) / "tests"
        code = run()
    finally:
        os._exit(code)


def _append(results: Path, mutant: str, result: str) -> None:
    with results.open("a") as file:
        file.write(f"{mutant} {result}\n")


def _wait(running: list[Fork], results: Path) -> list[Fork]:
    """Wait until a fork ends or is late, and return the others."""
    while True:
        for fork in running:
            pid, status = os.waitpid(fork.pid, os.WNOHANG)
            if not pid and time.monotonic() < fork.deadline:
                continue
            if not pid:
                os.killpg(fork.pid, signal.SIGKILL)
                os.waitpid(fork.pid, 0)
            ended = "survived" if status == 0 else "killed"
            _append(results, fork.mutant, ended if pid else "timeout")
            shutil.rmtree(fork.folder, ignore_errors=True)
            return [other for other in running if other is not fork]
        time.sleep(0.005)


def _note(session: pytest.Session, path: Path) -> int:
    """Run all tests as they are, and write what each one reaches."""
    reached: set[str] = set()
    vars(trampoline)["record_trampoline_hit"] = lambda name, caller=None: reached.add(name)
    of_file: dict[str, set[str]] = defaultdict(set)
    notes: dict[str, Reached] = {}
    for item, following in zip(session.items, [*session.items[1:], None], strict=True):
        reports = _reports(item, following, reached, of_file[str(item.path)])
        if all(report.passed for report in reports):
            seconds = sum(report.duration for report in reports)
            notes[item.nodeid] = Reached(str(item.path), seconds, set(reached))
    path.write_text(
        json.dumps(
            {
                name: (note.file, note.seconds, sorted(note.functions | of_file[note.file]))
                for name, note in notes.items()
            }
        )
    )
    return _DONE


def _reports(
    item: pytest.Item, following: pytest.Item | None, reached: set[str], shared: set[str]
) -> list[pytest.TestReport]:
    """Run a test, and note what it calls, and what its fixtures call."""
    from _pytest.runner import call_and_report

    reached.clear()
    item._initrequest()  # type: ignore[attr-defined]
    reports = [call_and_report(item, "setup", log=False)]
    shared |= reached
    if reports[0].passed:
        reports.append(call_and_report(item, "call", log=False))
    reports.append(call_and_report(item, "teardown", log=False, nextitem=following))
    return reports


def _until_failure(items: list[pytest.Item]) -> Callable[[], int]:
    def run() -> int:
        for item, following in zip(items, [*items[1:], None], strict=True):
            if any(report.failed for report in _reports(item, following, set(), set())):
                return _FAILED
        return _DONE

    return run


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found
